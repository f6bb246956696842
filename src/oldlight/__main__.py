"""`python -m oldlight` is the command line."""

from oldlight.cli import main

main()
