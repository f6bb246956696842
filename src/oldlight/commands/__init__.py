"""The commands of the command line, a few to a file; `oldlight.cli` puts them together."""
