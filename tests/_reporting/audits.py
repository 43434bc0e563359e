"""Audits and trade-offs written by hand, for tests of what renders them; nothing is computed.

The figures are those of a made-up recidivism model: label 1 is "will reoffend", label 0 is good for
the person. They are plausible, and different enough from each other to be found in a page.
"""

from dataclasses import replace

from commod._record.audit import (
    SCHEMA,
    Agreement,
    Audit,
    Calibration,
    CalibrationBin,
    ChangeSummary,
    ExpectedOnNewPeople,
    Fairness,
    Gap,
    Group,
    Limit,
    Provenance,
    Proxy,
    Quality,
    Request,
    Shipped,
    SmallGroup,
    StabilitySummary,
    Subgroup,
    Subgroups,
)
from commod._record.checks import Check
from commod._record.explanation import (
    AreaBetween,
    Card,
    CardLine,
    Concept,
    Condition,
    Estimate,
    GroupOutscoring,
    GroupRoc,
    LargestGap,
    Outscoring,
    RocFigures,
    Segment,
    Segments,
    Step,
    TradeOff,
)

HOSTILE = {
    "script": "<script>alert('commod')</script>",
    "image": '"><img src=x onerror=alert(1)>',
    "closing": "</script></style></svg></title><svg onload=alert(2)>",
    "attribute": "' onmouseover='alert(3)' x=\"",
    "template": "{{ 7*7 }} {% raw %} ${7*7} `id`",
    "formula": '=cmd|\' /C calc\'!A0 and =HYPERLINK("http://evil.example","x")',
    "javascript": "[click](javascript:alert(4)) javascript:alert(5)",
    "address": "see https://evil.example/x and www.evil.example or me@evil.example",
    "markdown": "| a | b |\n|---|---|\n# head **bold** _it_ ![i](http://e.example/i.png) ~~x~~ `c`",
    "long word": "x" * 10_000,
    "long text": "many words " * 900,
    "right to left": "קבוצה א׳ العربية",
    "bidi override": "safe\u202egnp.exe\u202c \u2066isolate",
    "emoji": "👩‍⚖️🏳️‍🌈 group",
    "newlines": "one\r\ntwo\nthree\u2028four\u2029five\tsix",
    "controls": "nul\x00 bell\x07 escape\x1b[31m red c1\x9b surrogate\ud800 end",
    "blank": "  \n ",
    "json": '"}]; </script><script>alert(6)</script><!-- \\u003c',
}


def estimate(value, half=0.031):
    return Estimate(value, round(value - half, 4), round(value + half * 0.9, 4))


def group(name, n, before, after, n_gains, n_losses, **changes):
    figures = {
        "name": name,
        "n": n,
        "n_positive_labels": round(n * 0.4411),
        "compared": True,
        "n_gains": n_gains,
        "n_losses": n_losses,
        "favorable_before": estimate(before),
        "favorable_after": estimate(after, 0.0323),
        "selected_before": estimate(round(1 - before, 4)),
        "selected_after": estimate(round(1 - after, 4), 0.0323),
        "accuracy_before": estimate(0.6523 + n / 1e5, 0.0281),
        "accuracy_after": estimate(0.6411 + n / 1e5, 0.0277),
        "true_positive_before": estimate(0.5817 + n / 2e5, 0.0415),
        "true_positive_after": estimate(0.5936 + n / 2e5, 0.0421),
        "false_positive_before": estimate(0.3052 - n / 3e5, 0.0353),
        "false_positive_after": estimate(0.2678 - n / 3e5, 0.0349),
        "mean_score_before": round(0.4012 + n / 9e3, 4),
        "mean_score_after": round(0.4155 + n / 9e3, 4),
    }
    return Group(**{**figures, **changes})


def condition(column, text, low=None, high=None, values=None):
    return Condition(column, low, high, values, False, False, text)


def segments(names=("age", "priors_count", "sex")):
    age, priors, sex = names
    young = condition(age, f"{age} < 25", high=25.0)
    few = condition(priors, f"{priors} < 2", high=2.0)
    men = condition(sex, f"{sex} = Male", values=("Male",))
    old = condition(age, f"{age} ≥ 46", low=46.0)
    many = condition(priors, f"4 ≤ {priors} < 9", low=4.0, high=9.0)

    def rule(direction, conditions, size, n_changed, n_new, coverage, half):
        text = " and ".join(c.text for c in conditions)
        share = estimate(round(n_changed / size, 4), half)
        return Segment(direction, conditions, text, size, n_changed, n_new, share, coverage)

    return Segments(
        (
            rule("gain", (old, many), 44, 31, 31, 0.7949, 0.1377),
            rule("loss", (young, few), 151, 118, 118, 0.6484, 0.0689),
            rule(
                "loss", (men, few, condition(age, f"25 ≤ {age} < 28")), 83, 47, 41, 0.2582, 0.1081
            ),
        ),
        n_rows=2164,
        n_gains=39,
        n_losses=182,
        n_described_gains=31,
        n_described_losses=159,
    )


