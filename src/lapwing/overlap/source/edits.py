"""The smallest set of edits between two texts.

E. W. Myers: An O(ND) Difference Algorithm and Its Variations, Algorithmica 1, 1986, figure 2. Its cost grows with the number of
changed lines, not with how often lines occur, and sources are full of lines that say `end do`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Beyond this many changed lines, everything between the first and the last counts as changed: memory grows with their square.
_MOST_CHANGED = 2000


@dataclass(frozen=True)
class Edit:
    """Lines ``start`` up to, not including, ``end`` of the old text become ``new_start`` up to ``new_end`` of the new one."""

    start: int
    end: int
    new_start: int
    new_end: int


def find_edits(old: Sequence[bytes], new: Sequence[bytes]) -> list[Edit]:
    """The fewest lines removed and added that make one text of the other, in order."""
    low = 0
    while low < min(len(old), len(new)) and old[low] == new[low]:
        low += 1
    same = 0
    while same < min(len(old), len(new)) - low and old[-1 - same] == new[-1 - same]:
        same += 1
    end, new_end = len(old) - same, len(new) - same
    # Lines that only one of the texts has are edits in any case; without them few are left to search.
    common = set(old[low:end]).intersection(new[low:new_end])
    places = [n for n in range(low, end) if old[n] in common]
    new_places = [n for n in range(low, new_end) if new[n] in common]
    kept = _kept([old[n] for n in places], [new[n] for n in new_places])
    edits: list[Edit] = []
    at, new_at = low, low
    for x, y in [*((places[x], new_places[y]) for x, y in kept), (end, new_end)]:
        if (x, y) != (at, new_at):
            edits.append(Edit(at, x, new_at, y))
        at, new_at = x + 1, y + 1
    return edits


def _kept(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int]]:
    """The longest common subsequence of lines, by their numbers; empty if it takes too many edits."""
    fronts = _search(old, new)
    kept = []
    x, y = len(old), len(new)
    for edits in range(len(fronts) - 1, -1, -1):
        front, k, middle = fronts[edits], x - y, edits + 1
        adds = k == -edits or (k != edits and front[k - 1 + middle] < front[k + 1 + middle])
        before = k + 1 if adds else k - 1
        start = front[before + middle] + (not adds) if edits else 0
        kept += [(n, n - k) for n in range(x - 1, start - 1, -1)]
        x = start - (not adds)
        y = x - before
    return kept[::-1]


def _search(old: Sequence[bytes], new: Sequence[bytes]) -> list[list[int]]:
    """The furthest point on each diagonal k = x − y with d − 1 edits: ``fronts[d][k + d + 1]`` is the furthest x.

    Empty if it takes too many edits.
    """
    fronts = []
    front = [0, 0, 0]
    lines, new_lines = len(old), len(new)
    for edits in range(min(lines + new_lines, _MOST_CHANGED) + 1):
        fronts.append(front)
        following = [0] * (2 * edits + 5)
        for k in range(-edits, edits + 1, 2):
            # From a neighbouring diagonal's furthest point, by one added or removed line.
            removed, added = front[k + edits], front[k + edits + 2]
            adds = k == -edits or (k != edits and removed < added)
            x = (added if adds else removed + 1) if edits else 0
            y = x - k
            while x < lines and y < new_lines and old[x] == new[y]:
                x, y = x + 1, y + 1
            following[k + edits + 2] = x
            if x >= lines and y >= new_lines:
                return fronts
        front = following
    return []
