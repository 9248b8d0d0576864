"""Effects on sessions: the row, todos, diffs, labels and prompts."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from sessiondb import ids
from sessiondb.dataclass import dataclass
from sessiondb.effects import encode
from sessiondb.effects.delete import last_revision, make_room
from sessiondb.effects.fold import CallerFold
from sessiondb.effects.message import seq_of
from sessiondb.effects.ownership import derive_model, parent_of
from sessiondb.effects.project import Home, ProjectPlace, home_of
from sessiondb.effects.session_state import SessionState
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import ComposedStatement, Statement
from sessiondb.errors import ConflictError, InvalidInputError, NotFoundError
from sessiondb.model.versions import TITLE_RANK
from sessiondb.schema.rows import FILE_DIFF, LABEL, PROMPT, SESSION, TODO, Blob

#: A cascade of SQLite's fails at 1,000 levels.
MAX_CHAIN = 500

_EXISTING = Statement("effects.session.EXISTING")
_SLUG = Statement("effects.session.SLUG")
_SCOPE = Statement("effects.session.SCOPE")


def slug_holder(tx: Transaction, project_id: str | None, slug: str) -> str | None:
    """Return the id of the session that has a slug in a project."""
    row = tx.one(_SLUG, pid=project_id, slug=slug)
    return None if row is None else str(row[0])


def free_slug(tx: Transaction, project_id: str | None, session_id: str) -> str:
    """Return a slug made from the id that no session of the project has.

    Nor has one without a project, of sessions without one.
    """
    for length in (2, 4, 8, 16):
        slug = ids.slug_of(session_id, length=length)
        row = tx.one(_SLUG, pid=project_id, slug=slug)
        if row is None or row[0] == session_id:
            return slug
    return session_id


def check_chain(tx: Transaction, parent_id: str) -> None:
    """Raise `InvalidInputError` for a parent below more than `MAX_CHAIN` ancestors."""
    depth, ancestor = 1, parent_of(tx, parent_id)
    while ancestor is not None:
        depth, ancestor = depth + 1, parent_of(tx, ancestor)
        if depth > MAX_CHAIN:
            raise InvalidInputError(
                f"session {parent_id} has {MAX_CHAIN} ancestors already"
            )


@dataclass(frozen=True, slots=True, eq=False)
class CreateSession:
    """Make a session, empty."""

    verb = "create_session"
    id: str
    own_id: bool
    #: None: it has no directory.
    place: ProjectPlace | None
    source: str
    source_id: str | None = None
    title: str | None = None
    parent_id: str | None = None
    relation: str | None = None
    parent_message: str | int | None = None
    call_id: str | None = None
    agent: str | None = None
    provider_id: str | None = None
    model_id: str | None = None
    version: str | None = None
    metadata: str = "{}"
    time: int | None = None
    scope: str | None = None
    #: Whether the place is that of the parent, which only the transaction knows.
    inherits_place: bool = False

    def apply(self, tx: Transaction) -> None:
        """Apply it, or recognise it; raises `ConflictError` and `NotFoundError`."""
        if (self.own_id or tx.retried) and self._is_there(tx):
            return

        tx.lock_new_session(self.id, self.parent_id)
        root_id, parent_seq, scope = self.id, None, self.scope
        if self.parent_id is not None:
            parent = tx.session(self.parent_id)
            root_id, parent_seq = parent.root_id, self._parent_seq(tx, parent)
            if scope is None:
                scope = tx.value(_SCOPE, sid=parent.id)

        project_id, directory = self._home_of_session(tx)
        created = tx.at(self.time)
        values = {
            "id": self.id,
            "project_id": project_id,
            "parent_id": self.parent_id,
            "relation": self.relation,
            "parent_seq": parent_seq,
            "call_id": self.call_id,
            "root_id": root_id,
            "slug": free_slug(tx, project_id, self.id),
            "title": self.title or "",
            "title_source": "derived" if self.title is None else "user",
            "directory": directory,
            "version": self.version,
            "source": self.source,
            "source_id": self.source_id,
            "namespace": "",
            "agent": self.agent,
            "provider_id": self.provider_id,
            "model_id": self.model_id,
            "model_source": "derived" if self.model_id is None else "caller",
            "metadata": self.metadata,
            "time_created": created,
            "time_updated": created,
            "scope": scope,
        }
        tx.insert("session", SESSION, tuple(map(values.get, SESSION)))
        tx.engine.search.put_titles(tx.connection, {self.id: self.title or ""})
        state = tx.session(self.id)
        if self.own_id:
            state.revision = last_revision(tx, self.source, self.id)

    def _parent_seq(self, tx: Transaction, parent: SessionState) -> int | None:
        check_chain(tx, parent.id)
        if self.parent_message is None:
            return parent.leaf_seq
        return seq_of(tx, parent.id, self.parent_message)

    def _home_of_session(self, tx: Transaction) -> Home:
        """Return the project and the stored directory, perhaps the parent's."""
        if not self.inherits_place or self.parent_id is None:
            return home_of(tx, self.place)
        parent = tx.peek(self.parent_id)
        return parent.project_id, parent.directory

    def _is_there(self, tx: Transaction) -> bool:
        tx.lock(self.id)
        row = tx.one(_EXISTING, sid=self.id)
        if row is None:
            return False

        parent_id, relation, source, source_id, time_deleted = row
        if time_deleted is not None:
            make_room(tx, self.id)
            return False
        if (parent_id, relation) != (self.parent_id, self.relation):
            raise ConflictError(f"session {self.id} exists with another parent")

        name = (self.source, self.source_id)
        if self.source_id is not None and (source, source_id) != name:
            raise ConflictError(f"session {self.id} exists with another source id")

        return True


