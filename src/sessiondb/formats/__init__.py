"""Stores of other programs: where they are, what is in them, how they are written.

Each format is one package in this folder, which knows `sessiondb.model` and nothing of
our database. `protocol` defines the contracts of a format, `registry` has one line for
each, and `kit` the tools that every reader is built from. `find` looks for stores.

Names are imported when they are first used: `show` needs `transcript` alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sessiondb.formats.discovery import default_locations, find, in_projects, stamps
    from sessiondb.formats.protocol import Exporter, ForeignStore, Format
    from sessiondb.formats.registry import exporter, readable, writable

__all__ = [
    "Exporter",
    "ForeignStore",
    "Format",
    "default_locations",
    "exporter",
    "find",
    "in_projects",
    "readable",
    "stamps",
    "writable",
]

_HOMES = {
    "sessiondb.formats.discovery": (
        "default_locations",
        "find",
        "in_projects",
        "stamps",
    ),
    "sessiondb.formats.protocol": ("Exporter", "ForeignStore", "Format"),
    "sessiondb.formats.registry": ("exporter", "readable", "writable"),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

if not TYPE_CHECKING:  # a type checker would take any name for one of the package

    def __getattr__(name: str) -> Any:
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value
