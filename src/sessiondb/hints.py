"""Commands inside hints: one way to write them, ready to type.

A hint is a line of text. A command in it is written by `command`: between backticks,
its words quoted for a shell, and no word contains a backtick. So the command line
can find it and add the database it was given (`with_database`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Patterns are compiled when a hint is shown, because every command imports this module.
_COMMAND = r"`sessiondb ([^`]*)`"
#: Commands that choose their database themselves, or need none.
_ALONE = r"--?\w|trust\b|completion\b|init --local|(?:[\w-]+ )?--help$"


def command(*words: str) -> str:
    """Return the command line of these words for a hint, ready to type."""
    return f"`{' '.join(['sessiondb', *map(word, words)])}`"


def word(text: str) -> str:
    """Return *text* as one word of a POSIX shell.

    Control characters, backticks and bytes that are not UTF-8 are escaped, as
    bash, zsh and ksh read them between ``$'`` and ``'``.
    """
    if text.isprintable() and "`" not in text:
        import shlex

        return shlex.quote(text)
    return f"$'{''.join(map(_escape_character, text))}'"


def _escape_character(char: str) -> str:
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    if char.isprintable() and char not in "\\'`":
        return char
    return f"\\U{ord(char):08x}"


def with_database(hint: str, options: Sequence[str]) -> str:
    """Return *hint* with *options* such as ``--db PATH`` in commands that need them."""
    if not options:
        return hint

    chosen = " ".join(map(word, options))

    def choose(match: re.Match[str]) -> str:
        if re.match(_ALONE, match[1]):
            return match[0]
        return f"`sessiondb {chosen} {match[1]}`"

    return re.sub(_COMMAND, choose, hint)


def without(hint: str, name: str) -> str:
    """Return *hint* without the clauses, between semicolons, that advise to run *name*.

    ``check`` does not advise to run ``check``. Empty if no clause is left.
    """
    clauses = re.findall(r"(?:`[^`]*`|[^`;])+", hint)
    return "; ".join(c.strip() for c in clauses if f"`sessiondb {name}`" not in c)
