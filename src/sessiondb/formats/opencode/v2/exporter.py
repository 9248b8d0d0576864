"""Sessions as ``opencode session import`` of version 2 takes them."""

from __future__ import annotations

from sessiondb.formats.kit.writing import one_by_one
from sessiondb.formats.opencode.exporter import session_file, take_in
from sessiondb.formats.opencode.names import names_of
from sessiondb.formats.protocol import Exporter

EXPORTER = Exporter(
    one_by_one(lambda export, losses: session_file(export, losses, only_second=True)),
    take_in=take_in,
    names_of=names_of,
)