def card(names=("age", "priors_count", "sex"), n_lines=7):
    age, priors, sex = names
    made = [
        CardLine(f"{age} < 25", age, "", -0.8142, 0.3521, 1),
        CardLine(f"{age} 25 to 45", age, "", 0.2217, 0.1093, 1),
        CardLine(f"{age} ≥ 46", age, "", -0.4371, 0.1718, 1),
        CardLine(priors, priors, "per unit", 0.07318, 0.3377, 2),
        CardLine(f"{sex} = Male", sex, "", -0.1634, 0.0642, 2),
        CardLine(f"{sex} = Female", sex, "", 0.3126, 0.1228, 2),
        CardLine("c_charge_degree = M", "c_charge_degree", "", -0.0929, None, None),
    ]
    made += [
        CardLine(f"charge = offence number {i}", "charge", "", round(0.05 - i / 3000, 5), 0.01, 3)
        for i in range(n_lines - len(made))
    ]
    pushes = tuple(replace(line, points=-line.points) for line in made)
    concepts = (
        Concept(
            1,
            f"{age}",
            0.4483,
            871,
            1293,
            estimate(0.1837, 0.0255),
            estimate(0.0477, 0.0114),
            pushes[:3],
        ),
        Concept(
            2,
            f"{priors} and {sex}",
            0.3159,
            1004,
            1160,
            estimate(0.1564, 0.0223),
            estimate(0.0552, 0.0129),
            pushes[3:6],
        ),
    )
    return Card(1.0736, tuple(made), concepts)


def bins(shift):
    rates = (0.0871, 0.1926, 0.2534, 0.3817, 0.4462, 0.5389, 0.6618, 0.7741, 0.8293)
    return tuple(
        CalibrationBin(
            240 + i + round(shift * 100),
            round(0.0917 + i * 0.1013 + shift, 4),
            estimate(rate, 0.0611),
        )
        for i, rate in enumerate(rates)
    )


def outscoring(change="gain", names=("African-American", "Caucasian")):
    return Outscoring(
        change,
        39,
        812,
        estimate(0.283),
        estimate(0.247),
        estimate(0.412),
        estimate(0.748),
        tuple(GroupOutscoring(name, 19, 406, estimate(0.291)) for name in names),
    )


def roc(names=("African-American", "Caucasian", "Hispanic")):
    """Return ROC curves of three groups, and of a fourth one that has none."""
    curve = ((0.0, 0.0), (0.1171, 0.4213), (0.3364, 0.7629), (1.0, 1.0))
    gap = AreaBetween(Estimate(0.0417, 0.0, 0.0832), 0.0313, 0.0614)
    wide = AreaBetween(Estimate(0.0926, 0.0219, 0.1538), 0.0328, 0.0641)
    first, second, third = names
    areas = estimate(0.7412), estimate(0.7189), estimate(0.0223)
    return RocFigures(
        first,
        (
            GroupRoc(first, 560, 560, *areas, None, None, curve, curve),
            GroupRoc(second, 281, 439, *areas, gap, wide, curve, curve),
            GroupRoc(third, 74, 124, *areas, wide, gap, curve, curve),
            GroupRoc(names[0] + " too", 2, 109, why_unknown="fewer than 5 people have one label"),
        ),
        LargestGap(first, third, wide),
        LargestGap(second, third, gap),
    )