@cache
def _columns_statement(*columns: str) -> Statement:
    values = ", ".join(f"{name} = :{name}" for name in columns)
    return ComposedStatement(f"UPDATE session SET {values} WHERE id = :sid")


#: The key of a session's metadata under which `set_share` keeps the secret.
SHARE = "share"
_METADATA = Statement("effects.session.METADATA")


@dataclass(frozen=True, slots=True, eq=False)
class SetColumns:
    """Set columns of a session; they move neither its last use nor its history.

    A model that is stated is kept; one that is cleared follows the answers again.
    """

    verb: str
    session_id: str
    values: tuple[tuple[str, Any], ...]

    def apply(self, tx: Transaction) -> None:
        """Apply it; raises `NotFoundError`."""
        state = tx.session(self.session_id)
        values = dict(self.values)
        if values.get("time_archived") == "now":
            values["time_archived"] = tx.now
        if "metadata" in values:
            values["metadata"] = _still_shared(tx, state.id, values["metadata"])

        is_provider_alone = "provider_id" in values and "model_id" not in values
        if is_provider_alone and state.model_id and state.model_source == "derived":
            # No longer that of an answer: the next answer must not replace it.
            values["model_source"] = "caller"

        tx.run(_columns_statement(*values), sid=state.id, **values)
        # The state is written when the unit ends, over what is set here.
        for name in values.keys() & {"provider_id", "model_id", "model_source"}:
            setattr(state, name, values[name])

        if values.get("model_source") == "derived":
            derive_model(tx, state.id)


def _still_shared(tx: Transaction, session_id: str, metadata: str) -> str:
    """Return new metadata with the secret of a share, which `set_share` alone writes.

    A caller that reads metadata, changes it and writes it back may include the secret.
    """
    share = json.loads(tx.one(_METADATA, sid=session_id)[0]).get(SHARE)
    shared = json.loads(metadata)
    if SHARE in shared and (share is None or shared[SHARE] != share):
        raise InvalidInputError(
            f"metadata: the key {SHARE} is reserved for the secret of a share",
            hint="set_share(session, url, secret=…) sets it, "
            "set_share(session, None) removes it",
        )

    return metadata if share is None else json.dumps({**shared, SHARE: share})


@dataclass(frozen=True, slots=True, eq=False)
class UpdateMetadata:
    """Replace the metadata of a session by what a caller's function makes of it."""

    verb = "update_metadata"
    session_id: str
    fold: CallerFold

    def apply(self, tx: Transaction) -> None:
        """Apply it; an equal result writes nothing.

        Raises `NotFoundError`, `InvalidInputError`, `CodecError`, and `CallerError` for
        what the function raises.
        """
        state = tx.peek(self.session_id)
        (stored,) = tx.one(_METADATA, sid=state.id)
        # Decoded for the function alone: it may change what it gets.
        result = self.fold.result_for(json.loads(stored) or None)
        text = encode.json_column({} if result is None else result, "metadata") or "{}"
        metadata = _still_shared(tx, state.id, text)
        if _canonical(metadata) != _canonical(stored):
            SetColumns(self.verb, state.id, (("metadata", metadata),)).apply(tx)


def _canonical(metadata: str) -> str:
    """Return JSON text that is the same for equal values; 1, 1.0 and true differ."""
    return json.dumps(json.loads(metadata), sort_keys=True)


@dataclass(frozen=True, slots=True, eq=False)
class SetTitle:
    """Name a session; a name the user gave is not replaced by one of an agent."""

    verb = "set_title"
    session_id: str
    title: str
    by: str

    def apply(self, tx: Transaction) -> None:
        """Apply it; raises `NotFoundError`."""
        state = tx.session(self.session_id)
        # Not an error: an agent may always suggest a title.
        if TITLE_RANK[self.by] < TITLE_RANK[state.title_source]:
            return

        state.title, state.title_source = self.title, self.by
        setter = _columns_statement("title", "title_source")
        tx.run(setter, sid=state.id, title=self.title, title_source=self.by)
        tx.engine.search.put_titles(tx.connection, {state.id: self.title})


@dataclass(frozen=True, slots=True, eq=False)
class SetDirectory:
    """Move a session to another directory, and so perhaps to another project."""

    verb = "set_directory"
    session_id: str
    #: None: it has no directory.
    place: ProjectPlace | None

    def apply(self, tx: Transaction) -> None:
        """Apply it; raises `NotFoundError`."""
        state = tx.session(self.session_id)
        state.project_id, directory = home_of(tx, self.place)
        # Its slug may be taken in the other project.
        slug = free_slug(tx, state.project_id, state.id)
        setter = _columns_statement("directory", "project_id", "slug")
        tx.run(
            setter,
            sid=state.id,
            directory=directory,
            project_id=state.project_id,
            slug=slug,
        )


