"""The reads of the façades, under the names that they have there.

Each is a generator of the repository's kind; `Store` runs it in the caller's
thread and `AsyncStore` in threads of its own. A handle or a record means exactly its
own session or message. A string is a REF, as people type it: an id always takes
precedence, then the source's own id, a slug, a unique prefix or tail of an id, a title;
or ``@``. A string for a message is its id, else a label; a number is a seq.

Modules that only one read needs are imported inside it: `sessiondb list` waits for this
one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from sessiondb.arguments import checks_arguments
from sessiondb.database.extension_queries import ExtensionQueries
from sessiondb.database.message_queries import MessageKey, MessageQueries
from sessiondb.database.usage_queries import UsageQueries
from sessiondb.database.value_queries import ValueQueries
from sessiondb.errors import InvalidInputError, NotFoundError, abridged
from sessiondb.loading import load
from sessiondb.model import (
    Comparison,
    DeletePlan,
    FileDiff,
    Hit,
    Label,
    Page,
    Project,
    Prompt,
    Session,
    Todo,
    Tree,
    Unfinished,
)
from sessiondb.model.aliases import ROLE, canonical
from sessiondb.model.bounds import TypedTime
from sessiondb.model.handles import LEAF, Leaf, SessionHandle, SessionRef
from sessiondb.repository import Read, engine_in_use, family, lists, transcript
from sessiondb.repository.sessions import (
    ALL,
    ProjectFilter,
    list_sessions,
)

if TYPE_CHECKING:
    from sessiondb.model import Export
    from sessiondb.repository.context_record import Context
    from sessiondb.repository.cuts import Cut

R = TypeVar("R")


@checks_arguments
class Queries(UsageQueries, MessageQueries, ExtensionQueries, ValueQueries):
    """The reads of one opened database."""

    def sessions(
        self,
        *,
        project: ProjectFilter = ALL,
        scope: str | None = None,
        source: str | None = None,
        agent: str | None = None,
        since: TypedTime | None = None,
        until: TypedTime | None = None,
        title: str | None = None,
        archived: bool = False,
        subagents: bool = False,
        empty: bool = False,
        order: str = "used",
        reverse: bool = False,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Read[Page[Session]]:
        """Return one page of sessions, newest first; with *reverse* oldest first.

        *order* is ``used`` (last message), ``created``, ``cost`` or ``size``, the most
        costly and the largest first.
        *since* and *until* are times of the last use, *until* exclusive: Unix ms,
        datetimes with a time zone, or as people type them (``7d``, ``monday``).
        *archived*, *subagents* and *empty* (no message yet) include those. No
        match is an empty page; raises `InvalidInputError` for a bad cursor or limit.
        """
        filters = yield from self._filters_of_project(
            project, scope=scope, source=source, agent=agent, since=since, until=until,
            title=title, archived=archived, subagents=subagents, empty=empty,
        )  # fmt: skip
        return (
            yield from list_sessions(
                self._base,
                filters,
                order=order,
                reverse=reverse,
                limit=limit,
                cursor=cursor,
            )
        )

    def tree(self, ref: SessionRef, *, messages: bool = False) -> Read[Tree]:
        """Return the family of a session, from its topmost ancestor down.

        With *messages* the session itself has its messages as nodes, those of
        every branch, which are all read. Without, the cost does not depend on the
        number of messages.
        """
        session = yield from self.session(ref)
        return (yield from family.tree(self._base, session, messages=messages))

    def compare(
        self,
        a: SessionRef,
        b: SessionRef,
        *,
        at_a: MessageKey | None = None,
        at_b: MessageKey | None = None,
    ) -> Read[Comparison]:
        """Return the messages that two sessions share, and those that only one has.

        Of each the live path, or the path to the message *at_a*, *at_b*; *a* and *b*
        may be one session then.
        """
        first, second = (yield from self.session(a)), (yield from self.session(b))
        end_a = yield from self._end_of_range(first.id, at_a, "at_a")
        end_b = yield from self._end_of_range(second.id, at_b, "at_b")
        return (yield from family.compare(first, second, end_a, end_b))

    def plan_delete(
        self, ref: SessionRef, *, keep_forks: bool = False
    ) -> Read[DeletePlan]:
        """Return the sessions that `delete` would remove, and those it would detach."""
        session = yield from self.session(ref)
        return (
            yield from family.plan_delete(self._base, session, keep_forks=keep_forks)
        )

    def freed_bytes(self, sessions: Iterable[SessionRef]) -> Read[int]:
        """Return about how many bytes removing these sessions together frees.

        Values that only they share are counted once, values that other sessions refer
        to are not counted.
        """
        ids: list[str] = []
        for ref in sessions:
            ids.append((yield from self._extent_of(ref)).id)  # noqa: PERF401  it yields

        engine = yield from engine_in_use()
        return (yield from engine.session_sizes.freed(ids))[0]

    def context(
        self,
        ref: SessionRef,
        *,
        at: MessageKey | Leaf | None = LEAF,
        repair: str = "synthesise",
    ) -> Read[Context]:
        """Return the context to send to a model at message *at* (default: the leaf).

        *repair* determines how calls without a result are treated: ``synthesise`` a
        result, ``strip`` the part, ``drop`` the message, or ``none``. For an empty
        session ``messages`` is empty.
        """
        load("sessiondb.repository.context")
        from sessiondb.repository.context import context_of

        load("sessiondb.repository.results")
        from sessiondb.repository.results import with_own_results

        session = yield from self._extent_of(ref)
        leaf: Any = ...
        if at is not None and not isinstance(at, Leaf):
            leaf = yield from self._seq_of_message(session.id, at, "at")

        path = yield from transcript.live_path(session.id, leaf=leaf)
        messages = yield from transcript.load(session.id, path, live=path)
        if len(path) < session.last_seq:
            messages = yield from with_own_results(session.id, messages)
        return context_of(messages, repair)

    def search(
        self,
        query: str | None = None,
        *,
        project: ProjectFilter = ALL,
        scope: str | None = None,
        source: str | None = None,
        agent: str | None = None,
        since: TypedTime | None = None,
        until: TypedTime | None = None,
        title: str | None = None,
        archived: bool = False,
        subagents: bool = True,
        role: str | None = None,
        tool: str | None = None,
        file: str | None = None,
        order: str = "newest",
        all_hits: bool = False,
        limit: int = 20,
        cursor: str | None = None,
    ) -> Read[Page[Hit]]:
        """Find words in texts, reasoning, tool inputs and outputs, and titles.

        All words of *query* must occur in one message, of calls (*tool*, *role*
        ``tool``, *file*) in one call; `engine.query` has its language. *role* ``tool``
        finds calls with their results, *tool* a name in any case or a kind with its
        names (`TOOL_KINDS`), *file* what changed it, also without words.
        One hit per session unless *all_hits*. *order* is ``newest`` (newest written),
        ``time`` or ``rank``, which look at the newest 2,000 matches. No match is an
        empty page. A query of ``*parts*`` of words alone reads 64 MB of texts a page,
        whose ``next_cursor`` continues; that page may be empty, too. Raises
        `InvalidInputError` for a query without words.
        """
        load("sessiondb.repository.changed_files")
        load("sessiondb.repository.search")
        from sessiondb.repository.changed_files import changed_file
        from sessiondb.repository.search import search

        filters = yield from self._filters_of_project(
            project, scope=scope, source=source, agent=agent, since=since, until=until,
            title=title, archived=archived, subagents=subagents,
        )  # fmt: skip
        if file is not None:
            if role is not None or tool is not None or order != "newest":
                raise InvalidInputError("a file is searched without role, tool, order")
            return (
                yield from changed_file(
                    self._base, file, query, filters, all_hits=all_hits, limit=limit,
                    cursor=cursor,
                )
            )  # fmt: skip
        if query is None:
            raise InvalidInputError("a search needs a query, or a file")

        return (
            yield from search(
                self._base, query, filters, role=canonical(role, ROLE, "role"),
                tool=tool, order=order, all_hits=all_hits, limit=limit, cursor=cursor,
            )
        )  # fmt: skip

    def prompts(
        self,
        query: str | None = None,
        *,
        project: ProjectFilter = ALL,
        scope: str | None = None,
        source: str | None = None,
        agent: str | None = None,
        since: TypedTime | None = None,
        until: TypedTime | None = None,
        title: str | None = None,
        archived: bool = True,
        subagents: bool = True,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Read[Page[Prompt]]:
        """Return one page of the prompt history, newest first.

        *source* is the program that recorded the prompt; *agent*, *title*, *archived*
        and *subagents* apply to the session in which it was typed.
        """
        filters = yield from self._filters_of_project(
            project, scope=scope, source=source, agent=agent, since=since, until=until,
            title=title, archived=archived, subagents=subagents,
        )  # fmt: skip
        return (
            yield from lists.prompts(
                self._base, query, filters, limit=limit, cursor=cursor
            )
        )

    def todos(self, ref: SessionRef) -> Read[list[Todo]]:
        """Return a session's todo list; none is ``[]``."""
        return (yield from lists.todos((yield from self._extent_of(ref)).id))

    def diffs(self, ref: SessionRef) -> Read[list[FileDiff]]:
        """Return the known changes of files in a session; none is ``[]``."""
        return (yield from lists.diffs((yield from self._extent_of(ref)).id))

    def labels(self, ref: SessionRef) -> Read[list[Label]]:
        """Return the labels of a session's messages; none is ``[]``."""
        return (yield from family.labels((yield from self._extent_of(ref)).id))

    def subagents(self, ref: SessionRef) -> Read[list[Session]]:
        """Return the subagents that a session started, oldest first; none is ``[]``.

        Not those that these started in turn: `tree` has them.
        """
        children = yield from self.children(ref)
        return [item for item in children if item.relation == "subagent"]

    def children(self, ref: SessionRef) -> Read[list[Session]]:
        """Return a session's own subagents and forks, oldest first; none is ``[]``.

        Not those of these in turn: `tree` has them.
        """
        session = yield from self._extent_of(ref)
        return (yield from family.children(self._base, session.id))

    def projects(self) -> Read[list[Project]]:
        """Return every project that has or had a session in this database."""
        return (yield from lists.projects(self._base))

    def shell_at(self, ref: SessionRef, at: MessageKey) -> Read[tuple[Export, Cut]]:
        """Return the shell of a session as it was at a message, and the path there."""
        load("sessiondb.repository.cuts")
        from sessiondb.repository.cuts import cut_at, export_at

        shell = yield from self.session_shell(ref)
        seq = yield from self._seq_of_message(shell.session.id, at, "at")
        cut = yield from cut_at(shell.session.id, seq)
        return (yield from export_at(shell, cut)), cut

    def session_shell(self, ref: SessionRef) -> Read[Export]:
        """Return a session with everything that belongs to it except its messages."""
        load("sessiondb.model.export")
        from sessiondb.model import Export

        load("sessiondb.repository.extension_rows")
        from sessiondb.repository.extension_rows import tables_with_rows

        session = yield from self.session(ref)
        tables = yield from tables_with_rows(session.id)
        projects = yield from lists.projects(self._base)
        return Export(
            session,
            next((item for item in projects if item.id == session.project_id), None),
            (),
            tuple((yield from lists.todos(session.id))),
            tuple((yield from lists.diffs(session.id))),
            tuple((yield from family.labels(session.id))),
            (yield from self._parent_session(session.parent_id))
            if session.parent_id
            else None,
            tuple((yield from lists.prompts_of(self._base, session.id))),
            (yield from lists.merge_base_of(session.id)),
            extension_tables=tuple([table.name for table in tables]),
        )

    def _parent_session(self, session_id: str) -> Read[Session | None]:
        """Return a session by id; None if a shell deleted it and left its children."""
        try:
            return (yield from self.session(SessionHandle(session_id)))
        except NotFoundError:
            return None

    def snapshot(self, reads: Callable[[Queries], Read[R]]) -> Read[R]:
        """Return what several reads of one snapshot find.

        *reads* is a generator function: it takes these reads, has the result of each by
        ``yield from``, and returns what is wanted of them. It may run in another
        thread.
        """
        query = reads(self)
        if not isinstance(query, Generator):
            raise InvalidInputError(
                f"reads is a generator function, one that returns {abridged(query)} "
                "is not"
            )
        return (yield from query)

    def newest_change(self) -> Read[str]:
        """Return the cursor of the newest change: `changes` continues after it."""
        load("sessiondb.repository.feed")
        from sessiondb.repository.feed import newest_change

        return (yield from newest_change())

    def half_imported(self) -> Read[list[str]]:
        """Return the ids of sessions whose import is running, or was interrupted.

        They are not complete, so no other read returns them; another import of their
        source completes them. None is ``[]``.
        """
        return (yield from lists.half_imported())

    def unfinished(self) -> Read[list[Unfinished]]:
        """Return sessions with open messages or calls that no living writer holds."""
        return (yield from lists.unfinished(self._base))
