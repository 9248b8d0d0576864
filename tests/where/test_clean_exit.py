"""A program that forgets to close its store ends at once, quietly, and loses nothing.

``SESSIONDB_LONG=1`` tries the other releases of Python that are here too.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import site
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from textwrap import dedent

import pytest
from processes import run

pytestmark = pytest.mark.slow

# -X dev shows what is otherwise hidden: unclosed files, threads that raise while they end.
_STRICT = ("-X", "dev", "-W", "error")
# Imports once, then runs each program in a process of its own that ends as programs do.
_RUNNER = """
    import asyncio, json, logging, os, sys, threading
    from sessiondb import ALL, AsyncStore, Store, user
    # -X dev makes loops report each step that a busy machine slowed down.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    programs, folder = json.load(sys.stdin), sys.argv[1]
    for name, program in programs.items():
        path = os.path.join(folder, name + ".db")
        print(name, flush=True)
        pid = os.fork()
        if not pid:
            os.dup2(os.open(path + ".err", os.O_WRONLY | os.O_CREAT), 2)
            break
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    else:
        program = ""
    exec(program)
"""
_PROGRAMS = {
    "a store": """
        store = Store.open(path)
        session = store.create_session()
        store.append(session, user("acknowledged"))
        assert store.messages(session)
    """,
    "a store in a cycle and a second one in a function": """
        def work():
            other = Store.open(path)
            other.append(other.create_session(), user("acknowledged"))
            other.itself = other
        work()
        store = Store.open(path)
        store.on_commit(lambda changes: None)
        store.create_session()
    """,
    "a stream and a lease": """
        store = Store.open(path)
        session = store.create_session()
        store.append(session, user("acknowledged"))
        lease = store.lease(store.create_session())
        lease.__enter__()
        block = store.stream(session)
        out = block.__enter__()
        out.text().add("streamed")
        out.flush()
        out.text().add("never flushed")
    """,
    "an async store": """
        async def main():
            global store
            store = await AsyncStore.open(path)
            session = await store.create_session()
            await store.append(session, user("acknowledged"))
            await asyncio.gather(*(store.messages(session) for _ in range(8)))
        asyncio.run(main())
    """,
    "an async store in the middle of a stream": """
        async def main():
            store = await AsyncStore.open(path)
            session = await store.create_session()
            await store.append(session, user("acknowledged"))
            async with store.stream(session) as out:
                out.text().add("streamed")
                await out.flush()
                asyncio.get_running_loop().call_soon(sys.exit)
                await asyncio.sleep(30)
        asyncio.run(main())
    """,
    "work in daemon threads": """
        store = Store.open(path)
        session = store.create_session()
        store.append(session, user("acknowledged"))
        def work():
            while True:
                try:
                    store.append(session, user("more"))
                    store.messages(session, last=1)
                except Exception as error:
                    assert type(error).__name__ == "StoreClosedError", error
                    return
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
    """,
    "an exception": """
        store = Store.open(path)
        store.append(store.create_session(), user("acknowledged"))
        sys.excepthook = lambda *_: None
        raise RuntimeError
    """,
}


def _check(folder: Path, python: str = sys.executable, **env: str) -> None:
    programs = {name: dedent(program) for name, program in _PROGRAMS.items()}
    done = run(
        _RUNNER, folder, flags=_STRICT, python=python, input=json.dumps(programs), **env
    )  # fmt: skip
    printed = done.stdout.split("\n")
    codes = dict(zip(printed[::2], printed[1::2], strict=False))
    errors = {name: (folder / f"{name}.db.err").read_text() for name in _PROGRAMS}
    assert (done.stderr, errors) == ("", dict.fromkeys(_PROGRAMS, ""))
    assert codes == dict.fromkeys(_PROGRAMS, "0") | {"an exception": "1"}
    for name in _PROGRAMS:
        with closing(sqlite3.connect(folder / f"{name}.db")) as connection:
            rows = connection.execute("SELECT text FROM part ORDER BY rid").fetchall()
            assert ("acknowledged",) in rows
            assert (("streamed",) in rows) == ("stream" in name)
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_program_with_an_unclosed_store_ends_cleanly(tmp_path: Path) -> None:
    _check(tmp_path)


def _other_python(version: str) -> str:
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    installed = sorted((home / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    found = str(installed[-1]) if installed else shutil.which(f"python{version}")
    if found is None or sys.version_info[:2] == tuple(map(int, version.split("."))):
        pytest.skip(f"no other Python {version} here")
    return found


@pytest.mark.skipif("SESSIONDB_LONG" not in os.environ, reason="needs SESSIONDB_LONG=1")
@pytest.mark.parametrize("version", ["3.12", "3.13", "3.14"])
def test_an_unclosed_program_ends_cleanly_on_other_releases_of_python(
    version: str, tmp_path: Path
) -> None:
    python = _other_python(version)
    # The packages of this environment, where they are of pure Python or the other's own.
    env = {"PYTHONPATH": os.pathsep.join(site.getsitepackages())}
    if run("import sessiondb.aio, sessiondb.store", python=python, **env).returncode:
        pytest.skip(f"Python {version} cannot use the packages of this environment")
    _check(tmp_path, python=python, **env)
