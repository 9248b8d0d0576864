"""The requests of subagents, which a session and the subagent's own log both record.

The event of a request names the log (``subagent_id``) in 0.24. In 0.21 it has the name
of the subagent alone; several may share that, and one of that name may have no log. So
there a request is an answer in one of those logs if its counts are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from sessiondb.formats.kit.fields import Fields, as_object, as_text, take
from sessiondb.formats.kit.files import is_file
from sessiondb.formats.kit.logs import logs_below, records_naming
from sessiondb.formats.qwen import fields
from sessiondb.formats.qwen.logs import Log, agent_log_of, agents_of, is_log

Record = dict[str, Any]
#: The name of a subagent, and what a request of it used.
_Answer = tuple[str | None, frozenset[tuple[str, Any]]]


class Answered:
    """The answers of the subagents of a session that are in logs of their own."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def take(self, event: Record) -> bool:
        """Return whether the request of an *event* is one of them, each once."""
        agent = as_text(event.get("subagent_id"))
        if agent is not None:
            return is_file(agent_log_of(self._log, agent))
        if "subagent_name" not in event:
            return False

        answer = _answer(event.get("subagent_name"), event, fields.EVENT_TOKENS)
        self._left[answer] -= 1
        return self._left[answer] >= 0

    @cached_property
    def _left(self) -> Counter[_Answer]:
        return Counter(
            _answer(record.get("agentName"), record["usageMetadata"], fields.TOKENS)
            for path in self._logs()
            for record in records_naming(path, '"usageMetadata"')
            if "usageMetadata" in record
        )

    def _logs(self) -> Iterator[Path]:
        for found in logs_below(agents_of(self._log), is_log):
            if isinstance(found, Path):
                yield found


def _answer(name: Any, usage: Any, counts: Fields) -> _Answer:
    # A count of zero may be left out.
    known = take(dict(as_object(usage)), counts).items()
    return as_text(name), frozenset(filter(lambda item: item[1], known))
