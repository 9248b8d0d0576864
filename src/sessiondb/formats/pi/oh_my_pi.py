"""Sessions as logs of oh-my-pi, in whose own logs a title comes before the header."""

from __future__ import annotations

from sessiondb.formats.pi.exporter import exporter_for
from sessiondb.formats.pi.places import OH_MY_PI

EXPORTER = exporter_for(OH_MY_PI)
