"""From a Python function's source to a LoopNest. The function is parsed, never executed."""

from __future__ import annotations

import ast
import builtins
import inspect
import os
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from lapwing.errors import RefusedError
from lapwing.loopnest import ir
from lapwing.loopnest.affine import Affine
from lapwing.loopnest.functions import SUPPORTED_TEXT, canonical_name, way_out

MAX_LOOPS = 8
MAX_DEPTH = 200  # levels of nesting in an expression; Python's own recursion limit is a few times that

_BINARY = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
}  # fmt: skip
_COMPARISON = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_UNARY = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not"}


def parse(function: Callable[..., Any]) -> ir.LoopNest:
    """Parse a plain Python function into a LoopNest.

    Raises RefusedError, naming file and line, for anything that is not a supported perfect nest.
    """
    return _Parser(function).nest()


@dataclass
class _Scope:
    """What names mean while parsing: filled as the parser goes down the function."""

    parameters: tuple[str, ...]
    setup_names: dict[str, ast.expr]
    loops: list[ir.Loop]
    temporaries: set[str]


class _Parser:
    def __init__(self, function: Callable[..., Any]) -> None:
        _check_plain_function(function)
        self.function = function
        self.file = _display_path(function)
        self.tree, self.lines = _function_tree(function, self.file)
        self.surroundings = self._surroundings()
        self.scope = _Scope(tuple(inspect.signature(function).parameters), {}, [], set())
        self.setups: list[ir.Setup] = []
        self.arrays: dict[str, None] = {}
        self.symbols: dict[str, ast.expr] = {}
        self.assigned_in_body: set[str] = set()

    def _surroundings(self) -> dict[str, Any]:
        try:
            names = inspect.getclosurevars(self.function)
        except ValueError:  # an empty cell
            unset = ", ".join(_unset_names(self.function))
            self._refuse(self.tree, f"{unset} has no value yet", "set it before the nest is defined")
        return {**names.builtins, **names.globals, **names.nonlocals}

    # -- the function ------------------------------------------------------------------------------------------------

    def nest(self) -> ir.LoopNest:
        self._check_signature()
        self._check_depth()
        statements = list(self.tree.body)
        if statements and _is_docstring(statements[0]):
            statements.pop(0)
        position = next((k for k, s in enumerate(statements) if isinstance(s, ast.For)), None)
        if position is None:
            self._refuse(self.tree, "no for loop was found", "a function holds one perfect nest of for loops")
        for statement in statements[:position]:
            self._setup(statement)
        body = self._loops(statements[position])
        nodes = [node for statement in body for node in ast.walk(statement)]
        self.assigned_in_body = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        accumulators = tuple(n for n in self.scope.setup_names if n in self.assigned_in_body)
        parsed = tuple(statement for s in body for statement in self._statements(s, accumulators))
        returns, returns_tuple = self._returns(statements[position + 1 :], accumulators)
        written = tuple(dict.fromkeys(s.target.array for s in parsed if isinstance(s, ir.Store)))
        if not written and not accumulators:
            self._refuse(self.tree, "the loops write no array and reduce nothing", "a nest assigns array elements")
        for name in written:
            if name not in self.scope.parameters:
                self._refuse(self.tree, f"{name} is written but is not an argument", "pass it as an argument")
        nest = ir.LoopNest(
            name=self.tree.name,
            file=self.file,
            line=self.tree.lineno,
            parameters=self.scope.parameters,
            setups=tuple(self.setups),
            loops=tuple(self.scope.loops),
            body=parsed,
            arrays=tuple(self.arrays),
            written=written,
            accumulators=accumulators,
            returns=returns,
            returns_tuple=returns_tuple,
            symbols=tuple(self.symbols.items()),
            sweep_depth=0,
        )
        return self._with_sweep_depth(nest)

    def _check_signature(self) -> None:
        for parameter in inspect.signature(self.function).parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                self._refuse(self.tree, f"{parameter} in the signature", "name every argument")

    def _check_depth(self) -> None:
        """Refuse what the recursion in later steps could not go down."""
        level: list[ast.AST] = list(self.tree.body)
        for _ in range(MAX_DEPTH):
            level = [child for node in level for child in ast.iter_child_nodes(node)]
        if level:
            self._refuse(
                next((node for node in level if hasattr(node, "lineno")), self.tree),
                f"an expression of more than {MAX_DEPTH} levels, such as a sum of as many terms",
                "take it apart with scalar temporaries: a = …, then b = a + …",
            )

    def _setup(self, statement: ast.stmt) -> None:
        """An assignment before the loops: scalars, ``n, m = u.shape``, and where reductions start."""
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                names: tuple[str, ...] = (name,)
            case ast.Assign(targets=[ast.Tuple(elts=elements)], value=value) if all(
                isinstance(e, ast.Name) for e in elements
            ):
                names = tuple(e.id for e in elements if isinstance(e, ast.Name))
            case _:
                self._refuse(
                    statement,
                    f"{self._source(statement)} before the loops",
                    "only scalars may be set before the loops, such as n, m = u.shape or best = 0; "
                    "do other work before the call",
                )
        for name in names:
            if name in self.scope.parameters:
                self._refuse(statement, f"{name} is an argument and is assigned again", "use another name")
            self.scope.setup_names[name] = value
        self._note_shape_uses(value)
        self.setups.append(ir.Setup(names, value, statement.lineno))

    def _loops(self, statement: ast.stmt) -> list[ast.stmt]:
        """Go down the perfect nest; return the statements of the innermost body."""
        while isinstance(statement, ast.For):
            self._loop(statement)
            inner = [s for s in statement.body if not _is_docstring(s)]
            nested = next((s for s in inner if isinstance(s, ast.For)), None)
            if nested is None:
                return inner
            if len(inner) > 1:
                other = next(s for s in inner if s is not nested)
                self._refuse(
                    other,
                    f"{self._source(other)} stands beside an inner loop, so this is not a perfect nest",
                    "every statement stands in the innermost loop; move it there, before the loops, or into a nest of its own",
                )
            statement = nested
        raise AssertionError("entered on a for loop")

    def _loop(self, node: ast.For) -> None:
        if node.orelse:
            self._refuse(node, "for … else", "a loop has no else")
        if not isinstance(node.target, ast.Name):
            self._refuse(node, f"loop over {self._source(node.target)}", "a loop has one index: for i in range(n)")
        name = node.target.id
        if name in self.scope.parameters or name in self.scope.setup_names or name in self._loop_names():
            self._refuse(node, f"loop index {name} already means something else", "give it a name of its own")
        call = node.iter
        if not (isinstance(call, ast.Call) and self._resolve(call.func) is range and not call.keywords):
            self._refuse(
                node, f"loop over {self._source(call)}", "loops go over range(stop), range(start, stop[, 1 or -1])"
            )
        if not 1 <= len(call.args) <= 3:
            self._refuse(node, f"{self._source(call)}", "range takes one to three arguments")
        if len(self.scope.loops) == MAX_LOOPS:
            self._refuse(node, f"more than {MAX_LOOPS} loops", f"at most {MAX_LOOPS} loops are supported")
        step = self._step(call.args[2]) if len(call.args) == 3 else 1
        start = self._bound(call.args[0]) if len(call.args) > 1 else Affine(0)
        stop = self._bound(call.args[1] if len(call.args) > 1 else call.args[0])
        self.scope.loops.append(ir.Loop(name, start, stop, step, node.lineno))

    def _step(self, node: ast.expr) -> int:
        affine = self._affine(node)
        if affine is None or affine.terms or affine.constant not in (1, -1):
            self._refuse(node, f"loop step {self._source(node)}", "steps are 1 or -1, written as a number")
        return affine.constant

    def _bound(self, node: ast.expr) -> Affine:
        affine = self._affine(node)
        if affine is None:
            self._refuse(
                node,
                f"loop bound {self._source(node)}",
                "bounds are affine in outer loop indices, arguments and array shapes",
            )
        return affine

    def _returns(self, rest: list[ast.stmt], accumulators: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
        if not rest:
            return (), False
        if len(rest) > 1 or not isinstance(rest[0], ast.Return):
            self._refuse(rest[0], f"{self._source(rest[0])} after the loops", "only return may follow the loops")
        value = rest[0].value
        if value is None or (isinstance(value, ast.Constant) and value.value is None):
            return (), False
        elements = value.elts if isinstance(value, ast.Tuple) else [value]
        if not elements:
            self._refuse(value, "return of ()", "a nest returns reductions, or nothing")
        names = []
        for element in elements:
            if not (isinstance(element, ast.Name) and element.id in accumulators):
                self._refuse(
                    element,
                    f"return of {self._source(element)}",
                    "a nest returns reductions (best = 0 before the loops, best = max(best, x) inside); "
                    "arrays are updated in place",
                )
            names.append(element.id)
        return tuple(names), isinstance(value, ast.Tuple)

    # -- the loop body -----------------------------------------------------------------------------------------------

    def _statements(self, node: ast.stmt, accumulators: tuple[str, ...]) -> tuple[ir.Statement, ...]:
        match node:
            case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                operator = None
            case ast.AugAssign(target=target, op=op, value=value):
                operator = _BINARY.get(type(op))
                if operator is None:
                    self._refuse(node, self._source(node), f"supported operators are {' '.join(_BINARY.values())}")
            case ast.If():
                self._refuse(node, "an if statement in the loops", "write x = a if condition else b")
            case _:
                self._refuse(
                    node,
                    f"{self._source(node)} in the loops",
                    "the body holds assignments to array elements, to scalar temporaries and to reductions",
                )
        if isinstance(target, ast.Name) and target.id in accumulators:
            return self._accumulate(node, target.id, operator, value)
        parsed = self._expression(value)
        if operator is not None:
            parsed = ir.Binary(operator, self._expression(_as_load(target)), parsed, line=node.lineno)
        if isinstance(target, ast.Subscript):
            access = self._access(_as_load(target))
            return (ir.Store(node.lineno, self._source(node), access, parsed),)
        if not isinstance(target, ast.Name):
            self._refuse(node, f"assignment to {self._source(target)}", "assign to an array element or to a name")
        name = target.id
        if name in self._loop_names() or name in self.scope.parameters:
            self._refuse(node, f"{name} is assigned in the loops", "loop indices and arguments keep their value")
        self.scope.temporaries.add(name)
        return (ir.SetTemporary(node.lineno, self._source(node), name, parsed),)

    def _accumulate(
        self, node: ast.stmt, name: str, operator: str | None, value: ast.expr
    ) -> tuple[ir.Accumulate, ...]:
        """Recognise a reduction: ``s += e``, ``s = s + e``, ``s = e + s``, ``s = max(s, e, …)`` and min alike.

        max and min take their terms one after the other, as Python does: with a NaN among them the order decides.
        """
        terms: tuple[ir.Expression, ...] = ()
        kind = operator
        match value:
            case _ if operator in ("+", "-"):
                terms = (self._expression(value),)
            case ast.BinOp(left=ast.Name(id=left), op=ast.Add() | ast.Sub() as op, right=right) if left == name:
                kind, terms = _BINARY[type(op)], (self._expression(right),)
            case ast.BinOp(left=left_value, op=ast.Add(), right=ast.Name(id=right_name)) if right_name == name:
                kind, terms = "+", (self._expression(left_value),)
            case ast.Call(func=function, args=arguments, keywords=[]) if operator is None:
                kind = canonical_name(self._resolve(function))
                own = [k for k, a in enumerate(arguments) if isinstance(a, ast.Name) and a.id == name]
                if kind in ("max", "min") and own == [0] and len(arguments) > 1:
                    terms = tuple(self._expression(a) for a in arguments[1:])
                elif kind in ("max", "min") and len(own) == 1:
                    self._refuse(node, self._source(node), f"put the reduction first: {name} = {kind}({name}, …)")
        if not terms or kind not in ("+", "-", "max", "min"):
            self._refuse(
                node,
                f"{self._source(node)} updates {name}, which was set before the loops",
                f"reductions are {name} = max({name}, x), {name} = min({name}, x) and {name} += x; "
                "other scalars are set and used within one iteration",
            )
        if kind == "-":
            kind, terms = "+", tuple(ir.Unary("-", term, line=node.lineno) for term in terms)
        return tuple(ir.Accumulate(node.lineno, self._source(node), name, kind, term) for term in terms)

    # -- expressions -------------------------------------------------------------------------------------------------

    def _expression(self, node: ast.expr) -> ir.Expression:
        line = node.lineno
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                return ir.Constant(value, line=line)
            case ast.Name(id=name):
                return self._name(node, name)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript(value=ast.Name()):
                return self._access(node)
            case ast.Subscript() if self._shape_symbol(node) is not None:
                return self._symbol_parameter(node)
            case ast.Subscript(value=ast.Subscript()):
                return self._access(node)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)) if (
                type(number) is not bool
            ):
                return ir.Constant(-number, line=line)
            case ast.UnaryOp(op=op, operand=operand):
                return ir.Unary(_UNARY[type(op)], self._expression(operand), line=line)
            case ast.BinOp(left=left, op=op, right=right):
                operator = _BINARY.get(type(op))
                if operator is None:
                    self._refuse(node, self._source(node), f"supported operators are {' '.join(_BINARY.values())}")
                return ir.Binary(operator, self._expression(left), self._expression(right), line=line)
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                return self._comparison(node, [left, *comparators], ops)
            case ast.BoolOp(op=op, values=values):
                operands = tuple(self._expression(v) for v in values)
                return ir.Boolean("and" if isinstance(op, ast.And) else "or", operands, line=line)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return ir.Conditional(
                    self._expression(test), self._expression(body), self._expression(orelse), line=line
                )
            case ast.Call():
                return self._call(node)
        self._refuse(
            node,
            f"{self._source(node)} in the loops",
            "expressions are made of numbers, names, array elements, arithmetic, comparisons, "
            f"a if c else b, and calls; {SUPPORTED_TEXT}",
        )

    def _name(self, node: ast.expr, name: str) -> ir.Expression:
        line = node.lineno
        if name in self._loop_names():
            return ir.LoopIndex(name, line=line)
        if name in self.scope.temporaries:
            return ir.Temporary(name, line=line)
        if name in self.assigned_in_body:
            if name in self.scope.setup_names:
                self._refuse(
                    node,
                    f"reduction {name} is read in the loops",
                    f"its value is only known after them: only {name} = max({name}, x), min or {name} += x may use it",
                )
            self._refuse(
                node,
                f"{name} is used before it is assigned in the same iteration",
                "scalars do not carry values from one iteration to the next; keep such values in an array",
            )
        if name in self.scope.setup_names or name in self.scope.parameters:
            return ir.Parameter(name, line=line)
        value = self.surroundings.get(name)
        if isinstance(value, bool | int | float) or _is_numpy_scalar(value):
            self.symbols.setdefault(name, node)
            return ir.Parameter(name, line=line)
        self._refuse(
            node,
            f"{name} is not known here" if value is None else f"{name} is {type(value).__name__}",
            "names are loop indices, arguments, temporaries, scalars set before the loops, and global numbers",
        )

    def _attribute(self, node: ast.Attribute) -> ir.Expression:
        value = self._resolve(node)
        if isinstance(value, bool | int | float):
            return ir.Constant(value, line=node.lineno)  # math.pi and the like
        self._refuse(
            node, f"{self._source(node)} in the loops", "constants such as math.pi, and shapes such as u.shape[0]"
        )

    def _comparison(self, node: ast.expr, operands: list[ast.expr], ops: list[ast.cmpop]) -> ir.Expression:
        parts = []
        for left, op, right in zip(operands, ops, operands[1:], strict=False):
            operator = _COMPARISON.get(type(op))
            if operator is None:
                self._refuse(node, self._source(node), f"supported comparisons are {' '.join(_COMPARISON.values())}")
            parts.append(ir.Comparison(operator, self._expression(left), self._expression(right), line=node.lineno))
        return parts[0] if len(parts) == 1 else ir.Boolean("and", tuple(parts), line=node.lineno)

    def _call(self, node: ast.Call) -> ir.Expression:
        if self._shape_symbol(node) is not None:
            return self._symbol_parameter(node)
        function = self._resolve(node.func)
        name = canonical_name(function) if function is not None else None
        if name is None:
            found = f"call of {self._source(node.func)}"
            hint = way_out(function, self._source(node)) if function is not None else SUPPORTED_TEXT
            self._refuse(node, found, hint)
        if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            self._refuse(node, self._source(node), "calls take plain positional arguments")
        expected = {"min": 2, "max": 2, "math.atan2": 2, "math.pow": 2, "math.fmod": 2, "math.copysign": 2}.get(name, 1)
        if len(node.args) < expected or (len(node.args) > expected and name not in ("min", "max")):
            self._refuse(
                node, self._source(node), f"{name} takes {expected} argument{'s' if expected > 1 else ''} here"
            )
        return ir.Call(name, tuple(self._expression(a) for a in node.args), line=node.lineno)

    def _access(self, node: ast.expr) -> ir.Access:
        assert isinstance(node, ast.Subscript)
        if not isinstance(node.value, ast.Name):
            self._refuse(node, self._source(node), "index an array by its name: u[i, j]")
        name = node.value.id
        known = name in self.scope.parameters or _is_numpy_array(self.surroundings.get(name))
        if not known or name in self.scope.temporaries:
            self._refuse(node, f"{name} is indexed", "only array arguments and global NumPy arrays can be indexed")
        elements = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(isinstance(e, ast.Slice | ast.Starred) or _is_ellipsis(e) for e in elements):
            self._refuse(node, f"{self._source(node)} takes a slice", "index single elements: one index per axis")
        self.arrays.setdefault(name)
        return ir.Access(
            name,
            tuple(self._expression(e) for e in elements),
            tuple(self._affine(e) for e in elements),
            self._source(node),
            line=node.lineno,
        )

    # -- affine expressions and symbols --------------------------------------------------------------------------------

    def _affine(self, node: ast.expr) -> Affine | None:
        """The node as an affine expression of loop indices and symbols; None where it is not one."""
        match node:
            case ast.Constant(value=value) if type(value) is int:
                return Affine(value)
            case ast.Name(id=name) if name in self._loop_names():
                return Affine.of(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self._affine(operand)
                return None if inner is None else -inner
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
                a, b = self._affine(left), self._affine(right)
                if a is not None and b is not None:
                    return a + b if isinstance(op, ast.Add) else a - b
                return None
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                a, b = self._affine(left), self._affine(right)
                if a is not None and b is not None and not (a.terms and b.terms):
                    return b.scaled(a.constant) if not a.terms else a.scaled(b.constant)
        if self._is_fixed(node):
            return Affine.of(self._symbol(node))
        return None

    def _is_fixed(self, node: ast.expr) -> bool:
        """Whether the value is the same for the whole call: no loop index, temporary or array element inside."""
        if self._shape_symbol(node) is not None:
            return True
        match node:
            case ast.Constant(value=value):
                return type(value) is int
            case ast.Name(id=name):
                if name in self._loop_names() or name in self.scope.temporaries or name in self.assigned_in_body:
                    return False
                return (
                    name in self.scope.setup_names
                    or name in self.scope.parameters
                    or type(self.surroundings.get(name)) is int
                )
            case ast.UnaryOp(operand=operand):
                return self._is_fixed(operand)
            case ast.BinOp(left=left, right=right):
                return self._is_fixed(left) and self._is_fixed(right)
            case ast.Call(func=ast.Name(id="min" | "max" | "abs" | "int"), args=args, keywords=[]):
                return all(self._is_fixed(a) for a in args)
        return False

    def _symbol(self, node: ast.expr) -> str:
        """The name under which a fixed value takes part in affine expressions."""
        name = ast.unparse(node)
        self._note_shape_uses(node)
        self.symbols.setdefault(name, node)
        return name

    def _symbol_parameter(self, node: ast.expr) -> ir.Parameter:
        return ir.Parameter(self._symbol(node), line=node.lineno)

    def _shape_symbol(self, node: ast.expr) -> str | None:
        """The array's name if the node is ``u.shape[k]`` or ``len(u)``."""
        match node:
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=ast.Constant() | ast.UnaryOp()
            ):
                return name
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)], keywords=[]):
                return name
        return None

    def _note_shape_uses(self, node: ast.AST) -> None:
        for part in ast.walk(node):
            match part:
                case (
                    ast.Attribute(value=ast.Name(id=name), attr="shape" | "ndim" | "size")
                    | ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)])
                ):
                    self.arrays.setdefault(name)

    def _loop_names(self) -> list[str]:
        return [loop.name for loop in self.scope.loops]

    def _resolve(self, node: ast.expr) -> Any:
        """The object a global name or dotted name refers to, or None."""
        match node:
            case ast.Name(id=name):
                if name in self.scope.parameters or name in self.scope.setup_names:
                    return None
                return self.surroundings.get(name, getattr(builtins, name, None))
            case ast.Attribute(value=value, attr=attribute):
                owner = self._resolve(value)
                return getattr(owner, attribute, None) if inspect.ismodule(owner) else None
        return None

    # -- which loops are sweeps ----------------------------------------------------------------------------------------

    def _with_sweep_depth(self, nest: ir.LoopNest) -> ir.LoopNest:
        """Check that accesses to written arrays are uniform and find how many outer loops are sweeps."""
        axes = {name: self._axis_loops(nest, name) for name in nest.written}
        depth = 0
        for name, loops in axes.items():
            missing = [k for k, loop in enumerate(nest.loops) if loop.name not in loops]
            if missing and missing[-1] == len(nest.loops) - 1:
                store = next(s for s in nest.stores if s.target.array == name)
                self._refuse_line(
                    store.line,
                    f"{store.target.text} is written but not indexed by the innermost loop {nest.loops[-1].name}",
                    "a written array is indexed by all loops, or by all but outer sweep or time loops; "
                    "make the missing loop the outermost, or use a reduction",
                )
            depth = max(depth, missing[-1] + 1 if missing else 0)
        return ir.LoopNest(**{**nest.__dict__, "sweep_depth": depth})

    def _axis_loops(self, nest: ir.LoopNest, array: str) -> list[str]:
        """The loop that indexes each axis of a written array, the same in every access."""
        axes: list[str] | None = None
        accesses = [s.target for s in nest.stores] + [a for s in nest.body for a in ir.statement_reads(s)]
        for access in (a for a in accesses if a.array == array):
            found: list[str] = []
            for position, affine in enumerate(access.affine):
                expected = axes[position] if axes and position < len(axes) else None
                loop = self._uniform_loop(affine, nest)
                if loop is None or (expected and loop != expected) or loop in found:
                    wanted = expected or "a loop index"
                    text = _subscript_text(access.text, position)
                    self._refuse_line(
                        access.line,
                        f"{access.text} is not a uniform access: index {position + 1} is {text}, "
                        f"expected {wanted} plus a constant",
                        f"an array that the nest writes ({array}) is indexed everywhere by the same loops in the same "
                        "order, each plus a constant; read other places from a copy passed as a second, read-only array",
                    )
                found.append(loop)
            if axes is not None and len(found) != len(axes):
                self._refuse_line(
                    access.line, f"{access.text} has {len(found)} indices, elsewhere {array} has {len(axes)}",
                    "index every axis of an array",
                )  # fmt: skip
            axes = found
        assert axes is not None
        return axes

    def _uniform_loop(self, affine: Affine | None, nest: ir.LoopNest) -> str | None:
        if affine is None or len(affine.terms) != 1:
            return None
        name, coefficient = affine.terms[0]
        return name if coefficient == 1 and name in nest.loop_names else None

    def _source(self, node: ast.AST) -> str:
        """The node as the user wrote it, where it stands on one line."""
        line = getattr(node, "lineno", None)
        if line is not None and line == getattr(node, "end_lineno", None) and line in self.lines:
            encoded = self.lines[line].encode()
            return encoded[getattr(node, "col_offset", 0) : getattr(node, "end_col_offset", None)].decode()
        text = ast.unparse(node)
        return text if "\n" not in text else text.splitlines()[0] + " …"

    # -- refusals ------------------------------------------------------------------------------------------------------

    def _refuse(self, node: ast.AST, found: str, supported: str) -> NoReturn:
        self._refuse_line(getattr(node, "lineno", self.tree.lineno), found, supported)

    def _refuse_line(self, line: int, found: str, supported: str) -> NoReturn:
        raise RefusedError(f"{self.file}:{line}: {found}. {supported[0].upper()}{supported[1:].rstrip('.')}.")


