"""One page without a server: one process, every position of a grid of delays and losses planned beforehand.

    oldlight explore sensing_chain --export page.html

The page is the explorer's own, with the same scripts inside; only what answers differs (`assets/source.js`). Its sliders stop at the positions of
the grid, the others stand still. For each position it holds the optimum, the policy and `SEEDS` episodes; curves, prices and the map follow from the
grid. It opens from a file, offline, and its security policy forbids it to load anything.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from oldlight import checks
from oldlight.explore import code_lines, page_files
from oldlight.explore.answers import Answerer, not_met
from oldlight.explore.menu import SLIDERS, Menu
from oldlight.explore.positions import position_of
from oldlight.progress import progress_bar

DELAYS = (0, 1, 2, 3, 4)
LOSSES = (0, 10, 20, 30, 40, 50)
SEEDS = 3
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"


def export_page(
    path: str | os.PathLike[str],
    menu: Menu,
    *,
    delays: tuple[int, ...] = DELAYS,
    losses: tuple[float, ...] = LOSSES,
    progress: bool | Callable[[int, int], None] | None = None,
) -> Path:
    """Write the page; returns its path. delays, losses: the grid, evenly spaced."""
    if menu.defaults()["link"] != SLIDERS:
        raise ValueError(
            "--export makes a grid of delays and losses: leave out --trace, and a --channel that is neither"
        )
    with progress_bar(progress, "planning") as callback:
        grid = grid_of(menu, delays, losses, callback)
    shown = exported_menu(menu, delays, losses)
    style = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n<style>\n{page_files.asset("explore.css")}</style>'
    scripts = "".join(
        f"<script>\n{_inside(text)}</script>\n"
        for text in (page_files.plotly(), *map(page_files.asset, page_files.SCRIPTS))
    )
    data = json.dumps(grid, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    text = page_files.page(style, scripts, shown, f'<script type="application/json" id="grid">{data}</script>')
    return checks.write_text(path, text)


def _inside(script: str) -> str:
    return script.replace("</script", "<\\/script")


def exported_menu(menu: Menu, delays: tuple[int, ...], losses: tuple[float, ...]) -> dict[str, Any]:
    """The menu of the exported page: one process, one start, two sliders that move."""
    whole = menu.to_dict()
    begin = menu.defaults()
    levels: dict[str, tuple[float, ...]] = {"delay": delays, "loss": losses}
    fields = []
    for each in whole["fields"]:
        if each["name"] in levels:
            found = levels[each["name"]]
            fields.append(each | {"least": found[0], "most": found[-1], "step": found[1] - found[0]})
        else:
            fields.append(each | {"fixed": True})
    begin |= {name: min(found, key=lambda x: abs(x - begin[name])) for name, found in levels.items()}
    return whole | {
        "plants": {begin["plant"]: whole["plants"][begin["plant"]]},
        "links": {SLIDERS: whole["links"][SLIDERS]},
        "starts": [begin["start"]],
        "fields": fields,
        "defaults": begin,
    }


def grid_of(
    menu: Menu, delays: tuple[int, ...], losses: tuple[float, ...], callback: Callable[[int, int], None] | None = None
) -> dict[str, Any]:
    """Everything that the page shows, as plain data."""
    answer, begin = Answerer(menu), menu.defaults()
    positions: dict[str, Any] = {}
    rows: list[list[float]] = []
    apart: list[list[bool]] = []
    full = 0.0
    for i, q in enumerate(losses):
        rows.append([])
        apart.append([])
        for j, d in enumerate(delays):
            found: dict[str, Any] = {"episodes": []}
            job = {"position": begin | {"delay": d, "loss": q}}
            answer(job | {"parts": ["optimum", "policy"]}, partial(_put, found))
            for seed in range(SEEDS):
                answer(job | {"parts": ["episode"], "seed": seed}, partial(_put, found))
            positions[f"{d}|{q}"] = found
            best = found["optimum"]
            rows[-1].append(best["value"])
            full = best["full"]
            apart[-1].append(not_met(best["lower"], best["upper"], full))
            if callback is not None:
                callback(i * len(delays) + j + 1, len(delays) * len(losses))
    here = position_of(menu, begin)
    n = len(delays) * len(losses)
    return {
        "axes": ["delay", "loss"],
        "levels": {"delay": delays, "loss": losses},
        "positions": positions,
        "curve_code": {
            "delay": code_lines.curve_lines(menu, here, "delay", list(delays)),
            "loss": code_lines.curve_lines(menu, here, "loss", list(losses)),
        },
        "frontier": {
            "part": "frontier", "delays": delays, "losses": losses, "rows": rows, "open": apart, "full": full, "final": True, "done": n, "of": n,
            "code": code_lines.frontier_lines(menu, here, list(delays), list(losses)),
        },
    }  # fmt: skip


def _put(found: dict[str, Any], part: dict[str, Any]) -> None:
    """One part of an answer into the grid; a refusal ends the export with its sentence."""
    if part["part"] == "refused":
        raise ValueError(part["text"])
    if part["part"] == "episode":
        found["episodes"].append(part)
    elif part["part"] != "progress" and part.get("final", True):
        found[part["part"]] = part
