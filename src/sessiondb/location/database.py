"""Which database: explicit, environment, project-local, config, global, in this order.

A project-local database is used only if it was made or accepted on this machine
(`trust`). Nothing here opens or creates a database.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast, get_args

from sessiondb.dataclass import dataclass, replace
from sessiondb.engine.address import ServerAddress
from sessiondb.engine.disk import translated
from sessiondb.errors import (
    InvalidInputError,
    NotFoundError,
    UnsupportedError,
    UntrustedDatabaseError,
    abridged,
)
from sessiondb.hints import command
from sessiondb.location import trust
from sessiondb.location.config import config_path, load_config
from sessiondb.location.directories import data_directory, expanded
from sessiondb.location.git import read_small
from sessiondb.location.project import Place, project_at
from sessiondb.location.trust import FILE, FOLDER

if TYPE_CHECKING:
    from sessiondb.arguments import OpenedStore
    from sessiondb.engine.base import Target

Kind = Literal["explicit", "environment", "local", "global", "memory"]
Scope = Literal["auto", "local", "global"]
Where = str | os.PathLike[str]
Mode = Literal["ro", "rw", "rwc"]

IGNORED = f"/{FILE}*"
_SCHEMES = ("sqlite", "sqlite+aiosqlite", "sqlite+pysqlite")
_SERVERS = ("postgresql", "postgres")
_EXPECTED = "give a path, sqlite:///PATH or postgresql://HOST/DATABASE"
# Scheme, host, path and options.
_URL = r"(?s)([A-Za-z][\w+.-]*)://([^/?]*)([^?]*)\??(.*)"


@dataclass(frozen=True, slots=True)
class Database:
    """Where the sessions are.

    ``path`` is absolute, None for ``:memory:`` and for a database of a server, whose
    URL is ``server``. ``root`` is the folder that has ``.sessiondb``, however the
    database was named: such a database stores directories relative to it; None for
    every other database. ``notice`` is one line for stderr. ``mode`` is that of a URL,
    as SQLite has it: ``ro`` only reads, ``rw`` does not create the file, ``rwc`` may.
    ``str`` of it is for users.
    """

    path: Path | None
    kind: Kind
    root: Path | None = None
    notice: str | None = None
    mode: Mode = "rwc"
    server: ServerAddress | None = None

    def __str__(self) -> str:
        return str(self.server or self.path or ":memory:")

    def target(self) -> Target | None:
        """Return the database as its engine opens it; None for ``:memory:``.

        Raises `MissingExtraError` if the driver of a server is not installed.
        """
        # Not at the top: to say where a database is needs no engine.
        from sessiondb.engine.default import target_at, target_of

        if self.server is not None:
            return target_of(self.server)
        return None if self.path is None else target_at(self.path)


def database_of(store: OpenedStore) -> Target:
    """Return the database of an opened store, for connections beside its own.

    That of ``:memory:`` is a temporary file.
    """
    from sessiondb.engine.default import target_at

    if store.path is not None:
        return target_at(store.path)
    target = store.location.target()
    assert target is not None, "what is not a file is a database of a server"
    return target


def resolve(
    where: Where | None = None,
    *,
    scope: Scope = "auto",
    cwd: Where | None = None,
    env: Mapping[str, str] | None = None,
) -> Database:
    """Return the database to use from *cwd* (default: the current directory).

    *where* is a path, ``:memory:``, or a URL of SQLite or PostgreSQL; without it
    ``SESSIONDB_PATH``, the project-local database, the config's and the global one are
    tried, or only those of *scope*. Raises `InvalidInputError` for an invalid *where*
    or scope, and `NotFoundError` for scope ``local`` without an accepted one.
    """
    env = os.environ if env is None else env
    if scope not in get_args(Scope):
        raise InvalidInputError(
            f"scope is auto, local or global, not {abridged(scope)}"
        )
    if where is not None:
        if scope != "auto":
            raise InvalidInputError(
                f"both a database and the scope {abridged(scope)} are given"
            )
        return _named_database(where, "explicit", _current_directory(cwd))

    if scope == "auto" and (configured := env.get("SESSIONDB_PATH")):
        return _named_database(configured, "environment", _current_directory(cwd))
    if scope == "global":
        return _global_database(env)
    return _local_or_global(scope, cwd, env)


def find_local(cwd: Where | None = None) -> Path | None:
    """Return the project-local database nearest to *cwd*, accepted or not, or None."""
    for path in _candidate_places(cwd):
        return path
    return None


def init_local(cwd: Where | None = None) -> Database:
    """Create and accept the folder of a project-local database, not the file in it.

    It is at the root of the repository (the main worktree), so that all worktrees
    share it and none deletes it when removed; outside of a repository in *cwd*
    itself. Idempotent. Raises `NotFoundError` for a directory that does not exist,
    `InvalidInputError` for the home directory, `UntrustedDatabaseError` if a database
    came with the project, `StorageError` if the folder cannot be written.
    """
    root = _local_root(cwd)
    path = root / FOLDER / FILE
    if os.path.lexists(path) and not trust.is_accepted(path):
        raise UntrustedDatabaseError(
            f"{path} was not made on this machine",
            hint=f"remove it, or accept it: {_accept_command(path)}",
        )
    with translated(path):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        trust.accept(path)
        _ignore_in_git(path.with_name(".gitignore"))
    return Database(path, "local", root)


def _local_or_global(
    scope: Scope, cwd: Where | None, env: Mapping[str, str]
) -> Database:
    refused = None
    for path in _candidate_places(cwd):
        if trust.is_accepted(path):
            return Database(path, "local", path.parent.parent, _notice_of(refused))
        refused = refused or path

    if scope == "auto":
        return replace(_global_database(env), notice=_notice_of(refused))
    if refused is None:
        raise NotFoundError(
            "no project-local database here",
            hint=f"{command('init', '--local')} creates one",
        )
    raise NotFoundError(
        f"not used: {_untrusted_text(refused)}",
        hint=f"{_accept_command(refused)} accepts it",
    )


def _global_database(env: Mapping[str, str]) -> Database:
    settings = config_path(env)
    configured = load_config(settings).database
    if configured is None:
        return Database(data_directory() / FILE, "global")
    try:
        return _named_database(configured, "global", settings.parent.absolute())
    except (InvalidInputError, UnsupportedError) as error:
        raise InvalidInputError(
            f"{settings}: database: {error}", hint=error.hint
        ) from None


def _notice_of(path: Path | None) -> str | None:
    if path is None:
        return None
    return f"not used: {_untrusted_text(path)}; {_accept_command(path)} accepts it"


def _untrusted_text(path: Path) -> str:
    text = "".join(char if char.isprintable() else "?" for char in str(path))
    return f"{text} was not made or accepted on this machine"


def _accept_command(path: Path) -> str:
    return command("trust", str(path.parent.parent))


def _named_database(place: Where, kind: Kind, base: Path | None) -> Database:
    named = _text_of(place, "a database")
    if named.partition("://")[0].lower() in _SERVERS:
        return Database(None, kind, server=_address_of(named))
    text, mode = _path_in(named)
    if text is None:
        return Database(None, "memory")

    path = expanded(text)
    if not path.is_absolute():
        if base is None:
            raise NotFoundError(
                f"the current directory is gone: {text}", hint="give an absolute path"
            )
        path = base / path

    # A project's database is recognised by its name, however it was found.
    if path.parts[-2:] == (FOLDER, FILE):
        root = Path(os.path.realpath(path.parent.parent))
        return Database(root / FOLDER / FILE, kind, root, mode=mode)
    return Database(Path(os.path.realpath(path.parent), path.name), kind, mode=mode)


def _address_of(text: str) -> ServerAddress:
    """Return the address that a URL names; raises `InvalidInputError`."""
    address = ServerAddress(text)
    url = re.fullmatch(_URL, text)
    # No other limit: libpq knows what host, port and options may be.
    if url is None or "\0" in text or not url[3].strip("/"):
        raise InvalidInputError(
            f"{abridged(str(address))} names no database", hint=_EXPECTED
        )
    return address


def _path_in(text: str) -> tuple[str | None, Mode]:
    """Return the path that a path or URL names, None for ``:memory:``, and its mode."""
    mode: Mode = "rwc"
    if url := re.fullmatch(_URL, text):
        text, mode = _parts_of_url(url)
    if text == ":memory:":
        return None, mode
    if not Path(text).name or "\0" in text or text.startswith("file:"):
        raise InvalidInputError(f"not a path: {abridged(text)}", hint=_EXPECTED)
    return text, mode


def _parts_of_url(url: re.Match[str]) -> tuple[str, Mode]:
    scheme, host, path, options = url.groups()
    if scheme.lower() not in _SCHEMES:
        # The rest is not shown: it may have a password.
        raise UnsupportedError(f"{scheme} is not supported", hint=_EXPECTED)
    if host:
        raise InvalidInputError(f"no host is expected in {url[0]}", hint=_EXPECTED)
    mode = options.removeprefix("mode=") if options else "rwc"
    if mode not in get_args(Mode):
        raise InvalidInputError(
            f"{url[0]} has another option than mode=ro, mode=rw or mode=rwc"
        )

    from urllib.parse import unquote

    return unquote(path[1:]) or ":memory:", cast(Mode, mode)


def _current_directory(cwd: Where | None) -> Path | None:
    """Return *cwd* or the current directory; None if that one was removed."""
    place = "." if cwd is None else _text_of(cwd, "a directory")
    try:
        return Path(place).absolute()
    except FileNotFoundError:
        return None


def _text_of(path: Where, name: str) -> str:
    """Return a path as text; raises `InvalidInputError` if it cannot be a path."""
    # TypeError: not a path; UnicodeEncodeError: half a character.
    with contextlib.suppress(TypeError, UnicodeEncodeError):
        text = os.fspath(path)
        os.fsencode(text)
        if isinstance(text, str):
            return text
    raise InvalidInputError(f"{name} is named by a path, not {abridged(path)}")


def _home_directory() -> str:
    return os.path.realpath(expanded("~"))


def _local_root(cwd: Where | None) -> Path:
    """Return the folder that has the project's database, or would have it."""
    folder = _current_directory(cwd)
    if folder is None or not folder.is_dir():
        raise NotFoundError(f"no directory {folder or '.'}")

    place, home = project_at(folder), _home_directory()
    # In a home directory under git, each directory is a project of its own.
    root = place.directory if place.root == home else place.root
    if root == home:
        raise InvalidInputError(
            "the home directory is not a project", hint="use the global database"
        )
    return Path(root)


