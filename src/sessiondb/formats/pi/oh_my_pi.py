"""Sessions as logs of oh-my-pi, in whose own logs a title comes before the header."""

from __future__ import annotations

from sessiondb.formats.pi.exporter import exporter
from sessiondb.formats.pi.places import OH_MY_PI

EXPORTER = exporter(OH_MY_PI)
