"""From a Python function's source to a LoopNest. The function is parsed, never executed."""

from __future__ import annotations

import ast
import builtins
import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from lapwing.affine.affine import Affine
from lapwing.errors import RefusedError
from lapwing.loopnest import ir
from lapwing.loopnest.analysis import NestAnalysis
from lapwing.loopnest.frontend.expressions import subscripts
from lapwing.loopnest.frontend.function import FunctionParser
from lapwing.loopnest.frontend.loop_bounds import MOST_STEP, BoundParser, Range
from lapwing.loopnest.frontend.region import parse_region
from lapwing.loopnest.frontend.statements import assigned, does_nothing
from lapwing.loopnest.frontend.uniform import with_axis_loops
from lapwing.loopnest.frontend.unrolling import unrolled
from lapwing.loopnest.refusals import Stopped
from lapwing.loopnest.source import FunctionSource

MAX_LOOPS = 8


def parse(source: FunctionSource) -> ir.LoopNest:
    """Parse a plain Python function into a LoopNest: of its loops that are perfectly nested as many as can be are cut into
    tiles, and those inside are done as a whole in each iteration.

    Raises RefusedError with every part, by file and line, that is not supported where all are cut.
    """
    if source.sequential:
        return parse_region(source)
    refused: RefusedError | None = None
    most = _perfect_depth(source.counted.tree)
    if source.most_loops is None and (nest := _perfect(source, most)) is not None:
        return nest
    for depth in range(most if source.most_loops is None else min(most, source.most_loops), 0, -1):
        try:
            nest = _Parser(source, depth).nest()
            if depth > 1 and not all(loop.is_plain for loop in nest.loops):
                _ = NestAnalysis(nest).skew  # where it cannot be tiled, fewer loops may be
            return nest
        except RefusedError as error:
            refused = refused or error
    if refused is not None:
        raise refused
    return _Parser(source, 0).nest()


def _perfect(source: FunctionSource, most: int) -> ir.LoopNest | None:
    """A nest of more loops than stand in each other in the text with nothing beside them (most), or of as many with names for
    indices and rows; None where there is none."""
    if (tree := source.perfect) is None:
        return None
    least = most if _perfect_depth(tree) == most else most + 1  # what is sunk has its place in the innermost loop
    for depth in range(_perfect_depth(tree), max(least, 1) - 1, -1):
        with contextlib.suppress(RefusedError):
            nest = _Parser(source, depth, tree).nest()
            _ = NestAnalysis(nest).skew
            return nest
    return None


def _perfect_depth(tree: ast.FunctionDef) -> int:
    """How many loops stand one in the other with nothing beside them."""
    depth = 0
    statements: Sequence[ast.stmt] = [s for s in tree.body if isinstance(s, ast.For)][:1]
    while len(statements) == 1 and isinstance(statements[0], ast.For):
        depth += 1
        statements = [s for s in statements[0].body if not does_nothing(s)]
    return depth


