"""The last step of an import: a session is complete, its source's state recorded."""

from __future__ import annotations

import json
from typing import Any

from sessiondb.dataclass import dataclass
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import upsert_text
from sessiondb.importing.rows.run import Run
from sessiondb.model import Problem, Problems
from sessiondb.schema.rows import LEDGER


@dataclass(frozen=True, slots=True, eq=False)
class CloseImport:
    """Complete an imported session, and list it."""

    verb = "import"
    run: Run
    problems: tuple[Problem, ...]

    def apply(self, tx: Transaction) -> None:
        """Write it; a no-op if the session was deleted since."""
        run = self.run
        if run.is_gone(tx):
            return

        run.policy.close(tx, run)
        # Links that are left out are found again when the session is read again.
        note(tx, run, self.problems + run.left_out)


def note(tx: Transaction, run: Run, problems: tuple[Problem, ...]) -> None:
    """Record in the ledger what was read of a session."""
    item = run.checked.item
    facts = {
        "source": item.source,
        "path": run.checked.ledger,
        "size": item.size,
        "mtime_ns": item.mtime_ns,
        "offset": run.messages,
        "digest": item.digest,
        "namespace": item.namespace,
    }
    write_entry(tx, facts, problems)


def write_entry(
    tx: Transaction, facts: dict[str, Any], problems: tuple[Problem, ...]
) -> None:
    """Write an entry of the ledger: its source is read again if that changes.

    An entry with problems is read again in any case: the source may have been repaired
    without a trace in size and time.
    """
    limited = Problems()
    limited.extend(problems)
    noted = [
        {"source": problem.source, "line": problem.line, "why": problem.why}
        for problem in limited
    ]

    values = {
        "namespace": "",
        **facts,
        "problems": json.dumps(noted) if noted else None,
        "time_imported": tx.now,
    }
    row = tuple(values[name] for name in LEDGER)
    tx.connection.execute(upsert_text("import_ledger", LEDGER), row)
