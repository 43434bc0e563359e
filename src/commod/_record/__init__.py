"""Plain records of results: frozen, comparable, written to JSON and read back.

Records compute nothing. A number that is undefined or not known is None, never NaN: so a record
equals its copy, and JSON can hold it. Names of groups, columns and categories are kept as they
came. The code that writes them into a page, a table or a file makes them harmless there.
"""

from commod._record.audit import (
    SCHEMA,
    Agreement,
    Audit,
    Calibration,
    CalibrationBin,
    ChangeSummary,
    ExpectedOnNewPeople,
    Fairness,
    Group,
    Limit,
    Provenance,
    Proxy,
    Quality,
    Request,
    SmallGroup,
    StabilitySummary,
    Subgroup,
    Subgroups,
    UnknownGroups,
)
from commod._record.checks import Check, Severity, State, by_importance
from commod._record.edits import (
    AnyEdit,
    Cap,
    Drop,
    Edit,
    EditFigures,
    EditRecord,
    Lock,
    Merge,
    OffsetRule,
    Round,
    SetPoints,
    edit_words,
    record_words,
)
from commod._record.explanation import (
    Card,
    CardLine,
    CardRule,
    Concept,
    Condition,
    Estimate,
    Segment,
    Segments,
    Value,
    is_evidence,
)
from commod._record.left_out import LeftOutGroup
from commod._record.outscoring import GroupOutscoring, Outscoring
from commod._record.plain import from_plain, plain_digest, to_plain
from commod._record.roc import AreaBetween, GroupRoc, LargestGap, RocFigures
from commod._record.score_map import ScoreKnot, ScoreMap
from commod._record.shipped import REPORT_SCHEMA, Gap, Shipped
from commod._record.stated import FurtherConstraint, Stratum, StratumGroup, StratumTable
from commod._record.trade_off import Step, TradeOff
