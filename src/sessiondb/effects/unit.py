"""The unit: verbs that queue effects, to be committed completely or not at all.

Each verb checks its arguments at once, in memory and against what the unit has
staged itself; it never reads the database and no lock is held however long the
unit takes. A check that depends on rows is a condition inside the transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import EllipsisType
from typing import Any, Unpack

from sessiondb import ids
from sessiondb.arguments import checks_arguments, one_of
from sessiondb.dataclass import replace
from sessiondb.effects import calls, encode, open_message, providers, tree
from sessiondb.effects import session as sessions
from sessiondb.effects.creation import OpenSession, SessionFields, creation, session_id
from sessiondb.effects.delete import Delete
from sessiondb.effects.extension_verbs import ExtensionVerbs
from sessiondb.effects.fields import (
    KEEP,
    call_result,
    diff_rows,
    end_reason,
    filled,
    is_named,
    part_row,
    session_columns,
    todo_row,
    usage,
    with_fields,
)
from sessiondb.effects.fork import Fork
from sessiondb.effects.message import Append
from sessiondb.effects.place import Relink, UseTerminal
from sessiondb.effects.project import Locate, ProjectPlace
from sessiondb.effects.removal import ReadMessage
from sessiondb.effects.revising import RevisingVerbs
from sessiondb.effects.snapshot import RunReads
from sessiondb.effects.value_verbs import ValueVerbs
from sessiondb.engine.base import Engine
from sessiondb.errors import InvalidInputError
from sessiondb.model import FileDiff, Todo, Tokens, bounds
from sessiondb.model.bounds import Time
from sessiondb.model.draft import NO_INPUT, MessageFields, MessageLike, PartLike
from sessiondb.model.handles import (
    LEAF,
    Leaf,
    MessageHandle,
    MessageRef,
    OpenedSession,
    PartHandle,
    PartRef,
    SessionHandle,
    SessionRef,
    message_key,
    part_key,
    place_key,
    session_key,
)
from sessiondb.schema.rows import Blob, PartRow


@checks_arguments
class Unit(RevisingVerbs, ExtensionVerbs, ValueVerbs):
    """Effects that commit together.

    *source* names the program that writes; *locate* turns a directory into a
    `ProjectPlace` (a question to the file system, and so none for the transaction);
    *read* reads a message in the transaction, and *run_reads* whatever is asked: only
    `pop` and `snapshot` need them.
    """

    def __init__(
        self,
        engine: Engine,
        source: str,
        locate: Locate,
        read: ReadMessage | None = None,
        run_reads: RunReads | None = None,
    ) -> None:
        super().__init__(engine, read, run_reads)
        self._source = source
        self._find_place = locate

    def _locate_place(self, directory: str | None) -> ProjectPlace:
        return self.add_place(self._find_place(directory))

    # -- sessions ------------------------------------------------------------

    def create_session(
        self,
        *,
        id: str | None = None,
        title: str | None = None,
        directory: str | EllipsisType | None = ...,
        parent: SessionRef | None = None,
        relation: str | None = None,
        parent_message: MessageRef | None = None,
        call_id: str | None = None,
        agent: str | None = None,
        provider: str | None = None,
        model: str | None = None,
        version: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        time: Time | None = None,
        scope: str | None = None,
    ) -> SessionHandle:
        """Make an empty session.

        With a *parent* it is its ``subagent`` unless *relation* is ``fork``;
        *parent_message* is the message whose call *call_id* started it (default:
        the parent's leaf), and *directory* defaults to the parent's, else to the
        current one; None is none, and no project. *version* is that of your program.
        Without *model* the session has that of its last answer. *time* (Unix ms, or an
        aware datetime) dates the session and its id, for chats that are older than
        their row. *scope* is your own key for lists, by default the parent's. An *id*
        that exists with the same parent is returned.
        """
        effect = self._new_session(
            id=id, title=title, directory=directory, parent=parent,
            relation=relation, parent_message=parent_message, call_id=call_id,
            agent=agent, provider=provider, model=model, version=version,
            metadata=metadata, time=time, scope=scope,
        )  # fmt: skip
        self.add(effect)
        return SessionHandle(effect.id)

    def open_session(
        self,
        source_id: str,
        *,
        source: str | None = None,
        **fields: Unpack[SessionFields],
    ) -> OpenedSession:
        """Return the session that your program calls *source_id*, made if needed.

        The pair (*source*, *source_id*) is unique in the database; *source* defaults
        to that of the store, so two programs with one ``thread-1`` have two sessions.
        *fields* are those of `create_session` and count for a new session alone. The
        handle's ``id`` and ``created`` are final after the commit; until then it can be
        used in this unit. A session that was deleted is not restored: a new one
        takes its name.
        """
        create = replace(
            self._new_session(**fields),
            source=self._source if source is None else ids.valid_id(source, "a source"),
            source_id=ids.valid_id(source_id, "source_id"),
        )
        handle = OpenedSession(create.id)
        followers = self.followers.setdefault(create.id, [])
        self.add(OpenSession(create, handle, followers))
        return handle

    def _new_session(self, **fields: Unpack[SessionFields]) -> sessions.CreateSession:
        effect = creation(fields, self._source, self._locate_place)
        self.staged.create(effect.id)
        return effect

    def fork(
        self,
        session: SessionRef,
        *,
        at: MessageRef | Leaf = LEAF,
        before: MessageRef | None = None,
        title: str | None = None,
        directory: str | None = None,
        branches: bool = False,
        id: str | None = None,
        scope: str | None = None,
        source_id: str | None = None,
        source: str | None = None,
    ) -> SessionHandle:
        """Copy a session up to and including *at* (or up to *before*) into a new one.

        A string for a message is its id, else a label. ``branches=True`` copies every
        branch, not only the path. *scope* is by default the same. Blobs are shared.
        `open_session` finds the fork by *source_id*, the name in your program *source*
        (by default that of the store): `ConflictError` if a session has it.
        """
        if at is not LEAF and before is not None:
            raise InvalidInputError(
                "a fork is cut at a message or before one, not both"
            )

        handle = SessionHandle(self.staged.take_id(session_id(id)))
        effect = Fork(
            self._live_id(session),
            handle,
            own_id=id is not None,
            source=self._source if source is None else ids.valid_id(source, "a source"),
            at=place_key(at, "at"),
            before=place_key(before, "before"),
            by_name=isinstance(at if before is None else before, str),
            title=encode.string(title, "title"),
            place=None if directory is None else self._locate_place(directory),
            branches=branches,
            scope=ids.optional_id(scope, "scope"),
            source_id=ids.optional_id(source_id, "source_id"),
        )
        self.add(effect)
        return handle

    def delete(
        self,
        session: SessionRef,
        *,
        keep_forks: bool = False,
        revisions: Mapping[str, int] | None = None,
    ) -> None:
        """Remove a session with its subagents and forks, or detach the forks.

        *revisions*, by session id, makes it conditional: `ConflictError` when the
        block is left if another session would go too, or one has another revision.
        """
        for name, revision in (revisions or {}).items():
            ids.valid_id(name, "revisions (an id)")
            bounds.integer(revision, "revisions", least=0)
        # Whether others would go, too, is a question for the transaction.
        self.staged.delete(session_key(session))
        self.add(Delete(session_key(session), keep_forks, revisions))

    def set_title(self, session: SessionRef, title: str, *, by: str = "user") -> None:
        """Name a session; one of an ``agent`` never replaces one of the ``user``."""
        text = filled(title, "title")
        one_of(by, ("user", "agent", "derived"), "by")
        self.add(sessions.SetTitle(self._live_id(session), text, by))

    def set_directory(self, session: SessionRef, directory: str | None) -> None:
        """Move a session to another directory; None is none, and no project."""
        place = None if directory is None else self._locate_place(directory)
        self.add(sessions.SetDirectory(self._live_id(session), place))

    def set_permission(self, session: SessionRef, permission: Any) -> None:
        """Replace a session's permission rules, any JSON value; None clears them."""
        self._set_columns(
            "set_permission",
            session,
            permission=encode.json_column(permission, "permission"),
        )

    def set_share(
        self, session: SessionRef, url: str | None, *, secret: str | None = None
    ) -> None:
        """Record where a session is shared, and the secret for that; None ends it."""
        address, key = encode.string(url, "url"), encode.string(secret, "secret")
        self.add(sessions.SetShare(self._live_id(session), address, key))

    def set_revert(self, session: SessionRef, revert: Mapping[str, Any] | None) -> None:
        """Record a revert: message_id, part_id, snapshot, diff; None clears it."""
        value = encode.json_column(revert, "revert")
        self._set_columns("set_revert", session, revert=value)

    def update_session(
        self,
        session: SessionRef,
        *,
        version: str | EllipsisType | None = KEEP,
        agent: str | EllipsisType | None = KEEP,
        provider: str | EllipsisType | None = KEEP,
        model: str | EllipsisType | None = KEEP,
        summary_additions: int | EllipsisType | None = KEEP,
        summary_deletions: int | EllipsisType | None = KEEP,
        summary_files: int | EllipsisType | None = KEEP,
        summary_diffs: Any = KEEP,
        time_compacting: Time | EllipsisType | None = KEEP,
        scope: str | EllipsisType | None = KEEP,
    ) -> None:
        """Replace facts of a session; what is not given stays, None clears it.

        A *model* that is set here stays, whatever answers, and so does the *provider*
        of a known model; a model of None lets the session follow its answers again.
        Additions and deletions are lines, *summary_diffs* is any JSON value, *scope*
        your key for lists, *time_compacting* when a compaction began. None is a use.
        """
        values = session_columns(
            version=version, agent=agent, provider_id=provider, model_id=model,
            summary_additions=summary_additions, summary_deletions=summary_deletions,
            summary_files=summary_files, summary_diffs=summary_diffs,
            time_compacting=time_compacting, scope=scope,
        )  # fmt: skip
        self._set_columns("update_session", session, **values)

    def archive(self, session: SessionRef) -> None:
        """Take a session out of default lists."""
        self._set_columns("archive", session, time_archived="now")

    def unarchive(self, session: SessionRef) -> None:
        """Show an archived session in default lists again."""
        self._set_columns("unarchive", session, time_archived=None)

    def _set_columns(self, verb: str, session: SessionRef, **values: Any) -> None:
        columns = tuple(values.items())
        self.add(sessions.SetColumns(verb, self._live_id(session), columns))

    def set_todos(self, session: SessionRef, todos: Iterable[Todo | str]) -> None:
        """Replace a session's todo list; a string is a pending todo."""
        self.add(sessions.SetTodos(self._live_id(session), tuple(map(todo_row, todos))))

    def set_diffs(self, session: SessionRef, diffs: Iterable[FileDiff]) -> None:
        """Replace what is known of the files a session changed."""
        blobs: list[Blob] = []
        rows = diff_rows(diffs, blobs)
        self.add(sessions.SetDiffs(self._live_id(session), rows, tuple(blobs)))

    def label(self, session: SessionRef, message: MessageRef, name: str | None) -> None:
        """Name a message; a name moves to the last that gets it, None removes all."""
        text = None if name is None else ids.valid_id(name, "name (a label)")
        self.add(sessions.SetLabel(self._live_id(session), message_key(message), text))

    def add_prompt(
        self,
        text: str,
        *,
        session: SessionRef | None = None,
        directory: str | None = None,
        id: str | None = None,
        time: Time | None = None,
    ) -> str:
        """Add a line to the prompt history and return its id; *time* in Unix ms."""
        shown = filled(text, "text (the prompt)")

        prompt_id = ids.new_part_id() if id is None else ids.valid_id(id, "a prompt id")
        # A prompt of a session is where the session is.
        is_placed = directory is not None or session is None
        effect = sessions.AddPrompt(
            id=prompt_id,
            text=shown,
            place=self._locate_place(directory) if is_placed else None,
            session_id=None if session is None else session_key(session),
            source=self._source,
            time=bounds.time_ms(time),
        )
        self.add(effect)
        return prompt_id

    def note_used(
        self, session: SessionRef, terminal: str, directory: str | None = None
    ) -> None:
        """Record what a terminal used last in *directory* (here), for ``@``."""
        name = ids.valid_id(terminal, "a terminal")
        used_directory = self._find_place(directory).directory
        self.add(UseTerminal(self._live_id(session), name, used_directory))

    def relink(self, old: str, new: str) -> Relink:
        """Record that a folder moved; ``.moved`` counts sessions after the commit."""
        effect = Relink(self._find_place(old).directory, self._locate_place(new))
        self.add(effect)
        self.is_alone = True
        return effect

    # -- the conversation ----------------------------------------------------

    def append(
        self,
        /,
        session: SessionRef,
        message: MessageLike,
        *,
        after: MessageRef | Leaf | None = LEAF,
        open: bool = False,
        expect_leaf: MessageRef | EllipsisType | None = ...,
        expect_revision: int | None = None,
        **fields: Unpack[MessageFields],
    ) -> MessageHandle:
        """Write a message after another one (default: the leaf) and make it the leaf.

        *open* leaves it unfinished, so that parts can be added. *expect_leaf*
        (a seq, or None for an empty session) and *expect_revision* refuse to
        write onto something else than was read: `ConflictError`. *fields* are the
        columns of the message, as `MessageFields` names them.
        """
        blobs: list[Blob] = []
        draft = with_fields(message, fields)
        row = encode.encode_message(draft, blobs)
        handle = MessageHandle(session_key(session), row.id)

        # Loops are inlined: an append is the one write that is made thousands of times.
        parts: dict[str, PartRow] = {}
        for part_draft in draft.parts:
            part = part_row(part_draft, blobs)
            if part.id in parts:
                raise InvalidInputError("two parts of one message have the same id")
            parts[part.id] = part

        handle.parts = tuple(
            [PartHandle(handle.session_id, row.id, part_id) for part_id in parts]
        )
        # In the order of the fields: keywords take twice as long.
        effect = Append(
            handle.session_id,
            row,
            tuple(parts.values()),
            tuple(blobs),
            handle,
            draft.id is not None,
            place_key(after, "after"),
            open,
            place_key(expect_leaf, "expect_leaf"),
            bounds.integer(expect_revision, "expect_revision"),
        )
        self.staged.append(handle, open, draft.id is not None)
        self.add(effect)
        self.follow_append(handle, *handle.parts)
        return handle

    append_openai = providers.append_openai
    append_anthropic = providers.append_anthropic

    def add_part(
        self, session: SessionRef, message: MessageRef, part: PartLike
    ) -> PartHandle:
        """Add a part to a message, which stays as open or finished as it is."""
        blobs: list[Blob] = []
        row = part_row(part, blobs)
        sid, key = self._live_id(session), message_key(message)
        # Only with an id a caller can have written it before.
        self.add(open_message.AddPart(sid, key, row, tuple(blobs), is_named(part)))
        handle = PartHandle(sid, str(key), row.id)
        self.follow_append(handle)
        return handle

    def start(
        self,
        session: SessionRef,
        part: PartRef,
        *,
        input: Any = NO_INPUT,
        time: Time | None = None,
    ) -> None:
        """Record that a call is running; *input* are its arguments, if they changed."""
        blobs: list[Blob] = []
        text, text_blob = encode.input_columns(input, blobs)
        session_id, key = self._live_id(session), part_key(part)
        effect = calls.Start(
            session_id=session_id,
            part=key,
            input=text,
            input_blob=text_blob,
            blobs=tuple(blobs),
            keep_input=input is NO_INPUT,
            time=bounds.time_ms(time),
        )
        self.staged.start(session_id, key)
        self.add(effect)

    def settle(
        self,
        /,
        session: SessionRef,
        part: PartRef,
        *,
        output: str | None = None,
        error: str | None = None,
        outcome: str | None = None,
        title: str | None = None,
        time: Time | None = None,
        **data: Any,
    ) -> None:
        """Write a call's result: *output*, or *error* and *outcome*; *time* is its end.

        Keywords join ``data``.
        """
        result = call_result(output, error, outcome, title, data)
        session_id, key = self._live_id(session), part_key(part)
        when = bounds.time_ms(time)
        self.staged.settle(session_id, key)
        self.add(calls.Settle(session_id=session_id, part=key, time=when, **result))

    def finish(
        self,
        session: SessionRef,
        message: MessageRef,
        *,
        finish: str = "stop",
        cost: float | None = None,
        tokens: Tokens | Mapping[str, int] | None = None,
        error: Any = None,
        time: Time | None = None,
    ) -> None:
        """Complete an open message; *cost* in USD, *error* any JSON value."""
        session_id, key = self._live_id(session), message_key(message)
        spent, counts = usage(cost, tokens)
        effect = open_message.Finish(
            session_id=session_id, message=key, finish=end_reason(finish), cost=spent,
            tokens=counts, error=encode.json_column(error, "error"),
            time=bounds.time_ms(time),
        )  # fmt: skip
        self.staged.finish(session_id, key)
        self.add(effect)

    def set_leaf(self, session: SessionRef, message: MessageRef | None) -> None:
        """Continue from another message (None: from nothing); nothing is removed."""
        self.add(tree.SetLeaf(self._live_id(session), place_key(message, "message")))

    def truncate(self, session: SessionRef, *, after: MessageRef | None) -> None:
        """Remove all that follows a message, on every branch; None: everything."""
        self.add(tree.Truncate(self._live_id(session), place_key(after, "after")))
