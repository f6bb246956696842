"""The pictures and the printed results of docs/requirement.md:

    python docs/scripts/requirement.py FOLDER

FOLDER holds the recordings of docs/scripts/recordings.py, which are not part of this repository. ICU-Sepsis needs the data of the package
icu-sepsis (`pip install icu-sepsis --no-deps`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from recordings import cart

import oldlight as ol

PICTURES = Path(__file__).parents[1] / "requirement"


def keep(figure: Any, name: str) -> None:
    PICTURES.mkdir(exist_ok=True)
    figure.savefig(PICTURES / f"{name}.png", dpi=110)


def say(title: str, *results: Any) -> None:
    print(f"\n## {title}\n")
    for result in results:
        print(result, end="\n\n")


def sensing_chain(recordings: Path) -> None:
    chain = ol.instances.sensing_chain(0.8)
    found = [
        ol.requirement(chain, target="90%", over=over, period_ms=20) for over in ("delay", "loss", "sensor_period")
    ]
    say("Sensing chain", *found)
    figure = Figure(figsize=(10.5, 3.4), layout="constrained")
    for ax, each in zip(figure.subplots(1, 3), found, strict=True):
        each.plot(ax)
    keep(figure, "chain")
    frontier = ol.requirement(chain, target="70%", over=("loss", "blackout"), period_ms=20)
    say("Frontier", frontier)
    keep(frontier.plot().figure, "frontier")
    long = chain.replace(horizon=50)
    links = {
        "wired": "constant:1",
        "5G, town": ol.read_trace(recordings / "cicv5g_10ms_n78.txt", holes=1000.0),
        "5G, country": ol.read_trace(recordings / "cicv5g_50ms_rural_n8.txt"),
    }
    compared = ol.compare_channels(long, links, period_ms=60, episodes=2000, seconds=1.0)
    say("Links of the sensing chain", compared)
    keep(compared.figure(), "links")
    priced = ol.sensitivity(ol.ImpairedMDP(chain, ol.Lossy(ol.ConstantDelay(1), rate=0.1).with_period(20)))
    say("Sensitivity", priced)
    keep(priced.figure(), "prices")


def icu_sepsis() -> None:
    make = getattr(ol.instances, "icu_sepsis", None)
    if make is None:
        sys.exit("this oldlight has no instances.icu_sepsis")
    patients = make(5)
    lossy = ol.requirement(patients, target="98%", over="loss", step=0.01, most=0.6, seconds=60)
    late = ol.requirement(patients, target="94.5%", over="delay", most=2)
    say("ICU-Sepsis", lossy, late)
    links = {"every result, at once": "none", "one in ten lost": "loss:0.1", "a step late": "constant:1"}
    compared = ol.compare_channels(patients, links, episodes=20_000, seconds=30)
    say("Links of ICU-Sepsis", compared)
    figure = Figure(figsize=(9.5, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    lossy.plot(left)
    compared.plot(right)
    keep(figure, "icu")


def moving_cart() -> None:
    plant = cart()
    period = ol.requirement(plant, target="60%", over="control_period", at={"delay_ms": 20}, period_ms=10)
    jitter = ol.requirement(
        plant, target="62%", over="jitter", at={"delay": 3}, period_ms=10, tolerance=5e-3, seconds=20
    )
    say("Cart", period, jitter)
    figure = Figure(figsize=(9.5, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    period.plot(left)
    jitter.plot(right)
    keep(figure, "cart")
    links = {
        "steady, 30 ms": "constant:3",
        "10 to 50 ms": "packets:1=.2,2=.2,3=.2,4=.2,5=.2",
        "20 ms, one in ten lost": "constant:2+loss:0.1",
    }
    say("Links of the cart", ol.compare_channels(plant, links, episodes=2000, seconds=5, period_ms=10))


if __name__ == "__main__":
    sensing_chain(Path(sys.argv[1]))
    moving_cart()
    icu_sepsis()
