"""The units of a batch, applied inside its transaction.

A unit that fails leaves an error in its job and never an exception, so that its
neighbours can be applied again without it. An exception leaves this module only if the
transaction itself is gone, or has to be run again.
"""

from __future__ import annotations

from collections.abc import Sequence

from sessiondb.effects.locking import lock_ahead
from sessiondb.effects.message import Append, count_copies
from sessiondb.effects.transaction import CallerError, Transaction
from sessiondb.engine.base import Engine
from sessiondb.errors import SessionDBError
from sessiondb.writer.job import Job


def apply_all(tx: Transaction, jobs: list[Job]) -> bool:
    """Apply units in turn; False after the first failure, which its job records."""
    for position, job in enumerate(jobs):
        # The first one locks for all. If it cannot, each locks its own when it is
        # tried again: one session that is kept locked does not fail the others.
        if not apply_unit(tx, job, jobs if position == 0 else ()):
            # Nothing of this attempt may be given out, and none of it is on disk.
            tx.after_commit.clear()
            tx.changes.clear()
            return False
    return True


def apply_guarded(tx: Transaction, jobs: list[Job]) -> bool:
    """Apply each unit in a savepoint, an eighth slower; False if all fail.

    Every effect is waited for, so that an error is known to be its own.
    """
    any_good = False
    for job in jobs:
        tx.connection.execute("SAVEPOINT unit")
        mark = tx.mark()
        if apply_unit(tx, job, settles=True):
            any_good = True
        else:
            tx.undo_unit(mark)
            tx.connection.execute("ROLLBACK TO unit")

        tx.connection.execute("RELEASE unit")

    return any_good


def apply_unit(
    tx: Transaction, job: Job, locking: Sequence[Job] = (), *, settles: bool = False
) -> bool:
    """Apply one unit; False if it fails, and its job records the error.

    Before it, what the units of *locking* need is locked. With *settles* it fails if
    one of its statements does. Without, it may be noticed in a later unit, or by the
    COMMIT: see `Engine.answers_late`.
    """
    tried = job.unit.tried
    tx.begin_unit(tried, job.root)
    job.unit.tried, job.error = True, None
    position, verb = 0, "unit"
    try:
        lock_ahead(tx, [each.unit for each in locking])
        # The position is named by errors.
        for position, effect in enumerate(job.unit.effects):  # noqa: B007
            verb = effect.verb
            if tx.opened:
                effect = tx.redirected(effect)  # noqa: PLW2901
            if isinstance(effect, Append):
                effect.apply(tx)
            else:
                count_copies(tx)
                tx.forget_states(getattr(effect, "session_id", None))
                effect.apply(tx)
                tx.forget_states(None)
            if settles:
                tx.connection.settle()
        count_copies(tx)
        tx.flush()
        if settles:
            tx.connection.settle()
    except CallerError as failure:
        job.unit.tried, job.error = tried, failure.raised
        return False
    except Exception as failure:
        error = _first_error(tx, failure)
        if tx.engine.must_repeat(error):
            raise error from error.__cause__
        our_error = own_error(tx.engine, error)
        our_error.__cause__ = None if our_error is error else error
        if isinstance(our_error, SessionDBError) and our_error.effect is None:
            our_error.effect, our_error.position = verb, position
        # The engine has rolled back everything: no neighbour can be saved.
        if not tx.connection.in_transaction:
            raise our_error from our_error.__cause__
        job.unit.tried, job.error = tried, our_error
        return False

    return True


def _first_error(tx: Transaction, error: Exception) -> Exception:
    """Return why a unit failed: an earlier statement may have done so unnoticed."""
    if not isinstance(error, tx.engine.Error):
        try:
            tx.connection.settle()
        except tx.engine.Error as earlier:
            return earlier
    return error


def own_error(engine: Engine, error: Exception) -> Exception:
    """Return our error for one of the driver's; any other as it is."""
    return engine.translate(error) if isinstance(error, engine.Error) else error
