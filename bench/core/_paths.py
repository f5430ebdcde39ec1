"""Importing this lets the programs here import the modules that all benchmarks share."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
