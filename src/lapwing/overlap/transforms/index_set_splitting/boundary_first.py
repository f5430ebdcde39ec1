"""Boundary first: of a loop that produces what is sent, the part that is sent comes first; the rest runs during the transfer.

before:  do i = 1, n ; u(i) = u(i) + d(i) ; end do ; send u(1), u(n)
after:   do i = 1, n, all but the others ; … ; end do ; send u(1), u(n) ; do i = 2, n-1 ; … ; end do

Of nests, the boundary and then the interior. The mirror image of loop_fission.py.

Obligations. The interior conflicts with nothing that now precedes it: the communication's start and what that needs. No
dependence connects iterations of the interior and the boundary, privatisable variables aside. The bounds are invariant in the
loop, and no iteration leaves it, communicates or does I/O.
"""

from __future__ import annotations

from dataclasses import replace

from lapwing.overlap.analysis.dependence import Conflict
from lapwing.overlap.analysis.manager import Analysis
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.split_phase import PartialLoop
from lapwing.overlap.ir.statements import Loop, Statement
from lapwing.overlap.transforms.code_motion import Ends, Independent, Split
from lapwing.overlap.transforms.index_set_splitting.interior import Edges, Parts, in_the_way, interior

TRANSFORMATION = "split-producer"


def split_producer(
    analysis: Analysis, loop: Statement, procedure: Procedure, start: Ends, independent: Independent
) -> Split | Conflict | None:
    """The loop's boundary and its interior, for which ``independent`` (it may follow the start) is true; or why they may not be
    interchanged. None if there is no such interior.
    """
    if not isinstance(loop, Loop) or isinstance(loop, PartialLoop) or in_the_way(analysis, loop, procedure):
        return None
    read = [a for e in start.effects for a in e.accesses if not a.writes]
    parts = interior(analysis, loop, procedure, independent, Edges(read, start.values, procedure), inside_last=True)
    if not isinstance(parts, Parts):
        return parts if parts is not None and parts.kind in ("iterations", "rounding") else None
    return Split((replace(parts.boundary, sent=True),), (replace(parts.inside, sent=True),))
