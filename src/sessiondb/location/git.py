"""Facts about a git repository, read from its files.

Only `root_commit_of` starts git. Anything that is not a repository (a dangling
pointer, a pipe, an invalid config) counts as "not known" and is never an error.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from sessiondb.dataclass import dataclass

_MAX_BYTES = 1 << 20
#: The files with the remotes, and those that change when the first commit may.
_FACTS = ("config", "HEAD", "refs/heads", "packed-refs", "shallow")
# Patterns are compiled when they are first used; most commands use none.
_SECTION = r'\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]'
_ENTRY = r"\s*([A-Za-z][\w-]*)\s*=\s*(.*)"
# A quoted text, a comment, any other; and a quote or backslash without its match.
_VALUE = r'"((?:[^"\\]|\\.)*)"|[#;].*|((?:[^"\\#;]|\\.)+)|["\\]'
_ESCAPE = r"\\(.)"
_REMOTE = r"(?s)remote\..+\.url"
# user@host:path. The host is more than a drive letter; no slash is before the colon.
_SCP = r"(?s)(?:[^/]*@)?(\[[^\]/]+\]|[^:/\[\]]{2,}):(?!:)(.+)"
_DEFAULT_PORTS = {"http": 80, "https": 443, "ssh": 22, "git": 9418}


@dataclass(frozen=True, slots=True)
class Repository:
    """A checkout (the folder with ``.git``) and its repository.

    ``root`` is the checkout itself or, for a linked worktree, the main worktree;
    ``common`` the git directory of all worktrees, None when the pointer dangles.
    """

    checkout: Path
    root: Path
    common: Path | None

    @property
    def linked(self) -> bool:
        """True for a linked worktree."""
        return self.checkout != self.root


def repository_at(directory: Path) -> Repository | None:
    """Return the repository around *directory* (a real path); None outside of one."""
    for folder in (directory, *directory.parents):
        pointer = folder / ".git"
        if _is_git_directory(pointer):
            return _checkout_at(folder, _real_path(pointer))
        if _is_file(pointer):
            return _checkout_at(folder, _target_of_link(folder))
        if _is_git_directory(folder):
            # Inside of a bare repository, or of a .git itself.
            main = _main_worktree(_common_directory(folder))
            return Repository(main, main, _common_directory(folder))
    return None


def remote_of(root: str) -> str | None:
    """Return where the repository at *root* comes from, as ``host/path``.

    ``origin`` counts first. Without scheme, user, password, query and ``.git``, so
    that an SSH and an HTTPS clone agree. None without a repository or a remote, and
    for a path on this machine, which means nothing elsewhere.
    """
    common = _common_of(root)
    if common is None:
        return None

    settings = _read_settings(common)
    names = [name for name in settings if re.fullmatch(_REMOTE, name)]
    for name in sorted(names, key=lambda name: name != "remote.origin.url"):
        remote = normalised(settings[name])
        if remote:
            return remote
    return None


def normalised(url: str) -> str | None:
    """Return ``host/path`` of a remote's URL; None for local paths and other texts."""
    if "://" not in url:
        match = re.fullmatch(_SCP, url)
        return _join_remote(match[1], match[2]) if match else None

    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or parts.scheme == "file":
        return None

    if ":" in host:  # IPv6
        host = f"[{host}]"
    # No port is the scheme's default one, stated or not.
    if port not in (None, 0, _DEFAULT_PORTS.get(parts.scheme)):
        host += f":{port}"
    return _join_remote(host, parts.path)


def stamp_of(root: str) -> tuple[tuple[int, int], ...]:
    """Return a value that changes when the remote or the first commit may have changed.

    Checks a few files of the repository at *root* and starts no program.
    """
    common = _common_of(root)
    if common is None:
        return ()
    return tuple([_file_stamp(common / name) for name in _FACTS])


def _file_stamp(path: Path) -> tuple[int, int]:
    try:
        facts = path.stat()
    except (OSError, ValueError):
        return 0, 0
    return facts.st_mtime_ns, facts.st_size


