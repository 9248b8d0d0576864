"""``config.toml``: what a person may set once for this machine; every key is optional.

    database = "~/agents/sessions.db"
    durability = "normal"
    import_paths = ["~/.local/share/opencode"]

    [prices."gpt-5.2"]
    input = 1.75
    output = 14

A key that is misspelt or has the wrong type is an error that names file and
key: a setting that is silently ignored would be found too late.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, cast

from sessiondb.errors import InvalidInputError, NotFoundError
from sessiondb.location.directories import config_directory, expanded

Durability = Literal["full", "normal"]
#: Bytes of a file of settings.
MAX_BYTES = 1 << 20
_MEND = "correct it there, or name another file in SESSIONDB_CONFIG"


@dataclass(frozen=True, slots=True)
class Price:
    """The prices of a model, in USD per million tokens; None is unknown."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    reasoning: float | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of this machine.

    ``database`` is a path or URL, relative to the file's folder, None for the
    global one; ``prices`` is keyed by model id.
    """

    database: str | None = None
    durability: Durability = "full"
    import_paths: tuple[Path, ...] = ()
    prices: Mapping[str, Price] = field(default_factory=dict)


def config_path(env: Mapping[str, str] | None = None) -> Path:
    """Return where the settings are read from: ``SESSIONDB_CONFIG``, else the config directory.

    Without a home directory that is ``os.devnull``: nothing is set.
    """
    named = (os.environ if env is None else env).get("SESSIONDB_CONFIG")
    if named:
        return expanded(named)
    try:
        return config_directory() / "config.toml"
    except NotFoundError:
        return Path(os.devnull)


def load_config(path: Path | None = None) -> Config:
    """Read the settings at *path* (default: `config_path`); a missing file gives the defaults.

    Raises `InvalidInputError` naming the file and the key for anything that is
    unknown, of the wrong type, or not TOML, and for what is not a small file.
    """
    path = config_path() if path is None else path
    content = _content(path)
    if not content:
        return Config()
    import tomllib  # only where there is a file: every command begins here

    try:
        table = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        why = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise _unreadable(path, why) from error
    return _config(_Table(path, "", table))


def _content(path: Path) -> bytes:
    """Return what is in the file; empty where there is none, or nothing can be (/dev/null)."""
    try:
        facts = path.stat()
        if stat.S_ISCHR(facts.st_mode) and path.samefile(os.devnull):
            return b""
        if not stat.S_ISREG(facts.st_mode):
            # A pipe would block for ever.
            raise _unreadable(path, "it is not a file")
        if facts.st_size > MAX_BYTES:
            raise _unreadable(path, f"it is larger than {MAX_BYTES:,} bytes")
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise _unreadable(
            path, getattr(error, "strerror", None) or str(error)
        ) from error


def _unreadable(path: Path, why: str) -> InvalidInputError:
    return InvalidInputError(f"cannot read {path}: {why}", hint=_MEND)


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of the file, able to say where in it a value is wrong."""

    path: Path
    name: str
    values: dict[str, Any]

    def only(self, known: type) -> None:
        names = [f.name for f in fields(known)]
        for key in self.values:
            if key not in names:
                raise self.wrong(key, f"is unknown here; known are {', '.join(names)}")

    def wrong(self, key: str, why: str) -> InvalidInputError:
        return InvalidInputError(f"{self.path}: {self.name}{key} {why}", hint=_MEND)

    def table(self, key: str) -> _Table:
        values = self.values.get(key, {})
        if not isinstance(values, dict):
            raise self.wrong(key, "must be a table")
        return _Table(self.path, f"{self.name}{key}.", values)

    def text(self, key: str) -> str | None:
        value = self.values.get(key)
        if value is not None and (not isinstance(value, str) or not value):
            raise self.wrong(key, "must be a string that is not empty")
        return value

    def amount(self, key: str) -> float | None:
        value = self.values.get(key)
        if value is None:
            return None
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value < 0:
            raise self.wrong(
                key, "must be a number of USD per million tokens, 0 or more"
            )
        return float(value)


def _config(top: _Table) -> Config:
    top.only(Config)
    durability = top.text("durability") or "full"
    if durability not in ("full", "normal"):
        raise top.wrong("durability", 'must be "full" or "normal"')
    prices = top.table("prices")
    return Config(
        database=top.text("database"),
        durability=cast("Durability", durability),
        import_paths=_import_paths(top),
        prices={model: _price(prices.table(model)) for model in prices.values},
    )


def _import_paths(top: _Table) -> tuple[Path, ...]:
    paths = top.values.get("import_paths", [])
    if not isinstance(paths, list) or not all(isinstance(p, str) and p for p in paths):
        raise top.wrong("import_paths", "must be a list of strings that are not empty")
    return tuple(top.path.parent / expanded(path) for path in paths)


def _price(table: _Table) -> Price:
    table.only(Price)
    return Price(**{f.name: table.amount(f.name) for f in fields(Price)})
