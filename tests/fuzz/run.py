"""Fuzz every parser and loader: python tests/fuzz/run.py --seconds 60 [--seed 0] [--only NAME] [--inputs N]

Prints a table: inputs tried, how many were refused by name, exceptions that are no named refusal, inputs that took longer than 5 seconds of
its own time, and the peak of memory. Exit code 1 if there is any of the former two. An input that breaks something is written to out/fuzz/; put it into the corpus of
tests/fuzz/test_fuzz_corpus.py with its repair. `make fuzz SECONDS=60` runs it.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from hypothesis import HealthCheck, Phase, given, seed, settings

import targets

MEMORY = 6 * 2**30  # bytes of address space
BATCH = 100
KEPT = Path("out/fuzz").absolute()  # inputs that broke something


class Hang(Exception):
    """An input took too long."""


def _hung(number: int, frame: Any) -> None:
    raise Hang


def one(target: targets.Target, data: bytes, found: dict[str, Any]) -> None:
    """Try one input, and count what came of it."""
    found["inputs"] += 1
    signal.setitimer(signal.ITIMER_PROF, targets.HANG)  # of its own time: a loaded machine is no hang
    try:
        target.use(data)
    except target.refusals:
        found["refused"] += 1
    except Hang:
        found["hangs"] += 1
        keep(target, data, "hang")
    except Exception as error:
        found["exceptions"] += 1
        keep(target, data, f"{type(error).__name__}: {error}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def keep(target: targets.Target, data: bytes, what: str) -> None:
    """Write down an input that broke something."""
    KEPT.mkdir(parents=True, exist_ok=True)
    name = f"{target.name.replace(' ', '_')}-{abs(hash(data)) % 10**8}"
    (KEPT / name).write_bytes(data)
    print(f"{target.name}: {what[:200]}\n    {data[:120]!r} -> {KEPT / name}", file=sys.stderr)


def batch(target: targets.Target, number: int, size: int, found: dict[str, Any]) -> None:
    """`size` inputs from a seed."""

    @seed(number)
    @settings(
        max_examples=size,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(target.strategy())
    def tried(data: bytes) -> None:
        one(target, data, found)

    tried()


def fuzz(
    seconds: float, first_seed: int = 0, only: str | None = None, inputs: int | None = None
) -> list[dict[str, Any]]:
    """Go round the targets until the time is over, or each has had its share of `inputs`."""
    targets.warm_up()
    chosen = [target for target in targets.TARGETS if only is None or only in target.name]
    rows = [{"target": target.name, "inputs": 0, "refused": 0, "exceptions": 0, "hangs": 0} for target in chosen]
    until, number = time.monotonic() + seconds, first_seed
    share = None if inputs is None else -(-inputs // len(chosen))
    while True:
        for target, found in zip(chosen, rows, strict=True):
            if share is None or found["inputs"] < share:
                batch(target, number, BATCH, found)
            if time.monotonic() > until:
                return rows
        number += 1
        if share is not None and all(found["inputs"] >= share for found in rows):
            return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="targets whose name has this in it")
    parser.add_argument("--inputs", type=int, help="stop after this many inputs in all")
    given = parser.parse_args()
    signal.signal(signal.SIGPROF, _hung)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        targets.FOLDER = Path(folder)
        os.chdir(folder)  # where commands leave what they are asked to save, under any name
        rows = fuzz(given.seconds, given.seed, given.only, given.inputs)
        os.chdir(here)
    print(f"{'target':32} {'inputs':>9} {'refused':>9} {'exceptions':>10} {'hangs':>6}")
    for row in rows:
        print(f"{row['target']:32} {row['inputs']:>9,} {row['refused']:>9,} {row['exceptions']:>10} {row['hangs']:>6}")
    bad = sum(row["exceptions"] + row["hangs"] for row in rows)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    total = sum(row["inputs"] for row in rows)
    print(f"{total:,} inputs, {bad} defects, peak memory {peak / 2**20:,.0f} MiB")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
