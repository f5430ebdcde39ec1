"""Ranks: starting, watching and ending them, here, on hosts and in the lab; the user's file in a process that is watched."""
