"""Plain records of results: frozen, comparable, written to JSON and read back.

Records compute nothing. A number that is undefined or not known is None, never NaN: so a record
equals its copy, and JSON can hold it. Names of groups, columns and categories are kept as they
came. The code that writes them into a page, a table or a file makes them harmless there.
"""

from commod._record.audit import (
    OLDER_REPORT,
    REPORT_SCHEMA,
    SCHEMA,
    Agreement,
    Audit,
    Calibration,
    CalibrationBin,
    ChangeSummary,
    ExpectedOnNewPeople,
    Fairness,
    FurtherConstraint,
    Gap,
    Group,
    LeftOutGroup,
    Limit,
    Provenance,
    Proxy,
    Quality,
    Request,
    Shipped,
    SmallGroup,
    StabilitySummary,
    Stratum,
    StratumGroup,
    StratumTable,
    Subgroup,
    Subgroups,
    UnknownGroups,
)
from commod._record.checks import Check, Severity, State, by_importance
from commod._record.costs import CountedUpdate, Losses
from commod._record.edits import (
    MAX_NOTE,
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
    AreaBetween,
    Card,
    CardLine,
    CardRule,
    Concept,
    Condition,
    Estimate,
    GroupOutscoring,
    GroupRoc,
    LargestGap,
    Outscoring,
    RocFigures,
    ScoreKnot,
    ScoreMap,
    Segment,
    Segments,
    Step,
    TradeOff,
    Value,
    is_evidence,
)
from commod._record.plain import from_plain, plain_digest, to_plain, utc_now
