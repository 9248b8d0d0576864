"""A verb or a read imports nothing in the thread that interrupts reach.

An interrupt inside an import would come out as another error, or be dropped.
"""

from __future__ import annotations

import pytest
from backends import Backend
from processes import run, said

pytestmark = pytest.mark.slow

#: Each verb and read, in a process in which none was used before.
PROGRAM = """
    import importlib.abc, sys, threading

    from sessiondb.store import Store
    from sessiondb.model import assistant, tool, user

    class Spy(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path=None, target=None):
            if threading.current_thread() is threading.main_thread():
                found.add(name)

    found = set()
    with Store.open(sys.argv[1]) as store:
        sys.meta_path.insert(0, Spy())
        session = store.create_session()
        store.append(session, user("a"))
        answer = store.append(session, assistant(tool("t", {}, call_id="c")), open=True)
        store.start(session, "c")
        store.settle(session, "c", output="x" * 3000)
        store.finish(session, answer)
        with store.lease(session):
            pass
        with store.stream(session) as out:
            out.text().add("b")
        store.recover(session)
        store.label(session, 1, "here")
        store.open_session("thread-1")
        store.add_prompt("a")
        store.note_used(session, "tty")
        store.truncate(session, after=2)
        store.fork(session)
        store.messages(session)
        store.context(session)
        store.search("a")
        store.usage()
        store.tree(session)
        store.export(session)
        store.newest_change()
        list(store.ingest([]))
        store.delete(session)
        store.reap()
    print(sorted(found))
"""


def test_no_verb_or_read_imports_in_the_main_thread(backend: Backend) -> None:
    done = run(PROGRAM, backend.place())
    assert said(done).strip() == "[]"
