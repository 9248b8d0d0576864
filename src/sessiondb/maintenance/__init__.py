"""Maintenance of a database: verify, repair, measure, copy, prune, exchange.

Most of this examines rows as they are stored, including what other statements take for
granted. So the queries are written by hand and run on separate connections.
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
