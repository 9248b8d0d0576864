"""``sync``: sessions of a project exchanged through files that a team commits."""

from __future__ import annotations

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.opening import Options, open_store, say
from sessiondb.cli.text import count, one_line
from sessiondb.hints import command

PROBLEMS_FOUND = 4


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
    found = {
        name: sum(item.outcome == name for item in done.read)
        for name in ("imported", "updated", "unchanged", "deleted")
    }
    if as_json:
        problems = [
            {"source": p.source, "line": p.line, "why": p.why} for p in done.problems
        ]
        lists = {
            "written": done.written,
            "missing": done.missing,
            "removed": done.removed,
        }
        output.write_json(
            {"folder": str(done.folder), **found, **lists, "problems": problems}
        )
    else:
        words = [f"{number} {name}" for name, number in found.items() if number]
        said = ", ".join([*words, f"{len(done.written)} written"])
        output.write(f"{said} · {done.folder}\n")
    if found["deleted"]:
        say(
            f"{count(found['deleted'], 'session')} removed, and kept in the logs: "
            f"{command('import', '--restore', str(done.folder))} restores them"
        )
    if done.removed:
        say(
            f"{count(len(done.removed), 'session')} removed here because others removed them: "
            f"{command('import', '--restore', str(done.folder))} restores what was removed"
        )
    if done.missing:
        say(
            f"{count(len(done.missing), 'file')} removed there, the sessions stay here: "
            f"{command('rm', done.missing[0])} removes one, "
            f"{command('export', done.missing[0], '--to', 'jsonl', '-o', f'{done.folder}/')} "
            "writes its file again"
        )
    for problem in done.problems:
        line = f":{problem.line}" if problem.line else ""
        say(f"  {problem.source}{line}: {one_line(problem.why)}")
    return PROBLEMS_FOUND if done.problems else 0
