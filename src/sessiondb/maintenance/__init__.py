"""Looking after the file: is it intact, how large is it, a copy of it, and what may go.

Most of this is about SQLite and our schema as they are on disk, also where our
own statements take for granted what is asked here; so the questions are SQL by
hand, on connections of their own.
"""

from sessiondb.engine.upkeep import Room
from sessiondb.maintenance.backup import Backup, backup
from sessiondb.maintenance.check import Finding, check
from sessiondb.maintenance.doctor import diagnose
from sessiondb.maintenance.removal import Removal, every, plan_prune
from sessiondb.maintenance.repair import Repaired, repair
from sessiondb.maintenance.vacuum import Vacuumed, VacuumPlan, plan_vacuum, vacuum

__all__ = [
    "Backup", "Finding", "Removal", "Repaired", "Room", "VacuumPlan", "Vacuumed",
    "backup", "check", "diagnose", "every", "plan_prune", "plan_vacuum", "repair",
    "vacuum",
]  # fmt: skip
