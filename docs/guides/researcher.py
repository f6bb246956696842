"""The researcher's way through oldlight: python docs/guides/researcher.py OUT"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import oldlight as ol
from oldlight.paper import proposition4
from oldlight.paper.counterexamples import mirror
from oldlight.report.study_page import study_page
from oldlight.studies import load_study, results, run_study


def main(out: Path) -> None:
    # 1. A number of the paper, exactly: what a delay of 2 costs on the sensing chain.
    problem = ol.ImpairedMDP(ol.instances.sensing_chain(0.8), ol.ConstantDelay(2), start=ol.WarmStart())
    print(ol.gap(problem))

    # 2. A statement of the paper, both sides of it.
    print(proposition4(problem))
    print(proposition4(mirror(2)))  # where it fails

    # 3. Learners against each other, one of them my own (docs/guides/my_learner.py): the study in researcher.toml.
    study = load_study(Path(__file__).with_suffix(".toml"))
    print(run_study(study, out / "runs"))

    # 4. The numbers behind the page: each finished job with its settings.
    final: dict[tuple[str, str], list[float]] = {}
    for result in results(out / "runs"):
        if result.kind == "learner":
            final.setdefault((result.channel, result.label), []).append(float(result.run.regret[-1]))
    for (channel, label), regret in final.items():
        print(f"{channel:12} {label:28} {np.mean(regret):7.1f} ± {np.std(regret, ddof=1):.1f}")

    # 5. The page, and its figures as SVG and PDF.
    print(study_page(out / "runs").write(out / "report.html"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/researcher"))
