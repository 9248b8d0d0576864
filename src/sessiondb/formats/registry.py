"""The programs that are known, as names alone: nothing of a format is imported for it.

Help, completion and messages read this table on the way to any command, so a module
is imported when its format is used. A format is added by one line here.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sessiondb.dataclass import dataclass
from sessiondb.errors import InvalidInputError, UnsupportedError, abridged
from sessiondb.formats.protocol import Exporter, Format, NamesOf, own_name
from sessiondb.readers import MODULES


@dataclass(frozen=True, slots=True)
class Entry:
    """A program or a format by its name."""

    #: The program's name as people write it.
    agent: str
    #: The module with its `Format`; None without one.
    reads: str | None = None
    #: The module with its `Exporter`; None without one.
    writes: str | None = None
    #: The command that continues a session, ``{}`` its id; empty if there is none.
    resume: str = ""
    #: The options of that command for the model, ``{provider}`` and ``{model}``; empty
    #: if it has none.
    model: str = ""
    #: The name of the format whose modules know its sessions, too, unless it has
    #: modules of its own.
    family: str = ""

    @property
    def is_planned(self) -> bool:
        """Whether its stores are recognised only: nothing reads or writes them yet."""
        return (self.reads, self.writes, self.family) == (None, None, "")


#: A name that is not known: neither read, nor written, nor planned.
_UNKNOWN = Entry("", reads="", writes="")
_HERE = "sessiondb.formats"

#: Everything that is known, by the name that ``--from``, ``--to`` and ``--in`` take.
#: Of several formats that recognise a file, the first one here has it: see `owners`.
REGISTRY: dict[str, Entry] = {
    "opencode": Entry(
        "OpenCode",
        reads=f"{_HERE}.opencode",
        writes=f"{_HERE}.opencode.exporter",
        resume="opencode --session {}",
        model="-m {provider}/{model}",
    ),
    "opencode2": Entry("OpenCode 2", writes=f"{_HERE}.opencode.v2.exporter"),
    "sessiondb": Entry("sessiondb", reads=MODULES["sessiondb"]),
    "jsonl": Entry("sessiondb's log", reads=f"{_HERE}.jsonl", writes=f"{_HERE}.jsonl"),
    "event-log": Entry(
        "plain log",
        reads=f"{_HERE}.event_log",
        writes=f"{_HERE}.event_log.exporter",
    ),
    "markdown": Entry("Markdown", writes=f"{_HERE}.markdown"),
    "html": Entry("HTML", writes=f"{_HERE}.html"),
    "claude": Entry(
        "Claude Code",
        reads=f"{_HERE}.claude",
        writes=f"{_HERE}.claude.exporter",
        resume="claude --resume {}",
        model="--model {model}",
    ),
    "codex": Entry(
        "Codex",
        reads=f"{_HERE}.codex",
        writes=f"{_HERE}.codex.exporter",
        resume="codex resume {}",
        model="-m {model}",
    ),
    "pi": Entry(
        "pi",
        reads=f"{_HERE}.pi",
        writes=f"{_HERE}.pi.exporter",
        resume="pi --session {}",
        model="--provider {provider} --model {model}",
    ),
    "oh-my-pi": Entry(
        "oh-my-pi",
        writes=f"{_HERE}.pi.oh_my_pi",
        resume="omp --resume {}",
        model="--model {provider}/{model}",
        family="pi",
    ),
    "xcsh": Entry(
        "xcsh",
        writes=f"{_HERE}.pi.xcsh",
        resume="xcsh --resume {}",
        model="--model {provider}/{model}",
        family="pi",
    ),
    "goose": Entry(
        "Goose",
        reads=f"{_HERE}.goose",
        writes=f"{_HERE}.goose.exporter",
        resume="goose session --resume --session-id {}",
    ),
    "aider": Entry("aider", reads=f"{_HERE}.aider", writes=f"{_HERE}.aider.exporter"),
    "gemini": Entry(
        "Gemini CLI",
        reads=f"{_HERE}.gemini",
        resume="gemini --resume {}",
        model="-m {model}",
    ),
    "qwen": Entry(
        "Qwen Code",
        reads=f"{_HERE}.qwen",
        resume="qwen --resume {}",
        model="-m {model}",
    ),
    "llm": Entry(
        "llm",
        reads=f"{_HERE}.llm",
        resume="llm chat --cid {}",
        model="-m {model}",
    ),
    "openai-agents": Entry("OpenAI Agents SDK", reads=f"{_HERE}.openai_agents"),
    "openoxide": Entry("OpenOxide", reads=f"{_HERE}.openoxide"),
}
#: Recognised, not read yet: an import reports them.
_PLANNED = {
    "amp": "Amp",
    "antigravity": "Antigravity",
    "augment": "Augment",
    "cline": "Cline",
    "codebuff": "Codebuff",
    "continue": "Continue",
    "copilot": "GitHub Copilot CLI",
    "crush": "Crush",
    "cursor": "Cursor",
    "devin": "Devin CLI",
    "droid": "Factory Droid",
    "hermes": "Hermes Agent",
    "kilo": "Kilo Code",
    "kimi": "Kimi CLI",
    "kiro": "Kiro",
    "roo": "Roo Code",
    "vibe": "Mistral Vibe",
    "windsurf": "Windsurf",
    "zed": "Zed",
}
REGISTRY |= {name: Entry(planned) for name, planned in _PLANNED.items()}


def readable() -> list[str]:
    """Return the names of the formats that can be imported."""
    return list(_values_of_field("reads"))


def importable_programs() -> list[str]:
    """Return the names of the programs that can be imported; some share a format."""
    return [name for name in REGISTRY if REGISTRY[format_of_program(name)].reads]


def related_programs(name: str) -> frozenset[str]:
    """Return the programs whose sessions have the format of *name*, with itself."""
    return frozenset(
        other
        for other in REGISTRY
        if format_of_program(other) == format_of_program(name)
    )


def writable() -> list[str]:
    """Return the names of the formats that can be exported."""
    return list(_values_of_field("writes"))


def resume_commands() -> dict[str, str]:
    """Return the command that continues a session, by the name of its source."""
    return _values_of_field("resume")


def model_options() -> dict[str, str]:
    """Return the options for the model of each program whose `resume_commands` has any.

    Read from their parsers of arguments: OpenCode 1 (``tuiOptions``) and 2
    (``cli/src/commands/commands.ts``), Claude Code (``claude --help``), Codex
    (``merge_resume_cli_flags``), pi, oh-my-pi and xcsh (``cli/args.ts``), Gemini CLI
    and Qwen Code (``config.ts``), llm (``chat`` in ``cli.py``). ``goose session`` has
    none and fails with one (``cli.rs``): it continues with the model that it stored.
    """
    return _values_of_field("model")


def format_of_program(name: str) -> str:
    """Return the format that a program's sessions have: *name* itself for most."""
    entry = REGISTRY.get(name, _UNKNOWN)
    return entry.family or name


