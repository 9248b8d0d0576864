"""Connections of stores that were never closed, on files that are intact or damaged."""

from __future__ import annotations

from pathlib import Path

import pytest
from processes import run, said


@pytest.mark.slow
def test_no_connection_is_left_to_the_collector(tmp_path: Path) -> None:
    """Python 3.13 warns about those."""
    code = """
        import gc, sys, sqlite3
        from pathlib import Path
        from sessiondb import Store, SessionDBError, user
        folder = Path(sys.argv[1])
        store = Store.open(folder / "s.db")
        store.append(store.create_session(), user("Hello"))
        del store
        other = Store.open(folder / "other.db")
        other.close()
        damaged = bytearray((folder / "other.db").read_bytes())
        for at in range(4096, len(damaged)):
            damaged[at] = 0xFF
        (folder / "damaged.db").write_bytes(damaged)
        try:
            Store.open(folder / "damaged.db").sessions()
        except SessionDBError:
            pass
        gc.collect()
    """
    done = run(code, tmp_path, flags=("-X", "dev", "-W", "error"))
    assert said(done) == ""
    assert done.stderr == ""
