"""Importing this lets the programs here import the benchmarks' modules and the examples."""

import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(_ROOT / "bench"), str(_ROOT / "examples")]
