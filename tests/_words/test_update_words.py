"""Every sentence that is said about a fitted update, in one file that a person can read whole.

`python tests/_words/test_update_words.py` writes `update_words.txt` anew. Read it with `git diff`.
"""

from dataclasses import replace
from pathlib import Path

from commod._record.audit import LeftOutGroup
from commod._record.edits import EditFigures, EditRecord
from commod._record.explanation import Estimate
from commod._words.update import (
    AskedTarget,
    Goal,
    GroupsLeftOut,
    NeededChanges,
    PromiseOutcome,
    UnknownPeople,
    UpdateFacts,
    further_sentences,
    status_lines,
    status_text,
)

STORED = Path(__file__).with_name("update_words.txt")
NAN = float("nan")
GOAL = Goal(
    "P-rule of label 1", "≥", 0.617, 0.811, 0.8, True, 0.802, "P-rule of label 0", (0.90, 0.95)
)
STANDING = Goal("lowest TPR of label 1", "≥", 0.55, 0.61, 0.6, True, 0.605)
ASKED = AskedTarget(True, True, True, (0.752, 0.861), 0.049, 0.836, is_reached=True)
LIMIT = NeededChanges(43, 0.0232)
RATES = (("", 0.312, 0.3628), ("married", 0.402, 0.42), ("single", 0.248, 0.341))
FACTS = UpdateFacts(
    goals=(GOAL,),
    rows="fit rows",
    n_rows=1850,
    change_rate=0.0508,
    n_gains=94,
    n_losses=0,
    accuracy=(0.84, 0.835),
    target=ASKED,
    limit=LIMIT,
    n_groups=3,
    smallest_category=20,
)
MISSED = replace(ASKED, is_expected=False, is_reached=False, smallest=("group 'b'", 40))
EDIT = EditRecord("", "Ann", None, (), "target", True, ("age",), *[EditFigures(*[None] * 5)] * 2)
UNKNOWN = UnknownPeople(200, 1650, 1850, 1850, False, False, (NAN, NAN), (0.7, 0.91), True)
HELD_OUT = {"rows": "held-out rows", "covered": (("a", 1200), ("b", 630)), "not_covered": ("c",)}
STRATA = {
    "within": "town",
    "n_strata": 3,
    "n_strata_left_out": 1,
    "n_rows_left_out": 40,
    "min_rows": 50,
}
LEFT_OUT = GroupsLeftOut(
    (LeftOutGroup("widowed", 25, 0.0, 0.04), LeftOutGroup("other", 3, None, None)),
    30,
    n_hidden=3,
    fewest_shown=5,
    over_all=("the 3 groups of at least 5 rows", 0.713),
)


def with_target(**fields):
    return replace(FACTS, target=replace(ASKED, **fields))


def missed(**fields):
    goal = replace(GOAL, after=0.75, is_kept=False, expected=0.741)
    own = {"is_missed": True, "needed": 0.06, "interval": (0.69, 0.79)}
    own["direction_kept"] = fields.get("direction", "any")
    target = replace(MISSED, **own | fields)
    return replace(FACTS, goals=(goal,), target=target)


def promised(after=0.811, **outcome):
    promise = PromiseOutcome(0.95, **outcome)
    goal = replace(GOAL, after=after, is_kept=after >= 0.8, other=(NAN, NAN), other_metric="")
    return replace(FACTS, **HELD_OUT, goals=(goal,), promise=promise, target=AskedTarget())


def changing(facts, n_gains, n_losses=0):
    rate = (n_gains + n_losses) / facts.n_rows
    return replace(facts, n_gains=n_gains, n_losses=n_losses, change_rate=rate)


