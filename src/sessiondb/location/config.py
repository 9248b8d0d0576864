"""``config.toml``: the settings of this machine; every key is optional.

    database = "~/agents/sessions.db"
    durability = "normal"
    import_paths = ["~/.local/share/opencode"]

    [prices."gpt-5.2"]
    input = 1.75
    output = 14

A key that is misspelt or has the wrong type is an error that names file and key: a
setting that is silently ignored would be noticed too late.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from sessiondb.dataclass import dataclass, field, fields
from sessiondb.errors import InvalidInputError, NotFoundError
from sessiondb.location.directories import config_directory, expanded

Durability = Literal["full", "normal"]
#: Bytes of a file of settings.
MAX_BYTES = 1 << 20
_FIX = "correct it there, or name another file in SESSIONDB_CONFIG"


@dataclass(frozen=True, slots=True)
class Price:
    """The prices of a model, in USD per million tokens; None is unknown.

    Without a price of its own, reasoning has that of the output.
    """

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
    """Return the file of settings: ``SESSIONDB_CONFIG``, else in the config directory.

    Without a home directory it is ``os.devnull``: nothing is set.
    """
    configured = (os.environ if env is None else env).get("SESSIONDB_CONFIG")
    if configured:
        return expanded(configured)
    try:
        return config_directory() / "config.toml"
    except NotFoundError:
        return Path(os.devnull)


def load_config(path: Path | None = None) -> Config:
    """Read the settings at *path* (default: `config_path`).

    A missing file gives the defaults. Raises `InvalidInputError` with the file and the
    key for anything that is unknown, of the wrong type, or not TOML, and for a path
    that is not a small file.
    """
    path = config_path() if path is None else path
    content = _read_content(path)
    if not content:
        return Config()

    import tomllib  # only if there is a file: every command begins here

    try:
        table = tomllib.loads(content.decode())
    except RecursionError as error:
        raise _unreadable_error(path, "nested too deep") from error
    except ValueError as error:
        raise _unreadable_error(path, str(error)) from error
    return _config_of(_Table(path, "", table))


def _read_content(path: Path) -> bytes:
    """Return the bytes of the file; none if it is missing, or the null device."""
    try:
        facts = path.stat()
        is_file = stat.S_ISREG(facts.st_mode)
        # Nothing else is read: a pipe would block for ever.
        if is_file and facts.st_size <= MAX_BYTES:
            return path.read_bytes()
        is_null = path.samefile(os.devnull)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except (OSError, ValueError) as error:  # ValueError: a path with NUL
        reason = getattr(error, "strerror", None) or str(error)
        raise _unreadable_error(path, reason) from error

    if is_null:
        return b""
    too_large = f"it is larger than {MAX_BYTES:,} bytes"
    raise _unreadable_error(path, too_large if is_file else "it is not a file")


def _unreadable_error(path: Path, reason: str) -> InvalidInputError:
    return InvalidInputError(f"cannot read {path}: {reason}", hint=_FIX)


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of the file, with its path and its name in it for errors."""

    path: Path
    name: str
    values: dict[str, Any]

    def check_keys(self, section: type) -> None:
        names = [f.name for f in fields(section)]
        for key in self.values:
            if key not in names:
                raise self.wrong(key, f"is unknown here; known are {', '.join(names)}")

    def get(self, key: str, kind: _Kind, default: Any = None) -> Any:
        value = self.values.get(key)
        if value is None:  # TOML has no null: the key is missing
            return default
        if kind.includes(value):
            return value
        raise self.wrong(key, f"must be {kind.name}")

    def table(self, key: str) -> _Table:
        return _Table(self.path, f"{self.name}{key}.", self.get(key, _TABLE, {}))

    def wrong(self, key: str, reason: str) -> InvalidInputError:
        return InvalidInputError(f"{self.path}: {self.name}{key} {reason}", hint=_FIX)


class _Kind(NamedTuple):
    """A kind of value: its name in an error, and whether a value is one."""

    name: str
    includes: Callable[[Any], bool]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_price(value: Any) -> bool:
    # Of the type itself: a bool is an int too. NaN is on neither side of a number.
    return type(value) in (int, float) and 0 <= value < math.inf


_TABLE = _Kind("a table", lambda value: isinstance(value, dict))
_TEXT = _Kind("a string that is not empty", _is_text)
_TEXTS = _Kind(
    "a list of strings that are not empty",
    lambda value: isinstance(value, list) and all(_is_text(item) for item in value),
)
_DURABILITY = _Kind('"full" or "normal"', lambda value: value in get_args(Durability))
_PRICE = _Kind("a number of USD per million tokens, 0 or more", _is_price)


def _config_of(top: _Table) -> Config:
    top.check_keys(Config)
    folder = top.path.parent
    prices = top.table("prices")
    paths = [expanded(path) for path in top.get("import_paths", _TEXTS, ())]
    return Config(
        database=top.get("database", _TEXT),
        durability=top.get("durability", _DURABILITY, "full"),
        import_paths=tuple([folder / path for path in paths]),
        prices={model: _price_of(prices.table(model)) for model in prices.values},
    )


def _price_of(table: _Table) -> Price:
    table.check_keys(Price)
    return Price(**{f.name: table.get(f.name, _PRICE) for f in fields(Price)})