def audit(**changes):
    figures = {
        "schema": SCHEMA,
        "title": "Recidivism model, update of November",
        "rows": "held-out rows",
        "n": 2164,
        "level": 0.95,
        "request": Request(
            target=0.8, max_accuracy_loss=0.0207, pos_label=1, favorable_label=0, threshold=0.5,
            pos_name="high risk", favorable_name="low risk",
        ),
        "answer": (
            "You asked for a P-rule of at least 0.8. On the 2,164 held-out rows it is 0.79, before "
            "the update it was 0.58: the target is not quite reached there.",
            "221 of 2,164 people (10.2%) get another decision: 39 gain the favourable outcome and "
            "182 lose it.",
            "At least 187 changes are needed for this fairness, even with the group of each person "
            "in hand: the update makes 1.18 times as many.",
        ),
        "notice": "182 people lose the favourable outcome, 39 gain it. If nobody were to lose, the "
        "same fairness would take at least 433 gains. The target itself would take 451 gains.",
        "fairness": (
            Fairness(2149, "demographic_parity", "P-rule", True, True,
                     Estimate(0.5837, 0.5316, 0.6409), Estimate(0.7912, 0.7261, 0.8622),
                     "the lowest group's rate of “high risk” divided by the highest's; 1 means "
                     "equal"),
            Fairness(2149, "equalized_odds", "disparate mistreatment", False, False,
                     Estimate(0.4218, 0.3319, 0.5107), Estimate(0.2043, 0.1172, 0.2934),
                     "how far the groups' true positive rates of “high risk” lie apart plus how "
                     "far their false positive rates of “high risk” lie apart; 0 means equal"),
            Fairness(2149, "true_positive_rate_parity", "TPR gap", False, False,
                     Estimate(0.2256, 0.1644, 0.2861), Estimate(0.1119, 0.0497, 0.1738),
                     "how far the groups' true positive rates of “high risk” lie apart; 0 means "
                     "equal"),
            Fairness(2149, "false_positive_rate_parity", "FPR gap", False, False,
                     Estimate(0.1962, 0.1413, 0.2506), Estimate(0.0924, None, None),
                     "how far the groups' false positive rates of “high risk” lie apart; 0 means "
                     "equal"),
        ),
        "changes": ChangeSummary(2164, 221, 39, 182, Estimate(0.1021, 0.0900, 0.1157)),
        "limit": Limit("any", 221, 187, 1.1818, 433, 196, 451),
        "groups": (
            group("African-American", 1120, 0.4217, 0.4538, 39, 3),
            group("Caucasian", 720, 0.6639, 0.4861, 0, 128),
            group("Hispanic", 198, 0.6869, 0.5101, 0, 35),
            group("Other", 111, 0.7387, 0.5946, 0, 16),
        ),
        "small_groups": (SmallGroup("Asian", 11, 30), SmallGroup("Native American", 4, 30)),
        "quality": Quality(Estimate(0.6742, 0.6541, 0.6936), Estimate(0.6603, 0.6401, 0.6801),
                           95, 126, 0.0441,
                           Estimate(0.7318, 0.7107, 0.7529), Estimate(0.7124, 0.6908, 0.7341),
                           Estimate(0.0194, 0.0112, 0.0276)),
        "agreement": Agreement(0.0843, 0.9127, 0.8846, 0.3361),
        "calibration": Calibration(bins(0.0), bins(0.0213), 0.0318, 0.0531),
        "proxies": (
            Proxy("African-American", True, estimate(0.6123, 0.0234), estimate(0.6517, 0.0229)),
            Proxy("Caucasian", True, estimate(0.3977, 0.0247), estimate(0.3688, 0.0244)),
            Proxy("Hispanic", False, estimate(0.4561, 0.0417), None),
        ),
        "subgroups": Subgroups(57, 2, 19, 50, 0.9991, (
            Subgroup("African-American, age < 25", "favourable outcome", 214,
                     estimate(0.2336, 0.0891), 0.2103, "everybody else", 1950, 0.5421,
                     Estimate(-0.3085, -0.3874, -0.2206)),
            Subgroup("Other, sex = Male", "right decisions", 88, estimate(0.5114, 0.1677), None,
                     "sex = Male", 1598, 0.6577, Estimate(-0.1463, -0.2911, -0.0058)),
        )),
        "segments": segments(),
        "card": card(),
        "stability": StabilitySummary(
            50, 50, None, 1850, 0.6731, 61, 318,
            {"age": 1.0, "priors_count": 0.98, "sex": 0.74, "c_charge_degree": 0.36},
            (1471, 103, 64, 47, 39, 28, 22, 17, 13, 46), 0.7413, 0.8337, 0.0822, 0.1249,
        ),
        "checks": (
            Check("target", "The target that was asked for", "not enough evidence",
                  "P-rule 0.79 with a 95% interval of 0.73 to 0.86: 0.8 lies within it.",
                  "blocks signing"),
            Check("direction", "Changes only in the allowed direction", "passed",
                  "Any direction was allowed.",
                  "blocks signing"),
            Check("losses", "Most changes are gains", "failed",
                  "182 of 221 changes are losses of the favourable outcome.",
                  "needs a reason"),
            Check("accuracy", "Accuracy loss within what was allowed", "passed",
                  "Accuracy went from 67.4% to 66.0%; 2.1 points were allowed.",
                  "blocks signing"),
        ),
        "not_known": (
            "Whether these figures hold for people who differ from the held-out rows.",
            "2 groups (15 people) are too small to compare.",
        ),
        "provenance": Provenance(
            "2026-11-15T10:22:31+00:00",
            {"commod": "0.1.0", "python": "3.11.2", "numpy": "2.4.6", "scikit-learn": "1.9.1"},
            "ControlledDebiaser",
            {"target": "0.8", "n_concepts": "2", "random_state": "0", "max_changes": "None"},
            False, False,
            "5f1d7a84b1e07c0a3c1d2f48d5a0c6be5e1f1c2ad7a4f0b3c6d9e8f7a6b5c4d3",
            "c0ffee84b1e07c0a3c1d2f48d5a0c6be5e1f1c2ad7a4f0b3c6d9e8f7a6b51234",
            221,
        ),
        "outscoring": (outscoring("gain"), outscoring("loss")),
        "roc": roc(),
        "expected": ExpectedOnNewPeople(0.8074, 0.0968, 0.6631, 0.0419),
    }  # fmt: skip
    return Audit(**{**figures, **changes})


