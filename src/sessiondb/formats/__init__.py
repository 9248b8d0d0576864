"""Stores of other programs: where they are, what is in them, how they are written.

Each format is one package in this folder, which knows `sessiondb.model` and nothing of
our database. `protocol` defines the contracts of a format, `registry` has one line for
each, and `kit` the tools that every reader is built from. `find` looks for stores.
"""

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
