"""Nests of the tables that are accepted by now, as programs or as loops in their own order: they do what plain Python does.

They stay in the tables with what was said of them, which ``FORMERLY`` and ``RAISING`` take out of what is refused.
"""

from __future__ import annotations

FORMERLY = frozenset(
    {
        "anti backwards",
        "array beside a loop",
        "break out of the nest",
        "conditional reduction",
        "enumerate",
        "flow backwards",
        "flow backwards, descending",
        "for and else",
        "global array written",
        "index assigned",
        "integer power of an index",
        "nine axes",
        "numpy.arange",
        "numpy.maximum",
        "operator i << 2",
        "operator i >> 1",
        "output backwards",
        "outside: u[i-2, j]",
        "over a list",
        "power of two types",
        "product",
        "read u[-1]",
        "read u[-i]",
        "read u[0]",
        "read u[2*i]",
        "read u[i//2]",
        "read u[j, i]",
        "read u[n]",
        "read u[t[i]]",
        "read u[u.shape[0]-i]",
        "reduction of itself",
        "reduction read",
        "reduction second",
        "reversed",
        "rows of a matrix",
        "second nest refused",
        "starred bounds",
        "step 2",
        "step is an argument",
        "test i in (1, 2)",
        "test i not in (1, 2)",
        "two nests",
        "two write offsets in a triangle",
        "value of the last iteration",
        "write u[0]",
        "write u[2*i]",
        "write u[t[i]]",
        "written outside",
        "zip",
    }
)
# What plain Python raises as well, when it is called.
RAISING = frozenset(
    {
        "every second",
        "over an array",
        "range by keyword",
        "range of four",
        "range of nothing",
        "read u[2*j, i]",
        "read u[i + 0.5]",
        "step 0",
    }
)
# Nests that do not come to an end.
ENDLESS = frozenset({"while loop", "reduction assigned twice"})
