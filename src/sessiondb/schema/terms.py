"""Terms over the tables as SQL text, and groups of their columns."""

from __future__ import annotations

#: Why lists leave a session out, as the sum of these; 0 for one that is listed. It is a
#: column of its own, kept by the engine, because an index over the columns that it
#: follows from would be written at every append: the count of messages changes, and
#: what follows from it nearly never does.
ARCHIVED, SUBAGENT, EMPTY, INVISIBLE = 1, 2, 4, 8
HIDDEN = " + ".join(
    f"CASE WHEN {condition} THEN {reason} ELSE 0 END"
    for reason, condition in (
        (ARCHIVED, "{0}time_archived IS NOT NULL"),
        (SUBAGENT, "{0}relation = 'subagent'"),
        (EMPTY, "{0}message_count <= 0"),
        (INVISIBLE, "{0}time_deleted IS NOT NULL OR {0}time_importing IS NOT NULL"),
    )
)
#: Which leases have a living holder at ``:now``. A holder renews its lease every third
#: of ttl, so it never expires later than in ttl, unless the clock was set back; twice
#: that tolerates a small step.
LIVING_LEASE = "time_expires > :now AND time_expires - :now <= 2 * ttl"


def is_living(time_expires: int | None, ttl: int | None, now: int) -> bool:
    """Return whether `LIVING_LEASE` holds for a row of ``lease``, or for none."""
    if time_expires is None or ttl is None:
        return False
    return 0 < time_expires - now <= 2 * ttl


#: True for a value that has not expired at ``:now``.
UNEXPIRED = "(time_expires IS NULL OR time_expires > :now)"

#: True for a message that an import put behind its child.
DISORDERED = "parent_seq >= seq"

#: True for a message that does not come right after its parent: an index has those, and
#: an append at the end writes no entry for it. All others are found by their seq.
BRANCHED = "parent_seq <> seq - 1"

#: The name in the usage key of a message. Copies have one key, so they have one name.
USAGE_NAME = "coalesce({0}usage_name, nullif({0}response_id, ''), {0}id)"
#: True for a message whose name may be another than its id: an index has its key. All
#: others are found by their id, and an append writes no entry of a random key.
NAMED_OTHERWISE = "{0}usage_name IS NOT NULL OR {0}response_id IS NOT NULL"


def has_key(other: str, key: str, name: str) -> str:
    """Return the condition that message *other* has a usage key, with that name.

    All three are SQL. Each side of the OR has its index.
    """
    return (
        f"({other}.usage_key = {key} AND ({NAMED_OTHERWISE.format(f'{other}.')}) "
        f"OR {other}.id = {name} AND {other}.usage_key = {key})"
    )


#: The columns of token counts, of a message and of the sums of a session.
TOKENS = (
    "tokens_input",
    "tokens_output",
    "tokens_reasoning",
    "tokens_cache_read",
    "tokens_cache_write",
)
#: The columns of a message that its session sums up.
USAGE = ("cost", *TOKENS)
#: The columns of a session that count its messages, in the order of `sums.totals_sql`.
COUNTERS = ("message_count", "prompt_count", "cost", "cost_inherited", *TOKENS)
