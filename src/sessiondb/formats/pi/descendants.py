"""Sessions as logs of oh-my-pi, in whose own logs a title comes before the header."""

from __future__ import annotations

from functools import partial

from sessiondb.formats.pi.exporter import write
from sessiondb.formats.protocol import Exporter

EXPORTER = Exporter(partial(write, titled=True), read={"branches": True})
