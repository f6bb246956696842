"""The command line: `oldlight`, or `python -m oldlight`. Ctrl-C is quiet from here on, while the rest is still being imported."""

import sys


def main() -> None:
    """Run `oldlight.cli.main`."""
    try:
        from oldlight.cli import main as run
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
