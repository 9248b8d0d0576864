"""Queries of a statement: the tables that each reads, and what its conditions compare.

It reads SQL as this package writes it, and understands no more of it than that: what it
does not recognise it passes over.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sessiondb.dataclass import dataclass, field
from sessiondb.patterns import late_pattern

_TOKENS = late_pattern(
    r"""
    (?P<skipped> '(?:[^']|'')*' | --[^\n]* | /\*.*?\*/ | :: \s* \w+)
    | (?P<parameter> (?<![\w:]):[A-Za-z_]\w* | \?)
    | (?P<word> (?:\w+|"[^"]*") (?:\.(?:\w+|"[^"]*"|\*))?)
    | (?P<symbol> <> | != | <= | >= | -> >? | [^\s])
    """,
    re.DOTALL | re.VERBOSE,
)
#: What `expressions.of_session` writes after SELECT.
_SESSION = late_pattern(r"\s*/\* of (\w+) \*/")
_QUERIES = ("SELECT", "WITH", "UPDATE", "DELETE", "INSERT")
#: Words that end a condition, or the tables of a query.
_ENDS = frozenset(
    "GROUP ORDER HAVING LIMIT OFFSET RETURNING UNION INTERSECT EXCEPT WINDOW FOR "
    "FETCH".split()
)
_JOINS = frozenset("JOIN LEFT RIGHT FULL INNER CROSS OUTER NATURAL".split())
_OUTER = frozenset(("LEFT", "RIGHT", "FULL"))
_CONDITIONS = frozenset(("ON", "WHERE"))
#: Words before the name of a table.
_BEFORE_TABLES = frozenset(("LATERAL", "ONLY"))
_NO_ALIASES = _ENDS | _JOINS | _CONDITIONS | {"SET", "USING", "VALUES", "SELECT"}


@dataclass(slots=True)
class Token:
    """A word, a symbol or a parameter, and where it is."""

    kind: str
    #: A question mark is the number of it, from 0 on.
    text: str
    start: int
    end: int

    @property
    def keyword(self) -> str:
        """The text in capitals, if it is a word."""
        return self.text.upper() if self.kind == "word" else self.text


@dataclass(slots=True)
class QueryCondition:
    """What follows ON or WHERE."""

    start: int
    end: int = 0
    has_or: bool = False
    #: Whether it is that of an outer join: it says nothing of the rows of other tables.
    is_outer: bool = False
    #: Pairs of what is compared at its top.
    equal: list[tuple[Token, Token]] = field(default_factory=list)
    #: Columns that are in a list, and its parameter.
    listed: list[tuple[Token, str]] = field(default_factory=list)


@dataclass(slots=True)
class TableInQuery:
    """A table of a query by the name that it has there."""

    table: str
    alias: str
    #: The condition of its join; None if it is a row of the WHERE.
    condition: QueryCondition | None = None
    #: The other side of ``family =``: a parameter or a column; empty if it is unknown.
    family: str | None = None


@dataclass(slots=True)
class Query:
    """A SELECT, UPDATE or DELETE, alone or inside of another one."""

    around: Query | None
    #: Whether the tables around it can be named in it.
    sees_around: bool
    writes: bool
    #: The parameter with the session whose blobs it reads.
    session: str | None = None
    tables: list[TableInQuery] = field(default_factory=list)
    where: QueryCondition | None = None
    conditions: list[QueryCondition] = field(default_factory=list)
    #: Where a WHERE could be.
    end: int = 0

    def named(self, alias: str) -> TableInQuery | None:
        """Return the table that an alias means here."""
        for each in self.tables:
            if each.alias == alias:
                return each
        if self.around is not None and self.sees_around:
            return self.around.named(alias)
        return None


def read_queries(sql: str, is_known: Callable[[str], bool]) -> list[Query]:
    """Return the queries of a statement, with the tables that are known.

    One comes after those around it.
    """
    return _QueryReader(sql, is_known).queries


@dataclass(slots=True)
class _Level:
    """The place in the queries of one pair of parentheses, that UNION connects."""

    around: Query | None
    sees_around: bool
    query: Query | None = None
    queries: list[Query] = field(default_factory=list)
    #: What is read: ``table`` before the name of one, and ``from`` after it.
    clause: str = ""
    #: Whether the next table is one of a JOIN, and the last one if it is known.
    is_join: bool = False
    joined: TableInQuery | None = None
    is_outer: bool = False
    condition: QueryCondition | None = None

    def end_condition(self, place: int) -> None:
        if self.condition is not None:
            self.condition.end, self.condition = place, None

    def end_tables(self, place: int) -> None:
        if self.query is not None and not self.query.end:
            self.query.end = place


class _QueryReader:
    def __init__(self, sql: str, is_known: Callable[[str], bool]) -> None:
        self.queries: list[Query] = []
        self._sql, self._is_known = sql, is_known
        self._tokens = [
            Token(found.lastgroup or "", found[0], *found.span())
            for found in _TOKENS.finditer(sql)
            if found.lastgroup != "skipped"
        ]
        marks = [token for token in self._tokens if token.text == "?"]
        for number, token in enumerate(marks):
            token.text = f":{number}"
        self._read(0, _Level(None, sees_around=False))

    def _keyword(self, place: int) -> str:
        return self._tokens[place].keyword if place < len(self._tokens) else ""

    def _read(self, place: int, level: _Level) -> int:
        """Read queries up to the end of their parentheses; return the place of it."""
        while place < len(self._tokens) and self._keyword(place) != ")":
            if self._keyword(place) == "(":
                place = self._read_parentheses(place, level)
            else:
                place = self._read_word(place, level)
            place += 1

        is_inside = place < len(self._tokens)
        end = self._tokens[place].start if is_inside else len(self._sql)
        level.end_condition(end)
        for query in level.queries:
            query.end = query.end or end
        return place

    def _read_parentheses(self, place: int, level: _Level) -> int:
        """Read what is in parentheses; return the place of their end."""
        around = level.query or level.around
        # A table that is a query does not see those beside it, except by LATERAL.
        is_table = level.clause in ("table", "from")
        sees = not is_table or self._keyword(place - 1) == "LATERAL"
        if level.clause == "table":
            level.clause = "from"
        place += 1
        if self._keyword(place) in _QUERIES:
            return self._read(place, _Level(around, sees))
        while place < len(self._tokens) and self._keyword(place) != ")":
            if self._keyword(place) == "(":
                inside = _Level(level.around, level.sees_around, level.query)
                place = self._read_parentheses(place, inside)
            place += 1
        return place

    def _read_word(self, place: int, level: _Level) -> int:
        """Read a word; return the place of the last one that belongs to it."""
        token, word = self._tokens[place], self._keyword(place)
        if word in _ENDS or word in _JOINS or word in _CONDITIONS:
            level.end_condition(token.start)
        if word in _ENDS:
            level.end_tables(token.start)

        if word in ("SELECT", "UPDATE", "DELETE"):
            self._begin_query(token, level)
            return place
        is_of_distinct = word == "FROM" and self._keyword(place - 1) == "DISTINCT"
        if level.query is None or level.clause == "conflict" or is_of_distinct:
            return place

        if word in _OUTER:
            level.is_outer = True
        elif word in ("FROM", "JOIN", "USING") or (
            word == "," and level.clause == "from"
        ):
            level.clause, level.is_join = "table", word == "JOIN"
        elif word in _CONDITIONS:
            self._begin_condition(token, level.query, level)
        elif word in _ENDS or word == "SET":
            level.clause = "end"
        elif level.clause == "table" and word not in _BEFORE_TABLES:
            place = self._read_table(place, level.query, level)
            level.clause = "from"
        elif level.condition is not None:
            self._read_condition(place, level.condition)
        return place

    def _begin_query(self, token: Token, level: _Level) -> None:
        word = token.keyword
        if word == "UPDATE" and level.query is not None:
            # It is that of ON CONFLICT.
            level.end_tables(token.start)
            level.clause = "conflict"
            return
        about = _SESSION.match(self._sql, token.end)
        query = Query(
            level.around, level.sees_around, word != "SELECT", about and about[1]
        )
        level.query, level.clause = query, "table" if word == "UPDATE" else ""
        level.queries.append(query)
        self.queries.append(query)

    def _begin_condition(self, token: Token, query: Query, level: _Level) -> None:
        level.clause = "condition"
        condition = level.condition = QueryCondition(token.end)
        query.conditions.append(condition)
        if token.keyword == "WHERE":
            query.where = condition
            return
        condition.is_outer, level.is_outer = level.is_outer, False
        if level.joined is not None:
            level.joined.condition, level.joined = condition, None

    def _read_table(self, place: int, query: Query, level: _Level) -> int:
        table = self._tokens[place].text
        following = place + 2 if self._keyword(place + 1) == "AS" else place + 1
        alias = table
        if following < len(self._tokens):
            token = self._tokens[following]
            if token.kind == "word" and token.keyword not in _NO_ALIASES:
                alias, place = token.text, following
        level.joined = None
        if self._is_known(table):
            query.tables.append(TableInQuery(table, alias))
            level.joined = query.tables[-1] if level.is_join else None
        return place

    def _read_condition(self, place: int, condition: QueryCondition) -> None:
        word = self._keyword(place)
        if word == "OR":
            condition.has_or = True
        elif word == "=" and place + 1 < len(self._tokens):
            condition.equal.append((self._tokens[place - 1], self._tokens[place + 1]))
            if self._keyword(place + 1) == "ANY":
                self._read_list(place - 1, place + 2, condition)
        elif word == "IN" and self._keyword(place - 1) != "NOT":
            left = place - 1
            if self._keyword(left) == ")":
                # The first column of several names the session.
                while self._keyword(left) != "(":
                    left -= 1
                left += 1
            self._read_list(left, place + 1, condition)

    def _read_list(self, column: int, place: int, condition: QueryCondition) -> None:
        """Note that a column is in the list parameter in the parentheses at a place."""
        name = self._list_parameter(place)
        if name is not None:
            condition.listed.append((self._tokens[column], name))

    def _list_parameter(self, place: int) -> str | None:
        """Return the name of the list parameter in the parentheses at a place."""
        parameters, is_list, depth = [], False, 0
        for token in self._tokens[place:]:
            depth += (token.text == "(") - (token.text == ")")
            is_list = is_list or "_ARRAY_ELEMENTS" in token.keyword
            if token.kind == "parameter":
                parameters.append(token.text[1:])
            if depth == 0:
                break
        return parameters[0] if is_list and len(parameters) == 1 else None
