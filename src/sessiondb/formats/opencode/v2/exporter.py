"""Sessions as ``opencode session import`` of version 2 takes them."""

from __future__ import annotations

from functools import partial
from typing import Any

from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.writing import one_by_one
from sessiondb.formats.opencode.exporter import file_of, take_in
from sessiondb.formats.opencode.ids import names_of
from sessiondb.formats.opencode.v2.writer import WriterV2
from sessiondb.formats.protocol import Exporter
from sessiondb.model import Export, Message


def _document(
    export: Export, messages: list[Message], losses: Losses
) -> dict[str, Any]:
    return WriterV2(export, messages, losses).json()


EXPORTER = Exporter(
    one_by_one(partial(file_of, _document)), take_in=take_in, names_of=names_of
)
