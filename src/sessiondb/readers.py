"""Formats whose reader is in a room above `formats`, by the module of their `Format`.

A database of sessiondb is a source like the store of any program, but its reader uses
the reads of every database, which `formats` must not know. The front door knows every
room: it records the module here, and `formats.registry` imports what is recorded.
"""

from __future__ import annotations

#: Name of a format → the module that has its ``FORMAT``.
MODULES: dict[str, str] = {}
