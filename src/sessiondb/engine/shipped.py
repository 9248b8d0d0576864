"""The file of statements that ships with an engine: their texts, as SQL, by name.

    -- effects.lease.DROP
    DELETE FROM lease WHERE lease.session_id = :sid AND lease.holder = :holder

A blank line ends a text.
"""

from __future__ import annotations

from collections.abc import Mapping

from sessiondb.patterns import late_pattern

_MARK = "\n\n-- "
#: A word of SQL with the texts in it, which a line never breaks.
_WORD = late_pattern(r"(?:'(?:[^']|'')*'|[^\s'])+")
_WIDTH = 96
#: Words that begin a line.
_CLAUSES = set(
    "FROM WHERE JOIN LEFT GROUP ORDER HAVING LIMIT UNION VALUES SET RETURNING".split()
)


def read_texts(content: str) -> dict[str, str]:
    """Return the statements of a file by name."""
    blocks = [block.partition("\n") for block in content.split(_MARK)[1:]]
    return {name: text for name, _, text in blocks}


def write_texts(about: str, texts: Mapping[str, str]) -> str:
    """Return the content of the file; *about* is its first line."""
    blocks = [f"{name}\n{text}" for name, text in texts.items()]
    return f"-- {about}{_MARK}{_MARK.join(blocks)}"


def lay_out(sql: str) -> str:
    """Return *sql* in lines that a person can read."""
    lines, line = [], ""
    for word in _WORD.findall(sql):
        is_long = len(line) + len(word) >= _WIDTH
        # ``a IS DISTINCT FROM b`` compares.
        begins_clause = word in _CLAUSES and not line.endswith("DISTINCT")
        if line and (begins_clause or is_long):
            lines.append(line)
            line = "    " if is_long and not begins_clause else ""
        line += word if not line.strip() else f" {word}"
    return "\n".join([*lines, line])
