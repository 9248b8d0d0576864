"""What `resume` does: a program, where it runs, and what it is given first."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sessiondb.cli.opening import say
from sessiondb.dataclass import dataclass, field
from sessiondb.errors import ConflictError, InvalidInputError
from sessiondb.formats import registry
from sessiondb.hints import command, word

if TYPE_CHECKING:
    from sessiondb.model import Session


@dataclass(frozen=True, slots=True)
class Plan:
    """Run *command* of *program* where a session was held, once the program has it.

    If it does not have it yet, *text* goes into *file*: a new one in its own store, or
    a temporary one that *transfer* imports; *detail* is how it is exported. *elsewhere*
    is a hint with the command that continues it in another program.
    """

    session: Session
    program: str
    command: list[str]
    transfer: list[str] = field(default_factory=list)
    file: str = ""
    text: str = ""
    detail: str = ""
    elsewhere: str = ""

    @property
    def directory(self) -> str:
        """Where the session was held; without a directory where the user is."""
        return self.session.directory or str(Path.cwd())

    @property
    def content(self) -> bytes:
        """The bytes of the file."""
        return self.text.encode("utf-8", "surrogatepass")

    def steps(self, database: str, form: str) -> Iterator[list[str]]:
        """Yield the lines that a user would type to do all this by hand.

        *database* is what ``--db`` takes.
        """
        if self.file:
            folder = Path(self.file).parent
            if not folder.is_dir():
                yield ["mkdir", "-p", str(folder)]
            detail = ["--detail", self.detail] if self.detail else []
            yield [
                *("sessiondb", "--db", database, "export", self.session.id),
                *("--to", form, *detail, "-o", self.file),
            ]
        yield ["cd", self.directory]
        if self.transfer:
            yield self.transfer
        yield self.command

    def is_taken(self) -> bool:
        """Return whether the program has everything of the file, from an earlier time.

        Raises `ConflictError` if it has the session in another state, or if anything
        else than a file is there; `StorageError` if the file cannot be read.
        """
        from sessiondb.engine.disk import translated
        from sessiondb.engine.outputs import check_place

        if not os.path.lexists(self.file):
            return False

        path = Path(self.file)
        with self._as_conflict():
            check_place(path)
        with translated(path), path.open("rb") as file:
            is_same = file.read(len(self.content)) == self.content
        if is_same:
            say(f"already there, so it is continued: {self.file}")
            return True

        continues = " ".join(map(word, self.command))
        raise ConflictError(
            f"already taken there, and changed since: {self.file}",
            hint=f"`{continues}` continues it there, in {word(self.directory)}; "
            f"{command('import')} imports it first",
        )

    def place(self) -> None:
        """Put the file into the program's store, so that only its owner reads it.

        One that another process has just put there is continued. Raises
        `ConflictError` if it is another file or none, and other `SessionDBError`.
        """
        from sessiondb.engine.disk import translated
        from sessiondb.engine.outputs import writing

        file = Path(self.file)
        with translated(file):
            file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self._as_conflict(), writing(file) as out:
                out.write(self.content)
        except ConflictError:
            if not self.is_taken():
                raise

    @contextmanager
    def _as_conflict(self) -> Iterator[None]:
        """Raise the error of a place that is never written as a `ConflictError`.

        Its hint is for a user who named the place, and here the program did.
        """
        try:
            yield
        except InvalidInputError as error:
            raise ConflictError(
                "the session cannot be put into the store of "
                f"{registry.agent_name(self.program)}: {error}",
                hint=f"move it away, or {self.elsewhere}",
            ) from None
