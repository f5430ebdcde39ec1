"""What one rank computes between the loops of a program: expressions and statements as functions, and their calls."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lapwing.api.nest import Nest
from lapwing.errors import RefusedError
from lapwing.export.driver.calls import LocalCall
from lapwing.export.driver.operations import CallLocally, Result, Word
from lapwing.export.driver.partial_evaluation.constant_folding import folded
from lapwing.export.driver.partial_evaluation.memories import Memories
from lapwing.export.driver.partial_evaluation.names import Names, named
from lapwing.export.driver.partial_evaluation.refusals import refuse
from lapwing.export.driver.partial_evaluation.state import Look, Path
from lapwing.export.driver.residency import Boxes
from lapwing.export.driver.values import Known, Register, Value, View, bits_of, example_of, fits
from lapwing.export.stand_alone import check_stands_alone
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.binding.promotion import ScalarType
from lapwing.loopnest.binding.scalars import scalar_words
from lapwing.loopnest.frontend.expressions import subscripts
from lapwing.loopnest.normalisation.names import fresh_name
from lapwing.loopnest.program.surroundings import Code
from lapwing.loopnest.source import FunctionSource
from lapwing.syntax_places import placed
from lapwing.tiling.boxes import Box, hull

_RESULT = "result"


class LocalCalls:
    """Of one program on so many ranks."""

    def __init__(self, source: FunctionSource, names: Names, memories: Memories) -> None:
        self._source, self._names, self._memories = source, names, memories
        self._functions: dict[Any, LocalCall] = {}
        self._replaced: dict[Any, tuple[ast.AST, Any, dict[int, str]]] = {}

    def computed(self, node: ast.expr, path: Path, look: Look) -> Register:
        """A number that the program computes."""
        call, given = self._local(node, path, look)
        (accumulator, *others) = call.bound.body.accumulators
        if accumulator.part is not None:
            refuse(self._source, node, f"{ast.unparse(node)} is complex", "Keep the parts of complex numbers apart")
        origins = frozenset().union(*(v.origins for v in given.values() if isinstance(v, Register)))
        name = f"computed {id(node)}"
        results = [Result(0, accumulator.name, name)]
        kinds = next((other for other in others if other.operator == "kind"), None)
        if kinds is not None:
            results.append(Result(0, kinds.name, f"{name} kind"))
        self.call(node, call, given, results, path)
        found = Register(name, ScalarType(accumulator.dtype, accumulator.weak), origins)
        return found if kinds is None else replace(found, kinds=kinds.kinds)

    def store(self, statement: ast.stmt, path: Path, look: Look) -> None:
        """A statement that writes elements of arrays."""
        call, given = self._local(statement, path, look)
        self.call(statement, call, given, [], path)

    def call(
        self, node: ast.AST, call: LocalCall, given: Mapping[str, Value], results: Sequence[Result], path: Path
    ) -> None:
        """Let a rank that has elements of the first array that is written, or read, do a sequential region."""
        bound = call.bound
        views = self._names.views(node, [bound], given)
        written = [name for name in views if name in bound.nest.written]
        rank = None
        if views:
            first = next(iter([*written, *views]))
            rank = self._memories.residency(path, views[first].memory).holder(views[first].in_memory(call.box(first)))
        needs: dict[str, list[Boxes]] = {}
        for name, view in views.items():
            boxes = needs.setdefault(view.memory, [()] * self._memories.ranks)
            assert rank is not None
            boxes[rank] = (*boxes[rank], view.in_memory(call.box(name)))
        self._memories.fetch(path, needs)
        words = parameter_words(bound, given)
        path.done.append(CallLocally(call, views, words, results, rank))
        for name in written:
            own: list[Boxes] = [()] * self._memories.ranks
            assert rank is not None
            own[rank] = (views[name].in_memory(call.box(name)),)
            self._memories.written(path, views[name].memory, [own])

    def _local(self, node: ast.stmt | ast.expr, path: Path, look: Look) -> tuple[LocalCall, dict[str, Value]]:
        """A statement or an expression as a function, and what it is given."""
        given: dict[str, Value] = {}
        node = self._with_known_parts(node, look, given)
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id not in given:
                value = named(self._source, part, part.id, look)
                if isinstance(value, Register | View) or (isinstance(value, Known) and value.is_number):
                    given[part.id] = value
                elif part.id in path.names:
                    refuse(
                        self._source,
                        node,
                        f"{ast.unparse(node)}: {part.id} is no number and no array",
                        "Write it with those",
                    )
        touched = self._touched(node, given, lambda name: given[name] if name in given else look(name))
        key = (id(node), tuple(given.items()), tuple(sorted(touched.items())))
        if key not in self._functions:
            self._functions[key] = LocalCall(self._bound(node, given), touched)
        return self._functions[key], given

    def _with_known_parts(self, node: Any, look: Look, given: dict[str, Value]) -> Any:
        """With names for parts of expressions whose value is known: when they are computed they might grow beyond 64 bits."""
        parts = list(self._known_parts(node, look))
        if not parts:
            return node
        key = (id(node), *(id(part) for part, _ in parts))
        if key not in self._replaced:
            taken = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            names = {id(part): fresh_name(f"known_{k}", taken) for k, (part, _) in enumerate(parts, 1)}
            copies: dict[int, Any] = {}
            tree = copy.deepcopy(node, copies)
            self._replaced[key] = (
                node,
                _Named({id(copies[part]): name for part, name in names.items()}).visit(tree),
                names,
            )
        _, tree, names = self._replaced[key]
        given |= {names[id(part)]: value for part, value in parts}
        return tree

    def _known_parts(self, node: ast.AST, look: Look) -> Iterator[tuple[ast.expr, Known]]:
        """The largest sums, products and so on inside of a node that are known numbers."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.BinOp):
                value = folded(self._source, child, look)
                if value is not None and value.is_number and fits(value.value):
                    yield child, value
                    continue
            yield from self._known_parts(child, look)

    def _bound(self, node: ast.stmt | ast.expr, given: Mapping[str, Value]) -> BoundNest:
        inside: ast.stmt
        ends: list[ast.stmt] = []
        if isinstance(node, ast.stmt):
            inside = copy.deepcopy(node)
        else:
            inside = ast.Assign([ast.Name(_RESULT, ast.Store())], copy.deepcopy(node))
            ends = [ast.Return(ast.Name(_RESULT, ast.Load()))]
        # What stands before the first loop or condition would be computed when the function is bound.
        body = [ast.If(ast.Constant(True), [inside], []), *ends]
        arguments = ast.arguments([], [ast.arg(name) for name in given], None, [], [], None, [])
        tree = placed(
            node, ast.FunctionDef(f"{self._source.tree.name}_driver", arguments, body, [], None), with_end=True
        )
        function = Code.of(tree, self._source.function).function(defaults=False)
        source = replace(self._source, function=function, outlined=tree, sequential=True, generic=True)
        examples = {name: example_of(value) for name, value in given.items()}
        try:
            bound = Nest(function, source).bind(examples)
            check_stands_alone(bound)
            return bound
        except RefusedError as refused:
            text = ast.unparse(node).splitlines()[0]
            refuse(
                self._source,
                node,
                f"{text} stands between the loops of a program that is exported, and is not compiled "
                f"({'; '.join(str(refusal) for refusal in refused.refusals)})",
                "Write it as a loop over elements, or do it before the call or after it",
            )

    def _touched(self, node: ast.AST, given: Mapping[str, Value], look: Look) -> dict[str, Box]:
        """The elements of arrays that a statement may touch, of those where that is known."""
        found: dict[str, Box] = {}
        unknown: set[str] = set()
        inner = {id(part.value) for part in ast.walk(node) if isinstance(part, ast.Subscript)}
        for part in ast.walk(node):
            if not isinstance(part, ast.Subscript) or id(part) in inner:
                continue
            owner, indices = subscripts(part)
            view = given.get(owner) if owner is not None else None
            if owner is None or not isinstance(view, View):
                continue
            element = self._element(view, indices, look)
            if element is None:
                unknown.add(owner)
            else:
                found[owner] = hull([found.get(owner, element), element])
        return {name: box for name, box in found.items() if name not in unknown}

    def _element(self, view: View, indices: Sequence[ast.expr], look: Look) -> Box | None:
        box = []
        if len(indices) != len(view.shape):
            return None
        for index, extent in zip(indices, view.shape, strict=True):
            value = None if isinstance(index, ast.Slice) else folded(self._source, index, look)
            if value is None or not isinstance(value.value, int | np.integer) or not -extent <= value.value < extent:
                return None
            at = int(value.value) % extent
            box.append((at, at + 1))
        return tuple(box)


class _Named(ast.NodeTransformer):
    """Puts names in the place of expressions, by their identity."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = names

    def visit(self, node: ast.AST) -> Any:
        if (name := self._names.get(id(node))) is not None:
            return ast.copy_location(ast.Name(name, ast.Load()), node)
        return super().generic_visit(node)


def parameter_words(bound: BoundNest, given: Mapping[str, Value]) -> list[Word]:
    """The scalars of a tile: numbers that are known, and registers."""
    found: list[Word] = []
    for name, value in bound.parameters.items():
        register = given.get(name)
        if isinstance(register, Register):
            found.append(register.name)
        else:
            found += map(bits_of, scalar_words(value))
    return found
