"""Calls of one nest: choices made by hand and by the planner, repeated calls, runs in memory and out of core."""
