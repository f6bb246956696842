"""`python -m oldlight.cli` is the command line."""

from oldlight.cli import main

main()
