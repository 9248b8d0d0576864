"""Sessions as ``opencode session import`` of version 2 takes them."""

from __future__ import annotations

from collections.abc import Iterator

from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.writing import one_by_one
from sessiondb.formats.opencode.exporter import session_file, take_in
from sessiondb.formats.opencode.ids import names_of
from sessiondb.formats.protocol import Exporter
from sessiondb.model import Document, Export


def _file_of_2(export: Export, losses: Losses) -> Iterator[Document]:
    return session_file(export, losses, only_second=True)


EXPORTER = Exporter(one_by_one(_file_of_2), take_in=take_in, names_of=names_of)
