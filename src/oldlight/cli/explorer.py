"""Look: `explore`, a page on this machine, or one exported page."""

from __future__ import annotations

from typing import Annotated

import typer

from oldlight.cli.shared import Warm, app, said, targets, tell


@app.command()
def explore(
    plant: Annotated[str, typer.Argument(metavar="[PLANT]", help="The process to begin with: a name (sensing_chain:0.8), a file, gym:FrozenLake-v1@20, or module:function.", show_default=False)] = "sensing_chain:0.8",
    *,
    channel: Annotated[str | None, typer.Option("--channel", "-c", metavar="LINK", help="The link to begin with: constant:2+loss:0.1, geometric:0.3, packets:0=.5,1=.5, ...")] = None,
    trace: Annotated[str | None, typer.Option("--trace", metavar="FILE", help="A recording: planned for by its counted age chain, episodes played on the recording itself.")] = None,
    period_ms: Annotated[float | None, typer.Option("--period-ms", help="With --trace: control period, milliseconds a step.")] = None,
    warm: Warm = False,
    export: Annotated[str | None, typer.Option("--export", metavar="FILE.html", help="Write one page with a precomputed grid of delays and losses, and no server.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on this machine; 0: any that is free.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    max_gb: Annotated[float | None, typer.Option(min=0.001, help="Memory that one plan may take; a position that needs more is refused.")] = None,
) -> None:  # fmt: skip
    """Look at a link: sliders for delay, jitter, loss and more; value, price, frontier, policy and episodes follow.

    The page is served on this machine alone, at an address with a secret token, until Ctrl-C.

    Examples:
    [dim]oldlight explore[/dim]
    [dim]oldlight explore sensing_chain:0.9 -c constant:2+loss:0.1[/dim]
    [dim]oldlight explore sensing_chain:p=0.8,horizon=20 --trace link.csv --period-ms 20[/dim]
    [dim]oldlight explore sensing_chain --export page.html[/dim]
    """
    from oldlight.explore.menu import menu_of
    from oldlight.explore.server import needs_explore, serve_menu

    targets(export)
    needs_explore()
    memory = None if max_gb is None else int(max_gb * 1e9)
    given = {"channel": channel, "trace": trace, "warm": warm, "period_ms": period_ms, "max_bytes": memory}
    menu = said("PLANT, --channel, --trace", menu_of, plant, **given)
    if export is not None:
        from oldlight.explore.exported import export_page

        tell(f"The page is in {export_page(export, menu)}")
        return

    def opened(address: str) -> None:
        tell(f"The explorer is at {address}\nCtrl-C ends it.")
        if browser:
            import webbrowser

            webbrowser.open(address)

    try:
        serve_menu(menu, port, opened)
    except KeyboardInterrupt:
        tell("Ended.")
