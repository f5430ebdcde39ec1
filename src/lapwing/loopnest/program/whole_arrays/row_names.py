"""Names for rows of arrays in a loop, replaced by the elements that are taken of them (forward substitution): of rows that are
looked up, too.

    for k in range(n):                   for k in range(n):
        row = w[p[k]]                        row_0 = range(w.shape[0])[p[k]]
        for j in range(m):                   for j in range(m):
            row[j] = 0.0                         w[row_0, j] = 0.0

An item of a range is where the row lies, from the start of the axis, or an IndexError where there is none.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from dataclasses import dataclass, field

from lapwing.loopnest.normalisation.counted_loops import Rows, is_row
from lapwing.loopnest.normalisation.names import blocks_in, count_names, fresh_name
from lapwing.loopnest.normalisation.nests.forward_substitution import one_by_one
from lapwing.loopnest.program.variables.names import bound_names
from lapwing.loopnest.program.whole_arrays.element_loops import place_of, row_indices
from lapwing.syntax_places import placed


@dataclass
class RowNames:
    """A loop without such names. arrays: by name of a row that there was, the array that it is of."""

    loop: ast.For | ast.While
    arrays: dict[str, str] = field(default_factory=dict)

    def may_meet(self, loop: ast.For) -> bool:
        """Whether two rows of one array that a loop inside stores to may be the same. loop: as it was before."""
        stored = count_names([loop], ast.Store)
        rows: dict[str, set[str]] = {}
        for node in ast.walk(loop):
            match node:
                case ast.Subscript(value=ast.Name(id=name)):
                    rows.setdefault(self.arrays.get(name, name), set()).add(name)
                    if not isinstance(node.ctx, ast.Load):
                        stored[self.arrays.get(name, name)] += 1
        return any(array in stored and len(names) > 1 for array, names in rows.items())


def with_row_names(loop: ast.For | ast.While, taken: set[str]) -> RowNames:
    """taken: names that new ones differ from."""
    found = RowNames(copy.deepcopy(loop))
    own, stores = frozenset(bound_names([loop])), count_names([loop], ast.Store, ast.Del)
    for block in _blocks(found.loop):
        block[:] = [part for statement in block for part in one_by_one(statement)]
        for position in reversed(range(len(block))):
            match block[position]:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if (
                    row := row_indices(value, own)
                ) is not None:
                    array, parts = row
                case _:
                    continue
            rest = block[position + 1 :]
            if stores[name] > 1 or not is_row(name, rest):
                continue
            if count_names(rest, ast.Load)[name] < count_names([found.loop], ast.Load)[name]:
                continue
            places = [fresh_name(f"{name}_{axis}", taken) for axis in range(len(parts))]
            block[position : position + 1] = [
                placed(block[position], place_of(*one, array), with_end=True)
                for one in zip(places, enumerate(parts), strict=True)
            ]
            indices: list[ast.expr] = [ast.Name(place, ast.Load()) for place in places]
            index = indices[0] if len(indices) == 1 else ast.Tuple(indices, ast.Load())
            rows = Rows(name, ast.Subscript(ast.Name(array, ast.Load()), index, ast.Load()))
            for later in block[position + len(places) :]:
                rows.visit(later)
            found.arrays[name] = array
    return found


def _blocks(loop: ast.For | ast.While) -> Sequence[list[ast.stmt]]:
    """The blocks of statements in a loop, inner ones first."""
    found: list[list[ast.stmt]] = []
    for block in blocks_in(loop):
        for statement in block:
            if isinstance(statement, ast.For | ast.While | ast.If):
                found += _blocks(statement)  # type: ignore[arg-type]
        found.append(block)
    return found
