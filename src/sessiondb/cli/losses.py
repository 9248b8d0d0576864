"""Losses of an export, reported on stderr while its files are written.

A session has a line for the records that are lost, one for each sort of records that
lose fields, and one for each loss with words of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from sessiondb.cli.opening import say

if TYPE_CHECKING:
    from sessiondb.model import Document, Loss


#: Says what a session loses, whose id comes first.
Report = Callable[[str, "list[Loss]"], None]


def report(session_id: str, lost: list[Loss]) -> None:
    """Say every loss of a session, a line for each sort."""
    for line in lines_of(lost):
        say(f"{session_id}: lost: {line}")


def documents(
    items: Iterable[Document | Loss], report_losses: Report = report
) -> Iterator[Document]:
    """Yield the documents among *items*; report the losses between them."""
    from sessiondb.model import Loss

    lost: dict[str, list[Loss]] = {}
    for item in items:
        if isinstance(item, Loss):
            lost.setdefault(item.session_id, []).append(item)
        else:
            _report_all(lost, report_losses)
            yield item
    _report_all(lost, report_losses)


def _report_all(lost: dict[str, list[Loss]], report_losses: Report) -> None:
    for session_id, losses in lost.items():
        report_losses(session_id, losses)
    lost.clear()


def lines_of(losses: Iterable[Loss]) -> Iterator[str]:
    """Yield the losses of one session as lines for people."""
    from sessiondb.formats.kit.loss_words import is_plain

    whole: list[str] = []
    by_sort: dict[str, list[Loss]] = defaultdict(list)
    special: dict[str, int] = {}
    for loss in losses:
        if not is_plain(loss):
            special[loss.why] = special.get(loss.why, 0) + loss.times
        elif loss.of == "session" or not loss.field:
            whole.append(loss.why)
        else:
            by_sort[loss.of].append(loss)

    if whole:
        yield ", ".join(whole)
    for sort, fields in by_sort.items():
        yield _fields_of(sort, fields)
    for reason, times in special.items():
        yield f"{reason} ({times:,} times)" if times > 1 else reason


def _fields_of(sort: str, losses: list[Loss]) -> str:
    """Return ``cost and agent (3) of 81 answers``."""
    from sessiondb.formats.kit.loss_words import count_records, name_of_field

    most = max(loss.times for loss in losses)
    names = []
    for loss in losses:
        name = name_of_field(loss.field)
        names.append(name if loss.times == most else f"{name} ({loss.times:,})")

    *first, last = names
    listed = f"{', '.join(first)} and {last}" if first else last
    return f"{listed} of {count_records(sort, most)}"
