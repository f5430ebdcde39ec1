"""Loops of the driver around small regions that are compiled with them, to run in their own order.

What a loop does with whole arrays besides is rewritten first: arrays change places by a number that says which is which
(``whole_arrays.exchanges``), copies and fills are loops over elements (``whole_arrays.element_loops``).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

import numpy as np

from lapwing.errors import RefusedError
from lapwing.loopnest.frontend.parser import parse
from lapwing.loopnest.inlining.inliner import meaning
from lapwing.loopnest.normalisation.names import all_names
from lapwing.loopnest.program.outlining import Outlined, Rewritten, outline
from lapwing.loopnest.program.short_loops import small_test
from lapwing.loopnest.program.surroundings import Around, Control
from lapwing.loopnest.program.variables.liveness import exposed_reads
from lapwing.loopnest.program.variables.names import bound_names
from lapwing.loopnest.program.whole_arrays.element_loops import with_element_loops
from lapwing.loopnest.program.whole_arrays.exchanges import Exchanged, NotRewrittenError, with_orders
from lapwing.loopnest.program.whole_arrays.extrema_loops import with_extrema_loops
from lapwing.loopnest.program.whole_arrays.row_names import with_row_names


@dataclass(frozen=True)
class Whole:
    """A loop of the driver that can be compiled to run in its own order, with the regions in it. test: true where that is better,
    on one rank. copies: memory that the driver makes before it, by name. exchanged: which arrays have changed places after it, by
    the last of its outputs."""

    statement: ast.For | ast.While = field(repr=False)
    outlined: Outlined = field(repr=False)
    test: ast.expr = field(repr=False)
    copies: dict[str, ast.expr] = field(default_factory=dict, repr=False)
    exchanged: Exchanged | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        return self.outlined.source.tree.name

    def exchanges_after(self) -> list[ast.stmt]:
        """``if order == 1: u, v = v, u``"""
        if self.exchanged is None or not self.exchanged.names:
            return []
        names, found = self.exchanged.names, list[ast.stmt]()
        for number, order in enumerate(self.exchanged.orders):
            test = ast.Compare(ast.Name(self.exchanged.order, ast.Load()), [ast.Eq()], [ast.Constant(number)])
            targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
            values: list[ast.expr] = [ast.Name(name, ast.Load()) for name in order]
            exchange = ast.Assign([ast.Tuple(targets, ast.Store())], ast.Tuple(values, ast.Load()))
            found += [ast.If(test, [exchange], [])] if order != names else []
        return found


def whole_of(
    around: Around,
    statement: ast.For | ast.While,
    regions: Sequence[ast.stmt],
    control: Control,
    name: str,
    independent: Sequence[ast.For],
    sums: Mapping[tuple[int, int], tuple[str, ...]],
    are_tiled: bool,
    budget: int,
) -> Whole | None:
    """A loop with these regions as one of that name; None where it cannot be compiled, or not known how long regions take.
    independent: those of their innermost loops of which no dependence joins iterations. sums: of the regions, by line and column,
    those that they add terms to: of floats they are exact and rounded once behind each, as if it were called. are_tiled: whether
    any of them is, so that small ones alone are better off in the loop: those that compute for no longer than the budget."""
    taken = {*around.locals, *all_names(around.source.tree)}
    its = partial(meaning, around.source.function)
    extrema = with_extrema_loops(statement, taken, lambda name, value: name not in around.locals and its(name) is value)
    read_before, live = exposed_reads([statement]), around.live_after(statement)
    rows = with_row_names(extrema.loop, taken)
    if rows.arrays.keys() & (read_before | live):
        return None
    try:
        elements = with_element_loops(rows.loop, taken, its, around.locals)
        exchanged = with_orders(elements.loop, taken)
    except NotRewrittenError:
        return None
    if elements.new & {*extrema.edges, *(array for pair in extrema.alike for array in pair)}:
        return None  # their sizes are not known before the loop
    changing = frozenset(bound_names([statement])) - set(exchanged.names)  # arrays that change places are of one size
    known = around.assigned_before(statement).surely | _sizes_outside(around, statement)
    test = small_test(regions, changing, known, budget) if are_tiled else ast.Constant(True)
    if test is None:
        return None
    if read_before & elements.copies.keys():
        return None  # what is read before it is copied is another array
    if live & (elements.copies.keys() | exchanged.left_out) or elements.copies.keys() & set(exchanged.names):
        return None
    memory = {array: f"memory of {array}" for array in elements.copies}  # not names that Python allows
    begins = {exchanged.order: ast.Constant(0)} if exchanged.names else {}
    places = frozenset((loop.lineno, loop.col_offset) for loop in independent if not rows.may_meet(loop))
    rewritten = Rewritten(exchanged.loop, begins, memory)
    try:
        outlined = outline(around, statement, name, control, lift=False, sequential=True, rewritten=rewritten)
        # Python keeps the type of each value that a scalar has in turn, but in regions.
        its_own = _names_of_regions(statement, regions)
        source = replace(outlined.source, of_one_type=True, of_any_type=its_own, sums=sums, independent=places)
        outlined = replace(outlined, source=source)
        parse(outlined.source)
    except RefusedError:
        return None
    if outlined.perhaps:
        return None
    alike = [*elements.alike, *((elements.of(u), elements.of(v)) for u, v in extrema.alike)]
    pairs = [pair for pair in alike if not set(pair) & elements.copies.keys()]
    if any(set(pair) & set(exchanged.names) for pair in alike) or any(
        set(exchanged.names) & {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
        for value in elements.copies.values()
    ):
        pairs += pairwise(exchanged.names)
    edges = elements.edges | set(map(elements.of, extrema.edges))
    sized = [*map(_are_alike, pairs), *map(_has_elements, sorted(edges))]
    if sized:
        test = ast.BoolOp(ast.And(), [test, *sized])
    copies = {memory[array]: value for array, value in elements.copies.items()}
    return Whole(statement, outlined, test, copies, exchanged)


def _sizes_outside(around: Around, statement: ast.stmt) -> frozenset[str]:
    """The names of whole numbers and arrays that are not the function's own. Not of functions: the test calls none."""
    names = all_names(statement) - around.locals - bound_names(around.source.tree.body)
    found = {name: meaning(around.source.function, name) for name in names}
    return frozenset(name for name, value in found.items() if isinstance(value, int | np.integer | np.ndarray))


def _names_of_regions(statement: ast.stmt, regions: Sequence[ast.stmt]) -> frozenset[str]:
    """What regions set for themselves: names of which nothing goes from one to another, or to what is around them."""
    inside = {id(node) for region in regions for node in ast.walk(region)}
    around = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and id(node) not in inside}
    return frozenset(bound_names(regions)) - around - {name for region in regions for name in exposed_reads([region])}


def _are_alike(pair: tuple[str, str]) -> ast.expr:
    """``u.shape == v.shape and u.dtype == v.dtype``"""
    u, v = pair
    return ast.parse(f"{u}.shape == {v}.shape and {u}.dtype == {v}.dtype", mode="eval").body


def _has_elements(array: str) -> ast.expr:
    return ast.parse(f"0 not in {array}.shape", mode="eval").body