def bare(**changes):
    """Return the audit of decisions alone: no labels, scores, columns, limit or request."""
    nothing = Estimate(None, None, None)
    unlabelled = dict.fromkeys(
        [f"{what}_{when}" for what in ("accuracy", "true_positive", "false_positive", "mean_score")
         for when in ("before", "after")]
    )  # fmt: skip
    figures = {
        "title": "Audit",
        "rows": "rows",
        "answer": (),
        "notice": None,
        "request": Request(),
        "fairness": (Fairness(2149, "demographic_parity", "P-rule", True, True, nothing, nothing),),
        "changes": ChangeSummary(2164, 0, 0, 0, Estimate(0.0, 0.0, 0.0018)),
        "limit": Limit("any", 0, None, None, None, None, None),
        "groups": tuple(
            group(name, n, 0.5, 0.5, 0, 0, n_positive_labels=None, **unlabelled)
            for name, n in (("a", 1300), ("b", 864))
        ),
        "small_groups": (),
        "quality": None,
        "agreement": None,
        "calibration": None,
        "proxies": (),
        "subgroups": Subgroups(0, 0, 0, 50, 0.95, ()),
        "segments": None,
        "card": None,
        "stability": None,
        "checks": (),
        "not_known": (),
        "provenance": replace(audit().provenance, method=None, settings={}, ledger_lines=0),
        "outscoring": (),
        "roc": None,
    }
    return audit(**{**figures, **changes})


def step(i, n_steps, n_lines=7):
    share = (i + 1) / n_steps
    n_changes = round(40 + 260 * share**1.4)
    n_gains = round(n_changes * 0.18)
    made = card(n_lines=n_lines)
    return Step(
        target=round(0.6 + 0.35 * share, 3),
        fairness=round(0.6043 + 0.3411 * share, 4),
        accuracy=round(0.6742 - 0.0287 * share**2, 4),
        change_rate=n_changes / 2164,
        n_changes=float(n_changes),
        n_gains=float(n_gains),
        n_losses=float(n_changes - n_gains),
        limit=round(n_changes / 2164 / 1.17, 4),
        outscoring=round(0.5132 - 0.2217 * share, 4),
        outscoring_losses=round(0.6018 - 0.3719 * share, 4),
        settings={},
        segments=replace(
            segments(),
            segments=tuple(
                replace(s, size=s.size + 3 * i, n_changed=s.n_changed + i)
                for s in segments().segments[: 1 + i % 3]
            ),
        ),
        card=replace(
            made,
            intercept=round(1.1 - share / 10, 4),
            lines=tuple(
                replace(line, points=round(line.points * (0.5 + share), 5)) for line in made.lines
            ),
        ),
    )


def trade_off(n_steps=8, n_lines=7, **changes):
    figures = {
        "constraints": "demographic_parity",
        "metric": "P-rule",
        "method": "ControlledDebiaser",
        "rows": "held-out rows",
        "n_rows": 2164,
        "base_fairness": 0.5837,
        "base_accuracy": 0.6742,
        "steps": tuple(step(i, n_steps, n_lines) for i in range(n_steps)),
    }
    return TradeOff(**{**figures, **changes})


