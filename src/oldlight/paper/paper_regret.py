"""The regret figure of the paper's page: Algorithm 1 as the paper has it, and what makes its regret grow with the delay.

*The* figure is Algorithm 1 with the delay law estimated; the printed divisor of its delay bonus stands beside it. A second figure
has the law known. Where a delay is constant neither makes a difference (the arrival is certain, there is no delay bonus), so those
runs are shown in all panels.

How much of the growth is the bonus's own √(H∧D)? The study ran the same learner with 1 in the place of H∧D. With R(d) the final
regret behind a delay, R(0) that without and F(d) that with the smaller bonus, the growth is R(d) − R(0), and (R(d) − F(d)) of it is
the bonus's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from oldlight import instances
from oldlight.paper import bounds
from oldlight.paper.section6 import BERNOULLI, CONSTANT, bernoulli, constant, window
from oldlight.report import summary
from oldlight.report.charts import Lines, Panels
from oldlight.report.page import Page, Table
from oldlight.studies import Result

GAMMA = 0.1
NO_DELAY = constant(0)["label"]
WINDOWS = {c["label"]: window(c) for c in (*map(constant, CONSTANT), *map(bernoulli, BERNOULLI))}


class Growth(NamedTuple):
    """Final regret behind one channel: as it is, with 1 for H∧D in the bonus, and without delay; noise: the standard error of the growth."""

    process: str
    channel: str
    regret: float
    fixed: float
    without: float
    noise: float = 0.0

    @property
    def share(self) -> float | None:
        """The bonus's share of the growth; None where nothing grows by more than two standard errors."""
        grown = self.regret - self.without
        return (self.regret - self.fixed) / grown if grown > 2 * self.noise else None


def regret_section(
    page: Page, figure: Sequence[Result], printed: Sequence[Result], known: Sequence[Result], fixed: Sequence[Result]
) -> None:
    """The figure, its variants and what they say."""
    certain = [r for r in figure if not _random(r.channel)]
    page.section("The regret figure")
    page.text(
        f"Algorithm 1 as the paper has it, on the paper's two chains (S = 20, A = 5, H = 10): transitions *and* the delay law are estimated, "
        f"with the paper's bonus for both, and Q is clipped at H. The paper prints neither its number of episodes nor its constant; here "
        f"{summary.size(figure)}, and {summary.constants(figure)}, chosen on other processes, behind constant and stochastic delays. "
        "The paper divides the bonus of the delay law by the number of times that the delay was just this long, which is no measure of how "
        "well it is estimated; the panels Env1 and Env2 divide by the number of times at risk, those of the printed divisor as the paper does. "
        "Constant delays start from a known past; "
        "stochastic ones with the first state seen. Ties are broken at random: with the lowest index every learner looks good here, "
        "because the first action is best everywhere."
    )
    page.figure(
        Panels(
            "Regret of Algorithm 1 on the paper's chains",
            regret_panels(figure) + regret_panels([*certain, *printed], ", printed divisor"),
            share=True,
            caption=f"Env1 and Env2: {summary.called(figure[0])}. Printed divisor: {summary.called(printed[0])}; a constant delay has no delay "
            "bonus, so its runs are the same with both. Solid: constant delay; broken: Bernoulli interarrivals with P(Δ = 0) = p.",
        ),
        "regret",
    )
    page.table(Table(*summary.regret_rows([*figure, *printed])))
    page.text(order_by_delay(figure))
    page.section("With the delay law known", level=3)
    page.text(f"The same learner, given the delay law: no θ̂, and no bonus for it. {law_costs(figure, known)}")
    page.figure(
        Panels(
            "Regret with the delay law known",
            regret_panels([*certain, *known]),
            share=True,
            caption=f"Stochastic delays: {summary.called(known[0])}. Constant delays: the runs of the figure above.",
        ),
        "regret-known-law",
    )
    page.table(Table(*summary.regret_rows(known)))
    page.section("What makes the regret grow with the delay", level=3)
    found = growth(figure, fixed)
    page.text(f"The bonus itself has √(H∧D) in it. {share_of_bonus(found)}\n\n{theorem_1_there(figure)}")
    page.table(Table(*growth_rows(found)))


def regret_panels(found: Sequence[Result], what: str = "") -> list[Lines]:
    """One panel for each process, one curve for each channel: constant delays solid, random ones broken, as in the paper."""
    return [
        summary.regret_lines(
            cells, name + what, by="channel", look=lambda c: {"dash": "broken" if _random(c) else "solid"}
        )
        for (name,), cells in summary.groups(found, "instance").items()
    ]


def order_by_delay(found: Sequence[Result]) -> str:
    """Does regret grow with the delay, as the paper reports? Said with the numbers."""
    words = []
    for (name,), cells in summary.groups(found, "instance").items():
        sentences = [f"{c} {summary.final(runs):,.0f}" for (c,), runs in summary.groups(cells, "channel").items()]
        words.append(f"{name}: {', '.join(sentences)}.")
    return "Does the regret grow with the delay? Final regret, mean over seeds. " + " ".join(words)


