"""The requests of subagents, which a session and the subagent's own log both record.

The event of a request names the log (``subagent_id``) in 0.24. In 0.21 it has the name
of the subagent alone; several may share that, and one of that name may have no log. So
such a request is an answer in one of those logs if its counts are in it.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Any

from sessiondb.formats.kit.fields import Fields, as_object, as_text, take_fields
from sessiondb.formats.kit.files import is_file
from sessiondb.formats.kit.logs import logs_below, records_naming
from sessiondb.formats.qwen import fields
from sessiondb.formats.qwen.logs import QwenLog, agent_log_of, agents_of, is_log

Record = dict[str, Any]
#: The name of a subagent, and the counts of a request of it.
_AgentAnswer = tuple[str | None, frozenset[tuple[str, Any]]]


class AgentAnswers:
    """The answers of the subagents of a session that are in logs of their own."""

    def __init__(self, log: QwenLog) -> None:
        self._log = log

    def take_answer(self, event: Record) -> bool:
        """Return whether the request of an *event* is one of them, each once."""
        agent = as_text(event.get("subagent_id"))
        if agent is not None:
            return is_file(agent_log_of(self._log, agent))
        if "subagent_name" not in event:
            return False

        answer = _agent_answer(event.get("subagent_name"), event, fields.EVENT_TOKENS)
        self._remaining_answers[answer] -= 1
        return self._remaining_answers[answer] >= 0

    @cached_property
    def _remaining_answers(self) -> Counter[_AgentAnswer]:
        """The number of answers of each kind that are not taken yet."""
        answers: Counter[_AgentAnswer] = Counter()
        for path in logs_below(agents_of(self._log), is_log):
            if not isinstance(path, Path):
                continue
            for record in records_naming(path, '"usageMetadata"'):
                if "usageMetadata" in record:
                    name, usage = record.get("agentName"), record["usageMetadata"]
                    answers[_agent_answer(name, usage, fields.TOKENS)] += 1
        return answers


def _agent_answer(name: Any, usage: Any, counts: Fields) -> _AgentAnswer:
    columns = take_fields(dict(as_object(usage)), counts)
    # A count of zero may be left out.
    used = frozenset((column, number) for column, number in columns.items() if number)
    return as_text(name), used
