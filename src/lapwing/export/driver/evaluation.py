"""Values of a driver's expressions while it is specialised: computed here, or by what the program does for them."""

from __future__ import annotations

import ast
import builtins
import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np

from lapwing.api.nest import Nest
from lapwing.errors import RefusedError
from lapwing.export.driver.calls import LocalCall
from lapwing.export.driver.operations import (
    CallLocally,
    Copy,
    Exchange,
    Fill,
    Load,
    Memory,
    Operation,
    Result,
    SetTo,
    Word,
)
from lapwing.export.driver.residency import Boxes, Residency
from lapwing.export.driver.values import (
    Known,
    Register,
    Several,
    Value,
    View,
    bits_of,
    example_of,
    fits,
    memories_in,
    shares_memory,
)
from lapwing.export.stand_alone import check_stands_alone
from lapwing.loopnest.array_shape import ArrayShape
from lapwing.loopnest.binding.bound_nest import BoundNest, global_values
from lapwing.loopnest.binding.promotion import SUPPORTED_DTYPES, ScalarType
from lapwing.loopnest.binding.scalars import scalar_words
from lapwing.loopnest.frontend.expressions import subscripts
from lapwing.loopnest.functions import canonical_name
from lapwing.loopnest.normalisation.names import fresh_name
from lapwing.loopnest.outside import ALWAYS_KNOWN
from lapwing.loopnest.program.surroundings import Code
from lapwing.loopnest.setup import UnsupportedSetup, evaluate, resolve
from lapwing.loopnest.source import FunctionSource
from lapwing.syntax_places import placed
from lapwing.tiling.boxes import Box, hull

_MADE_OF_SHAPE: dict[Any, int | None] = {np.zeros: 0, np.ones: 1, np.empty: 0, np.full: None}
_MADE_LIKE: dict[Any, int | None] = {np.zeros_like: 0, np.ones_like: 1, np.empty_like: 0, np.full_like: None}
_COPIES = (np.copy, np.array, np.ascontiguousarray)
_COMPUTED_HERE = (np.array, np.arange, np.linspace, np.eye, np.asarray, np.identity)
_SAFE = (
    range,
    len,
    int,
    float,
    bool,
    abs,
    min,
    max,
    round,
    sum,
    tuple,
    list,
    enumerate,
    zip,
    reversed,
    complex,
    divmod,
)
_RESULT = "result"

Look = Callable[[str], Value]


class NeedsValue(Exception):
    """Something asks for the value of a number that was left to the program."""

    def __init__(self, register: Register, what: str) -> None:
        super().__init__(what)
        self.register = register


class Raises(Exception):
    """Where the program comes here Python raises; the text says what."""


@dataclass
class Path:
    """One way through the driver: where it is, what names stand for, which ranks have what, and what has been done since the
    block began."""

    at: int
    names: dict[str, Value]
    arrays: dict[str, Residency]
    done: list[Operation] = field(default_factory=list)

    def fork(self) -> Path:
        return Path(self.at, dict(self.names), dict(self.arrays))


