"""A program that forgets to close its store ends at once, quietly, and loses nothing."""

from __future__ import annotations

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

# -X dev shows what is otherwise hidden: unclosed files, threads that raise while they end.
_STRICT = ("-X", "dev", "-W", "error")
_BEGIN = """
    import asyncio, sys, threading
    from sessiondb import ALL, AsyncStore, Store, user
    path = sys.argv[1]
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


def _check(program: str, path: Path, python: str = sys.executable, **env: str) -> None:
    code = dedent(_BEGIN) + dedent(_PROGRAMS[program])
    done = run(code, path, flags=_STRICT, python=python, timeout=30, **env)
    assert (done.returncode, done.stderr) == (int(program == "an exception"), "")
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT text FROM part ORDER BY rid").fetchall()
        assert ("acknowledged",) in rows
        if "stream" in program:
            assert ("streamed",) in rows
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("program", _PROGRAMS)
def test_a_program_with_an_unclosed_store_ends_cleanly(program: str, tmp_path: Path) -> None:
    _check(program, tmp_path / "sessions.db")


def _other_python(version: str) -> str:
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    installed = sorted((home / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    found = str(installed[-1]) if installed else shutil.which(f"python{version}")
    if found is None or sys.version_info[:2] == tuple(map(int, version.split("."))):
        pytest.skip(f"no other Python {version} here")
    return found


@pytest.mark.parametrize("version", ["3.12", "3.13", "3.14"])
def test_so_it_does_on_other_releases_of_python(version: str, tmp_path: Path) -> None:
    python = _other_python(version)
    # The packages of this environment, where they are of pure Python or the other's own.
    packages = os.pathsep.join(site.getsitepackages())
    env = {"PYTHONPATH": packages}
    if run("import sessiondb.aio, sessiondb.store", python=python, **env).returncode:
        pytest.skip(f"Python {version} cannot use the packages of this environment")
    for number, program in enumerate(("a stream and a lease", "an async store")):
        _check(program, tmp_path / f"{number}.db", python=python, **env)
