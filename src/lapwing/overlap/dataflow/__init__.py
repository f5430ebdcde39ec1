"""The graphs that analyses work on: control flow and calls."""
