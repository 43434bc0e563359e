"""Write a query that adds columns to a table, through sqlglot, in the dialects of six databases.

Values and names enter only as nodes of a syntax tree, so none of them can inject SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

from commod._io.optional import import_optional
from commod.exceptions import InputError

_LINE_JOIN = re.compile(r"(?<=\\)(?=\r?\n)")

Node = Any  # a node of sqlglot; its operators build the tree: column * number + column


@dataclass(frozen=True)
class Dialect:
    """The traits in which databases differ.

    Attributes
    ----------
    is_run : bool
        Whether our tests run the query; otherwise they parse it.
    drops_columns : bool
        Whether it has ``* EXCLUDE (...)`` or ``* EXCEPT (...)``.
    doubles : {"exponent", "cast", "text"}
        How to write a double: with an exponent, as a cast of that, or as a cast of text.
    collation : str or None
        The collation that compares text byte by byte, whatever the column's own collation is.
        None if text is compared as bytes instead.
    has_booleans, pads_text, refuses_underflow : bool
        It has TRUE and FALSE; it treats 'a' and 'a ' as equal; a product that rounds to 0 is an
        error.
    longest_name : int or None
        In bytes; the database cuts longer names, which could make two names equal.
    """

    is_run: bool
    drops_columns: bool
    doubles: Literal["exponent", "cast", "text"] = "exponent"
    collation: str | None = None
    has_booleans: bool = True
    pads_text: bool = False
    refuses_underflow: bool = False
    longest_name: int | None = None


DIALECTS = {
    "duckdb": Dialect(is_run=True, drops_columns=True),  # COLLATE would refuse an ENUM
    "postgres": Dialect(
        is_run=True,
        drops_columns=False,
        doubles="cast",
        collation="C",
        refuses_underflow=True,
        longest_name=63,
    ),
    "spark": Dialect(is_run=True, drops_columns=True, collation="UTF8_BINARY"),
    # '' would give way to the collation of another operand; 'utf8' does not
    "snowflake": Dialect(is_run=False, drops_columns=True, doubles="text", collation="utf8"),
    "bigquery": Dialect(is_run=False, drops_columns=True, collation=""),
    "tsql": Dialect(
        is_run=False,
        drops_columns=False,
        collation="Latin1_General_BIN2",
        has_booleans=False,
        pads_text=True,
    ),
}


class Query:
    """Parts of a query in one dialect, and the stages in which its work columns are computed.

    If a dialect can drop columns, each stage is a CTE that adds some to those before it; else
    each is a lateral subquery beside the table. Work columns are seen in neither result.

    Parameters
    ----------
    dialect : str
        One of `DIALECTS`.
    table : str
        A name as the dialect writes it, quoted and dotted if needed.
    taken : iterable of str
        Names of columns that the table is known to have.

    Examples
    --------
    >>> query = Query("postgres", "people", ["age"])
    >>> query.stage({"half": query.parsed("age * 0.5", age=query.raw("age"))})
    >>> print(query.text_of({"quarter": query.parsed("half * 0.5")}))
    SELECT
      "_commod_row".*,
      "_commod_stage_1"."_commod_half" * CAST(0.5e0 AS DOUBLE PRECISION) AS "quarter"
    FROM people AS "_commod_row"
    CROSS JOIN LATERAL (
      SELECT
        "_commod_row"."age" * CAST(0.5e0 AS DOUBLE PRECISION) AS "_commod_half"
      OFFSET 0
    ) AS "_commod_stage_1"
    """

    def __init__(self, dialect: str, table: str, taken: Iterable[str]) -> None:
        self._exp: Any = _syntax()
        self.dialect, self.traits = dialect, DIALECTS[dialect]
        self._table = _parsed_table(table, dialect)
        names = [*taken, *(part.name for part in self._table.parts)]
        self._prefix = "_commod_"
        while any(name.lower().startswith(self._prefix) for name in names):
            self._prefix += "_"  # the table may have unknown columns; this prefix is unlikely
        self._stages: list[tuple[dict[str, Node], list[Node]]] = []  # columns, and joins they read
        self._stage_of: dict[str, int] = {}
        self._joins: list[Node] = []
        self._points: dict[str, Node] = {}

    # -- names and values -------------------------------------------------------------------------

    def raw(self, column: str) -> Node:
        """Return a column of the table."""
        return self._exp.Column(this=self._name(column), table=self._ours("row"))

    def work(self, name: str) -> Node:
        """Return a work column of an earlier stage."""
        table = "row" if self.traits.drops_columns else f"stage_{self._stage_of[name]}"
        return self._exp.Column(this=self._ours(name), table=self._ours(table))

    def number(self, value: float) -> Node:
        """Return a literal that the engine reads as exactly this double."""
        exp, text = self._exp, repr(float(value))
        if self.traits.doubles == "text":
            return exp.cast(exp.Literal.string(text), "double")
        digits = text.lstrip("-")
        literal = exp.Literal.number(digits if "e" in digits else digits + "e0")
        if value < 0:
            literal = exp.Neg(this=literal)
        return exp.cast(literal, "double") if self.traits.doubles == "cast" else literal

    def integer(self, value: int) -> Node:
        """Return an integer."""
        return self._exp.Literal.number(value)

    def text(self, value: str) -> Node:
        """Return a text that the database reads as it is, whatever its settings are."""
        _check_readable(value)
        exp = self._exp
        if self.dialect == "tsql":
            # other literals are limited to one code page; a backslash joins a line to the next
            parts = (exp.National(this=part) for part in _LINE_JOIN.split(value))
            return reduce(lambda one, other: exp.Add(this=one, expression=other), parts)
        if self.dialect == "postgres" and "\\" in value:
            return exp.ByteString(this=value)  # E'...': standard_conforming_strings may be off
        literal = exp.Literal.string(value)
        if self.dialect == "spark" and ("${" in value or "\\" in literal.sql(dialect="spark")):
            # Spark puts variables in place of ${...}, and a setting keeps backslashes as they are
            return exp.cast(exp.HexString(this=value.encode().hex()), "text")
        return literal

    def truth(self, value: bool) -> Node:
        """Return a Boolean, or 1 or 0 in a dialect without Booleans."""
        return (
            self._exp.Boolean(this=value) if self.traits.has_booleans else self.integer(int(value))
        )

    def _name(self, text: str) -> Node:
        _check_readable(text)
        longest = self.traits.longest_name
        if longest is not None and len(text.encode()) > longest:
            raise InputError(
                f"{text!r} is longer than {longest} bytes, the longest name that {self.dialect} "
                "keeps. Choose a shorter one."
            )
        if self.dialect == "spark" and "${" in text:
            raise InputError(
                f"{text!r} holds '${{', which Spark replaces by the value of a variable. Rename it."
            )
        return self._exp.to_identifier(text, quoted=True)

    def _ours(self, name: str) -> Node:
        return self._name(self._prefix + name)

    # -- expressions ------------------------------------------------------------------------------

    def parsed(self, formula: str, **nodes: Node) -> Node:
        """Return a formula as a node: names are those of `nodes` or of work columns.

        A number with a point or an exponent is a double, another one is an integer. Values and
        names of users come as `nodes`, never in the formula.
        """
        import sqlglot

        return sqlglot.parse_one(formula).transform(self._filled, nodes, copy=False)

    def _filled(self, node: Node, nodes: Mapping[str, Node]) -> Node:
        exp = self._exp
        sign, literal = (-1.0, node.this) if isinstance(node, exp.Neg) else (1.0, node)
        if isinstance(literal, exp.Literal) and not literal.is_int:
            return self.number(sign * float(literal.this))
        if isinstance(node, exp.Column):
            return nodes[node.name].copy() if node.name in nodes else self.work(node.name)
        if isinstance(node, exp.Div):  # of doubles by what is never 0: it needs no cast or guard
            node.set("typed", True)
            node.set("safe", False)
        return node

    def binary_text(self, node: Node) -> Node:
        """Return a text column in a form that compares byte by byte."""
        exp = self._exp
        if self.traits.pads_text:
            node = exp.cast(node, "nvarchar(max)", dialect="tsql")
        node = self._collated(node)
        if self.dialect == "postgres":
            return exp.cast(node, "text")  # CHAR(n) would be compared without trailing blanks
        return node + self.text("|") if self.traits.pads_text else node

    def key(self, value: str) -> Node:
        """Return a text to compare with `binary_text` of a column."""
        text = self.text(value + "|" if self.traits.pads_text else value)
        return self._collated(text) if self.traits.collation is None else text

    def _collated(self, text: Node) -> Node:
        """Return a text with the collation that compares bytes, or the bytes of the text."""
        exp, collation = self._exp, self.traits.collation
        if collation is None:
            return exp.Encode(this=text)
        if self.dialect in ("snowflake", "bigquery"):
            return exp.Collate(this=text, expression=exp.Literal.string(collation))
        is_name = self.dialect == "postgres"
        name = exp.to_identifier(collation, quoted=True) if is_name else exp.Var(this=collation)
        return exp.Collate(this=text, expression=name)

    # -- stages -----------------------------------------------------------------------------------

    def stage(self, columns: Mapping[str, Node | str]) -> None:
        """Add work columns, as nodes or formulas; they may read those of earlier stages."""
        if columns:
            nodes = {k: self.parsed(v) if isinstance(v, str) else v for k, v in columns.items()}
            self._stages.append((nodes, self._joins))
            self._joins = []
            self._stage_of.update(dict.fromkeys(columns, len(self._stages)))

    def joined(
        self, name: str, key: str, rows: Sequence[tuple[Node, float]], *, is_text: bool
    ) -> Node:
        """Return the number of a work column for the next stage, from a joined table, or NULL.

        The keys must be distinct, so that each row of the table stays one row in the result.
        """
        exp = self._exp
        cells = [exp.Tuple(expressions=[k, self.number(number)]) for k, number in rows]
        names = [self._ours("key"), self._ours("value")]
        alias = exp.TableAlias(this=self._ours(name + "_rows"), columns=names)
        values = exp.Values(expressions=cells, alias=alias)
        self._points[name] = exp.select("*").from_(values, copy=False)
        joined_key = exp.Column(this=self._ours("key"), table=self._ours(name))
        if is_text and self.traits.collation is not None:
            # a column of literals has the collation of the database, which may be another one
            joined_key = self._collated(joined_key)
        table = exp.Table(this=self._ours(name))
        self._joins.append(exp.Join(this=table, side="LEFT", on=joined_key.eq(self.work(key))))
        return exp.Column(this=self._ours("value"), table=self._ours(name))

    def text_of(self, outputs: Mapping[str, Node]) -> str:
        """Return the query for all columns of the table and `outputs`; parse it as a check."""
        source = self._table.copy()
        source.set("alias", self._exp.TableAlias(this=self._ours("row")))
        ctes = dict(self._points)
        drops = self.traits.drops_columns
        select = self._in_ctes(source, ctes) if drops else self._beside(source)
        select = select.select(*self._aliased(outputs, ours=False), copy=False)
        for name, inner in ctes.items():
            select = select.with_(self._ours(name), as_=inner, copy=False)
        written = _values_in(select)
        text = str(select.sql(dialect=self.dialect, pretty=True, copy=False))
        _check_written(written, text, self.dialect)
        return text

    def _in_ctes(self, source: Node, ctes: dict[str, Node]) -> Node:
        exp = self._exp
        dropped = []
        for i, (columns, joins) in enumerate(self._stages):
            select = exp.select(self._star(), *self._aliased(columns), copy=False)
            select = select.from_(source, copy=False)
            for join in joins:
                select.append("joins", join)
            ctes[f"stage_{i + 1}"] = select
            dropped += [self._ours(name) for name in columns]
            alias = exp.TableAlias(this=self._ours("row"))
            source = exp.Table(this=self._ours(f"stage_{i + 1}"), alias=alias)
        return exp.select(self._star(except_=dropped), copy=False).from_(source, copy=False)

    def _beside(self, source: Node) -> Node:
        exp = self._exp
        query = exp.select(self._star(), copy=False).from_(source, copy=False)
        for i, (columns, joins) in enumerate(self._stages):
            for join in joins:
                query.append("joins", join)
            select = exp.select(*self._aliased(columns), copy=False)
            alias = exp.TableAlias(this=self._ours(f"stage_{i + 1}"))
            if self.dialect == "tsql":
                lateral = exp.Lateral(this=select.subquery(), alias=alias, cross_apply=True)
                query.append("joins", exp.Join(this=lateral))
            else:  # OFFSET 0 stops the planner from computing a column again at every use
                lateral = exp.Lateral(this=select.offset(0).subquery(), alias=alias)
                query.append("joins", exp.Join(this=lateral, kind="CROSS"))
        return query

    def _star(self, **arguments: Node) -> Node:
        exp = self._exp
        return exp.Column(this=exp.Star(**arguments), table=self._ours("row"))

    def _aliased(self, columns: Mapping[str, Node], ours: bool = True) -> list[Node]:
        name = self._ours if ours else self._name
        return [self._exp.alias_(node, name(key), copy=False) for key, node in columns.items()]


def _syntax() -> Any:
    return import_optional("sqlglot", "sql", "Writing SQL").exp


def _parsed_table(table: str, dialect: str) -> Node:
    """Return the name of a table as a node; refuse anything but a name."""
    import sqlglot

    exp = _syntax()
    problem = InputError(
        f"table={table!r} is not the name of a table in {dialect}. Write it as in a query, "
        "quoted and dotted where needed.",
        parameter="table",
    )
    if not isinstance(table, str):
        raise problem
    _check_readable(table)
    try:
        has_comment = any(token.comments for token in sqlglot.tokenize(table, read=dialect))
        tree = exp.maybe_parse(table, into=exp.Table, dialect=dialect)
    except sqlglot.errors.SqlglotError as error:
        raise problem from error
    parts = (exp.Table, exp.Identifier, exp.Dot)
    is_name = bool(tree.name) and all(isinstance(node, parts) for node in tree.walk())
    if has_comment or not is_name:
        raise problem
    return tree


def _check_readable(text: str) -> None:
    if "\0" in text:
        raise InputError(f"{text!r} holds a NUL character, which SQL does not allow. Rename it.")
    try:
        text.encode()
    except UnicodeError as error:
        raise InputError(f"{text!r} is not Unicode text: {error}.") from error


def _values_in(tree: Node) -> dict[Node, set[str]]:
    """Return the names and the values of a query by kind of node."""
    exp = _syntax()
    kinds = (exp.Literal, exp.National, exp.ByteString, exp.HexString, exp.Identifier)
    found: dict[Node, set[str]] = {kind: set() for kind in kinds}
    for node in tree.find_all(*kinds):
        found[type(node)].add(str(node.this))
    return found


def _check_written(written: Mapping[Node, set[str]], text: str, dialect: str) -> None:
    """Parse the written query: names and values must come back unchanged."""
    import sqlglot

    try:
        parsed = sqlglot.parse_one(text, read=dialect)
    except sqlglot.errors.SqlglotError as error:
        raise InputError(
            f"The patch cannot be written as SQL for {dialect}: the result does not parse "
            f"({error})."
        ) from error
    read = _values_in(parsed)
    for kind, values in written.items():
        if lost := values - read[kind]:
            raise InputError(
                f"The patch cannot be written as SQL for {dialect}: {min(lost)!r} would be read "
                "back as something else. Rename it."
            )
