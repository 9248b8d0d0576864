"""Losses of an export, reported on stderr while its files are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from sessiondb.cli.opening import say

if TYPE_CHECKING:
    from sessiondb.model import Document, Loss


def documents(items: Iterable[Document | Loss]) -> Iterator[Document]:
    """Yield the documents among *items*; report the losses between them.

    A long session may lose the same thing a thousand times: that is one line, with the
    number of times.
    """
    from sessiondb.model import Loss

    lost: Counter[str] = Counter()
    for item in items:
        if isinstance(item, Loss):
            lost[f"{item.session_id}: lost: {item.why}"] += 1
        else:
            _report(lost)
            yield item
    _report(lost)


def _report(lost: Counter[str]) -> None:
    for why, times in lost.items():
        say(f"{why} ({times:,} times)" if times > 1 else why)
    lost.clear()
