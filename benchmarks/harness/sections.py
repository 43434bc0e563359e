"""The parts of the page: a title, what was done, and which quantities are shown."""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    """A quantity with its unit."""

    header: str
    quantity: str


class Section(NamedTuple):
    """How one part is shown."""

    part: str
    title: str
    words: str
    columns: tuple[Column, ...]


SECONDS = Column("seconds", "seconds")
MEMORY = Column("MB beyond the data", "peak_mb")
HELD = Column("GB held by the process", "process_peak_gb")

SECTIONS = (
    Section(
        "start",
        "Start",
        "Whole commands from start to end, the start of Python included. `import commod` is "
        "checked not to load JAX.",
        (SECONDS,),
    ),
    Section(
        "peers",
        "Fits beside other libraries'",
        "Training rows of split 0 of the paper's protocol. COMMOD, Fairlearn's and AIF360's "
        "adversarial classifiers train 100 epochs in batches of 128 with one adversary step each; "
        "every peer has its own adversary (Fairlearn's is linear, as documented, or that of its "
        "guide) and an environment of its own. Peers get encoded features, ours encode the raw "
        "frame themselves; ControlledDebiaser and OxonFair ask for a P-rule of 0.8, a frontier is "
        "100 models, measured, and not described. A first call is imports and first fit of a "
        "fresh process, next calls are fits after it. COMMOD compiled before finds what an "
        "earlier process compiled. The first fit in parts has JAX imported beforehand to be "
        "listened to; parts may nest (tracing).",
        (
            Column("next calls, s", "seconds"),
            Column("first call, s", "first_call"),
            Column("imports, s", "imports"),
            Column("first fit, s", "first_fit"),
            Column("JAX's import, s", "imports_jax"),
            Column("tracing, s", "tracing"),
            Column("lowering, s", "lowering"),
            Column("compiling, s", "compiling"),
            Column("steps or models", "steps"),
            Column("accuracy on its rows", "accuracy"),
        ),
    ),
    Section(
        "rows",
        "Many rows",
        "10 numbers and 10 columns of 8 categories, drawn at random. Fits are of "
        "ControlledDebiaser, target 0.8, with the scores in a column unless it says model; every "
        'row: `sample="all"`. LogisticRegression is scikit-learn\'s, on the same columns encoded '
        "beforehand as a sparse matrix; copy is one deep copy of the frame. Updates that predict, "
        "apply or are audited were fitted on 50,000 of the rows. Memory is that of the first "
        "round, beyond what the process held before it.",
        (
            SECONDS,
            MEMORY,
            Column("over the data", "peak_over_data"),
            HELD,
            Column("changes over the exact limit", "over_limit"),
            Column("P-rule", "fairness"),
        ),
    ),
    Section(
        "categories",
        "Many categories",
        "One column of so many categories, most of them rare, beside 10 numbers. COMMOD is timed "
        "after its first fit, which compiles.",
        (SECONDS, MEMORY),
    ),
    Section(
        "predict",
        "Predictions",
        "`update.predict` and `Patch.apply` beside the base model's own `predict_proba`: LightGBM "
        "with 200 trees on a frame of 10 numbers and 10 pandas categories, or on the numbers as an "
        "array, and a logistic regression with its encoding. `predict` asks for the base model's "
        "scores, `apply` has them in a column. Ratios are of calls that follow each other in one "
        "process: the base model predicts before every round.",
        (SECONDS, Column("over predict_proba", "over_base"), MEMORY),
    ),
    Section(
        "audit",
        "Audits and reports",
        "20 columns, decisions and scores before and after, labels; segments and subgroups are "
        "sought. Memory is over what the arrays and the frame hold.",
        (SECONDS, MEMORY, Column("over the data", "peak_over_data"), Column("MB", "size_mb")),
    ),
    Section(
        "shipping",
        "The command line on files",
        "`commod apply` on a Parquet file beside DuckDB copying it, and `commod debias` on a CSV "
        "file; whole processes.",
        (SECONDS, HELD),
    ),
)