def agent_name(name: str) -> str:
    """Return how people write the name of a program; *name* for one not known."""
    return REGISTRY[name].agent if name in REGISTRY else name


def handover_targets() -> list[str]:
    """Return the formats whose program continues a session that we wrote for it.

    The modules of all exporters are imported for it.
    """
    return [name for name in writable() if exporter(name).take_in is not None]


def format_named(name: str) -> Format:
    """Return the format *name*.

    Raises `InvalidInputError` if it is unknown or only written, `UnsupportedError` if
    this release cannot import it yet.
    """
    entry = _entry_of(name)
    entry = REGISTRY.get(entry.family, entry)
    if entry.reads:
        format_: Format = import_module(entry.reads).FORMAT
        return format_

    choices = f"known are {', '.join(importable_programs())}"
    if entry.is_planned:
        raise UnsupportedError(f"{entry.agent} is not supported yet; {choices}")
    raise InvalidInputError(f"no format {abridged(name)}; {choices}")


def exporter(name: str) -> Exporter:
    """Return the exporter *name*; raises `InvalidInputError` if there is none."""
    entry = _entry_of(name)
    if entry.writes is None:
        entry = REGISTRY.get(entry.family, entry)
    if not entry.writes:
        choices = f"known are {', '.join(writable())}"
        raise InvalidInputError(f"cannot write {abridged(name)}; {choices}")

    exporter_: Exporter = import_module(entry.writes).EXPORTER
    return exporter_


def names_of(source: str) -> NamesOf:
    """Return how the messages of a session are named when it is written for *source*.

    A program that is not written for has them under their own ids.
    """
    name = format_of_program(source)
    return exporter(name).names_of if _entry_of(name).writes else own_name


def _values_of_field(field: str) -> dict[str, str]:
    """Return the values of a field of the entries that have one, by name."""
    values = {name: getattr(entry, field) for name, entry in REGISTRY.items()}
    return {name: value for name, value in values.items() if value}


def _entry_of(name: Any) -> Entry:
    # A caller of the library may pass anything; a list has no hash.
    return REGISTRY.get(name, _UNKNOWN) if isinstance(name, str) else _UNKNOWN