def law_costs(estimated: Sequence[Result], known: Sequence[Result]) -> str:
    """How many times larger the regret is where the delay law has to be learned."""
    final = summary.groups(estimated, "instance", "channel")
    times = {
        key: summary.final(final[key]) / summary.final(runs)
        for key, runs in summary.groups(known, "instance", "channel").items()
    }
    sentences = []
    for process in dict.fromkeys(process for process, _ in times):
        mine = [ratio for (name, _), ratio in times.items() if name == process]
        sentences.append(f"{min(mine):.2f} to {max(mine):.2f} on {process}")
    return f"Having to learn the law multiplies the final regret by {', '.join(sentences)}."


def growth(figure: Sequence[Result], fixed: Sequence[Result]) -> list[Growth]:
    """One entry for each process and channel of `fixed`."""
    by_channel = summary.groups(figure, "instance", "channel")
    final = {key: summary.final(runs) for key, runs in by_channel.items()}
    error = {key: _standard_error(runs) for key, runs in by_channel.items()}
    return [
        Growth(process, channel, final[process, channel], summary.final(runs), final[process, NO_DELAY],
               float(np.hypot(error[process, channel], error[process, NO_DELAY])))
        for (process, channel), runs in summary.groups(fixed, "instance", "channel").items()
    ]  # fmt: skip


def _standard_error(runs: Sequence[Result]) -> float:
    """Of the final regret's mean over seeds; 0 for one seed, which tells nothing of it."""
    last = [r.run.regret[-1] for r in runs]
    return float(np.std(last, ddof=1) / np.sqrt(len(last))) if len(last) > 1 else 0.0


def share_of_bonus(found: Sequence[Growth]) -> str:
    """How much of the growth with delay is due to the bonus's √(H∧D), as text."""
    sentences = []
    for process in dict.fromkeys(g.process for g in found):
        mine = [g for g in found if g.process == process]
        words = []
        for kind, random in (("constant", False), ("stochastic", True)):
            grown = {g.channel: g.share for g in mine if g.share is not None and _random(g.channel) == random}
            if shares := [share for share in grown.values() if share >= 0]:
                words.append(f"{_percent(shares)} of the growth with {kind} delays is the bonus's own √(H∧D)")
            if larger := [channel for channel, share in grown.items() if share < 0]:
                words.append(
                    f"the growth to {', '.join(larger)} is not the bonus's: with 1 in the place of H∧D the regret is larger"
                )
        if flat := [g.channel for g in mine if g.share is None]:
            words.append(f"the regret does not grow from no delay to {', '.join(flat)}")
        sentences.append(f"On {process} {'; '.join(words)}.")
    return " ".join(sentences)


def _percent(shares: Sequence[float]) -> str:
    least, most = f"{min(shares):.0%}", f"{max(shares):.0%}"
    return least if least == most else f"{least} to {most}"


def growth_rows(found: Sequence[Growth]) -> tuple[list[str], list[list[object]], str]:
    """The growth with delay and the bonus's share of it, as a table."""
    titles = [
        "process",
        "channel",
        "H∧D",
        "regret",
        "regret, 1 for H∧D",
        "growth over no delay",
        "of it the bonus's",
        "share %",
    ]
    rows: list[list[object]] = [
        [g.process, g.channel, WINDOWS[g.channel], round(g.regret, 1), round(g.fixed, 1), round(g.regret - g.without, 1),
         round(g.regret - g.fixed, 1), None if g.share is None else round(100 * g.share, 1)]
        for g in found
    ]  # fmt: skip
    caption = (
        "Final regret, mean over paired seeds; the bonus with 1 in the place of H∧D is the same learner with c/√(H∧D)."
    )
    return titles, rows, caption


def theorem_1_there(found: Sequence[Result]) -> str:
    """Which term of Theorem 1 leads at the setting of the figure."""
    mdp, K = instances.center_chain(0.99), max(r.settings["episodes"] for r in found)
    S, A, H, D = mdp.n_states, mdp.n_actions, mdp.finite_horizon, max(WINDOWS.values())
    first, second = bounds.theorem_1_terms(S, A, H, D, K, GAMMA)
    least = bounds.theorem_1(S, A, H, 1, K, GAMMA)
    start = bounds.theorem_1_first_leads_from(S, A, H, D, GAMMA)
    return (
        f"Theorem 1 does not decide: at D = {D} and K = {K:,} its first term, (H∧D)^(5/2)·√(H³SAKι), is {first:.1e} and its second, "
        f"H⁴S²Aι², is {second:.1e}. The second has no D in it and is {second / (first + second):.1%} of the bound, which grows by "
        f"{(first + second) / least - 1:.1%} from D = 1 to D = {D}; the first term leads from K = {start:.1e} on."
    )


def _random(channel: str) -> bool:
    return channel.startswith("p =")
