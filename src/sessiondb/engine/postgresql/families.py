"""Rows by family: what makes a statement touch the rows of one family alone.

A family is a root session with its forks and subagents. Each row of a session has the
number of its family, ``family``, which is in every key of its table. So a server of
many nodes can keep a family on one of them: see docs/POSTGRES.md.

Statements are written without it. It follows from what they compare: a row whose
``session_id`` equals that of another one is of the same family, and so are a parent, a
child and a blob. `in_family` adds the condition for each table of which that is known,
with the family of a session among the parameters (``:family_of_NAME``, which
`routes.Routes` binds) or with that of another table. A table that has no session to be
compared with is read in all families.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from sessiondb.engine.postgresql.query_shape import (
    Query,
    QueryCondition,
    TableInQuery,
    Token,
    read_queries,
)
from sessiondb.patterns import late_pattern

#: The tables of ours with rows of sessions; those of programs have a ``session_id``.
SHARDED = frozenset(
    "session message part label todo file_diff lease merge_base part_search "
    "session_search blob".split()
)
#: The beginning of the names of tables of programs.
_ADDED = "ext_"
#: That of a parameter with the family of the session that another parameter names.
FAMILY_OF = "family_of_"
#: That of a parameter with the families of the sessions in a list, an array.
FAMILIES_OF = "families_of_"
#: The columns by which rows of a family name each other.
_NAMES_OF_SESSIONS = frozenset(("session_id", "parent_id", "root_id"))
_BITS = 63
_STATEMENT = late_pattern(r"(?i)[\s(]*(SELECT|WITH|UPDATE|DELETE|INSERT)\b")
_NAMES_FAMILY = late_pattern(r"\bfamily\b|\bfamily_of_")


def family_of_root(session_id: str) -> int:
    """Return the number of the family that begins with a session.

    Two families may have the same one: they are kept together.
    """
    digest = hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - _BITS)


def is_sharded(table: str, columns: str = "session_id") -> bool:
    """Return whether rows of a table have a family; *columns* are those it has."""
    return table in SHARDED or (table.startswith(_ADDED) and "session_id" in columns)


def _side(token: Token, query: Query) -> tuple[TableInQuery, str] | None:
    """Return the table and the column of one side of a comparison."""
    alias, _, column = token.text.rpartition(".")
    if not alias:
        if len(query.tables) != 1 or token.kind != "word":
            return None
        return query.tables[0], column.strip('"')
    table = query.named(alias)
    return None if table is None else (table, column.strip('"'))


def _names_session(table: str, column: str) -> bool:
    return column in _NAMES_OF_SESSIONS or (table == "session" and column == "id")


def _names_blob(table: str, column: str) -> bool:
    return column.endswith("_blob") or (table == "blob" and column == "hash")


def _settle_families(query: Query) -> None:
    """Find the family of each table of a query; those around it have theirs."""
    conditions = [each for each in query.conditions if not each.has_or]
    links: list[tuple[TableInQuery, TableInQuery]] = []
    for condition in conditions:
        for pair in (
            *condition.equal,
            *((right, left) for left, right in condition.equal),
        ):
            _state_family(query, condition, *pair)
            links += _links(query, condition, *pair)
        if query.writes:
            for column, name in condition.listed:
                array = f"CAST(:{FAMILIES_OF}{name} AS BIGINT[])"
                table = _own_table(query, condition, column)
                if table is not None and table.family is None:
                    table.family = f"ANY ({array})"
    for table in query.tables:
        if table.table == "blob" and query.session is not None:
            table.family = f":{FAMILY_OF}{query.session}"

    _spread(query, links)
    for table in query.tables:
        if table.family is None:
            # It is read in all families, and others are compared with it.
            table.family = ""
            _spread(query, links)


def _own_table(
    query: Query, condition: QueryCondition, column: Token
) -> TableInQuery | None:
    """Return the table of a query of which a condition names the session."""
    side = _side(column, query)
    if side is None or not _names_session(side[0].table, side[1]):
        return None
    return side[0] if _is_about(query, condition, side[0]) else None


def _is_about(query: Query, condition: QueryCondition, table: TableInQuery) -> bool:
    """Return whether a condition holds for every row of a table that a query reads."""
    if not any(each is table for each in query.tables):
        return False
    return not condition.is_outer or table.condition is condition


def _state_family(
    query: Query, condition: QueryCondition, column: Token, value: Token
) -> None:
    """Note the family of a table whose session is that of a parameter."""
    table = _own_table(query, condition, column)
    if table is not None and table.family is None and value.kind == "parameter":
        table.family = f":{FAMILY_OF}{value.text[1:]}"


def _links(
    query: Query, condition: QueryCondition, left: Token, right: Token
) -> Iterator[tuple[TableInQuery, TableInQuery]]:
    """Yield a table of a query with another one whose family it has."""
    first, second = _side(left, query), _side(right, query)
    if first is None or second is None:
        return
    (table, column), (other, other_column) = first, second
    if not _is_about(query, condition, table):
        return
    sides = [(table.table, column), (other.table, other_column)]
    if all(_names_session(*side) for side in sides) or (
        all(_names_blob(*side) for side in sides)
    ):
        yield table, other


def _spread(query: Query, links: list[tuple[TableInQuery, TableInQuery]]) -> None:
    """Give tables the families of those that they are linked to."""
    for _ in query.tables:
        for table, other in links:
            is_known = other.family is not None or other not in query.tables
            if table.family is None and is_known:
                table.family = other.family or f"{other.alias}.family"


def in_family(sql: str) -> str:
    """Return a statement with the family of each table of which it is known.

    One that names families is returned as it is.
    """
    if _NAMES_FAMILY.search(sql) or _STATEMENT.match(sql) is None:
        return sql
    edits: list[tuple[int, str]] = []
    for query in read_queries(sql, is_sharded):
        _settle_families(query)
        edits += _conditions_of(query)
    edits += _columns_of_insert(sql)
    # Those at one place stay in their order.
    for place, text in sorted(edits, key=lambda edit: edit[0], reverse=True):
        sql = f"{sql[:place]}{text}{sql[place:]}"
    return sql


def _conditions_of(query: Query) -> Iterator[tuple[int, str]]:
    """Yield what is inserted into the text of a query, by place."""
    added: dict[int, list[str]] = {}
    conditions = {id(each): each for each in query.conditions}
    loose: list[str] = []
    for each in query.tables:
        if not each.family:
            continue
        term = f"{each.alias}.family = {each.family}"
        condition = each.condition or query.where
        if condition is None:
            loose.append(term)
        else:
            added.setdefault(id(condition), []).append(term)
    for key, terms in added.items():
        condition = conditions[key]
        text = f" {' AND '.join(terms)} AND"
        if condition.has_or:
            yield condition.start, f"{text} ("
            yield condition.end, ")"
        else:
            yield condition.start, text
    if loose:
        yield query.end, f" WHERE {' AND '.join(loose)} "


_INSERT = late_pattern(
    r"(?is)\s*INSERT INTO (?P<table>\w+) \((?P<columns>[^)]*)\)\s*"
    r"(?:VALUES\s*\(|(?P<select>SELECT)\s)"
)
_CONFLICT = late_pattern(r"(?i)ON CONFLICT \(([^)]*)\)")


def _columns_of_insert(sql: str) -> Iterator[tuple[int, str]]:
    """Yield what is inserted into an INSERT: the column, its value, and the key."""
    insert = _INSERT.match(sql)
    if insert is None or not is_sharded(insert["table"], insert["columns"]):
        return
    names = [name.strip().strip('"') for name in insert["columns"].split(",")]
    owner_name = "id" if insert["table"] == "session" else "session_id"
    if owner_name not in names:  # a blob, whose family its INSERT states
        return
    owner = names.index(owner_name)
    value = _items(sql, insert.end())[owner].split()[0]
    if value == "?":
        value = f":{owner}"
    # Of a session that does not exist: the reference refuses it, as everywhere.
    family = f"coalesce((SELECT family FROM route WHERE session_id = {value}), -1)"
    if value.startswith(":"):
        # A cast of the parameter is no part of its name.
        family = f":{FAMILY_OF}{value[1:].partition('::')[0]}"
    yield insert.start("columns"), "family, "
    yield insert.end(), f"{family}, "
    conflict = _CONFLICT.search(sql, insert.end())
    if conflict is not None:
        yield conflict.end(1), ", family"


def _items(sql: str, start: int) -> list[str]:
    """Return the items from *start* on, which commas separate."""
    items, depth, begin = [], 0, start
    for place in range(start, len(sql)):
        character = sql[place]
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        if depth < 0 or (character == "," and depth == 0):
            items.append(sql[begin:place])
            begin = place + 1
            if depth < 0:
                return items
    return [*items, sql[begin:]]
