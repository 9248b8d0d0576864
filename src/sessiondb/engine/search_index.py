"""The interface of the search index of an engine."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol

from sessiondb.engine.base import Connection
from sessiondb.engine.query import SearchQuery


class SearchIndex(Protocol):
    """The search index over the words of parts, titles and prompts.

    Its structure and its query syntax are private to the engine: it answers questions,
    each by a complete query. New parts wait, and are found, until `put_waiting` indexes
    them together; the database itself, by triggers, indexes titles and prompts, and
    follows every change and delete, also of a shell.

    Callers give *terms*: conditions in plain SQL over the rows ``s`` of ``session``,
    ``m`` of ``message`` and ``p`` of ``part`` that a match belongs to. *bounds* are
    names of parameters that the engine compares with its own entries:

    * ``cursor``, ``top``, ``last``: the *place* of a match, an integer that is larger
      for a newer one, is below, at most, at least this;
    * ``seen``, ``found``, list parameters: its session, its place is none of these;
    * ``comparison``, ``inside``, ``scanned``, ``own_id``: its text is what the query
      means, as `SearchQuery` has it; the last two are for titles and prompts, and for
      scans;
    * ``together``, ``spread``: so is what the parts of its message have together.

    All queries but those of a scan have the parameter ``:match`` of a `SearchQuery`;
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

    def prepare(self, connection: Connection, rids: str) -> None:
        """Set ``words`` of rows of ``part``, whose texts may be blobs.

        *rids* is a list parameter of their ``rid``. They are not in the index yet.
        """

    def put(self, connection: Connection, rids: str) -> None:
        """Index rows of ``part`` that were settled after the index had passed them.

        *rids* is a list parameter of their ``rid``. Their ``indexed`` is 1 already.
        Those that wait go on waiting.
        """

    def read_places(self, connection: Connection) -> tuple[int, int]:
        """Return the last ``rid`` that was given out, and the last that is indexed.

        0 is none. The rows between the two wait.
        """

    def put_waiting(self, connection: Connection) -> None:
        """Index all parts that wait, in a transaction that writes."""

    def query(self, query: str) -> SearchQuery:
        """Return what a user's *query*, which is any text, searches for.

        Raises `InvalidInputError` for a query without words, or with an operator.
        """

    def matches(
        self,
        terms: Sequence[str],
        bounds: Collection[str],
        *,
        order: str,
        is_shown: bool,
    ) -> str:
        """Return the query for matches in parts, newest first, at most ``:rows``.

        Its columns are place, session, seq, message id, snippet and a key by which
        *order* sorts them, smallest first: that of ``rank`` is how well a match fits,
        of ``time`` the time of the part, of ``newest`` NULL. Message id and snippet are
        NULL unless *is_shown*. The query stops at the limit, so its cost does not
        depend on the number of all matches.
        """

    def sessions(self, terms: Sequence[str], bounds: Collection[str]) -> str:
        """Return the query for the ids of sessions with matches in parts, each once.

        The session of the newest match comes first.
        """

    def rarest(self, number: int) -> str:
        """Return the query that compares covers, ``:cover0`` … of *number*.

        It has a column for each, which is smaller the fewer newest matches it has.
        """

    def scan(self, terms: Sequence[str], bounds: Collection[str], *, order: str) -> str:
        """Return the query for the next ``:rows`` parts, newest first, without index.

        Its columns are those of `matches`, whether the part is what ``:scanned`` means
        (or its message, with ``:spread`` and ``:cover``), the bytes of its texts and
        its time. Without an index the key of ``rank`` is the length.
        """

    def scanned_sessions(self, terms: Sequence[str], bounds: Collection[str]) -> str:
        """Return the query for those of ``:ids`` in which a scan would find a match."""

    def passages(self) -> str:
        """Return the query for (place, message id, text around ``:needles``).

        ``:rids``, a list parameter, are the places of parts.
        """

    def snippets(self) -> str:
        """Return the query for (place, message id, snippet) of given matches in parts.

        ``:rids``, a list parameter, are their places, ``:low`` and ``:high`` the
        smallest and the largest of these.
        """

    def titles(
        self,
        terms: Sequence[str],
        bounds: Collection[str],
        terms_of_parts: Sequence[str],
    ) -> str:
        """Return the query for sessions whose title alone matches, at most ``:rows``.

        Its columns are those of `matches` up to the snippet, of the first message; the
        newest session comes first. Left out are the sessions of the list parameter
        ``shown`` if it is among *bounds*, else those with a match in their parts up to
        the place ``:top`` that passes *terms_of_parts*; with ``needles`` a match that a
        scan finds. There is no ``p`` and ``m`` in *terms*.
        """

    def prompts(
        self, columns: str, terms: Sequence[str], bounds: Collection[str]
    ) -> str:
        """Return the query for prompts, newest first, at most ``:rows``.

        *terms* are over the row of ``prompt``, which has no alias; *bounds* are
        ``match`` and ``comparison``, or neither for all prompts.
        """

    def damaged(self, connection: Connection) -> Iterator[str]:
        """Yield the names of the parts of the index that differ from their content.

        Takes the write lock. Raises `Engine.Error` if another process holds it.
        """

    def rebuild(self, connection: Connection, names: Iterable[str] = ...) -> None:
        """Rebuild parts of the index from their content; all of them by default.

        *names* are those of `damaged`.
        """

    def optimize(self, connection: Connection) -> None:
        """Free the space of removed text, and restore the speed of queries.

        In a transaction that writes.
        """
