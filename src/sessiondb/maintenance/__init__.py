"""Looking after the file: is it whole, how large is it, a copy of it.

All of this is about SQLite and our schema as they are on disk, also where our
own statements take for granted what is asked here; so the questions are SQL by
hand, on connections of their own.
"""

from sessiondb.maintenance.backup import Backup, backup
from sessiondb.maintenance.check import Finding, check
from sessiondb.maintenance.doctor import diagnose

__all__ = ["Backup", "Finding", "backup", "check", "diagnose"]
