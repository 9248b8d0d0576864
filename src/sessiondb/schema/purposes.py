"""The purpose of messages in SQL: the rule of `model.purposes`, for views and reads."""

from __future__ import annotations

from collections.abc import Iterable

from sessiondb.model import purposes


def _listed(values: Iterable[str]) -> str:
    return ", ".join(f"'{value}'" for value in values)


def _typed(message: str) -> str:
    """Return the condition that a user message has something that was typed."""
    return (
        f"EXISTS (SELECT 1 FROM part AS t WHERE t.session_id = {message}.session_id "
        f"AND t.seq = {message}.seq AND t.synthetic = 0 "
        f"AND t.type IN ({_listed(purposes.TYPED_TYPES)}))"
    )


def purpose_of(message: str) -> str:
    """Return the expression for the purpose of the message with the alias *message*."""
    return f"""CASE WHEN {message}.kind IN ({_listed(purposes.SUMMARY_KINDS)})
            THEN '{purposes.SUMMARY}'
            WHEN {message}.role = 'assistant' THEN '{purposes.ANSWER}'
            WHEN {message}.role = 'tool' THEN '{purposes.RESULT}'
            WHEN {message}.role = 'system' THEN '{purposes.INJECTED}'
            WHEN {message}.role = 'user'
            THEN CASE WHEN {_typed(message)}
                      THEN '{purposes.PROMPT}' ELSE '{purposes.INJECTED}' END
            WHEN EXISTS (SELECT 1 FROM part AS t
                          WHERE t.session_id = {message}.session_id
                            AND t.seq = {message}.seq AND t.type = 'tool')
            THEN '{purposes.COMMAND}'
            WHEN {message}.kind IN ({_listed(purposes.INJECTED_KINDS)})
            THEN '{purposes.INJECTED}'
            ELSE '{purposes.BOOKKEEPING}' END"""


def is_prompt(message: str) -> str:
    """Return the condition that the message with the alias *message* is a prompt."""
    return (
        f"{message}.role = 'user' AND {_typed(message)} "
        f"AND coalesce({message}.kind, '') NOT IN ({_listed(purposes.SUMMARY_KINDS)})"
    )
