"""``sync``: sessions of a project exchanged through files that a team commits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.import_report import counted, problem_json, problem_line
from sessiondb.cli.opening import Options, open_store, say
from sessiondb.cli.protocol import exit_code
from sessiondb.cli.text import count
from sessiondb.hints import command

if TYPE_CHECKING:
    from sessiondb.maintenance.sync import Synced

OUTCOMES = ("imported", "updated", "unchanged", "deleted")


@click.command("sync")
@shared.as_json
@click.pass_obj
def sync_command(options: Options, *, as_json: bool) -> int:
    """Read and write `.sessiondb/sessions`: one log for each session, made for git.

    Changed sessions are written, those of others are read; two branches that
    touched the same session merge line by line. A session that was removed in one
    clone is removed in the others, unless another user continued it; its log stays.
    """
    from sessiondb.maintenance.sync import sync

    with open_store(options, writing=True) as store:
        done = sync(store)

    read = Counter(item.outcome for item in done.read)
    words = ", ".join([*counted(read), f"{len(done.written)} written"])
    text = f"{words} · {done.folder}"
    output.write_result(_as_json(done, read), text, as_json=as_json)

    for line in _remark_lines(done, read["deleted"]):
        say(line)
    return exit_code(done.problems)


def _as_json(done: Synced, read: Counter[str]) -> dict[str, Any]:
    return {
        "folder": done.folder,
        **{name: read[name] for name in OUTCOMES},
        "written": done.written,
        "missing": done.missing,
        "removed": done.removed,
        "problems": [problem_json(problem) for problem in done.problems],
    }


def _remark_lines(done: Synced, deleted: int) -> Iterator[str]:
    """Yield a line on what was removed, how to restore it, and on each problem."""
    folder = str(done.folder)
    restores = f"{command('import', '--restore', folder)} restores"
    if deleted:
        kept_in_logs = f"{count(deleted, 'session')} removed, and kept in the logs"
        yield f"{kept_in_logs}: {restores} them"
    if done.removed:
        removed_here = f"{count(len(done.removed), 'session')} removed here"
        yield f"{removed_here} because others removed them: {restores} what was removed"
    if done.missing:
        first = done.missing[0]
        writes = command("export", first, "--to", "jsonl", "-o", f"{folder}/")
        yield (
            f"{count(len(done.missing), 'file')} removed there, the sessions stay "
            f"here: {command('rm', first)} removes one, {writes} writes its file again"
        )
    for problem in done.problems:
        yield f"  {problem_line(problem)}"
