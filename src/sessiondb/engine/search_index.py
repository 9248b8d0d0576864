"""The interface of the search index of an engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from sessiondb.engine.base import Connection
from sessiondb.engine.query import SearchQuery
from sessiondb.engine.sql import Read, Rows
from sessiondb.schema.rows import PartAddress

#: The parameters that an index compares with its own entries: see `SearchIndex`.
BOUNDS = frozenset(
    "cursor top last seen found comparison inside shown scanned own_id needles "
    "together spread cover".split()
)


class SearchedTexts(NamedTuple):
    """The columns of a part that search reads."""

    words: str | None
    text: str | None
    input: str | None
    title: str | None


class WaitingParts(Protocol):
    """The parts that wait, as a writer knows them from one transaction to the next.

    It is dropped after a commit of another process, and if a transaction fails.
    """

    def add(
        self,
        connection: Connection,
        part: PartAddress,
        texts: SearchedTexts | None,
        *,
        is_searched: bool,
    ) -> int | None:
        """Return the ``rid`` of a part that is inserted next; None for any.

        *is_searched* is its ``indexed``; *texts* are None if one of them is a blob. Its
        unit may still be undone.
        """

    def reread(self) -> None:
        """Record that parts which were added may have changed, or were undone."""

    def forget(self) -> None:
        """Record that parts were inserted without `add`, or removed."""

    def finish(self, connection: Connection, size: int) -> bool:
        """Have the index take in what should not wait longer than the transaction.

        True if all that waited was: then sums of usage are brought up to date as well.
        *size* is that of the texts of this writer that wait, in bytes.
        """


class SearchIndex(Protocol):
    """The search index over the words of parts, titles and prompts.

    Its structure and its query syntax are private to the engine: it answers questions,
    each by a read. New parts wait, and are found, until `put_waiting` indexes them
    together; the database itself, by triggers, indexes titles and prompts, and follows
    every change and delete, also of a shell: a server does only what it is told.

    A match in a part has a *place*, an integer that is larger for a newer part. It is
    only compared, and handed back to the index.

    Callers give *terms*: conditions in SQL that every engine runs, over the rows ``s``
    of ``session``, ``m`` of ``message`` and ``p`` of ``part`` that a match belongs to.
    *params* has the values of their parameters, and of a query (`SearchQuery`), and
    *bounds*, each of which narrows a question if it is there:

    * ``cursor``, ``top``, ``last``: the place of a match is below, at most, at least
      this;
    * ``seen``, ``found``, list parameters: its session, its place is none of these;
    * ``comparison``, ``inside``, ``scanned``, ``own_id``: its text is what the query
      means, as `SearchQuery` has it; the last two are for titles and prompts, and for
      scans;
    * ``together``, ``spread``: so is what the parts of its message have together.

    All questions but those of a scan need the parameter ``match`` of a `SearchQuery`;
    deleted and half imported sessions are left out.
    """

    #: The queries for the number of parts that are marked as indexed and are missing in
    #: the index, and of entries of the index without such a part.
    count_missing: str
    count_orphans: str

    def words_of_part(
        self, text: str | None, input: str | None, title: str | None
    ) -> str | None:
        """Return what the index needs beside these texts, the value of ``words``."""

    def prepare(self, connection: Connection, parts: str) -> None:
        """Set ``words`` of rows of ``part``, whose texts may be blobs.

        *parts* is a list parameter of their addresses. They are not in the index yet.
        """

    def has_passed(self, connection: Connection, part: PartAddress) -> bool:
        """Return whether a stored part does not wait: once it changes, it is `put`."""

    def put(self, connection: Connection, parts: str, changed: str) -> None:
        """Index rows of ``part`` that were settled after the index had passed them.

        *parts* is a list parameter of their addresses. Their ``indexed`` is 1 already.
        Those that wait go on waiting. *changed* has further ones, which are not to be
        found any more, for an index that does not follow the rows by itself.
        """

    def put_titles(self, connection: Connection, titles: Mapping[str, str]) -> None:
        """Index the titles of sessions, by their ids, that were written.

        A no-op for an index that follows the rows by itself.
        """

    def put_prompts(self, connection: Connection, prompts: Mapping[str, str]) -> None:
        """Index the texts of prompts, by their ids, that were written, likewise."""

    def take_out(self, connection: Connection, session_id: str, seq: int) -> None:
        """Remove the entries of a message, whose parts are not ``indexed`` any more.

        A no-op for an index that follows the rows by itself.
        """

    def waiting_parts(self) -> WaitingParts:
        """Return what a writer knows that has not read anything yet."""

    def is_behind(self, connection: Connection) -> bool:
        """Return whether parts wait."""

    def put_waiting(self, connection: Connection) -> None:
        """Index all parts that wait, in a transaction that writes."""

    def query(self, query: str) -> SearchQuery:
        """Return what a user's *query*, which is any text, searches for.

        Raises `InvalidInputError` for a query without words, or with an operator.
        """

    def newest_place(self) -> Read[int]:
        """Return the place of the newest part; 0 without any."""

    def matches(
        self,
        terms: Sequence[str],
        params: Mapping[str, Any],
        *,
        order: str,
        is_shown: bool,
        rows: int,
        sessions: int | None = None,
    ) -> Read[Rows]:
        """Return the matches in parts, newest first, at most *rows*.

        Their columns are place, session, seq, message id, snippet and a key by which
        *order* sorts them, smallest first: that of ``rank`` is how well a match fits,
        of ``time`` the time of the part, of ``newest`` None. Message id and snippet are
        None unless *is_shown*, or if they were read anyway. With *sessions* the caller
        has a use for one match of each of so many sessions: the engine may leave out
        the others. The walk stops at the limit, so its cost does not depend on the
        number of all matches.
        """

    def sessions(
        self, terms: Sequence[str], params: Mapping[str, Any]
    ) -> Read[list[str]]:
        """Return the ids of sessions with matches in parts, each once.

        The session of the newest match comes first.
        """

    def rarest(self, matches: Sequence[str]) -> Read[int]:
        """Return the index of the one of *matches* that the fewest newest parts have.

        Each is a value of ``match``.
        """

    def scan(
        self,
        terms: Sequence[str],
        params: Mapping[str, Any],
        *,
        order: str,
        rows: int,
    ) -> Read[Rows]:
        """Return the next parts, newest first, at most *rows*, without the index.

        Their columns are those of `matches`, whether the part is what ``scanned`` means
        (or its message, with ``spread`` and ``cover``), the bytes of its texts and
        its time. Without an index the key of ``rank`` is the length.
        """

    def scanned_sessions(
        self,
        terms: Sequence[str],
        params: Mapping[str, Any],
        session_ids: Iterable[str],
    ) -> Read[list[str]]:
        """Return those of *session_ids* in which a scan would find a match."""

    def passages(
        self, needles: str, places: Sequence[int]
    ) -> Read[dict[int, tuple[str, str]]]:
        """Return by its place the message id of each part, and the text at *needles*.

        A place without a part is left out.
        """

    def snippets(
        self, match: str, places: Sequence[int]
    ) -> Read[dict[int, tuple[str, str]]]:
        """Return by its place the message id and the snippet of each match in a part.

        *places*, one at least, are those of matches of *match*; one of another query,
        or without a part, is left out.
        """

    def contents(self, places: Sequence[int]) -> Read[Rows]:
        """Return what parts contain, without those of calls that failed.

        The columns are place, tool, input, the input if it is large, text, the text if
        it is large, and the directory of the session. What is large is in bytes.
        """

    def titles(
        self,
        terms: Sequence[str],
        params: Mapping[str, Any],
        terms_of_parts: Sequence[str],
        *,
        rows: int,
    ) -> Read[Rows]:
        """Return the sessions whose title alone matches, at most *rows*.

        Their columns are those of `matches` up to the snippet, of the first message;
        the newest session comes first. Left out are the sessions of the list parameter
        ``shown`` if it is among *params*, else those with a match in their parts up to
        the place ``top`` that passes *terms_of_parts*; with ``needles`` a match that a
        scan finds. There is no ``p`` and ``m`` in *terms*.
        """

    def prompts(
        self,
        columns: str,
        terms: Sequence[str],
        params: Mapping[str, Any],
        *,
        rows: int,
    ) -> Read[Rows]:
        """Return *columns* of the prompts, newest first, at most *rows*.

        *terms* are over the row of ``prompt``, which has no alias. All prompts match if
        *params* has no query.
        """

    def damaged(self, connection: Connection) -> Iterator[str]:
        """Yield the names of the parts of the index that differ from their content.

        It may take the write lock, or read in a transaction of its own. Raises
        `Engine.Error` if another process holds the lock.
        """

    def rebuild(self, connection: Connection, names: Iterable[str] = ...) -> None:
        """Rebuild parts of the index from their content; all of them by default.

        *names* are those of `damaged`.
        """

    def optimize(self, connection: Connection) -> None:
        """Free the space of removed text, and restore the speed of queries.

        In a transaction that writes.
        """
