"""The numbers of rows, which sessiondb gives out itself in a file."""

from __future__ import annotations

from backends import Backend

from sessiondb import Store, assistant


def test_no_row_number_of_another_process_is_given_out(
    store: Store, backend: Backend
) -> None:
    session = store.create_session().id
    for _ in range(3):
        store.append(session, assistant("before"), cost=1.0)
    backend.run(
        store,
        "INSERT INTO part (rid, session_id, seq, idx, id, type, time_created, "
        "time_updated) VALUES (1000, ?, 1, 7, 'prt_other', 'text', 1, 1)",
        session,
    )
    store.append(session, assistant("after"))
    assert backend.rows(store, "SELECT max(rid) FROM part") == [(1001,)]
