"""Sessions of one store, if the ids of its program are not unique everywhere.

Such a program names a parent by an id that sessions of other stores may have, too. The
one that is meant was read from the same file, or else from one in the same folder.
"""

from __future__ import annotations

from pathlib import PurePath

from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement
from sessiondb.importing.rows.run import Run

_ENTRY = Statement("importing.rows.same_store.ENTRY")
_NAMESPACES = Statement("importing.rows.same_store.NAMESPACES")
_PATHS = Statement("importing.rows.same_store.PATHS")


def namespace_beside(tx: Transaction, run: Run, name: str) -> str | None:
    """Return the namespace of the session *name* that the source of a run has, or None.

    If ids are not unique everywhere, it was read from the same file, or else from
    one in the same folder: some programs have a file for each session.
    """
    item = run.checked.item
    if not item.namespace:
        return ""

    path = f"{run.checked.ledger.removesuffix(item.source_id)}{name}"
    in_file: str | None = tx.value(_ENTRY, source=item.source, path=path)
    if in_file:
        return in_file

    namespaces = tx.column(_NAMESPACES, source=item.source, name=name)
    for namespace in namespaces:
        if _is_in_folder(tx, run, name, namespace):
            return str(namespace)
    return None


def _is_in_folder(tx: Transaction, run: Run, name: str, namespace: str) -> bool:
    """Return whether the folder of a run's file has one of that session *name*.

    The entries of one namespace are few. All those of a source would be read once for
    each child: half a minute for a folder of 5,000 exports.
    """
    item = run.checked.item
    folder = PurePath(run.checked.ledger.removesuffix(item.source_id)).parent
    return any(
        path.endswith(f"#{name}") and PurePath(path.removesuffix(name)).parent == folder
        for path in tx.column(_PATHS, source=item.source, namespace=namespace)
    )


def is_beside(tx: Transaction, run: Run, name: str, namespace: str) -> bool:
    """Return whether the session *name* in a *namespace* is of the store of a run."""
    own_namespace = run.checked.item.namespace
    if not own_namespace or not namespace:
        return own_namespace == namespace
    return _is_in_folder(tx, run, name, namespace)
