"""Plans ICU-Sepsis behind several links: python docs/scripts/icu.py [link ...]

Each row: bounds on the best executable value, time on the clock, processor time and the peak of memory. Needs the data of the package
icu-sepsis (pip install icu-sepsis --no-deps). One process per link, so that peaks are its own. Without links it runs them all and writes the table of
docs/icu.md, all rows from that one run, with the machine and its load; with links it prints their rows. What is under way, and how far, goes to stderr.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from marks import fill

import oldlight as ol

PAGE = Path(__file__).parents[1] / "icu.md"
HORIZON = 20
LINKS: dict[str, dict[str, Any]] = {  # and the options of `solve`
    "constant:0": {},
    "constant:1": {},
    "constant:2": {},
    "constant:3": {},
    "constant:3 ": {"depth": 2},  # its ladder: the space keeps the two rows apart
    "loss:0.1": {"tolerance": 1e-3},
    "loss:0.3": {"tolerance": 1e-3, "seconds": 60},
    "constant:1+loss:0.1": {"tolerance": 1e-3, "seconds": 60},
    "packets:0=.8,1=.2+loss:0.1": {"tolerance": 1e-3, "seconds": 60},
}


def row(link: str) -> str:
    """One line of the table."""
    import resource

    options = LINKS[link]
    problem = ol.ImpairedMDP(ol.instances.icu_sepsis(HORIZON), link.strip())
    ol.solve(
        ol.ImpairedMDP(ol.instances.sensing_chain(n_states=4), link.strip()), **options
    )  # compiles what is compiled
    began, worked = time.perf_counter(), time.process_time()
    found = ol.solve(problem, **options)  # says how far it is, on a terminal or as lines
    wall, work = time.perf_counter() - began, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    said = ", ".join(f"{key}={value:g}" for key, value in options.items()) or "–"
    gap = "exact" if found.exact else f"{found.upper - found.lower:.1e}"
    sure = "" if found.lower_certified else " (95 %)"
    return f"| `{link}` | {said} | {found.lower:.6f}{sure} | {found.upper:.6f} | {gap} | {wall:.1f} | {work:.1f} | {peak:.1f} |"


def main(links: list[str]) -> None:
    rows, loads = [], [os.getloadavg()[0]]
    for link in links or LINKS:
        print(f"{time.strftime('%H:%M:%S')} {link} ...", file=sys.stderr, flush=True)
        done = subprocess.run([sys.executable, __file__, "--row", link], stdout=subprocess.PIPE, text=True, check=True)
        rows.append(done.stdout.strip().splitlines()[-1])
        loads.append(os.getloadavg()[0])
        print(rows[-1], flush=True)
    if links:
        return
    load = f"load {min(loads):.1f} to {max(loads):.1f}"
    lines = [
        "| link | options of `solve` | lower | upper | upper − lower | seconds | of the processor | GiB |",
        "|---|---|---|---|---|---|---|---|",
        *rows,
        "",
        f"*One run of `python docs/scripts/icu.py` on {time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, {load}.*",
    ]
    fill(PAGE, {"table": "\n".join(lines)})


if __name__ == "__main__":
    if sys.argv[1:2] == ["--row"]:
        print(row(sys.argv[2]))
    else:
        main(sys.argv[1:])