def root_commit_of(root: str, *, timeout: float = 5.0) -> str | None:
    """Return the first commit of the repository at *root*; of several the smallest.

    None without git, without commits, after *timeout* seconds, and in a shallow
    clone, whose first commit is only where its history was cut.
    """
    common = _common_of(root)
    if common is None or _is_file(common / "shallow"):
        return None

    import subprocess

    try:
        done = subprocess.run(  # noqa: S603  constant arguments
            _ROOT_COMMITS,
            cwd=root,
            env=_git_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=True,
            text=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return min(done.stdout.split(), default=None)


_ROOT_COMMITS = (
    *("git", "--no-replace-objects"),
    *("rev-list", "--max-parents=0", "HEAD", "--"),
)


def _git_environment() -> dict[str, str]:
    # In a git hook GIT_DIR would name another repository than the one in question.
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith("GIT_")
    }
    return inherited | {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}


def read_small(path: Path) -> str:
    """Return a small regular file as text; "" for others (a pipe would block)."""
    try:
        facts = path.stat()
        is_small = stat.S_ISREG(facts.st_mode) and facts.st_size <= _MAX_BYTES
        content = path.read_bytes() if is_small else b""
    except (OSError, ValueError):
        return ""
    return content.decode("utf-8", "surrogateescape")


def _common_of(root: str) -> Path | None:
    real = _real_path(root)
    repository = repository_at(real)
    # A removed folder must not be identified by the repository around it.
    if repository is None or repository.checkout != real:
        return None
    return repository.common


def _join_remote(host: str, path: str) -> str | None:
    path = path.strip("/").removesuffix(".git").rstrip("/")
    return f"{host.lower()}/{path}" if path else None


def _checkout_at(folder: Path, git_directory: Path | None) -> Repository:
    if git_directory is None:
        return Repository(folder, folder, None)
    common = _common_directory(git_directory)
    root = folder if common == git_directory else _main_worktree(common)
    return Repository(folder, root, common)


def _target_of_link(folder: Path) -> Path | None:
    text = read_small(folder / ".git")
    if not text.startswith("gitdir:"):
        return None
    target = _real_path(folder / text.removeprefix("gitdir:").strip())
    return target if _is_git_directory(target) else None


def _common_directory(git_directory: Path) -> Path:
    text = read_small(git_directory / "commondir").strip()
    return _real_path(git_directory / text) if text else git_directory


def _main_worktree(common: Path) -> Path:
    if common.name == ".git" or _target_of_link(common.parent) == common:
        return common.parent
    return _real_path(common / _read_settings(common).get("core.worktree", ""))


def _is_git_directory(path: Path) -> bool:
    if not _is_file(path / "HEAD"):
        return False
    return _is_dir(path / "objects") or _is_file(path / "commondir")


# os.path returns False for what Path raises: no permission, a name that is too long.
def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113


def _is_dir(path: Path) -> bool:
    return os.path.isdir(path)


def _real_path(path: str | Path) -> Path:
    return Path(os.path.realpath(path))


def _read_settings(common: Path) -> dict[str, str]:
    """Return the values of a git config by section and key: ``remote.origin.url``.

    The first one counts if there are several; includes are not followed.
    """
    section = ""
    settings: dict[str, str] = {}
    for line in read_small(common / "config").split("\n"):
        logical_line = line
        if match := re.match(_SECTION, line):
            section = match[1].lower()
            if match[2] is not None:
                section += "." + re.sub(_ESCAPE, r"\1", match[2])
            logical_line = line[match.end() :]
        if match := re.match(_ENTRY, logical_line):
            name = f"{section}.{match[1].lower()}"
            settings.setdefault(name, _unquote_value(match[2]))
    return settings


def _unquote_value(value: str) -> str:
    """Return a value without quotes, escapes and its comment."""
    plain = re.sub(_VALUE, r"\1\2", value)
    return re.sub(_ESCAPE, r"\1", plain).strip()
