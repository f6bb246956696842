"""`python -m oldlight` is the command line."""

from oldlight.cli import main

if __name__ == "__main__":
    main()
