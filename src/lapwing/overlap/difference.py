"""The smallest set of edits between two texts.

E. W. Myers: An O(ND) Difference Algorithm and Its Variations, Algorithmica 1, 1986, figure 2. Its cost grows with the number of
changed lines, not with how often lines occur, and sources are full of lines that say `end do`.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

# Beyond so many changed lines all between the first and the last counts as changed: the memory grows with their square.
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
    if (low, low) == (end, new_end):
        return []
    fronts = _search(old[low:end], new[low:new_end])
    if fronts is None:
        return [Edit(low, end, low, new_end)]
    return _joined(_steps(fronts, end - low, new_end - low), low)


def _search(old: Sequence[bytes], new: Sequence[bytes]) -> list[array[int]] | None:
    """How far one gets along each diagonal k = x − y with d − 1 edits: ``fronts[d][k + d + 1]`` is the furthest x.

    None where it takes too many edits.
    """
    fronts = []
    front = array("q", [0, 0, 0])
    for edits in range(min(len(old) + len(new), _MOST_CHANGED) + 1):
        fronts.append(front)
        following = array("q", bytes(8 * (2 * edits + 5)))
        for k in range(-edits, edits + 1, 2):
            x = _start(front, edits, k)
            y = x - k
            while x < len(old) and y < len(new) and old[x] == new[y]:
                x, y = x + 1, y + 1
            following[k + edits + 2] = x
            if x >= len(old) and y >= len(new):
                return fronts
        front = following
    return None


def _start(front: array[int], edits: int, k: int) -> int:
    """Where the furthest way along diagonal k begins after its last edit: from a neighbour's, one line added or removed."""
    if edits == 0:
        return 0
    middle = edits + 1
    if _adds(front, edits, k):
        return front[k + 1 + middle]
    return front[k - 1 + middle] + 1


def _adds(front: array[int], edits: int, k: int) -> bool:
    middle = edits + 1
    return k == -edits or (k != edits and front[k - 1 + middle] < front[k + 1 + middle])


def _steps(fronts: list[array[int]], x: int, y: int) -> list[tuple[int, int, bool]]:
    """The single lines that are added (True) or removed, at x of the old and y of the new text, in order."""
    steps = []
    for edits in range(len(fronts) - 1, 0, -1):
        front, k = fronts[edits], x - y
        adds = _adds(front, edits, k)
        before = k + 1 if adds else k - 1
        x = front[before + edits + 1]
        y = x - before
        steps.append((x, y, adds))
    return steps[::-1]


def _joined(steps: list[tuple[int, int, bool]], low: int) -> list[Edit]:
    edits: list[Edit] = []
    for x, y, adds in steps:
        start, new_start = low + x, low + y
        end, new_end = (start, new_start + 1) if adds else (start + 1, new_start)
        last = edits[-1] if edits else None
        if last is not None and (last.end, last.new_end) == (start, new_start):
            edits[-1] = Edit(last.start, end, last.new_start, new_end)
        else:
            edits.append(Edit(start, end, new_start, new_end))
    return edits
