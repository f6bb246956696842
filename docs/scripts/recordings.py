"""The table of docs/recordings.md: what models of four public recordings predict, and what their plans earn on the recordings.

    python docs/scripts/recordings.py FOLDER > table.md

FOLDER holds the recordings, which are not part of this repository. They are

- CICV5G, https://github.com/zxr805/CICV5G (CC BY 4.0), three drives of a car with 5G:
  cicv5g_10ms_n78.txt         data/Urban road/3-Data transmission frequency/10ms/n78/v30/v2v_info-01.txt
  cicv5g_50ms_rural_n8.txt    data/Rural and off-road/south_n8_v10_01.txt
  cicv5g_50ms_urban_n78.txt   data/Urban road/2-n78/v20/urban_n78_v20_run01.txt
- wifi_for_industrial_robotics, https://github.com/minarady1/wifi_for_industrial_robotics (MPL-2.0):
  wifi_ros2_loc4.jsonl        logs/Thursday/log_ax_high_ax_160mhz_6ghz_loc4_robot_control.json
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import oldlight as ol
from oldlight.traces import Comparison, Trace, compare_models
from oldlight.traces.age_plan import table_age
from oldlight.traces.candidates import usable_age

H = 50
LATEST = 3  # the longest deadline that is tried
EFFORT: dict[str, Any] = {"episodes": 2000, "seconds": 0.5}
RECORDINGS = {  # name: (file, holes, periods, a period shorter than the sending interval)
    "5G, town, 16 ms": ("cicv5g_10ms_n78.txt", 1000.0, (20, 40, 100), 10),
    "5G, town, 55 ms": ("cicv5g_50ms_urban_n78.txt", "lost", (60, 120, 240), 25),
    "5G, country, 55 ms": ("cicv5g_50ms_rural_n8.txt", "lost", (60, 120, 240), 25),
    "Wi-Fi, robot, 500 ms": ("wifi_ros2_loc4.jsonl", "lost", (500, 1000, 2000), 250),
}


def cart() -> ol.TabularMDP:
    """A cart on a grid: places −4..4, speeds −1, 0, 1; a push changes the speed by its direction with probability 0.8, a gust of
    wind by ±1 with probability 0.1 each. A step in the middle earns 1, beside it 0.5; the cart stops at the ends."""
    places, speeds = range(-4, 5), (-1, 0, 1)
    number = {(x, v): i for i, (x, v) in enumerate((x, v) for x in places for v in speeds)}
    P, R = np.zeros((27, 3, 27)), np.zeros((27, 3))
    for (x, v), s in number.items():
        for a in range(3):
            R[s, a] = {0: 1.0, 1: 0.5}.get(abs(x), 0.0)
            for works, p in ((1, 0.8), (0, 0.2)):
                for gust, q in ((-1, 0.1), (0, 0.8), (1, 0.1)):
                    w = int(np.clip(v + works * (a - 1) + gust, -1, 1))
                    y = x + w
                    after = (y, w) if y in places else (x, 0)
                    P[s, a, number[after]] += p * q
    return ol.TabularMDP(P, R, horizon=H)


PLANTS = {
    "sensing chain, p = 0.8": ol.instances.sensing_chain(0.8).replace(horizon=H),
    "cart on a grid": cart(),
}


def compared(trace: Trace, mdp: ol.TabularMDP, period: float) -> Comparison | str:
    oldest = table_age(mdp, usable_age(trace.fit(period).ages))
    quickest = min(int(run.late.min()) for run in trace.fit(period).ages.runs)
    deadlines = [f"deadline {d}" for d in range(quickest, min(oldest, LATEST) + 1)]
    try:
        return compare_models(
            trace, mdp, period_ms=period, models=["in-order", "packets", *deadlines, "QMDP"], **EFFORT
        )
    except ValueError as error:
        return str(error)


def halves(trace: Trace, mdp: ol.TabularMDP, period: float) -> str:
    """Fitted on the first half, played on the second."""
    try:
        row = compare_models(trace.part(0, 0.5), mdp, period_ms=period, models=[], on=trace.part(0.5, 1), **EFFORT)[
            "age chain"
        ]
    except ValueError:
        return "–"
    return f"{row.predicted:.2f} → {earned(row)}"


def earned(row: ol.traces.comparison.Row) -> str:
    wide = "?" if np.isinf(row.earned.half_width) else f"{row.earned.half_width:.2f}"
    return f"{row.earned.value:.2f} ± {wide}"


def line(name: str, period: float, found: Comparison, half: str) -> str:
    cells = [name, f"{period:g}"]
    for model in ("age chain", "in-order", "packets", found.best_deadline):
        cells.append(
            "–"
            if model is None
            else f"{found[model].predicted:.2f} → {earned(found[model])}"
            + (f" (d = {model[9:]})" if model.startswith("deadline") else "")
        )
    cells.append(earned(found["QMDP"]))
    differences = []
    for other in filter(None, (found.best_deadline, "QMDP")):
        more, wide = found.difference("age chain", other)
        differences.append(f"{more:+.2f} ± {'?' if np.isinf(wide) else f'{wide:.2f}'}")
    cells += [", ".join(differences), found["age chain"].verdict, half]
    return "| " + " | ".join(cells) + " |"


def main(folder: Path) -> None:
    head = [
        "recording",
        "ms a tick",
        "age chain",
        "in-order",
        "packets",
        "best deadline",
        "QMDP",
        "age chain − deadline, − QMDP",
        "age chain's prediction",
        "first half → second half",
    ]
    began, tally = time.time(), []
    for plant, mdp in PLANTS.items():
        for apart in (False, True):
            print(f"\n**{plant}**{', ticks shorter than the sending interval' if apart else ''}\n")
            print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
            for name, (file, holes, periods, short) in RECORDINGS.items():
                trace = ol.read_trace(folder / file, holes=holes)
                for period in (short,) if apart else periods:
                    found = compared(trace, mdp, period)
                    if isinstance(found, str):
                        print(f"| {name} | {period:g} | {found} |" + " |" * (len(head) - 3), flush=True)
                        continue
                    if found["age chain"].tells and not apart:
                        tally.append(found["age chain"].holds)
                    print(line(name, period, found, "–" if apart else halves(trace, mdp, period)), flush=True)
    print(f"\n{len(tally)} rows count; in {sum(tally)} of them the age chain's prediction lies in the interval.")
    print(f"{time.time() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
