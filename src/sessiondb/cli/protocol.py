"""Facts that other programs rely on: exit codes, the variable of completions."""

from __future__ import annotations

#: Problems were found, or something could not be read.
PROBLEMS_FOUND = 4
#: The user interrupted the command.
INTERRUPTED = 130
#: The reader of stdout closed it.
BROKEN_PIPE = 141
#: Set by a shell that requests completions of a command line.
COMPLETION = "_SESSIONDB_COMPLETE"


def exit_code(problems: object) -> int:
    """Return the exit code of a command that found *problems*; 0 if it is empty."""
    return PROBLEMS_FOUND if problems else 0
