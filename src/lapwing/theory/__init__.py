"""What the papers say, in exact arithmetic: linear schedules, completion times, supernode shapes, and a model of running out
of core. It lies outside the path from a nest to its run.
It lies outside the path from a nest to its run.
"""
