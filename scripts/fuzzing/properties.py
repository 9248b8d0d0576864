"""The properties of the conformance suite, for longer than a test: other choices, mutated stores.

A property is a function in the list ``CHECKS`` of a module in ``tests/formats``, so one that
is added there can be tried here. Every other trial takes a mutated store, if an import of it
reports no problem: then it is a store like any other.
"""

from __future__ import annotations

import importlib
import re
import shutil
import traceback
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import conformance
from samples import SAMPLES, Sample

from fuzzing.mutations import mutate

FORMATS = Path(__file__).resolve().parents[2] / "tests" / "formats"
#: Properties of a store that is known: the one counts its three sessions, and the other
#: one writes them to where their ids come from in some formats.
OF_SAMPLES = frozenset({"imports_everything_once", "writes_back_what_it_read"})
#: Variations that a property tries in each trial.
TRIED = 4
_CHECKS = re.compile(r"^CHECKS\b", re.MULTILINE)


def properties() -> dict[str, conformance.Check]:
    """Return all properties by their names."""
    found: dict[str, conformance.Check] = {}
    for file in sorted(FORMATS.glob("*.py")):
        is_test = file.name.startswith("test_")
        if not is_test and _CHECKS.search(file.read_text(encoding="utf-8")):
            module = importlib.import_module(file.stem)
            found |= {check.__name__: check for check in module.CHECKS}
    return found


def samples(formats: tuple[str, ...] = ()) -> dict[str, Sample]:
    """Return the samples of some formats, or of all."""
    return {
        name: sample
        for name, sample in SAMPLES.items()
        if not formats or sample.format in formats
    }


def try_property(
    check: conformance.Check, seed: str, sample: Sample, folder: Path
) -> tuple[list[str], list[str]]:
    """Try a property once in an empty *folder*; return what was done, and what failed."""
    rng = Random(seed)  # noqa: S311  nothing is kept secret
    conformance.SEED, conformance.TRIED = rng.getrandbits(32), TRIED
    done: list[str] = []
    if rng.random() < 0.5 and check.__name__ not in OF_SAMPLES:
        store = folder / "mutant"
        sample.write(store)
        done = mutate(rng, store)
        if not _is_understood(store):
            return [*done, "an import reports it"], []
        sample = replace(sample, write=partial(_copy, store))
    try:
        check(sample, folder / "trial")
    except Exception:  # noqa: BLE001  that is what is looked for
        return done, [traceback.format_exc()[-2000:]]
    return done, []


def _is_understood(store: Path) -> bool:
    """Return whether an import has all of a mutated store, as far as it knows."""
    try:
        result = conformance.alone(store)
    except Exception:  # noqa: BLE001  the fuzzer of the readers reports those
        return False
    return bool(result.content) and not result.problems


def _copy(store: Path, folder: Path) -> None:
    shutil.copytree(store, folder, symlinks=True, dirs_exist_ok=True)