class _Parser(FunctionParser):
    """Goes down the function: what stands before the loops, the loops, the innermost body, and what is returned."""

    def __init__(self, source: FunctionSource, depth: int, tree: ast.FunctionDef | None = None) -> None:
        super().__init__(source, tree=tree)
        self.depth = depth
        self.loops_refused = False
        self.conditions: list[ast.expr] = []  # that the loops' own iterations fulfil
        self.assumed: list[tuple[int, Affine]] = []

    def nest(self) -> ir.LoopNest:
        self.check_signature()
        statements = [s for s in self.tree.body if not does_nothing(s)]
        position = next((k for k, s in enumerate(statements) if isinstance(s, ast.For)), len(statements))
        if position == len(statements):
            self._refuse_without_loops(statements)
        for statement in statements[:position]:
            with self.refusing(statement):
                self.setup(statement)
        body = self._loops(statements[position])
        self.scope.assigned_in_body = assigned(body)
        accumulators = tuple(n for n in self.scope.setup_names if n in self.scope.assigned_in_body)
        parsed = self._where_loops_are(self.block(body, accumulators))
        dead, rest = self.deleted(statements[position + 1 :])
        returns, returns_tuple = self._returns(rest, accumulators)
        return self._checked(
            ir.LoopNest(
                name=self.tree.name,
                file=self.source.file,
                line=self.tree.lineno,
                parameters=self.scope.parameters,
                setups=tuple(self.setups),
                loops=tuple(self.scope.loops),
                body=parsed,
                arrays=tuple(self.arrays),
                written=ir.written_arrays(parsed),
                accumulators=accumulators,
                returns=returns,
                returns_tuple=returns_tuple,
                symbols=tuple(self.symbols.items()),
                sweep_depth=0,
                unpackings=(*self.source.counted.unpackings, *self.unpackings),
                dead=dead,
                assumed=tuple(self.assumed),
            )
        )

    def _checked(self, nest: ir.LoopNest) -> ir.LoopNest:
        """What only shows in the whole nest; raises where anything has been refused."""
        with self.refusals.recovering():
            if not nest.written and not nest.accumulators and not self.refusals:
                self.refuse(self.tree, "the loops write no array and reduce nothing", "a nest assigns array elements")
        for name in nest.written:
            with self.refusals.recovering():
                if name not in nest.parameters:
                    self.refuse(self.tree, f"{name} is written but is not an argument", "pass it as an argument")
        if not self.loops_refused:
            nest = unrolled(nest)
            nest = with_axis_loops(nest, self.refusals)
            self._refuse_sweeps_left_out(nest)
        self.refusals.raise_if_any()
        return nest

    def _refuse_sweeps_left_out(self, nest: ir.LoopNest) -> None:
        """Ranks would exchange values after sweeps that do nothing."""
        for loop in nest.sweep_loops:
            if loop.leaves_out:
                self.refusals.note(
                    loop.line,
                    f"loop {loop.name} is a sweep, and leaves out some of the numbers between its affine bounds",
                    f"a loop that a written array is not indexed by has step 1 or -1: count the sweeps, and compute {loop.name} "
                    "from their number in the body",
                    tiled_only=True,
                )

    # -- around the loops ----------------------------------------------------------------------------------------------

    def _refuse_without_loops(self, statements: Sequence[ast.stmt]) -> NoReturn:
        """Only the while loops are worth a word: there is no before and after."""
        loops = [s for s in statements if isinstance(s, ast.While)]
        for loop in loops:
            with self.refusals.recovering():
                self.setup(loop)
        if not loops:
            self.refusals.note(
                self.tree.lineno, "no for loop was found", "a function holds one perfect nest of for loops"
            )
        self.refusals.raise_if_any()
        raise AssertionError("something was refused")

    def _returns(self, rest: list[ast.stmt], accumulators: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
        """The reductions that are returned, and whether as a tuple."""
        for statement in rest:
            with self.refusals.recovering():
                if isinstance(statement, ast.For):
                    self.refuse(
                        statement,
                        f"{self.source.text(statement)} after the loops",
                        "only return may follow the loops; make a nest of its own of what follows and call it after this one",
                    )
                if statement is not rest[-1] or not isinstance(statement, ast.Return):
                    self.refuse(
                        statement,
                        f"{self.source.text(statement)} after the loops",
                        "only return may follow the loops; do other work after the call",
                    )
        if not rest or not isinstance(rest[-1], ast.Return):
            return (), False
        value = rest[-1].value
        if value is None or (isinstance(value, ast.Constant) and value.value is None):
            return (), False
        elements = value.elts if isinstance(value, ast.Tuple) else [value]
        names = []
        with self.refusals.recovering():
            if not elements:
                self.refuse(value, "return of ()", "a nest returns reductions, or nothing")
        for element in elements:
            if isinstance(element, ast.Name) and element.id in accumulators:
                names.append(element.id)
            elif not (isinstance(element, ast.Name) and element.id in self.scope.refused):
                self.refusals.note(
                    element.lineno,
                    f"return of {self.source.text(element)}",
                    "a nest returns reductions (best = 0 before the loops, best = max(best, x) inside), or nothing; "
                    "arrays are updated in place, and anything else is computed after the call",
                )
        return tuple(names), isinstance(value, ast.Tuple)

    # -- the loops -----------------------------------------------------------------------------------------------------

    def _loops(self, statement: ast.stmt) -> list[ast.stmt]:
        """Go down the nest, as many loops as are to be its own; return the statements of the body."""
        for _ in range(self.depth):
            assert isinstance(statement, ast.For)
            try:
                self._loop(statement)
            except Stopped:
                self.loops_refused = True
            body = [s for s in statement.body if not does_nothing(s)]
            statement = body[0] if body else statement
        return body

    def _loop(self, node: ast.For) -> None:
        if node.orelse:
            self._refuse_else(node, "for")
        name = self.index_of(node)
        # Whatever is wrong with its bounds, the index is one.
        position = len(self.scope.loops)
        if position == MAX_LOOPS:
            self.scope.refused.add(name)
            self.refuse(
                node,
                f"more than {MAX_LOOPS} loops",
                f"at most {MAX_LOOPS} loops are supported; write the outermost in Python around the call, "
                "with u[i] for u, a view",
            )
        parsed = Range((Affine(0),), (Affine(0),), 1, (), frozenset())
        try:
            first, last, by = self.range_of(node)
            step = self._step(by)
            found = BoundParser(self.affine, self._is_builtin).range(name, first, last, step)
            if not isinstance(found, Range):
                self._refuse_bound(found)
            parsed = found
        finally:
            loop = ir.Loop(name, parsed.starts, parsed.stops, parsed.step, node.lineno)
            symbols = parsed.names.difference(self.scope.loop_names)
            self.scope.loops.append(
                replace(loop, integers=symbols - loop.bound_names, leaves_out=bool(parsed.conditions))
            )
            self.conditions += parsed.conditions
            self._assume(node)

    def _assume(self, node: ast.For) -> None:
        """Note what must not be negative for the loops to be those of the text (``perfect_nests``)."""
        outer = len(self.scope.loops) - 1
        for low, high, apart in getattr(node, "ends_apart", ()):
            ends = BoundParser(self.affine, self._is_builtin).range(self.scope.loops[-1].name, low, high, 1)
            if not isinstance(ends, Range) or ends.conditions:
                self.refuse(node, self.source.text(node), "the number of iterations is affine")
            self.assumed += [(outer, stop - start - apart) for start in ends.starts for stop in ends.stops]

    def _is_builtin(self, node: ast.expr, name: str) -> bool:
        return self.resolve(node) is getattr(builtins, name)

    def _step(self, node: ast.expr) -> int:
        affine = self.affine(node)
        if affine is None or affine.terms or not 1 <= abs(affine.constant) <= MOST_STEP:
            self._refuse_step(node)
        return affine.constant

    def _refuse_step(self, node: ast.expr) -> NoReturn:
        self.refuse(
            node,
            f"loop step {self.source.text(node)}",
            f"steps are numbers from 1 to {MOST_STEP}, or negative ones; for others, go over all and keep the rest: "
            "if i % 8 == 0: u[i] = x",
        )

    def _refuse_bound(self, node: ast.expr) -> NoReturn:
        if self.rests_on_refused(node):
            raise Stopped
        self.refuse(
            node,
            f"loop bound {self.source.text(node)}",
            "bounds are affine in outer loop indices, arguments and array shapes, and max, min and % of such; for others, go "
            f"further and keep the rest: if j < {self.source.text(node)}: u[i, j] = x",
        )

    def _where_loops_are(self, body: tuple[ir.Statement, ...]) -> tuple[ir.Statement, ...]:
        """The body under the conditions that iterations fulfil among all that are within affine bounds."""
        if not self.conditions or not body:
            return body
        test = self.conditions[0]
        if len(self.conditions) > 1:
            test = ast.copy_location(ast.BoolOp(ast.And(), self.conditions), test)
        return (ir.If(test.lineno, f"if {ast.unparse(test)}:", self.expression(test), body, ()),)


def _indexed(node: ast.AST, how: type[ast.expr_context]) -> set[str]:
    """The arrays of which elements are read (ast.Load) or written (ast.Store)."""
    found = [subscripts(n)[0] for n in ast.walk(node) if isinstance(n, ast.Subscript) and isinstance(n.ctx, how)]
    return {name for name in found if name is not None}
