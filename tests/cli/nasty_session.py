"""A family of sessions with everything that a terminal, a table or a pipe could stumble over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sessiondb import (
    SessionHandle,
    Store,
    assistant,
    event,
    file,
    part,
    reasoning,
    system,
    text,
    tool,
    user,
)

#: 1 November 2026, 12:00 UTC, in Unix ms.
NOON = 1_793_534_400_000
TITLE = "修复解析器 👩‍💻 cafe\u0301 \u202eevil\u202c \x1b[31mred\x1b[0m\tתיקון المحلل"
LONG = "pneumono" * 60
WIDE = "解析器在读取空文件时会崩溃，因为边界是排他的。" * 5
WORDS = (
    "The lexer reads one token too far whenever a file does not end with a newline. "
    * 4
)
HOSTILE = "\x1b]0;owned\x07\x1b[2J\r\nbell\x07 back\x08space \u202eabc\u202c nul\0 line\u2028end\x9b31m"


def write(store: Store, set_time: Callable[[int], None]) -> None:
    """Write the family; every id and time is fixed. *set_time* takes Unix ms."""
    at = Times(set_time)
    nasty = at(0, store.create_session, id="ses_00000000000000000nasty1", title=TITLE,
               directory="/home/ann/商店", agent="build", model="large", provider="acme")  # fmt: skip
    at(
        1,
        store.append,
        nasty,
        user(text(f"Fix it.\n\tif x:\n\t\tpass\n\n{WORDS}"), id="msg_1"),
    )
    _answers(store, at, nasty)
    fork = at(9, store.fork, nasty, at="msg_4", id="ses_0000000000000000000fork",
              title=f"Another idea, which is told in a title of many words: {WORDS}")  # fmt: skip
    at(60, store.append, fork, user("Try a generator instead 🇩🇪", id="msg_f1"))
    at(61, store.append, fork, assistant(tool("bash", {"command": "make"}), id="msg_f2"),
       model="small", cost=0.001, tokens={"input": 12_345_678, "output": 9})  # fmt: skip
    deeper = at(62, store.fork, fork, id="ses_000000000000000000deep3", title="")
    at(63, store.append, deeper, user("한국어로", id="msg_d1"))
    helper = at(64, store.create_session, id="ses_0000000000000000helper4", parent=nasty,
                relation="subagent", agent="explore", title="探索 " * 30)  # fmt: skip
    at(65, store.append, helper, user("Where is the lexer?", id="msg_h1"))
    at(
        66,
        store.set_title,
        fork,
        "Idee 👍🏽 number two, with a title that is too long for a row",
    )
    at(0, store.label, nasty, "msg_2", "good")
    at(2, store.add_prompt, "fix\tit\n\x1b[1mnow\x1b[0m 修复", session=nasty)
    at(3, store.add_prompt, WORDS, directory="/home/ann")
    at(4320, store.add_prompt, "resume 👩‍💻 work", directory="/home/ann")


def _answers(store: Store, at: Times, nasty: SessionHandle) -> None:
    first = assistant(
        reasoning(f"Hmm…\n{WORDS}\n{WIDE}"),
        text(f"Found it: 「空文件」.\n{LONG}\n{WIDE}"),
        tool("bash", {"command": "pytest -q\n# all"}, title="Run the tests", call_id="call_1",
             output="\n".join(f"line {n}\t{'x' * n * 4}" for n in range(40))),
        tool("edit", {"path": "解析器.py", "old": LONG, "n": [1, None]}, error="No such file\x1b[A"),
        file("file:///tmp/図.png", mime="image/png", filename="図.png"),
        part("hologram", depth={"z": [1, None, True]}),
        part("step-finish", reason="stop"),
        id="msg_2",
    )  # fmt: skip
    tokens = {"input": 1200, "output": 80, "cache_read": 50_000}
    at(2, store.append, nasty, first, model="large", cost=1234.5, tokens=tokens)
    at(3, store.append, nasty, user(HOSTILE, id="msg_3"))
    at(4, store.append, nasty, assistant("e\u0301" * 100 + " 👨‍👩‍👧‍👦 done", id="msg_4"),
       model="large", error={"name": "Overloaded", "why": WORDS}, finish="error")  # fmt: skip
    at(5, store.append, nasty, user("Left aside", id="msg_5"))
    at(6, store.append, nasty, system("Be brief"), after="msg_4")
    at(
        7,
        store.append,
        nasty,
        event("mode_change", part("mode", text="plan"), id="msg_7"),
    )
    running = tool(
        "task", {"prompt": "Look around"}, status="running", call_id="call_2"
    )
    at(8, store.append, nasty, assistant(running, id="msg_8"), model="large", open=True)


class Times:
    """Calls something at a number of minutes after `NOON`."""

    def __init__(self, set_time: Callable[[int], None]) -> None:
        self._set = set_time

    def __call__(
        self, minutes: int, verb: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        self._set(NOON + minutes * 60_000)
        return verb(*args, **kwargs)
