"""The commands of `lifeline`, a file for each kind; cli.py puts them together."""