CASES = {
    "the target is expected": FACTS,
    "it is reached on the fit rows": with_target(is_expectation=False),
    "it is not expected": replace(
        FACTS,
        target=MISSED,
        goals=(replace(GOAL, expected=0.7998),),
        covered=(("a", None), ("b", None)),
        not_covered=("c",),
    ),
    "too few people to expect anything": replace(
        FACTS, target=replace(MISSED, is_known=False, smallest=("group 'b'", 3), fewest_shown=5)
    ),
    "it is missed": missed(),
    "it is missed, with caps": missed(caps={"changes": 0.02, "volume_change": 0.01}),
    "it is missed on the fit rows": missed(is_expectation=False, direction="gains_only"),
    "nobody knows what it needs": missed(needed=NAN),
    "nobody knows what it needs, with caps": missed(needed=NAN, caps={"changes": 0.02}),
    "no update reaches it": missed(needed=float("inf"), direction="gains_only"),
    "several bounds, one missed": replace(
        FACTS,
        goals=(GOAL, replace(STANDING, after=0.5999, is_kept=False, expected=0.59)),
        target=replace(MISSED, is_missed=True, needed=0.06),
    ),
    "several bounds, all kept on the fit rows": replace(
        FACTS, goals=(GOAL, replace(STANDING, expected=0.59)), target=MISSED
    ),
    "a budget": changing(
        with_target(budget=0.06, direction="losses_only", direction_kept="losses_only"), 0, 94
    ),
    "a budget on the fit rows": with_target(budget=0.06, is_expectation=False),
    "a promise": promised(),
    "no promise: too few rows": promised(
        failure="too few rows",
        after=0.85,
        observed=0.85,
        promised=0.75,
        n_rows_needed=12345,
    ),
    "no promise: unfair": promised(failure="unfair", after=0.75, observed=0.75),
    "no promise: unfair, no update is kept": changing(
        replace(
            promised(failure="unfair", after=0.617, observed=0.6),
            accuracy=(0.84, 0.84),
        ),
        0,
    ),
    "no promise: nobody to compare": promised(failure="unfair", after=NAN),
    "no promise: most decisions change": changing(
        promised(failure="degenerate", change_rate=0.6), 1110
    ),
    "no promise: all decisions alike": promised(failure="degenerate", change_rate=0.05),
    "most decisions change": changing(FACTS, 1110),
    "all decisions alike": with_target(is_degenerate=True, is_reached=False),
    "most changes are losses": replace(
        changing(FACTS, 4, 90), limit=replace(LIMIT, gains_only=0.07)
    ),
    "gains alone cannot": replace(
        changing(FACTS, 4, 90), limit=replace(LIMIT, gains_only=float("inf"))
    ),
    "groups left out": replace(
        FACTS, left_out=LEFT_OUT, covered=(("married", None), ("single", None)), n_groups=4
    ),
    "groups left out, in a file": replace(
        FACTS, left_out=LEFT_OUT, covered=(("married", None), ("single", None)), n_groups=4
    ).without_names(),
    "strata": replace(
        FACTS,
        goals=(replace(GOAL, **STRATA),),
    ),
    "unknown groups": replace(FACTS, unknown=UNKNOWN),
    "few people of unknown groups": replace(
        FACTS, unknown=replace(UNKNOWN, is_hidden=True, n=3, worst=(NAN, NAN))
    ),
    "probabilities of groups": replace(
        FACTS,
        unknown=replace(UNKNOWN, by_probability=True, calibrated=(0.75, 0.86), is_exact=False),
        limit=replace(LIMIT, by_probability=True),
    ),
    "the metric is undefined": replace(FACTS, goals=(replace(GOAL, before=NAN),)),
    "an edit": with_target(edits=(EDIT,)),
    "edits, the cut stays": missed(edits=(EDIT, replace(EDIT, offset="keep"))),
    "an edit that misses": missed(edits=(EDIT,)),
    "terms of few people": replace(FACTS, n_small_terms=2),
    "weights": replace(FACTS, limit=NeededChanges(is_weighted=True)),
    "no change": changing(
        replace(
            FACTS,
            goals=(replace(GOAL, before=0.811, other=(0.95, 0.95)),),
            accuracy=(0.835, 0.835),
            target=replace(ASKED, change_rate=0.0, accuracy=0.835),
        ),
        0,
    ),
    "no target": replace(FACTS, target=None, limit=None, notes=("A remark of a method.",)),
    "rates of groups": replace(FACTS, outcome="label 1", rates=RATES),
    "rates of groups, in a file": replace(FACTS, outcome="label 1", rates=RATES).without_names(),
    "people passed over": replace(
        changing(FACTS, 60, 34),
        outscoring={"gain": Estimate(0.2, 0.1, 0.3), "loss": Estimate(0.52, 0.4, 0.6)},
    ),
    "what else is known": replace(
        FACTS,
        goals=(replace(GOAL, meaning=" The rate is how often people are decided 1."),),
        target=replace(ASKED, direction_kept="gains_only", nearness=0.4, edits=(EDIT,)),
        limit=replace(LIMIT, is_exact=False, known_changed=0.06, known_share=0.03),
        unknown=replace(UNKNOWN, without_interval=("lowest TPR", "error ratio")),
        outscoring={"gain": Estimate(0.7, 0.6, 0.8)},
    ),
}


def all_words():
    """Return the lines of each case that no case before it has."""
    parts, seen = [], set()
    for name, facts in CASES.items():
        lines = [*status_lines(facts), *further_sentences(facts)]
        parts.append("\n".join([f"# {name}", *(line for line in lines if line not in seen)]))
        seen.update(lines)
    return "\n\n".join(parts) + "\n"


def test_every_sentence_is_as_it_was_read():
    assert all_words() == STORED.read_text("utf-8")


def test_as_many_gains_as_losses_are_changes():
    assert not status_lines(changing(FACTS, 47, 47))[0].startswith(("47", "No decision"))


def test_a_file_names_no_group():
    facts = replace(CASES["groups left out"], outcome="label 1", rates=RATES)
    named = ("married", "single", "widowed", "other (", "0.713", "4.0%", "34.1%")
    assert all(name in status_text(facts) for name in named)
    without = facts.without_names()
    assert not any(name in repr(without) + status_text(without) for name in named)
    assert without.without_names() == without


if __name__ == "__main__":
    STORED.write_text(all_words(), "utf-8")