_CLEAR_TODOS = Statement("effects.session.CLEAR_TODOS")
_DIFF_BLOBS = Statement("effects.session.DIFF_BLOBS")
_CLEAR_DIFFS = Statement("effects.session.CLEAR_DIFFS")


@dataclass(frozen=True, slots=True, eq=False)
class SetTodos:
    """Replace a session's todo list."""

    verb = "set_todos"
    session_id: str
    todos: tuple[tuple[str | None, str, str, str | None], ...]

    def apply(self, tx: Transaction) -> None:
        """Apply it; raises `NotFoundError`."""
        state = tx.session(self.session_id)
        write_todos(tx, state, self.todos)


def write_todos(
    tx: Transaction,
    state: SessionState,
    todos: tuple[tuple[str | None, str, str, str | None], ...],
) -> None:
    """Replace the rows of a todo list."""
    tx.run(_CLEAR_TODOS, sid=state.id)
    for position, row in enumerate(todos):
        tx.insert("todo", TODO, (state.id, position, *row, tx.now, tx.now))


@dataclass(frozen=True, slots=True, eq=False)
class SetDiffs:
    """Replace what is known of the files that a session changed."""

    verb = "set_diffs"
    session_id: str
    rows: tuple[tuple[Any, ...], ...]
    blobs: tuple[Blob, ...]

    def apply(self, tx: Transaction) -> None:
        """Apply it; raises `NotFoundError`."""
        state = tx.session(self.session_id)
        for hashes in tx.run(_DIFF_BLOBS, sid=state.id).fetchall():
            tx.release(*hashes)

        tx.run(_CLEAR_DIFFS, sid=state.id)
        tx.insert_blobs(state.id, self.blobs)
        for row in self.rows:
            tx.insert("file_diff", FILE_DIFF, (state.id, *row))


_DROP_LABELS = Statement("effects.session.DROP_LABELS")
_DROP_NAME = Statement("effects.session.DROP_NAME")


@dataclass(frozen=True, slots=True, eq=False)
class SetLabel:
    """Name a message, or remove its names."""

    verb = "label"
    session_id: str
    message: str | int
    name: str | None

    def apply(self, tx: Transaction) -> None:
        """Apply it; a name moves to the last message. Raises `NotFoundError`."""
        state = tx.session(self.session_id)
        put_label(tx, state.id, seq_of(tx, state.id, self.message), self.name)


def put_label(tx: Transaction, session_id: str, seq: int, name: str | None) -> None:
    """Give *name* to a message; None takes all its names away."""
    if name is None:
        tx.run(_DROP_LABELS, sid=session_id, at=seq)
        return
    tx.run(_DROP_NAME, sid=session_id, name=name)
    tx.insert("label", LABEL, (session_id, seq, name))


_PROMPT_IS = Statement("effects.session.PROMPT_IS")


@dataclass(frozen=True, slots=True, eq=False)
class AddPrompt:
    """Add a line to the prompt history."""

    verb = "add_prompt"
    id: str
    text: str
    place: ProjectPlace | None
    session_id: str | None
    source: str
    time: int | None = None

    def apply(self, tx: Transaction) -> None:
        """Apply it, or recognise it by its id.

        Raises `ConflictError` and `NotFoundError`.
        """
        tx.lock_name("prompt", self.id)
        for (text,) in tx.run(_PROMPT_IS, pid=self.id).fetchall():
            if text != self.text:
                raise ConflictError(f"prompt {self.id} exists with another text")
            return

        project_id = directory = None
        if self.session_id is not None:
            state = tx.session(self.session_id)
            project_id, directory = state.project_id, state.directory

        if self.place is not None:
            project_id, directory = home_of(tx, self.place)

        created = tx.at(self.time)
        row = (
            self.id,
            self.text,
            directory,
            project_id,
            self.session_id,
            self.source,
            created,
        )
        tx.insert("prompt", PROMPT, row)
        tx.engine.search.put_prompts(tx.connection, {self.id: self.text})


@dataclass(frozen=True, slots=True, eq=False)
class SetShare:
    """Record where a session is shared; the secret lives in metadata."""

    verb = "set_share"
    session_id: str
    url: str | None
    secret: str | None

    def apply(self, tx: Transaction) -> None:
        """Apply it; raises `NotFoundError`."""
        state = tx.session(self.session_id)
        row = tx.one(_METADATA, sid=state.id)
        if row is None:
            raise NotFoundError(f"session {self.session_id} does not exist")

        metadata = json.loads(row[0])
        metadata.pop(SHARE, None)
        if self.secret is not None:
            metadata[SHARE] = {"secret": self.secret}

        setter = _columns_statement("share_url", "metadata")
        tx.run(setter, sid=state.id, share_url=self.url, metadata=json.dumps(metadata))
