"""The explorer: a page on this machine where a process, a link and a start are chosen, sliders move, and the optimum follows.

    oldlight explore sensing_chain -c constant:2+loss:0.1
    oldlight explore sensing_chain --export page.html

One way, top to bottom: `menu` (what can be chosen, and the range of every slider) · `positions` (what the page sent, checked; the problem
that it means) · `code_lines` (the Python lines that make the same numbers) · `episode_view` (one episode, step by step) · `answers` (every
part of an answer as plain data; runs in a worker process) · `sessions` (one tab: its worker, and only its last position) · `server`
(addresses, token, Host and Origin) · `exported` (one page with a precomputed grid, and no server).

The page itself is in `assets`: one HTML file, one style sheet, and scripts without a framework and without a build step.
"""

from oldlight.explore.menu import Menu, menu_of

__all__ = ["Menu", "menu_of"]
