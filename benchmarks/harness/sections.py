"""The sections of docs/benchmarks.md: a title, a description, and the quantities shown."""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    """A column of a section's table: its header, and the quantity that it shows."""

    header: str
    quantity: str


class Section(NamedTuple):
    """The section that shows one part."""

    part: str
    title: str
    description: str
    columns: tuple[Column, ...]


SECONDS = Column("seconds", "seconds")
MEMORY = Column("MB beyond the data", "peak_mb")
HELD = Column("GB held by the process", "process_peak_gb")

SECTIONS = (
    Section(
        "start",
        "Start",
        "Each time is that of a whole command from start to end, including the start of Python. A "
        "check makes sure that `import commod` does not load JAX.",
        (SECONDS,),
    ),
    Section(
        "peers",
        "Fits beside other libraries'",
        "All programs fit the training rows of split 0 of the paper's protocol. COMMOD and the "
        "adversarial classifiers of Fairlearn and AIF360 train 100 epochs in batches of 128, with "
        "one adversary step per step of the model. Every peer has its own adversary and its own "
        "environment. Fairlearn's adversary is linear, as documented, or that of its user guide. "
        "Peers get encoded features; our programs get the raw frame and encode it themselves. "
        "ControlledDebiaser and OxonFair ask for a P-rule of 0.8. By default ControlledDebiaser "
        "fits on folds to say what is expected on new people; OxonFair fits once. "
        '"ControlledDebiaser, fit rows" has no folds (`target_on="fit_rows"`, `borderline=0`). '
        "ControlledDebiaser and OxonFair also fit the first 1,000 rows of COMPAS. A frontier is "
        "100 models, which are measured but not described. A first call is the imports and the "
        "first fit of a fresh process; next calls are the fits after it. "
        '"COMMOD, compiled before" reuses what an earlier process compiled. "COMMOD, first fit in '
        'parts" imports JAX beforehand, to receive '
        "the times that JAX reports. Its parts may overlap, because tracing can be nested.",
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
        "The tables have 10 columns of numbers and 10 columns of 8 categories, drawn at random. "
        "The fits are of ControlledDebiaser with target 0.8. They read the scores from a column, "
        'except where the model\'s predictions are included. "Odds" asks for equalized odds of at '
        'most 0.05. "Target on fit rows" measures nothing on new people '
        '(`target_on="fit_rows"`, `borderline=0`). LogisticRegression is scikit-learn\'s, on the '
        'same columns, encoded beforehand as a sparse matrix. "The base pipeline\'s fit" encodes '
        'them, too. "Copy" is one deep copy of the frame. Updates that '
        "predict, apply or are audited were fitted on 50,000 of the rows. Memory is the peak of "
        "the first round, beyond what the process held before the round.",
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
        "Each table has 10 columns of numbers and one column of categories, most of them rare. "
        "COMMOD is timed after its first fit, because the first fit compiles. In Spark, "
        "`Patch.apply` reads a Parquet file and writes another one, on two threads. A copy of the "
        "file by Spark runs before every round, so the ratio compares two jobs that follow each "
        "other in one session.",
        (SECONDS, Column("over the copy", "over_copy"), MEMORY),
    ),
    Section(
        "predict",
        "Predictions",
        "`update.predict` and `Patch.apply` are compared with the base model's own "
        "`predict_proba`. One base model is LightGBM with 200 trees, on a frame of 10 numbers and "
        "10 pandas categories, or on the numbers as an array. The other is a logistic regression "
        "with its encoding. `predict` calls the base model for its scores; `apply` reads them from "
        "a column. The base model predicts before every round, so a ratio compares two calls that "
        "follow each other in one process.",
        (SECONDS, Column("over predict_proba", "over_base"), MEMORY),
    ),
    Section(
        "audit",
        "Audits and reports",
        "An audit gets 20 columns, decisions and scores before and after, and true labels. It "
        'searches for segments and subgroups. "Over the data" is the peak of memory divided by '
        "what the arrays and the frame hold.",
        (SECONDS, MEMORY, Column("over the data", "peak_over_data"), Column("MB", "size_mb")),
    ),
    Section(
        "shipping",
        "The command line on files",
        "`commod apply` on a Parquet file is compared with DuckDB, which copies the file. `commod "
        "debias` runs on a CSV file. Whole processes are timed.",
        (SECONDS, HELD),
    ),
    Section(
        "engines",
        "Fits where the table is",
        "`fit_frame` reads a Parquet file of 10 numbers, 10 columns of 8 categories, 5 groups of "
        "very different size, labels and a key. DuckDB has two threads and 4 GB, Spark two threads "
        'and a JVM of 2 GB. "One scan" applies a patch, so r is computed for every row, and '
        "counts people by group, label, decision and change. A fit in memory reads the file "
        "first. The start of Spark does not count, imports do. Memory is that of the process of "
        "Python, with DuckDB in it.",
        (
            SECONDS,
            HELD,
            Column("GB held by the JVM", "jvm_peak_gb"),
            Column("GB on disk", "file_gb"),
            Column("changes", "changes"),
            Column("P-rule", "fairness"),
        ),
    ),
)
