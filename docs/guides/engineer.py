"""The engineer's way through oldlight: python docs/guides/engineer.py OUT"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import oldlight as ol

PERIOD_MS = 20.0  # the plant is sampled and driven 50 times a second


def measured(out: Path) -> Path:
    """A stand-in for a trace of yours: 3,000 messages, a jittery link, 4% lost."""
    rng = np.random.default_rng(5)
    sent = np.arange(3_000) * PERIOD_MS
    received = sent + 14 + rng.gamma(2.0, 7.0, size=len(sent))
    received[rng.random(len(sent)) < 0.04] = np.nan
    rows = (f"{s:.1f},{'' if np.isnan(r) else f'{r:.1f}'}" for s, r in zip(sent, received, strict=True))
    file = out / "link.csv"
    file.write_text("\n".join(["sent_ms,received_ms", *rows]) + "\n", encoding="utf-8")
    return file


def main(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)

    # 1. The link, as it was measured, and the channel that it makes at our control period.
    fit = ol.read_trace(measured(out)).fit(PERIOD_MS)
    print(fit)

    # 2. The plant. Any model with finitely many states will do; here the chain whose best action depends on the state.
    plant = ol.instances.sensing_chain(0.9, initial=np.eye(20)[4])

    # 3. How long to wait for a message: a short deadline loses more of them, a long one makes all of them old.
    found = {}
    for d in range(5):
        channel = fit.with_deadline(d)
        found[d] = ol.solve(ol.ImpairedMDP(plant, channel), tolerance=1e-3)
        print(f"deadline {d} steps ({d * PERIOD_MS:.0f} ms): {channel}: value {found[d].value:.4f}")
    best = max(found, key=lambda d: found[d].value)
    problem, plan = found[best].problem, found[best].policy
    print(f"best deadline: {best} steps; full information would be worth {ol.gap(problem, tolerance=1e-3).full:.4f}")

    # 4. What would a better link be worth? Exactly, per step of delay and per percent of loss.
    for name, values in (
        ("value lost at delay 0..4", ol.sweep(plant, delays=range(5)).gap),
        ("value lost with 0, 5, 10, 20% lost", ol.sweep(plant, losses=[0, 0.05, 0.1, 0.2]).gap),
    ):
        print(f"{name}: {np.round(values, 4).tolist()}")

    # 5. The controller: one file, numpy alone at run time, microseconds a decision.
    ol.Controller(problem, plan).save(out / "controller.npz")
    controller = ol.Controller.load(out / "controller.npz")
    controller.reset()
    took = []
    for step in range(plant.horizon):
        if step >= best:
            controller.observe(step - best, 9)  # what your network thread would call when a message is in
        began = time.perf_counter()
        action = controller.act()
        took.append(time.perf_counter() - began)
    print(f"act() took {1e6 * np.median(took):.1f} µs (median), the last one chose action {action}")

    # 6. Over real UDP, with datagrams really held and dropped, beside the value that was predicted.
    print(ol.run_testbed(problem, plan, episodes=400, seed=2))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/engineer"))
