"""`commod compare`: several methods on one table, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commod.cli import _options as options
from commod.cli._say import AsJson, Quiet, Say

if TYPE_CHECKING:
    from commod import Comparison

__all__ = ["EXAMPLES", "command"]

EXAMPLES = (
    "commod compare train.csv --label y --sensitive race --score-column f",
    "commod compare train.csv --label y --sensitive race --score-column f --method "
    "ControlledDebiaser --method COMMOD --at-least 0.8 --picture methods.png",
)

PICTURES = (".png", ".svg", ".pdf")
QUICK = ("ControlledDebiaser", "RejectOption", "MinimalFlip", "LPP", "RelaxedThresholdOptimizer")


def command(
    files: options.Files,
    sensitive: options.Sensitive,
    label: options.Label = None,
    model: options.Model = None,
    score_column: options.ScoreColumn = None,
    constraint: options.Constraint = "demographic_parity",
    at_least: options.AtLeast = None,
    at_most: options.AtMost = None,
    method: Annotated[
        list[str] | None,
        typer.Option(help="A method by name; can be repeated. \\[default: those that are quick]"),
    ] = None,
    positive: options.Positive = None,
    favorable: options.Favorable = None,
    threshold: options.Threshold = 0.5,
    features: options.Features = None,
    ignore: options.Ignore = None,
    test_size: Annotated[
        float, typer.Option(help="Share of the rows held out, on which all is measured.")
    ] = 0.3,
    drop_missing: options.DropMissing = False,
    out: Annotated[
        Path | None, typer.Option(help="Where every update's figures are written (.csv).")
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="Where a picture is written (.png).")] = None,
    trust_pickle: options.TrustPickle = False,
    trust: options.Trust = None,
    types: options.Types = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split and of the methods.")] = 0,
    force: options.Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Say how many decisions each method changes for the same fairness, beside the exact limit."""
    from commod._io.tables import check_outputs
    from commod.cli._rows import Asked, check_test_size, labels_of, read_rows, split_rows

    say = Say(as_json, quiet)
    target = options.target_of(constraint, at_least, at_most)
    check_test_size(test_size)
    _check_methods(method)
    check_outputs([(out, (".csv",)), (picture, PICTURES)], force, inputs=[*files, model])
    asked = Asked(
        files=files,
        label=label,
        sensitive=sensitive,
        model=model,
        score_column=score_column,
        trust_pickle=trust_pickle,
        trust=trust or (),
        features=features or (),
        ignore=ignore or (),
        types=types or (),
        delimiter=delimiter,
        encoding=encoding,
        drop_missing=drop_missing,
    )
    rows = read_rows(asked, say)
    fit_rows, test_rows = split_rows(rows, test_size, seed)
    labels = labels_of(rows)
    shared = {
        "constraints": constraint,
        "threshold": threshold,
        "pos_label": options.label_named("--positive", positive, labels),
        "favorable_label": options.label_named("--favorable", favorable, labels),
        "random_state": seed,
    }
    methods = _methods(rows, method, shared)
    found = _compare(methods, fit_rows, test_rows if test_size else None, say)
    needed = found.changes_needed(None if target is None else [target])
    _print(say, needed, f"{len(test_rows):,} {'rows held out' if test_size else 'fit rows'}")
    _write(found, out, picture, say)
    say.result({"changes_needed": _plain(needed), "failures": found.failures})


def _check_methods(names: list[str] | None) -> None:
    from commod.exceptions import InputError
    from commod.rivals import lineup

    every = lineup(None)
    unknown = [name for name in names or [] if name not in every]
    if unknown:
        raise InputError(f"--method {unknown[0]!r} is not known; choose from {', '.join(every)}.")


def _methods(rows: Any, names: list[str] | None, shared: dict[str, Any]) -> dict[str, Any]:
    from commod.rivals import lineup

    every = lineup(rows.estimator, **shared)
    methods = {name: every[name] for name in names or [n for n in QUICK if n in every]}
    for method in methods.values():
        if "locked_features" in method.get_params():
            method.set_params(locked_features=rows.locked)
    return methods


def _compare(methods: dict[str, Any], fit_rows: Any, test_rows: Any, say: Say) -> Comparison:
    import commod

    measured = {}
    if test_rows is not None:
        measured = {
            "X_eval": test_rows.X,
            "y_eval": test_rows.y,
            "sensitive_features_eval": test_rows.groups,
        }
    with say.checked():
        return commod.compare(
            methods,
            fit_rows.X,
            fit_rows.y,
            sensitive_features=fit_rows.groups,
            progress=None if not (say.as_json or say.quiet) else False,
            **measured,
        )


def _print(say: Say, needed: Any, where: str) -> None:
    headings = [str(needed.index.name or "method"), *map(str, needed.columns)]
    rows = [
        [str(name), *map(_share, values)]
        for name, values in zip(needed.index, needed.to_numpy(), strict=True)
    ]
    say.table(f"Share of decisions changed, by fairness reached, {where}", headings, rows)


def _share(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "not reached" if value != value else f"{value:.2%}"


def _plain(needed: Any) -> list[dict[str, Any]]:
    rows = needed.reset_index().to_dict("records")
    return [{str(k): None if v != v else v for k, v in row.items()} for row in rows]


def _write(found: Comparison, out: Path | None, picture: Path | None, say: Say) -> None:
    import io

    from commod._io.files import write_whole

    if out is not None:
        write_whole(out, found.frame().to_csv(index=False).encode())
        say.line(f"Figures: {out}")
    if picture is not None:
        drawn = io.BytesIO()
        found.plot().savefig(drawn, format=picture.suffix.lstrip(".") or "png", dpi=150)
        write_whole(picture, drawn.getvalue())
        say.line(f"Picture: {picture}")
