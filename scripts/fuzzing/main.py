"""The command line of the fuzzer: each mutant in a process of its own, with bounds."""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

from fuzzing.properties import properties, try_property
from fuzzing.properties import samples as property_samples
from fuzzing.trial import OWN, prepare, samples, trial
from sessiondb.formats import find, readable

#: Bytes and seconds that a mutant may take.
MEMORY, SECONDS = 1 << 30, 20.0
#: Seconds that a trial of a property may take: it imports a store many times.
PROPERTY_SECONDS = 200.0
ROOT = Path(__file__).resolve().parents[2]
#: A real store that is larger is not copied for each mutant.
LARGEST = 4 << 20


def main() -> int:
    """Run the mutants that were asked for; return 1 if one of them failed."""
    options = _options()
    seed = (
        options.seed
        if options.seed is not None
        else random.SystemRandom().randrange(1 << 32)
    )
    print(f"seed {seed}: scripts/fuzz --seed {seed} repeats it", flush=True)
    seconds = options.minutes * 60 if options.minutes else options.seconds
    until = time.monotonic() + (seconds or float("inf"))
    if options.property:
        return _try_property(options, seed, until)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        folder = Path(name)
        made = prepare(
            samples(tuple(options.format)) | _real(options.format), folder / "samples"
        )
        numbers = [options.only] if options.only is not None else range(options.mutants)
        failures = count = 0
        for number in numbers:
            if time.monotonic() > until:
                break
            failures += not _run(seed, number, made, folder / "trial")
            count += 1
    print(f"{count} mutants of {len(made)} stores, {failures} failed")
    return int(failures > 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument(
        "--seed", type=int, help="repeat a run (default: a new one, printed)"
    )
    parser.add_argument("--mutants", type=int, default=1000, metavar="N")
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument(
        "--minutes", type=float, metavar="N", help="the same in minutes"
    )
    parser.add_argument(
        "--property",
        metavar="NAME",
        choices=sorted(properties()),
        help="try a property of the conformance suite instead, with other choices and on "
        f"mutated stores: {', '.join(sorted(properties()))}",
    )
    parser.add_argument(
        "--only", type=int, metavar="N", help="only mutant N of the seed"
    )
    parser.add_argument(
        "--format",
        action="append",
        default=[],
        choices=[*readable(), OWN],
        help="only this format",
    )
    return parser.parse_args()


def _try_property(options: argparse.Namespace, seed: int, until: float) -> int:
    """Try one property until the time or the number of trials is over."""
    check, stores = (
        properties()[options.property],
        property_samples(tuple(options.format)),
    )
    if not stores:
        print(f"no samples of {', '.join(options.format)}")
        return 1
    numbers = [options.only] if options.only is not None else range(options.mutants)
    failures = count = 0
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for number in numbers:
            if time.monotonic() > until:
                break
            name = list(stores)[number % len(stores)]
            place = Path(folder, str(number))
            place.mkdir()
            tried = partial(
                try_property, check, f"{seed}/{number}", stores[name], place
            )
            done, failed = _in_child(tried, PROPERTY_SECONDS)
            shutil.rmtree(place, ignore_errors=True)
            count += 1
            if failed:
                failures += 1
                print(f"trial {number} of {name}: {'; '.join(done) or 'as it is'}")
                print("".join(f"  {line}\n" for line in failed))
                again = f"--property {options.property} --seed {seed} --only {number}"
                print(f"  scripts/fuzz {again}", flush=True)
    print(f"{count} trials of {options.property}, {failures} failed")
    return int(failures > 0)


def _real(formats: list[str]) -> dict[str, Callable[[Path], object]]:
    """Return functions that copy the stores of real agents, if there are any."""
    top = Path(
        os.environ.get("SESSIONDB_FIXTURES", ROOT.parent / "shared" / "fixtures")
    )
    found: dict[str, Callable[[Path], object]] = {}
    for folder in sorted(top.iterdir()) if top.is_dir() else ():
        data = folder / "data"
        size = sum(p.stat().st_size for p in data.rglob("*") if p.is_file())
        if not size or size > LARGEST:
            continue
        with tempfile.TemporaryDirectory() as copy:
            shutil.copytree(data, Path(copy, "data"), symlinks=True)
            sources = {store.source for store in find(copy)}
        if sources & set(formats or readable()):
            found[folder.name] = _copying(data)
    return found


def _copying(data: Path) -> Callable[[Path], object]:
    return lambda folder: shutil.copytree(
        data, folder, symlinks=True, dirs_exist_ok=True
    )


def _run(seed: int, number: int, made: dict[str, Path], folder: Path) -> bool:
    """Run one mutant in a child; return whether all was well."""
    name = list(made)[number % len(made)]
    folder.mkdir()
    try:
        tried = partial(trial, f"{seed}/{number}", name, made[name], folder)
        done, failed = _in_child(tried, SECONDS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if failed:
        print(f"mutant {number} of {name}: {'; '.join(done)}")
        for line in failed:
            print(f"  {line}")
        print(f"  scripts/fuzz --seed {seed} --only {number}", flush=True)
    return not failed


def _in_child(
    tried: Callable[[], tuple[list[str], list[str]]], seconds: float
) -> tuple[list[str], list[str]]:
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _child(writing, tried)
    os.close(writing)
    try:
        raw, end = b"", time.monotonic() + seconds
        while True:
            ready, _, _ = select.select(
                [reading], [], [], max(0.0, end - time.monotonic())
            )
            if not ready:
                os.kill(child, signal.SIGKILL)
                return [], [f"did not end within {seconds:.0f} seconds"]
            piece = os.read(reading, 1 << 16)
            if not piece:
                break
            raw += piece
    finally:
        os.close(reading)
        _, status = os.waitpid(child, 0)
    if not raw:
        return [], [f"the process ended with {os.waitstatus_to_exitcode(status)}"]
    done, failed = json.loads(raw)
    return done, failed


def _child(writing: int, tried: Callable[[], tuple[list[str], list[str]]]) -> None:
    """Run a trial, write its outcome, and exit without cleaning up."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        result = tried()
    except BaseException:  # noqa: BLE001
        result = [], [traceback.format_exc()[-2000:]]
    os.write(writing, json.dumps(result).encode())
    os._exit(0)
