"""Removal of several sessions at once, planned before any is removed.

A removal is planned, shown, and then carried out, on the sessions that it names and all
their descendants. Pruning chooses by rule, and never removes a session that the rule
did not choose: a session with such a descendant stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import islice
from typing import TYPE_CHECKING, Any

from sessiondb.arguments import checked
from sessiondb.dataclass import dataclass
from sessiondb.errors import InvalidInputError
from sessiondb.model import DeletePlan, Session, bounds, session_json
from sessiondb.model.bounds import TypedTime

if TYPE_CHECKING:
    from sessiondb.store import Store

#: Sessions per transaction. Each transaction waits for the disk, and blocks writers.
AT_ONCE = 100


@dataclass(slots=True)
class Removal:
    """The plans of several deletes; no session is counted, or deleted, twice.

    ``going`` are the sessions that would be removed, ``staying`` those that a rule
    chose but that stay because of a descendant; both by id. ``bytes`` is the space that
    all of them free together, set by `measure`.
    """

    keep_forks: bool = False
    plans: dict[str, DeletePlan] = field(default_factory=dict)
    going: dict[str, Session] = field(default_factory=dict)
    staying: dict[str, Session] = field(default_factory=dict)
    bytes: int = 0

    def add(self, plan: DeletePlan) -> None:
        """Add a plan, which replaces those of its descendants."""
        for session in plan.sessions:
            self.plans.pop(session.id, None)
            self.going[session.id] = session
        self.plans[plan.sessions[0].id] = plan

    @property
    def detached(self) -> list[Session]:
        """The forks that stay and lose their parent."""
        return [
            fork
            for plan in self.plans.values()
            for fork in plan.detached
            if fork.id not in self.going
        ]

    def total(self, name: str) -> int:
        """Return the sum of an attribute of the plans, ``messages`` or ``parts``."""
        return sum(getattr(plan, name) for plan in self.plans.values())

    def as_json(self) -> dict[str, Any]:
        """Return the sessions that go and stay, and the totals, as JSON values."""
        return {
            "sessions": [session_json(session) for session in self.going.values()],
            "detached": [session_json(session) for session in self.detached],
            "staying": [session_json(session) for session in self.staying.values()],
            "messages": self.total("messages"),
            "parts": self.total("parts"),
            "bytes": self.bytes,
        }

    def measure(self, store: Store) -> Removal:
        """Set ``bytes``, where shared values count once; return the removal."""
        self.bytes = store.freed_bytes(self.going.values()) if self.going else 0
        return self

    def carry_out(
        self, store: Store, revisions: Mapping[str, int] | None = None
    ) -> None:
        """Remove what goes, for good; raises the errors of `Store.delete`.

        *revisions* are those of `write_bundle`: a session that changed since raises
        `ConflictError`, and its unit of at most `AT_ONCE` sessions removes nothing.
        """
        # In several transactions, so that other writers do not wait for all of them.
        session_ids = iter(self.plans)
        while some := list(islice(session_ids, AT_ONCE)):
            with store.effects() as fx:
                for session_id in some:
                    fx.delete(
                        session_id, keep_forks=self.keep_forks, revisions=revisions
                    )

        # Not in the background: the user wants them off the disk now.
        store.reap()


@checked
def every(store: Store, **filters: Any) -> Iterator[Session]:
    """Yield every session that `Store.sessions` returns for *filters*, in its order."""
    cursor = None
    while True:
        page = store.sessions(**filters, limit=1000, cursor=cursor)
        yield from page
        cursor = page.next_cursor
        if cursor is None:
            return


@checked
def plan_prune(
    store: Store,
    *,
    older_than: TypedTime | None = None,
    empty: bool = False,
    keep: int | None = None,
    free: int | None = None,
    keep_forks: bool = False,
    **filters: Any,
) -> Removal:
    """Return the removal that prunes the sessions that *filters* choose.

    *older_than*: those not used since, a time as reads take it, such as ``30d``.
    *empty*: those without messages. *keep*: those with messages, except this many that
    were used last. *free*: of all these, or of any, those that were not used for the
    longest time, until they free so many bytes together; all of them if they free less.
    *older_than* and *free* can be combined with the others. Raises `InvalidInputError`
    without a rule, and for *empty* together with *keep*.
    """
    since = bounds.typed_time(older_than, "older_than")
    rule = _PruneRule(since, empty, keep, bounds.integer(free, "free"))
    chosen = rule.chosen(
        every(store, **{**filters, "order": "used", "empty": keep is None})
    )

    if free is not None:
        return _plan_oldest(store, chosen, free, keep_forks).measure(store)

    removal = Removal(keep_forks)
    for session in chosen.values():
        if session.id in removal.going:
            continue
        plan = store.plan_delete(session, keep_forks=keep_forks)
        if rule.allows(plan, chosen):
            removal.add(plan)
        else:
            removal.staying[session.id] = session

    return removal.measure(store)


def _plan_oldest(
    store: Store, chosen: Mapping[str, Session], free: int, keep_forks: bool
) -> Removal:
    """Plan to remove *chosen* sessions, the oldest first, until *free* bytes are free.

    A session waits for those below it that are chosen and were used later.
    """
    removal = Removal(keep_forks)
    for session in reversed(list(chosen.values())):
        if removal.total("bytes") >= free:
            break
        # With the last of its forks a session can go that has waited for them.
        candidate: Session | None = session
        while candidate is not None:
            plan = store.plan_delete(candidate, keep_forks=keep_forks)
            below = plan.sessions[1:]
            waits = any(
                item.relation != "subagent" and item.id not in removal.going
                for item in below
            )
            if waits:
                removal.staying[candidate.id] = candidate
                break
            removal.staying.pop(candidate.id, None)
            removal.add(plan)
            candidate = removal.staying.get(candidate.parent_id or "")
            if removal.total("bytes") >= free:
                break
    return removal


@dataclass(frozen=True, slots=True)
class _PruneRule:
    """The rule of a prune; raises `InvalidInputError` if it is none, or two."""

    older_than: int | None
    empty: bool
    keep: int | None
    free: int | None

    def __post_init__(self) -> None:
        if self.empty and self.keep is not None:
            raise InvalidInputError(
                "empty and keep exclude each other: keep counts sessions with messages"
            )
        limits = (self.older_than, self.keep, self.free)
        if not self.empty and limits == (None, None, None):
            raise InvalidInputError("prune by older_than, empty, keep or free")
        if self.free is not None and self.free < 1:
            raise InvalidInputError(f"free is a number of bytes above 0: {self.free}")

    def chosen(self, sessions: Iterator[Session]) -> dict[str, Session]:
        """Return the *sessions* that the rule chooses, by id, the last used first."""
        older = islice(sessions, self.keep or 0, None)
        return {session.id: session for session in older if self._fits_rule(session)}

    def allows(self, plan: DeletePlan, chosen: Mapping[str, Session]) -> bool:
        """Return whether a plan removes only chosen sessions and their subagents."""
        others = [item for item in plan.sessions if item.id not in chosen]
        # A subagent is a part of the session that called it: it need not be chosen.
        are_subagents = {item.relation for item in others} <= {"subagent"}
        return are_subagents and all(self._fits_rule(item) for item in others)

    def _fits_rule(self, session: Session) -> bool:
        is_fresh = (
            self.older_than is not None and session.time_updated >= self.older_than
        )
        return not is_fresh and not (self.empty and session.message_count)
