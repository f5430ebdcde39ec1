"""Analyses of a program beyond its control flow: of statements and loops here; of memory, effects, messages and ranks in
folders of their own."""
