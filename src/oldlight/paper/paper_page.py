"""The page of the paper's study: Section 6 reproduced, what it shows and does not, and what the paper has no experiment for.

`paper_page(folder)` reads the results of `oldlight.paper.section6.paper_study` and returns a `Page`. Every number on it comes from a
finished cell or is computed exactly when the page is made. A section needs every cell of its blocks: while the study is not finished
the others are left out, and a note names them and what to run.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oldlight.paper import bounds
from oldlight.paper.diagrams import paper_diagrams
from oldlight.paper.paper_regret import GAMMA, growth, regret_panels, regret_section, share_of_bonus
from oldlight.paper.section6 import BERNOULLI, HEAT, LEARNERS, TABLE, command_of
from oldlight.paper.statements import Regret, as_rows, statements
from oldlight.report import summary
from oldlight.report.charts import Dots, Heat, Lines, Panels, Series
from oldlight.report.page import Page, Table
from oldlight.report.study_page import finished, made_by, missing
from oldlight.studies import Result
from oldlight.studies.store import read_study

PRINTED = {  # Table 1 of the paper, ×10⁻⁴: constant delay 1..4, then p = 0.9, 0.7, 0.5, 0.3
    "Env1": (18, 1361, 2083, 2124, 185, 501, 684, 808),
    "Env2": (71, 1781, 3232, 3280, 185, 636, 882, 1185),
}
PAPER = (
    "Chen, Meng, Bai, Ye, Poor, Wang: [Efficient Reinforcement Learning with Impaired Observability: Learning to Act with Delayed and "
    "Missing State Observations](https://arxiv.org/abs/2306.01243)"
)
LEE_JAMIESON = (
    "Lee and Jamieson, [Minimax Optimal Strategy for Delayed Observations in Online Reinforcement Learning]"
    "(https://arxiv.org/abs/2603.03480)"
)


def paper_page(folder: str | os.PathLike[str]) -> Page:
    """The page, ready to be written; refused where nothing is finished yet."""
    block = whole_blocks(folder)
    found = [r for cells in block.values() for r in cells]
    page = Page(
        "Impaired observability, reproduced",
        lead=f"{PAPER}: Section 6, and what it has no experiment for",
    )
    written = read_study(Path(folder))
    command = command_of(written["study"]["name"])
    names = dict.fromkeys(heading["block"] for heading in written["cells"])
    left_out = ", ".join(name for name in names if name not in block)
    unfinished = [f"The study is not finished. Not on this page yet: {left_out}."] if left_out else []
    missing(page, folder, *unfinished, command=command)
    _summary(page, block)
    for draw, needs in SECTIONS.items():
        if all(name in block for name in needs):
            draw(page, *(block[name] for name in needs))
    _diagrams(page)
    _statements(page, found)
    made_by(page, found or finished(folder), folder, command)
    return page


def whole_blocks(folder: str | os.PathLike[str]) -> dict[str, list[Result]]:
    """The blocks of the study of which every cell is finished, by name."""
    of = Counter(heading["block"] for heading in read_study(Path(folder))["cells"])
    return {
        name: cells for (name,), cells in summary.groups(finished(folder), "block").items() if len(cells) == of[name]
    }


# -- the sections -------------------------------------------------------------------------------------------------------


def _summary(page: Page, block: dict[str, list[Result]]) -> None:
    lines = []
    if "figure" in block and "fixed D" in block:
        lines += [
            "- **The regret figure is Algorithm 1 as the paper has it:** the delay law is estimated, with the paper's bonus and clip. "
            + share_of_bonus(growth(block["figure"], block["fixed D"]))
        ]
    if "table" in block:
        gaps = [r.scalars["gap"] for r in _gaps(block["table"]) if r.instance in PRINTED]
        sensing = {r.channel: r for r in _gaps(block["table"]) if r.instance.endswith("0.8")}
        two = sensing["delay 2"].scalars
        lines += [
            f"- **Table 1 cannot come from the stated process.** The exact gap of Env1 and Env2 is 0 for every delay law of the table "
            f"(largest found here: {max(map(abs, gaps)):.1e}); the printed values are 18 to 3280 ×10⁻⁴.",
            f"- **On a chain where it matters what one sees, both claims of the paper are visible:** a longer delay costs more, and a noisier "
            f"process pays more for it. At delay 2 and p = 0.8 the best executable policy earns {two['impaired']:.4f} of {two['full']:.4f}.",
        ]
    if "learners" in block:
        lines += [
            f"- **Counting the original process instead of the augmented one is what makes learning under delay cheap**, as the paper says: "
            f"{_advantage(block['learners'])}."
        ]
    lines += ["- Propositions 4 and 6 and some lemmas are false as printed; the last table has the counterexamples."]
    page.section("In short")
    page.text("\n".join(lines))


def _advantage(found: Sequence[Result]) -> str:
    """The regret of a learner on the augmented table divided by that of Algorithm 1, at the longest delay of the block."""
    last = [r for r in found if r.channel == found[-1].channel]
    mean = {label: summary.final(cells) for (label,), cells in summary.groups(last, "label").items()}
    lines = [
        f"{mean['AugmentedUCBVI' + kind]:,.0f} against {mean['DelayedUCBVI' + kind]:,.0f}{kind.replace(',', '')}"
        for kind in ("", ", pooled")
    ]
    return f"at {last[0].channel} the regret of UCBVI on the augmented table is {', '.join(lines)}"


def _gaps(found: Sequence[Result]) -> list[Result]:
    return [r for r in found if r.label.startswith("gap")]


def _table(page: Page, found: Sequence[Result]) -> None:
    page.section("Table 1: the gap")
    page.text(
        "The value of the best policy with full information less that of the best executable one. The paper estimates both by 10,000 "
        "episodes, five times; the same protocol is run here, from the past, and the exact value stands beside it. "
        "**The printed table cannot come from the stated process.** In Env1 and Env2 the first action moves towards the "
        "rewarded centre from every state, and the reward does not depend on the action; so always playing it is optimal "
        "whatever is seen, with and without delay, and the exact gap is 0 for every delay law. What the Monte-Carlo columns show is noise "
        "around 0."
    )
    titles = ["process", "channel", "printed ×10⁻⁴", "Monte Carlo ×10⁻⁴", "± sd of 5", "exact ×10⁻⁴"]
    page.table(Table(titles, gap_rows(found, PRINTED), "Gap on the paper's chains, ×10⁻⁴."))


def gap_rows(found: Sequence[Result], wanted: Any) -> list[list[Any]]:
    order = [f"delay {d}" for d in TABLE] + [f"p = {p}" for p in BERNOULLI]
    rows = []
    for (instance, channel), cells in summary.groups(found, "instance", "channel").items():
        if instance not in wanted:
            continue
        exact = next(r.scalars["gap"] for r in cells if r.label.startswith("gap"))
        played = np.array([r.scalars["gap"] for r in cells if r.label.startswith("simulate")])
        row: list[Any] = [instance, channel]
        if instance in PRINTED:
            row.append(PRINTED[instance][order.index(channel)])
        rows.append([*row, round(1e4 * float(played.mean()), 1), round(1e4 * float(played.std(ddof=1)), 1),
                     round(1e4 * exact, 1) + 0.0])  # fmt: skip
    return rows


def _sensing(page: Page, regret: Sequence[Result], table: Sequence[Result]) -> None:
    page.section("The same where sensing matters")
    page.text(
        "The sensing chain: the first action moves right and the second left, each with probability p (else the other way), the other "
        "three stay; same reward. Now the best action depends on where one is, and the paper's two claims are there: the gap grows with "
        "the delay, and with the randomness of the process."
    )
    chains = [name for (name,) in summary.groups(table, "instance") if name not in PRINTED]
    titles = ["process", "channel", "Monte Carlo ×10⁻⁴", "± sd of 5", "exact ×10⁻⁴"]
    page.table(Table(titles, gap_rows(table, chains), "Gap on the sensing chain, ×10⁻⁴."))
    order = [f"delay {d}" for d in TABLE] + [f"p = {p}" for p in BERNOULLI]
    series = []
    for name in chains:
        exact = {r.channel: r.scalars["gap"] for r in _gaps(table) if r.instance == name}
        series.append(Series(name, range(1, 5), [exact[c] for c in order[:4]], marks=True))
    lines = Lines("Gap by constant delay, exact", "delay (steps)", "gap", series)
    page.figure(lines, "sensing-gap")
    page.text(f"Algorithm 1 as in the regret figure: {summary.size(regret)}, {summary.constants(regret)}.")
    panels = regret_panels(regret)
    caption = f"{summary.called(regret[0])}."
    page.figure(Panels("Regret of Algorithm 1 on the sensing chain", panels, caption=caption), "sensing-regret")
    page.table(Table(*summary.regret_rows(regret)))


def _price(page: Page, price: Sequence[Result], both: Sequence[Result]) -> None:
    page.section("The price of delay and of loss")
    page.text(
        "What the best executable policy loses against full information, exactly: per step of delay, per share of lost observations, "
        "and for both together (from a cold start, where the first states are not known either)."
    )
    delay, loss = [], []
    for (name,), cells in summary.groups(price, "instance").items():
        late = [r for r in cells if "lost" not in r.channel]
        lost = [r for r in cells if "lost" in r.channel]
        delay.append(Series(name, range(len(late)), [_share(r) for r in late], marks=True))
        rates = [float(r.channel.split("%")[0]) / 100 for r in lost]
        loss.append(Series(name, rates, [_share(r) for r in lost], marks=True))
    page.figure(
        Panels(
            "What the best executable policy loses on the sensing chain",
            [
                Lines("Delay", "observations are this many steps late", "value lost", delay, percent_y=True),
                Lines("Loss", "share of observations lost", "value lost", loss, percent_x=True, percent_y=True),
            ],
            share=True,
        ),
        "price",
    )
    where = {tuple(r.channel.split("; ")): _share(r) for r in both}
    delays = sorted({int(d) for d, _ in where})
    z = [[where.get((str(d), str(x)), np.nan) for x in HEAT] for d in delays]
    page.figure(
        Heat("Late and lossy, p = 0.8, cold start", "share of observations lost", "delay (steps)", "value lost",
             [f"{x:.0%}" for x in HEAT], [str(d) for d in delays], z, percent=True),
        "late-and-lossy",
    )  # fmt: skip


def _share(result: Result) -> float:
    return round(float(result.scalars["gap"] / result.scalars["full"]), 12) + 0.0


def _learners(page: Page, found: Sequence[Result]) -> None:
    page.section("All learners against each other")
    page.text(
        "Sensing chain, p = 0.8, from a known past, paired seeds: every learner meets the same random numbers. “Pooled” learners know that the process "
        "does not change with the step. Learners on the augmented table count each (state, queue of actions) apart and pay for "
        f"A^d of them; Algorithm 1 and posterior sampling count the original process. {summary.size(found)}. The default constants, {summary.constants(found)}."
    )
    panels = [
        summary.regret_lines(cells, channel, look=_learner_look, log="y")
        for (channel,), cells in summary.groups(found, "channel").items()
    ]
    caption = (
        "Each label is a class and what differs from its defaults: pooled is pooled=True, aligned is aligned=True, paper's bonus is "
        'bonus="hoeffding". A delay here is constant, so there is no delay law to learn.'
    )
    page.figure(Panels("Regret by learner", panels, caption=caption), "learners")
    labels = list(dict.fromkeys(r.label for r in found))
    dots = summary.final_dots(found, labels, by="channel", across="label")
    page.figure(
        Dots(
            "Final regret by learner",
            "cumulative regret",
            labels,
            dots,
            log_x=True,
            band=panels[0].band,
            caption=caption,
        ),
        "learners-final",
    )
    page.table(Table(*summary.regret_rows(found)))


def _learner_look(label: str) -> dict[str, Any]:
    """One colour for each learner; its variants by the line."""
    name, _, variant = label.partition(", ")
    names = list(dict.fromkeys(x["name"] for x in LEARNERS))
    dashes = {"": "solid", "pooled": "broken", "aligned": "dash-dot"}
    return {"colour": names.index(name), "dash": dashes.get(variant, "dotted")}


def _loss(page: Page, found: Sequence[Result]) -> None:
    page.section("Learning under loss")
    page.text(
        "Algorithm 2 (which knows λ; one-step counts of pairs that were seen one after the other) and Algorithm 3 (λ estimated; multi-step counts "
        "of information states) on the sensing chain from a cold start. The paper has no experiment for either, and conjectures that "
        f"λ = 1 − 1/A = 0.8 is a critical point for Algorithm 3. {summary.size(found)}. The default constants, {summary.constants(found)}."
    )
    panels = [summary.regret_lines(cells, channel) for (channel,), cells in summary.groups(found, "channel").items()]
    each = {r.label: f"{r.label}: {summary.called(r)}." for r in found}
    page.figure(Panels("Regret under loss", panels, share=True, caption=" ".join(each.values())), "loss")
    page.table(Table(*summary.regret_rows(found)))


def _bounds(page: Page, found: Sequence[Result]) -> None:
    page.section("The bounds over the measured regret")
    cells = [r for r in found if r.channel == "delay 2" and r.instance.endswith("0.8")]
    settings = cells[0].settings
    K = settings["episodes"]
    S, A, H, D = 20, 5, 10, 3
    k = np.unique(np.geomspace(1, K, 60).astype(int))
    extra = [
        Series("H·K: no regret is larger", k, [bounds.trivial(H, x) for x in k], dash="dotted"),
        Series("Theorem 1, c = 1", k, [bounds.theorem_1(S, A, H, D, x, GAMMA) for x in k], dash="broken"),
        Series("Lee and Jamieson (2026), c = 1", k, [bounds.minimax_rate(S, A, H, D, x) for x in k], dash="broken"),
    ]
    from_k = H * S * A
    if from_k <= K:
        late = np.unique(np.geomspace(from_k, K, 40).astype(int))
        extra.append(Series("Proposition 2: some process costs every learner this", late,
                            [bounds.proposition_2(S, A, H, 2, x) for x in late], dash="dash-dot"))  # fmt: skip
    start = bounds.informative_from(lambda x: bounds.theorem_1(S, A, H, D, x, GAMMA), H)
    page.text(
        f"Sensing chain, p = 0.8, delay 2: {summary.size(cells)}. Theorem 1 with c = 1 is below the trivial H·K only from K = {start:.1e} on; the rate of {LEE_JAMIESON}, is stated "
        "for transitions that do not change with the step, up to logarithms, so only its shape is to be compared. Proposition 2 is about the "
        "worst process of this size, not about this one."
    )
    caption = f"{cells[0].label}: {summary.called(cells[0])}."
    lines = summary.regret_lines(cells, "Measured regret and the bounds", extra=extra, log="xy", caption=caption)
    page.figure(lines, "bounds")


SECTIONS: dict[Callable[..., None], tuple[str, ...]] = {  # in the order of the page, with the blocks that each needs
    regret_section: ("figure", "printed", "known law", "fixed D"),
    _table: ("table",),
    _sensing: ("sensing", "table"),
    _price: ("price", "late+lossy"),
    _learners: ("learners",),
    _loss: ("loss",),
    _bounds: ("sensing",),
}


def _diagrams(page: Page) -> None:
    page.section("The paper's diagrams, redrawn from the processes")
    for name, diagram in paper_diagrams().items():
        page.figure(diagram, name)


def _statements(page: Page, found: Sequence[Result]) -> None:
    page.section("Each statement of the paper, and the verdict")
    titles, rows = as_rows(statements(_measured(found)))
    page.table(
        Table(titles, rows, "Figures were computed when this page was made. docs/statements.md has the reasons.")
    )


def _measured(found: Sequence[Result]) -> list[Regret]:
    out = []
    which = {"Algorithm 1": 1, "Algorithm 2 (bonus oracle)": 2, "Algorithm 3": 3}
    for (_, channel, label), cells in summary.groups(found, "instance", "channel", "label").items():
        if label not in which or cells[0].kind != "learner":
            continue
        regret = summary.final(cells)
        late = int(channel.split()[1]) if channel.startswith("delay") else 3 if channel.startswith("p =") else 0
        seen = float(channel.split("= ")[1]) if channel.startswith("λ") else 1.0
        out.append(Regret(which[label], cells[0].settings["episodes"], regret, late, seen))
    return out