def randomised():
    """Return the trade-off of a randomised update: counts with fractions, no segments, no card."""
    steps = tuple(
        replace(s, target=None, n_changes=s.n_changes + 0.4, n_losses=s.n_losses + 0.4,
                accuracy=None, limit=None, settings={"lambda_fair": 0.25 * i, "seed": None},
                segments=None, card=None)
        for i, s in enumerate(trade_off(4).steps)
    )  # fmt: skip
    return trade_off(method="Randomised", base_fairness=None, base_accuracy=None, steps=steps)


def hostile_together(texts):
    """Return an audit and a trade-off in which every table has a line for each of the texts."""
    found, rules, whole, (first, *_, last) = audit(), segments(), card(), texts
    lines = tuple(replace(whole.lines[i % 7], term=t, column=t) for i, t in enumerate(texts))
    concept = whole.concepts[0]
    many = {
        "segments": replace(
            rules,
            segments=tuple(
                replace(rules.segments[i % 3], text=f"{t} = {t}") for i, t in enumerate(texts)
            ),
        ),
        "card": replace(
            whole,
            lines=lines,
            concepts=tuple(
                replace(concept, number=i, name=t, lines=lines) for i, t in enumerate(texts[:4])
            ),
        ),
    }
    made = audit(
        title=first,
        rows=last,
        answer=tuple(texts),
        groups=tuple(replace(found.groups[0], name=t) for t in texts),
        small_groups=tuple(SmallGroup(t, 3, 30) for t in texts),
        proxies=tuple(replace(found.proxies[0], group=t) for t in texts),
        subgroups=replace(
            found.subgroups,
            listed=tuple(
                replace(found.subgroups.listed[0], name=t, compared_with=t) for t in texts
            ),
        ),
        stability=replace(found.stability, columns=dict.fromkeys(texts, 0.5)),
        checks=tuple(Check(t, t, "failed", t, "needs a reason") for t in texts),
        not_known=tuple(texts),
        provenance=replace(found.provenance, settings={t: t for t in texts}, method=last),
        outscoring=(outscoring(names=texts),),
        roc=roc((first, last, texts[1])),
        **many,
    )
    steps = tuple(
        replace(s, settings=dict.fromkeys(texts[:3], 0.5), **many) for s in trade_off(3).steps
    )
    return made, trade_off(metric=last, method=first, rows=first, steps=steps)


def hostile(text):
    """Return an audit and a trade-off in which every name from outside is `text`."""
    names = (text, text, text)
    found = audit()
    subgroups = tuple(
        replace(s, name=f"{text}, {text}", compared_with=text) for s in found.subgroups.listed
    )
    made = audit(
        title=text,
        rows=text,
        answer=(f"Group {text} gains.", text),
        groups=tuple(replace(g, name=text) for g in found.groups),
        small_groups=(SmallGroup(text, 3, 30),),
        proxies=tuple(replace(p, group=text) for p in found.proxies),
        subgroups=replace(found.subgroups, listed=subgroups),
        segments=segments(names),
        card=card(names),
        stability=replace(found.stability, columns={text: 0.5}),
        checks=(Check(text, text, "failed", f"Because {text}.", "blocks signing"),),
        not_known=(text,),
        request=replace(
            found.request,
            pos_label=text,
            favorable_label=text + "!",
            pos_name=text,
            favorable_name=text,
        ),
        provenance=replace(
            found.provenance, method=text, settings={text: text}, versions={text: text}
        ),
        outscoring=(outscoring(names=names),),
        roc=roc(names),
    )
    steps = tuple(
        replace(s, segments=segments(names), card=card(names), settings={text: 0.5})
        for s in trade_off(3).steps
    )
    return made, trade_off(metric=text, method=text, rows=text, steps=steps)


def shipped(text="LogisticRegression"):
    """Return what ships, with `text` wherever a patch may hold text from outside."""
    return Shipped(
        patch_sha256="c" * 64,
        audit_digest="a" * 64,
        created=text,
        method=text,
        base_model=text,
        base_digest=None,
        score_column=text,
        scores_digest="5" * 64,
        threshold=0.5,
        negative_label=text,
        positive_label=text,
        favorable_label=text,
        constraints="demographic_parity",
        target=0.8,
        direction="any",
        fit_rows=text,
        n_fit_rows=3000,
        n_figure_rows=1500,
        n_test_rows=2164,
        same_figures=True,
        gaps=(Gap(text, "number", 0.8, 0.79, -0.01), Gap("accuracy", "percent", 0.7, None, None)),
        n_groups_left_out=2,
        n_people_left_out=31,
        versions={text: text},
    )
