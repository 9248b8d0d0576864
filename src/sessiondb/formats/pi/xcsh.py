"""Sessions as logs of xcsh, which has the dialect of oh-my-pi."""

from __future__ import annotations

from sessiondb.formats.pi.exporter import exporter_for
from sessiondb.formats.pi.places import XCSH

EXPORTER = exporter_for(XCSH)
