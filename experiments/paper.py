"""The numbers that the paper prints: base points, segment edges, Table 1, single figures."""

from __future__ import annotations

DP, EO = "demographic_parity", "equalized_odds"
METRIC = {DP: "P-rule", EO: "DM"}
LAW_SCHOOL, COMPAS = "Law School", "COMPAS"

# Appendix C.3: (fairness, accuracy) of the black box.
BASE = {
    (LAW_SCHOOL, DP): (0.2764, 0.7970),
    (LAW_SCHOOL, EO): (0.4935, 0.7970),
    (COMPAS, DP): (0.6310, 0.6580),
    (COMPAS, EO): (0.2828, 0.6580),
}

# Inner edges of the segments, (fairness, accuracy), by the method whose quartiles they are. For the
# disparate mistreatment lower is fairer, so its edges fall. Definitions 2 and 3 of the appendix
# (LPP and ROC) are printed for demographic parity on Law School alone.
EDGES = {
    (LAW_SCHOOL, DP, "AdversarialDebiasing"): (
        (0.5587, 0.7212, 0.8719),
        (0.6709, 0.7294, 0.7550),
    ),
    (LAW_SCHOOL, EO, "AdversarialDebiasing"): (
        (0.3429, 0.2415, 0.1503),
        (0.7230, 0.7458, 0.7577),
    ),
    (COMPAS, DP, "AdversarialDebiasing"): ((0.7345, 0.7695, 0.8058), (0.6242, 0.6391, 0.6537)),
    (COMPAS, EO, "AdversarialDebiasing"): ((0.2198, 0.2079, 0.1869), (0.6242, 0.6391, 0.6537)),
    (LAW_SCHOOL, DP, "LPP"): ((0.4709, 0.5918, 0.7763), (0.7459, 0.7541, 0.7723)),
    (LAW_SCHOOL, DP, "RejectOption"): ((0.3247, 0.4127, 0.5695), (0.7033, 0.7559, 0.7793)),
}

# Table 1 (demographic parity): share of changes per (fairness, accuracy) quartile; None where the
# paper has no model in the cell. Its "Zhang" is AdversarialDebiasing.
CELLS = ((1, 3), (1, 4), (2, 2), (2, 3), (3, 2), (4, 1), (4, 2))
TABLE_1 = {
    LAW_SCHOOL: {
        "RejectOption": (0.18, 0.08, 0.26, None, None, 0.33, None),
        "LPP (aware)": (None, 0.08, None, 0.12, None, None, None),
        "LPP": (0.11, 0.07, 0.15, None, 0.19, 0.23, 0.21),
        "AdversarialDebiasing": (0.17, 0.12, 0.23, 0.18, 0.28, 0.34, 0.28),
        "FRAPPE": (None, 0.03, 0.16, None, 0.18, 0.24, 0.21),
        "COMMOD": (0.07, 0.01, 0.10, 0.08, 0.13, 0.24, 0.18),
    },
    COMPAS: {
        "RejectOption": (0.02, 0.03, None, 0.05, 0.06, None, 0.09),
        "LPP (aware)": (0.02, 0.01, None, 0.03, 0.03, None, 0.06),
        "LPP": (0.08, 0.04, 0.14, 0.12, None, None, None),
        "AdversarialDebiasing": (0.09, 0.07, 0.16, 0.12, 0.14, 0.20, 0.16),
        "FRAPPE": (None, 0.18, 0.24, None, 0.21, 0.28, None),
        "COMMOD": (0.05, 0.01, 0.09, 0.09, 0.05, 0.20, 0.06),
    },
}

# Section 6.3, illustrative explanation on COMPAS with two concepts.
ILLUSTRATION = {"p_rule": 0.78, "accuracy": 0.62, "change_rate": 0.08}
ILLUSTRATION_BASE = {"p_rule": 0.60, "accuracy": 0.66}
ILLUSTRATION_SHARES = ((1.0, 0.0), (0.0, 0.08))  # P(change) where concept 0, 1 is active, is not

# Section 6.4: R² of the regressions of changes, accuracy and fairness.
R_SQUARED = {"change_rate": 0.96, "accuracy": 0.99, "fairness": 0.97}
