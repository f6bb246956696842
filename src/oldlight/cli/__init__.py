"""The command line, thin: it parses, calls, prints. Everything it does is one call in Python too.

A process is a name with its arguments (`sensing_chain:0.8`), a file of `TabularMDP.save`, `gym:FrozenLake-v1@20`, or
`module:function`; a channel is given as text (see `oldlight.registry`). Results are rows: a readable table on the terminal,
and with --json FILE or --csv FILE ("-" for the terminal, and then no table) the same rows for a program.

Exit codes: 0; 2 for wrong usage; 1 for failure; 130 for Ctrl-C. Errors are one paragraph; --debug shows the traceback.
Nothing heavy is imported before a command needs it, so that --help answers at once.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from typing import Annotated, Any

import typer

from oldlight.cli import terminal

from oldlight.cli import problems, need, studies, links, explorer, compiling  # isort: skip  (--help lists the commands in this order)
from oldlight.cli.shared import app, tell

__all__ = ["app", "compiling", "explorer", "links", "main", "need", "problems", "studies"]


def _version(wanted: bool) -> None:
    if wanted:
        from oldlight import __version__

        typer.echo(f"oldlight {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:  # fmt: skip
    from oldlight.own_code import looking_in

    with contextlib.suppress(OSError):  # a current folder that is gone
        context.with_resource(looking_in(os.getcwd()))


def main() -> None:
    """The entry point: an error is one paragraph, with the exit code that fits."""
    terminal.prepare()
    warnings.showwarning = _warned
    warnings.filterwarnings("default", r".*(@oldlight\.registered| is now )", DeprecationWarning)
    with contextlib.suppress(OSError):
        if sys.path[:1] in ([""], [os.getcwd()]):  # python -m oldlight: what is installed comes first
            sys.path.append(sys.path.pop(0))
    try:
        code = app(standalone_mode=False, prog_name="oldlight")
    except (KeyboardInterrupt, typer.Abort) as stop:
        code = 130
        if isinstance(stop.__context__, EOFError):  # which the parser takes for Ctrl-C
            if "--debug" in sys.argv:
                raise stop.__context__ from None
            tell(f"Error: {stop.__context__ or 'something ended too early'}")
            code = 1
    except SystemExit as ended:  # the parser's own way out where nobody reads the output
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
        terminal.drop()
        code = terminal.NOBODY_READS
    except Exception as error:
        show_usage = getattr(error, "show", None)  # what the parser itself refuses
        if callable(show_usage):
            show_usage()
            code = getattr(error, "exit_code", 2)
        elif "--debug" in sys.argv:
            raise
        else:
            words = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
            if isinstance(error, OSError) and error.strerror:
                words = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
            tell(f"Error: {words or type(error).__name__}")
            code = 1
    if code == 130:
        tell("Interrupted.")
    if not terminal.finish():
        code = terminal.NOBODY_READS
    code = code if isinstance(code, int) else 0
    compiler = sys.modules.get("oldlight.kernels.cache")
    if compiler is not None and compiler.still_compiling():  # after Ctrl-C
        sys.stderr.flush()
        os._exit(code)  # sys.exit waits until it is compiled
    sys.exit(code)


def _warned(message: Warning | str, *about: Any, **more: Any) -> None:
    """A warning as a line of text, without the place in the source."""
    tell(f"Warning: {message}")


if __name__ == "__main__":
    main()