class Evaluation:
    """Of one program on so many ranks."""

    def __init__(self, source: FunctionSource, ranks: int) -> None:
        self.source, self.ranks = source, ranks
        self.outside: dict[str, Any] = {**vars(builtins), **ALWAYS_KNOWN, **global_values(source.function)}
        self.memories: dict[str, Memory] = {}
        self.copies: list[tuple[str, str]] = []
        self._functions: dict[Any, LocalCall] = {}
        self._replaced: dict[Any, tuple[ast.AST, Any, dict[int, str]]] = {}

    def refuse(self, node: ast.AST, found: str, advice: str) -> NoReturn:
        raise RefusedError(f"{self.source.file}:{getattr(node, 'lineno', self.source.first)}: {found}. {advice}.")

    def look(self, path: Path) -> Look:
        def look(name: str) -> Value:
            if name in path.names:
                return path.names[name]
            if name in self.outside:
                value = self.outside[name]
                return self.given(name, value) if isinstance(value, np.ndarray) and value.shape else Known(value)
            raise KeyError(name)

        return look

    # -- arrays ------------------------------------------------------------------------------------------------------------

    def given(self, name: str, values: np.ndarray[Any, Any]) -> View:
        """An array that is there before the program runs, from its file."""
        return View.of(self._memory(name, values.dtype.name, values.shape, values), values.dtype.name, values.shape)

    def _memory(self, name: str, dtype: str, shape: tuple[int, ...], data: Any = None) -> str:
        if name not in self.memories:
            self.memories[name] = Memory(name, dtype, shape, data, [[] for _ in range(self.ranks)])
        return name

    def residency(self, path: Path, memory: str) -> Residency:
        """That of an array from a file is as it was read where nothing has been done to it."""
        return path.arrays.get(memory) or Residency.new(("file", memory), self.ranks)

    def fetch(self, path: Path, needs: Mapping[str, Sequence[Boxes]]) -> None:
        """Let ranks have elements of arrays as they are now. needs: by rank, boxes."""
        moves = []
        for memory, needed in needs.items():
            residency = self.residency(path, memory)
            found = residency.moves(needed)
            path.arrays[memory] = residency.moved(found)
            moves += [(memory, move) for move in found]
            self.keep(memory, needed)
            for move in found:
                self.memories[memory].kept[move.source].append(move.box)
        if moves:
            path.done.append(Exchange(tuple(moves)))

    def keep(self, memory: str, needed: Sequence[Boxes]) -> None:
        for kept, boxes in zip(self.memories[memory].kept, needed, strict=True):
            kept += (box for box in boxes if box not in kept)

    def written(self, path: Path, memory: str, rounds: Sequence[Sequence[Boxes]]) -> None:
        path.arrays[memory] = self.residency(path, memory).written(rounds)

    def _new(
        self, path: Path, node: ast.AST, dtype: str, shape: tuple[int, ...], live: frozenset[str], data: Any = None
    ) -> View:
        """A new array: memory that no name that is still read stands for."""
        if dtype not in SUPPORTED_DTYPES:
            self.refuse(node, f"an array of {dtype}", f"Supported are {', '.join(SUPPORTED_DTYPES)}")
        taken = {memory for name in live if name in path.names for memory in memories_in(path.names[name])}
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        number = 1
        while (name := f"array_{line}_{column}_{number}") in taken:
            number += 1
        known = self.memories.get(name)
        if known is not None and (known.dtype, known.shape) != (dtype, shape):
            name = f"{name}_{'x'.join(map(str, shape))}_{dtype}"
        return View.of(self._memory(name, dtype, shape, data), dtype, shape)

    def _filled(self, path: Path, node: ast.AST, dtype: str, shape: Any, value: Any, live: frozenset[str]) -> View:
        shape = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        view = self._new(path, node, dtype, tuple(map(int, shape)), live)
        element = np.full((), value, dtype).tobytes()
        path.arrays[view.memory] = Residency.new(("fill", element), self.ranks)
        path.done.append(Fill(view.memory, element))
        return view

    def _copied(self, path: Path, node: ast.AST, source: View, live: frozenset[str]) -> View:
        if not source.is_whole:
            self.refuse(node, f"{ast.unparse(node)} copies a part of an array", "Copy it element by element, in loops")
        view = self._new(path, node, source.dtype, source.shape, live | _names_of(path, source.memory))
        path.arrays[view.memory] = self.residency(path, source.memory)
        path.done.append(Copy(view.memory, source.memory))
        self.copies.append((view.memory, source.memory))
        return view

    def overwritten(self, node: ast.stmt, path: Path, live: frozenset[str]) -> bool:
        """Whether a statement gives all elements of an array a number, or those of another one, ``u[:] = v``; then it is done."""
        match node:
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=index)], value=value):
                pass
            case _:
                return False
        target = path.names.get(name)
        is_all = isinstance(index, ast.Slice) and not (index.lower or index.upper or index.step)
        if not isinstance(target, View) or not target.is_whole or not (is_all or ast.unparse(index) == "..."):
            return False
        found = (
            self._known(value, self.look(path)) if not isinstance(value, ast.Name) else self.value(value, path, live)
        )
        match found:
            case Known() if found.is_number:
                try:
                    element = np.full((), found.value, target.dtype).tobytes()
                except Exception as error:
                    self._raises(node, error)
                path.arrays[target.memory] = Residency.new(("fill", element), self.ranks)
                path.done.append(Fill(target.memory, element))
                return True
            case View() if found.is_whole and (found.dtype, found.shape) == (target.dtype, target.shape):
                if found.memory != target.memory:
                    path.arrays[target.memory] = self.residency(path, found.memory)
                    path.done.append(Copy(target.memory, found.memory))
                    self.copies.append((target.memory, found.memory))
                return True
        return False

    # -- expressions ---------------------------------------------------------------------------------------------------------

    def value(self, node: ast.expr, path: Path, live: frozenset[str], look: Look | None = None) -> Value:
        """What an expression stands for. live: the names that are read later. Raises RefusedError for what neither is known
        here nor can be left to the program."""
        look = look or self.look(path)
        match node:
            case ast.Name(id=name):
                return self._named(node, name, look)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                items = tuple(self.value(element, path, live, look) for element in elements)
                if all(isinstance(item, Known) for item in items):
                    made = tuple if isinstance(node, ast.Tuple) else list
                    return Known(made(item.value for item in items if isinstance(item, Known)))
                return Several(items)
            case ast.Call(func=ast.Name(id="len"), args=[ast.Subscript() as row], keywords=[]):
                if isinstance(of := self.value(row, path, live, look), View):
                    return Known(of.shape[0])
            case ast.Call() if (array := self._array(node, path, live, look)) is not None:
                return array
            case ast.Subscript(value=of, slice=index):
                if (found := self._part(node, of, index, path, live, look)) is not None:
                    return found
            case ast.IfExp(test=test, body=body, orelse=orelse):
                chosen = self.value(test, path, live, look)
                if isinstance(chosen, Known):
                    return self.value(body if chosen.value else orelse, path, live, look)
        found = self._known(node, look)
        if found is not None:
            return found
        return self._computed(node, path, look)

    def known(self, node: ast.expr, path: Path, live: frozenset[str], look: Look, what: str) -> Any:
        """The value of an expression that must be known before the program runs."""
        value = self.value(node, path, live, look)
        match value:
            case Known(value=found):
                return found
            case Register():
                raise NeedsValue(value, what)
            case Several(items=items):
                for item in items:
                    if isinstance(item, Register):
                        raise NeedsValue(item, what)
        self.refuse(node, f"{what} is {ast.unparse(node)}", "Give it a number")

    def _named(self, node: ast.expr, name: str, look: Look) -> Value:
        try:
            return look(name)
        except KeyError:
            self.refuse(node, f"{name} has no value here", "Set it before")

    def _known(self, node: ast.expr, look: Look) -> Known | None:
        """The value of an expression of which all parts are known; None for others."""
        names: dict[str, Any] = {}
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                match self._named(part, part.id, look):
                    case Known(value=value):
                        names[part.id] = value
                    case View() as view:
                        names[part.id] = view.like
                    case _:
                        return None
        try:
            return Known(evaluate(node, names))
        except UnsupportedSetup:
            pass
        except Exception as error:
            if any(isinstance(value, ArrayShape) for value in names.values()):
                return None  # what was looked at may have been no size
            self._raises(node, error)
        if not self._asks_for_sizes_alone(node, names):
            return None
        if not all(self._is_safe(part, names) for part in ast.walk(node)):
            return None
        names = {name: _Sized(value.shape) if isinstance(value, ArrayShape) else value for name, value in names.items()}
        try:
            code = compile(ast.Expression(copy.deepcopy(node)), self.source.file, "eval")
            return Known(eval(code, {"__builtins__": {}}, names))
        except Exception as error:
            self._raises(node, error)

    def _raises(self, node: ast.AST, error: Exception) -> NoReturn:
        """Perhaps no run comes here."""
        line = getattr(node, "lineno", self.source.first)
        raise Raises(
            f"{self.source.file}:{line}: {error}; the plain loop raises {type(error).__name__} here"
        ) from error

    def _asks_for_sizes_alone(self, node: ast.AST, names: Mapping[str, Any]) -> bool:
        """Whether of arrays an expression has nothing but len(u) and u.shape."""
        inside = 0
        for part in ast.walk(node):
            match part:
                case (
                    ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)])
                    | ast.Attribute(value=ast.Name(id=name), attr="shape" | "ndim" | "size")
                ):
                    inside += isinstance(names.get(name), ArrayShape)
        arrays = [n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(names.get(n.id), ArrayShape)]
        return len(arrays) == inside

    def _is_safe(self, part: ast.AST, names: Mapping[str, Any]) -> bool:
        if isinstance(part, ast.Lambda | ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom | ast.comprehension):
            return False
        if not isinstance(part, ast.Call):
            return True
        function = resolve(part.func, names)
        return function is not None and (function in _SAFE or canonical_name(function) is not None)

    # -- arrays in expressions ---------------------------------------------------------------------------------------------

    def _array(self, node: ast.Call, path: Path, live: frozenset[str], look: Look) -> Value | None:
        """The array that a call makes; None for other calls."""
        if isinstance(node.func, ast.Attribute) and node.func.attr == "copy" and not node.args:
            try:
                of = self.value(node.func.value, path, live, look)
            except RefusedError:
                return None
            return self._copied(path, node, of, live) if isinstance(of, View) else None
        function = self._function(node.func, look)
        if function is None:
            return None
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        if function in _COPIES and len(node.args) == 1 and not keywords:
            of = self.value(node.args[0], path, live, look)
            if isinstance(of, View):
                return self._copied(path, node, of, live)
        if function in _MADE_OF_SHAPE or function in _MADE_LIKE:
            return self._made(node, function, keywords, path, live, look)
        if function in _COMPUTED_HERE:
            return self._computed_here(node, function, path, live, look)
        return None

    def _function(self, node: ast.expr, look: Look) -> Any:
        match node:
            case ast.Name(id=name):
                return value.value if isinstance(value := self._named(node, name, look), Known) else None
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                owner = self._named(node, name, look)
                return getattr(owner.value, attribute, None) if isinstance(owner, Known) else None
        return None

    def _made(
        self,
        node: ast.Call,
        function: Any,
        keywords: Mapping[str | None, ast.expr],
        path: Path,
        live: frozenset[str],
        look: Look,
    ) -> View:
        """zeros, ones, empty and full, and the same of an array's shape."""
        given = [*node.args]
        first = given.pop(0) if given else keywords.get("shape") or keywords.get("a")
        value = {**_MADE_OF_SHAPE, **_MADE_LIKE}[function]
        if value is None:
            filling = given.pop(0) if given else keywords.get("fill_value")
            value = None if filling is None else self.known(filling, path, live, look, "what an array is filled with")
        kind = given.pop(0) if given else keywords.get("dtype")
        if first is None or value is None or given or not keywords.keys() <= {"shape", "a", "fill_value", "dtype"}:
            self.refuse(node, f"{ast.unparse(node)}", "Write it with a shape, a value and dtype= alone")
        if function in _MADE_LIKE:
            like = self.value(first, path, live, look)
            if not isinstance(like, View):
                self.refuse(node, f"{ast.unparse(first)} is no array", "Pass one")
            shape: Any = like.shape
            dtype = like.dtype
        else:
            shape = self.known(first, path, live, look, f"the shape of {ast.unparse(node)}")
            dtype = "float64" if function is not np.full else np.asarray(value).dtype.name
        if kind is not None:
            dtype = np.dtype(self._dtype(kind, look)).name
        return self._filled(path, node, dtype, shape, value, live)

    def _dtype(self, node: ast.expr, look: Look) -> Any:
        match node:
            case ast.Attribute(value=of, attr="dtype"):
                if isinstance(of, ast.Name) and isinstance(view := self._named(of, of.id, look), View):
                    return view.dtype
            case ast.Name() | ast.Attribute():
                if (found := self._function(node, look)) is not None:
                    return found
            case ast.Constant(value=str() as name):
                return name
        self.refuse(node, f"dtype={ast.unparse(node)}", "Name the type, as dtype=np.float64")

    def _computed_here(
        self, node: ast.Call, function: Any, path: Path, live: frozenset[str], look: Look
    ) -> Value | None:
        """An array that only depends on what is known."""
        names: dict[str, Any] = {}
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                value = self._named(part, part.id, look)
                if isinstance(value, View):
                    names[part.id] = value.like
                elif isinstance(value, Known):
                    names[part.id] = value.value
                else:
                    return None
        if not self._asks_for_sizes_alone(node, names):
            return None
        names = {name: _Sized(value.shape) if isinstance(value, ArrayShape) else value for name, value in names.items()}
        calls = [part for part in ast.walk(node) if isinstance(part, ast.Call) and part is not node]
        if not all(self._is_safe(part, names) for part in calls):
            return None
        code = compile(ast.Expression(copy.deepcopy(node)), self.source.file, "eval")
        try:
            values = eval(code, {"__builtins__": {}}, names)
        except Exception as error:
            self.refuse(node, f"{ast.unparse(node)} cannot be computed: {error}", "Check the arguments")
        if not isinstance(values, np.ndarray) or not values.shape:
            return None
        view = self._new(path, node, values.dtype.name, values.shape, live, np.ascontiguousarray(values))
        if not np.array_equal(self.memories[view.memory].data, values):
            self.refuse(node, f"{ast.unparse(node)} is another array every time", "Make it before the loop")
        path.arrays[view.memory] = Residency.new(("file", view.memory), self.ranks)
        path.done.append(Load(view.memory))
        return view

    def _part(
        self, node: ast.expr, of: ast.expr, index: ast.expr, path: Path, live: frozenset[str], look: Look
    ) -> Value | None:
        """An item of a tuple, or a part of an array that is no element; None for anything else."""
        whole = self.value(of, path, live, look) if isinstance(of, ast.Name | ast.Subscript) else None
        match whole:
            case Several(items=items):
                return items[int(self.known(index, path, live, look, ast.unparse(node)))]
            case View():
                found = self._indices(index, len(whole.shape), path, live, look)
                if found is None:
                    return None
                try:
                    view = whole.indexed(found)
                except IndexError as error:
                    self.refuse(node, f"{ast.unparse(node)}: {error}", "Check the arguments")
                except ValueError as error:
                    self.refuse(node, f"{ast.unparse(node)} is a part with {error}", "Loop over the whole array")
                return view if view.shape else None
        return None

    def _indices(
        self, index: ast.expr, axes: int, path: Path, live: frozenset[str], look: Look
    ) -> tuple[int | slice, ...] | None:
        """Indices of an array that are known; None where they are not, but select an element."""
        elements = index.elts if isinstance(index, ast.Tuple) else [index]
        is_part = len(elements) < axes or any(isinstance(element, ast.Slice) for element in elements)
        found: list[int | slice] = []
        for element in elements:
            if isinstance(element, ast.Slice):
                ends = (element.lower, element.upper, element.step)
                known = (None if end is None else self.known(end, path, live, look, ast.unparse(index)) for end in ends)
                found.append(slice(*known))
                continue
            value = self.value(element, path, live, look)
            if isinstance(value, Register) and is_part:
                raise NeedsValue(value, f"the part of an array that {ast.unparse(index)} selects")
            if isinstance(value, Register):
                return None
            if not isinstance(value, Known) or not isinstance(value.value, int | np.integer):
                self.refuse(element, f"an index {ast.unparse(element)}", "Index arrays by whole numbers and ranges")
            found.append(int(value.value))
        return tuple(found)

    # -- what one rank computes --------------------------------------------------------------------------------------------

    def _computed(self, node: ast.expr, path: Path, look: Look) -> Register:
        """A number that the program computes."""
        call, given = self._local(node, path, look)
        (accumulator, *others) = call.bound.body.accumulators
        if accumulator.part is not None:
            self.refuse(node, f"{ast.unparse(node)} is complex", "Keep the parts of complex numbers apart")
        origins = frozenset().union(*(v.origins for v in given.values() if isinstance(v, Register)))
        name = f"computed {id(node)}"
        results = [Result(0, accumulator.name, name)]
        kinds = next((other for other in others if other.operator == "kind"), None)
        if kinds is not None:
            results.append(Result(0, kinds.name, f"{name} kind"))
        self.call_locally(node, call, given, results, path)
        found = Register(name, ScalarType(accumulator.dtype, accumulator.weak), origins)
        return found if kinds is None else replace(found, kinds=kinds.kinds)

    def store(self, statement: ast.stmt, path: Path, look: Look) -> None:
        """A statement that writes elements of arrays."""
        call, given = self._local(statement, path, look)
        self.call_locally(statement, call, given, [], path)

    def _local(self, node: ast.stmt | ast.expr, path: Path, look: Look) -> tuple[LocalCall, dict[str, Value]]:
        """A statement or an expression as a function, and what it is given."""
        given: dict[str, Value] = {}
        node = self._with_known_parts(node, look, given)
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id not in given:
                value = self._named(part, part.id, look)
                if isinstance(value, Register | View) or (isinstance(value, Known) and value.is_number):
                    given[part.id] = value
                elif part.id in path.names:
                    self.refuse(
                        node, f"{ast.unparse(node)}: {part.id} is no number and no array", "Write it with those"
                    )
        touched = self._touched(node, given, path, lambda name: given[name] if name in given else look(name))
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
                value = self._known(child, look)
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
            node, ast.FunctionDef(f"{self.source.tree.name}_driver", arguments, body, [], None), with_end=True
        )
        function = Code.of(tree, self.source.function).function(defaults=False)
        source = replace(self.source, function=function, outlined=tree, sequential=True, generic=True)
        examples = {name: example_of(value) for name, value in given.items()}
        try:
            bound = Nest(function, source).bind(examples)
            check_stands_alone(bound)
            return bound
        except RefusedError as refused:
            text = ast.unparse(node).splitlines()[0]
            self.refuse(
                node,
                f"{text} stands between the loops of a program that is exported, and is not compiled "
                f"({'; '.join(str(refusal) for refusal in refused.refusals)})",
                "Write it as a loop over elements, or do it before the call or after it",
            )

    def _touched(self, node: ast.AST, given: Mapping[str, Value], path: Path, look: Look) -> dict[str, Box]:
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
            element = self._element(view, indices, path, look)
            if element is None:
                unknown.add(owner)
            else:
                found[owner] = hull([found.get(owner, element), element])
        return {name: box for name, box in found.items() if name not in unknown}

    def _element(self, view: View, indices: Sequence[ast.expr], path: Path, look: Look) -> Box | None:
        box = []
        if len(indices) != len(view.shape):
            return None
        for index, extent in zip(indices, view.shape, strict=True):
            value = None if isinstance(index, ast.Slice) else self._known(index, look)
            if value is None or not isinstance(value.value, int | np.integer) or not -extent <= value.value < extent:
                return None
            at = int(value.value) % extent
            box.append((at, at + 1))
        return tuple(box)

    def call_locally(
        self, node: ast.AST, call: LocalCall, given: Mapping[str, Value], results: Sequence[Result], path: Path
    ) -> None:
        """Let a rank that has elements of the first array that is written, or read, do a sequential region."""
        bound = call.bound
        views = self.views(node, [bound], given)
        written = [name for name in views if name in bound.nest.written]
        rank = None
        if views:
            first = next(iter([*written, *views]))
            rank = self.residency(path, views[first].memory).holder(views[first].in_memory(call.box(first)))
        needs: dict[str, list[Boxes]] = {}
        for name, view in views.items():
            boxes = needs.setdefault(view.memory, [()] * self.ranks)
            assert rank is not None
            boxes[rank] = (*boxes[rank], view.in_memory(call.box(name)))
        self.fetch(path, needs)
        words = parameter_words(bound, given)
        path.done.append(CallLocally(call, views, words, results, rank))
        for name in written:
            own: list[Boxes] = [()] * self.ranks
            assert rank is not None
            own[rank] = (views[name].in_memory(call.box(name)),)
            self.written(path, views[name].memory, [own])

    def views(self, node: ast.AST, bounds: Sequence[BoundNest], given: Mapping[str, Value]) -> dict[str, View]:
        """The arrays of a call by name. Raises RefusedError where one that is written shares memory with another."""
        found: dict[str, View] = {}
        written = {name for bound in bounds for name in bound.nest.written}
        for bound in bounds:
            for array in bound.arrays:
                view = given.get(array.name)
                if view is None:
                    view = self.given(array.name, self.outside[array.name])
                assert isinstance(view, View)
                found[array.name] = view
        for name in written:
            for other, view in found.items():
                if other != name and shares_memory(found[name], view):
                    self.refuse(
                        node, f"arrays {name} and {other} share memory, and {name} is written", f"Pass {other}.copy()"
                    )
        return found


class _Named(ast.NodeTransformer):
    """Puts names in the place of expressions, by their identity."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = names

    def visit(self, node: ast.AST) -> Any:
        if (name := self._names.get(id(node))) is not None:
            return ast.copy_location(ast.Name(name, ast.Load()), node)
        return super().generic_visit(node)


class _Sized:
    """What has a shape and nothing else."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape, self.ndim, self.size = shape, len(shape), math.prod(shape)

    def __len__(self) -> int:
        return self.shape[0]


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


def assign(path: Path, name: str, value: Value) -> None:
    """Give a name of the driver a value: numbers of the program's move to the register of that name."""
    path.names[name] = held(path, name, value)


def held(path: Path, name: str, value: Value) -> Value:
    """A value with numbers of the program's in the registers of a name."""
    match value:
        case Register():
            if value.name != name:
                path.done.append(SetTo(name, value.name))
            return replace(value, name=name)
        case Several(items=items):
            return Several(tuple(held(path, f"{name} {k}", item) for k, item in enumerate(items)))
    return value


def _names_of(path: Path, memory: str) -> frozenset[str]:
    return frozenset(name for name, value in path.names.items() if memory in memories_in(value))
