"""Nothing acknowledged is lost: by a full disk, or by SIGKILL in the middle of commits."""

from __future__ import annotations

import asyncio
import contextlib
import random

import pytest
from backends import Backend, Place
from peers import Connection, other

from sessiondb import (
    Store,
    assistant,
    tool,
    user,
)

pytestmark = pytest.mark.slow


def commit_for_ever(pipe: Connection, place: Place, name: str) -> None:
    """Commit units of four effects, and report each when it is acknowledged."""
    with Store.open(place) as store:
        number = 0
        while True:
            with store.effects() as fx:
                m = fx.append(name, user(f"ask {number}"))
                a = fx.append(
                    name, assistant(tool("t", {"n": number}, id=f"{m.id}-call"))
                )
                fx.settle(
                    name, a.parts[0], output="z" * random.choice((10, 2_000, 20_000))
                )
                fx.label(name, m, f"label {number}")
            pipe.send(number)
            number += 1


async def test_acknowledged_commits_survive_sigkill_completely(
    backend: Backend,
) -> None:
    place = backend.fresh()
    with Store.open(place) as store:
        names = [
            store.create_session(id=f"s{n}", directory="/tmp").id for n in range(5)
        ]
    for name in names:
        with other(commit_for_ever, place, name) as writer:
            writer.hear()
            await asyncio.sleep(random.uniform(0.0, 0.06))
            writer.kill()
            acknowledged = 0
            with contextlib.suppress(EOFError):
                while True:
                    acknowledged = writer.hear()
        count = "SELECT count(*) FROM message WHERE session_id = ?"
        assert backend.rows(place, count, name)[0][0] >= 2 * (acknowledged + 1)
        sql = """
        SELECT count(*), sum(CASE WHEN m.role = 'user' THEN 1 ELSE 0 END), (SELECT count(*) FROM label WHERE session_id = ?),
            (SELECT count(*) FROM part WHERE session_id = ? AND status = 'completed')
        FROM message m WHERE m.session_id = ?"""
        messages, asked, labels, settled = backend.rows(place, sql, name, name, name)[0]
        assert messages == 2 * asked == 2 * labels == 2 * settled
        backend.assert_intact(place)
    with Store.open(place) as store:
        for name in names:
            store.append(name, user("on"))
    backend.assert_intact(place)
