"""Terms over the usage of messages, as SQL text."""

from __future__ import annotations

from sessiondb.schema.terms import USAGE


def states_usage(message: str) -> str:
    """Return the condition that a message states a cost or tokens."""
    return " OR ".join(f"{message}.{name} IS NOT NULL" for name in USAGE)


def has_usage(message: str) -> str:
    """Return the condition that a message counts: it is owned, and states usage."""
    return f"{message}.inherited = 0 AND ({states_usage(message)})"


def prompt_length(message: str) -> str:
    """Return the tokens of a request: providers have other rates for long ones."""
    kinds = "tokens_input", "tokens_cache_read", "tokens_cache_write"
    return " + ".join(f"coalesce({message}.{name}, 0)" for name in kinds)