def _candidate_places(cwd: Where | None) -> Iterator[Path]:
    """Yield every project-local database for *cwd*, and each accepted place for one."""
    current = _current_directory(cwd)
    if current is None:
        return
    for folder in _folders_above(project_at(current)):
        path = Path(folder, FOLDER, FILE)
        if _is_own(path) or trust.is_accepted(path):
            yield path


def _folders_above(place: Place) -> Iterator[str]:
    """Yield the directory, those above it up to its checkout, then the main worktree.

    Never the home directory or one above it: a ``.sessiondb`` that was put there by
    chance would receive every session of the machine.
    """
    directory, home = Path(place.directory), _home_directory()
    for path in (directory, *directory.parents):
        folder = str(path)
        if folder == home:
            break
        yield folder
        if place.vcs is not None and folder == place.checkout:
            break

    if place.root not in (place.checkout, home):
        yield place.root


def _is_own(path: Path) -> bool:
    # A file of another user in a shared folder such as /tmp deserves no message.
    try:
        return trust.is_own(path.lstat())
    except (OSError, ValueError):
        return False


def _ignore_in_git(path: Path) -> None:
    """Make git ignore the live database; other lines of the file stay."""
    if path.is_symlink():
        path.unlink()

    present = read_small(path)
    if IGNORED not in present.splitlines():
        from sessiondb.engine import outputs

        # The last line may have no end.
        lines = re.sub(r"(?<=[^\n])\Z", "\n", present)
        outputs.write_text(path, f"{lines}{IGNORED}\n", replace=True)