def _subscript_text(text: str, position: int) -> str:
    node = ast.parse(text, mode="eval").body
    assert isinstance(node, ast.Subscript)
    element = node.slice.elts[position] if isinstance(node.slice, ast.Tuple) else node.slice
    return ast.get_source_segment(text, element) or ast.unparse(element)


def _display_path(function: Callable[..., Any]) -> str:
    path = inspect.getsourcefile(function) or "<unknown>"
    if not os.path.exists(path):
        return path
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def _check_plain_function(function: object) -> None:
    name = getattr(function, "__name__", repr(function))
    if not inspect.isfunction(function):
        raise RefusedError(
            f"@lw.nest on {name}: found {type(function).__name__}, expected a plain Python function. "
            "Put @lw.nest directly above def."
        )
    if hasattr(function, "__wrapped__"):
        raise RefusedError(
            f"{_display_path(function)}: @lw.nest on {name}: found a function wrapped by another decorator, expected a "
            "plain one, whose loops are all it does. Put @lw.nest directly above def."
        )


def _unset_names(function: Callable[..., Any]) -> list[str]:
    """The variables of enclosing functions that have no value."""
    found = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            cell.cell_contents  # noqa: B018
        except ValueError:
            found.append(name)
    return found


def _function_tree(function: Callable[..., Any], file: str) -> tuple[ast.FunctionDef, dict[int, str]]:
    """The function's syntax tree with line numbers of the file, and its source lines by those numbers."""
    name = function.__name__
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise RefusedError(
            f"{file}: the source of {name} cannot be read, and Lapwing works from the source. "
            "Define the function in a file or a notebook cell."
        ) from None
    text = textwrap.dedent("".join(lines))
    tree = ast.parse(text)
    node = tree.body[0]
    if not isinstance(node, ast.FunctionDef):
        raise RefusedError(f"{file}:{first}: {name} is not a plain function. Write def {name}(…): with loops.")
    ast.increment_lineno(node, first - 1)
    return node, dict(enumerate(text.splitlines(), first))


def _as_load(node: ast.expr) -> ast.expr:
    """The same target read instead of written, for augmented assignments and access parsing."""
    copy = ast.parse(ast.unparse(node), mode="eval").body
    return ast.copy_location(_relocated(copy, node), node)


def _relocated(copy: ast.expr, original: ast.expr) -> ast.expr:
    for part in ast.walk(copy):
        if isinstance(part, ast.expr):
            ast.copy_location(part, original)
    return copy


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and (node.value is ... or node.value is None)


def _is_numpy_scalar(value: Any) -> bool:
    return type(value).__module__ == "numpy" and hasattr(value, "dtype") and getattr(value, "shape", None) == ()


def _is_numpy_array(value: Any) -> bool:
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"
