"""Statements of the innermost body: from Python's syntax tree to assignments of the IR."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import NoReturn

from lapwing.affine.affine import Affine
from lapwing.loopnest import ir
from lapwing.loopnest.frontend.expressions import BINARY, ExpressionParser, subscripts
from lapwing.loopnest.functions import canonical_name
from lapwing.loopnest.normalisation.counted_loops import Unpacking
from lapwing.loopnest.refusals import Stopped
from lapwing.syntax_places import placed

_COMPARED: dict[type[ast.cmpop], str] = {ast.Gt: ">", ast.GtE: ">=", ast.Lt: "<", ast.LtE: "<="}
_SWAPPED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}


class StatementParser(ExpressionParser):
    """Parses statements of one function. accumulators: the names of its reductions."""

    tree: ast.FunctionDef
    inner_loops = 0  # how many we are in

    def statement(self, node: ast.stmt, accumulators: tuple[str, ...]) -> list[ir.Statement]:
        """The assignments that a statement of the innermost body is."""
        match node:
            case ast.Assign(targets=targets, value=value):
                pairs = [(target, value) for target in targets]
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                pairs = [(target, value)]
            case ast.AugAssign(target=target, op=op, value=value):
                if type(op) not in BINARY:
                    self.refuse(node, self.source.text(node), f"supported operators are {' '.join(BINARY.values())}")
                if isinstance(target, ast.Name) and target.id in accumulators:
                    return self._accumulate(node, target.id, BINARY[type(op)], value)
                if isinstance(target, ast.Name):
                    self.scope.changed.add(target.id)
                    self._check_not_in_place(node, target.id)
                pairs = [(target, ast.copy_location(ast.BinOp(_as_load(target), op, value), node))]
            case ast.If():
                return self._if(node, accumulators)
            case ast.For():
                return self._for(node, accumulators)
            case ast.While():
                return self._while(node, accumulators)
            case ast.Continue():
                return [ir.Continue(node.lineno, "continue")]
            case ast.Break() if self.inner_loops:
                return [ir.Break(node.lineno, "break")]
            case _:
                self._refuse_statement(node)
        if len(pairs) == 1 and not isinstance(pairs[0][0], ast.Tuple | ast.List):
            return self._assign(node, *pairs[0], accumulators)
        return self._assign_several(node, pairs, accumulators)

    def block(self, nodes: Iterable[ast.stmt], accumulators: tuple[str, ...]) -> tuple[ir.Statement, ...]:
        """Statements in a row. Where one is refused, the next are looked at all the same."""
        found: list[ir.Statement] = []
        for node in nodes:
            if does_nothing(node):
                continue
            try:
                found += self.statement(node, accumulators)
            except Stopped:
                self.scope.refused |= bound_names(node).difference(accumulators)
        return tuple(found)

    def _if(self, node: ast.If, accumulators: tuple[str, ...]) -> list[ir.Statement]:
        if (extremum := self._extremum(node, accumulators)) is not None:
            return extremum
        text = f"if {self.source.text(node.test)}:"
        test = self._unless_refused(node.test)
        with self.conditionally():
            then, otherwise = self.block(node.body, accumulators), self.block(node.orelse, accumulators)
        if test is None:
            raise Stopped
        return [ir.If(node.lineno, text, test, then, otherwise)]

    def _extremum(self, node: ast.If, accumulators: tuple[str, ...]) -> list[ir.Statement] | None:
        """``if x > best: best = x; where = i``: a reduction; None for any other statement."""
        test = node.test
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) and not node.orelse:
            *conditions, last = test.values
            inner = ast.copy_location(ast.If(last, node.body, []), node)
            found = self._extremum(inner, accumulators)
            if found is None:
                return None
            rest = conditions[0] if len(conditions) == 1 else ast.copy_location(ast.BoolOp(ast.And(), conditions), test)
            text = f"if {self.source.text(rest)}:"
            return [ir.If(node.lineno, text, self.expression(rest), tuple(found), ())]
        match test:
            case ast.Compare(left=value, ops=[op], comparators=[ast.Name(id=name)]) if name in accumulators:
                operator = _COMPARED.get(type(op))
            case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[value]) if name in accumulators:
                operator = _SWAPPED.get(_COMPARED.get(type(op), ""))
            case _:
                return None
        given: dict[str, ast.expr] = {}
        for statement in node.body:
            if not isinstance(statement, ast.Assign):
                return None
            for target in statement.targets:
                for one, its in self._unpacked(statement, target, statement.value):
                    if not (isinstance(one, ast.Name) and one.id in accumulators) or one.id in given:
                        return None
                    given[one.id] = its
        if operator is None or node.orelse or name not in given or ast.dump(given.pop(name)) != ast.dump(value):
            return None
        text = f"if {self.source.text(test)}: {'; '.join(self.source.text(s) for s in node.body)}"
        extremum, *kept = self.expressions(value, *given.values())
        if not given:
            operator = "max" if operator[0] == ">" else "min"
        payload = tuple(zip(given, kept, strict=True))
        return [ir.Accumulate(node.lineno, text, name, operator, extremum, payload)]

    def _while(self, node: ast.While, accumulators: tuple[str, ...]) -> list[ir.Statement]:
        if node.orelse:
            self._refuse_else(node, "while")
        with self._inside(node):
            test = self._unless_refused(node.test)
            body = self.block(node.body, accumulators)
        if test is None:
            raise Stopped
        return [ir.While(node.lineno, f"while {self.source.text(node.test)}:", test, body)]

    def _for(self, node: ast.For, accumulators: tuple[str, ...]) -> list[ir.Statement]:
        """An inner loop."""
        if node.orelse:
            self._refuse_else(node, "for")
        if hasattr(node, "ends_apart"):
            self.refuse(node, self.source.text(node), "loops are made perfect nests where all of them are cut")
        name = self.index_of(node)
        start, stop, step = self.range_of(node)
        steps = self.affine(step)
        affine: tuple[Affine | None, Affine | None] = None, None
        if steps is not None and not steps.terms:
            if steps.constant == 0:
                self.refuse(node, f"loop step {self.source.text(step)}", "a step is a number other than 0")
            step = ast.copy_location(ast.Constant(steps.constant), step)
            affine = self.affine(start), self.affine(stop)
        first, last, by = self.expressions(start, stop, step)
        self.scope.inner_indices.append(name)
        sums = self._sums_of(node, accumulators)
        with self._inside(node):
            body = self.block(node.body, (*accumulators, *sums))
        self.scope.inner_indices.pop()
        if name in self._read_after_their_loop:
            body = (ir.SetTemporary(node.lineno, name, name, ir.LoopIndex(name, line=node.lineno)), *body)
            self.scope.temporaries.add(name)
        text = f"for {name} in {self.source.text(node.iter)}:"
        is_innermost = not any(isinstance(s, ir.For | ir.While) for s in ir.all_statements(body))
        independent = is_innermost and (node.lineno, node.col_offset) in self.source.independent
        loop = ir.For(node.lineno, text, name, first, last, by, affine, body, independent)
        line = node.lineno
        return [loop, *(ir.Rounded(line, f"{n}, rounded", n, ir.Temporary(n, line=line)) for n in sums)]

    def _sums_of(self, node: ast.For, accumulators: tuple[str, ...]) -> tuple[str, ...]:
        """The scalars that a loop in its own order adds terms to, exactly."""
        if not self.scope.carries_scalars:
            return ()
        sums = self.source.sums.get((node.lineno, node.col_offset), ())
        return tuple(name for name in sums if name not in accumulators)

    @contextmanager
    def _inside(self, loop: ast.For | ast.While) -> Iterator[None]:
        scope = self.scope
        before = scope.assigned_in_loop, scope.is_conditional
        # Under a condition around the loop its first iteration is the first all the same.
        known = scope.assigned_in_loop if scope.is_conditional else frozenset()
        scope.assigned_in_loop, scope.is_conditional = known | assigned(loop.body), False
        self.inner_loops += 1
        yield
        self.inner_loops -= 1
        scope.assigned_in_loop, scope.is_conditional = before

    @cached_property
    def _read_after_their_loop(self) -> set[str]:
        """Indices of loops that are read outside of them: the last value counts there."""
        found: set[str] = set()

        def visit(node: ast.AST, inside: frozenset[str]) -> None:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in inside:
                found.add(node.id)
            if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
                visit(node.iter, inside)
                inside |= {node.target.id}
                for statement in node.body:
                    visit(statement, inside)
                return
            for child in ast.iter_child_nodes(node):
                visit(child, inside)

        visit(self.tree, frozenset())
        return found

    def _unless_refused(self, node: ast.expr) -> ir.Expression | None:
        """An expression; None where it is refused, so that what follows is looked at before its parent stops."""
        try:
            return self.expression(node)
        except Stopped:
            return None

    def _refuse_else(self, node: ast.stmt, kind: str) -> None:
        self.refusals.note(node.lineno, f"{kind} … else", "a loop has no else; move what stands there behind the loop")

    def index_of(self, node: ast.For) -> str:
        """The index of a loop, which means nothing else."""
        if not isinstance(node.target, ast.Name):
            self.scope.refused |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
            self.refuse(
                node,
                f"loop over {self.source.text(node.target)}",
                "a loop has one index: for i in range(n); what belongs to it is u[i]",
            )
        name = node.target.id
        if name in self.scope.parameters or name in self.scope.setup_names or name in self.scope.loop_names:
            self.scope.refused.add(name)
            self.refuse(node, f"loop index {name} already means something else", "give it a name of its own")
        return name

    def range_of(self, node: ast.For) -> tuple[ast.expr, ast.expr, ast.expr]:
        """Start, stop and step of a loop, as they are written."""
        return self._range(node, node.iter)

    def _range(self, node: ast.For, call: ast.expr) -> tuple[ast.expr, ast.expr, ast.expr]:
        if isinstance(call, ast.IfExp):
            ways = zip(self._range(node, call.body), self._range(node, call.orelse), strict=True)
            start, stop, step = (
                then
                if ast.dump(then) == ast.dump(orelse)
                else ast.copy_location(ast.IfExp(call.test, then, orelse), call)
                for then, orelse in ways
            )
            return start, stop, step
        if not (isinstance(call, ast.Call) and self.resolve(call.func) is range and not call.keywords):
            text = self.source.text(call)
            advice = "loops go over range(stop), range(start, stop[, step]); downwards over range(n - 1, -1, -1)"
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in self.scope.parameters:
                advice += f"; give the argument {call.func.id} another name"
            self.refuse(node, f"loop over {text}", advice)
        if not 1 <= len(call.args) <= 3:
            self.refuse(node, f"{self.source.text(call)}", "range takes one to three arguments")
        first = call.args[0] if len(call.args) > 1 else ast.copy_location(ast.Constant(0), call)
        step = call.args[2] if len(call.args) == 3 else ast.copy_location(ast.Constant(1), call)
        return first, call.args[min(1, len(call.args) - 1)], step

    def _refuse_statement(self, node: ast.stmt) -> NoReturn:
        text = f"{self.source.text(node)} in the loops"
        if isinstance(node, ast.Expr) and (why := getattr(node.value, "why_called", None)):
            text += f": {why}"
        if isinstance(node, ast.Break | ast.Return):
            self.refuse(
                node,
                text,
                "every iteration runs: put what is not always done under an if, and what is looked for in a reduction: "
                "if x < best: best = x",
            )
        if isinstance(node, ast.Raise | ast.Assert):
            self.refuse(
                node,
                text,
                "loops raise nothing of their own: keep what shows that something is wrong in a reduction, "
                "worst = max(worst, x), and look at it after the call",
            )
        self.refuse(
            node,
            text,
            "the body holds assignments to array elements, to scalar temporaries and to reductions, if statements and inner "
            "loops; do other work before or after the call",
        )

    def _assign_several(
        self, node: ast.stmt, pairs: list[tuple[ast.expr, ast.expr]], accumulators: tuple[str, ...]
    ) -> list[ir.Statement]:
        """``a, b = b, a`` and ``a = b = x``: every value is computed before anything is assigned, as Python does."""
        single = [pair for target, value in pairs for pair in self._unpacked(node, target, value)]
        given = [t.id for t, _ in single if isinstance(t, ast.Name) and t.id in self.scope.parameters]
        if given and not self.scope.carries_scalars:
            self.refuse(
                node,
                f"{', '.join(dict.fromkeys(given))} are assigned in the loops: {self.source.text(node)}",
                "arguments keep their value there; where arrays change places, write that loop in Python and call a nest of the "
                "inner ones from it",
            )
        reduced = [(t, v) for t, v in single if isinstance(t, ast.Name) and t.id in accumulators]
        others = [pair for pair in single if pair not in reduced]
        names_reduced = [target.id for target, _ in reduced]
        for name in {name for name in names_reduced if names_reduced.count(name) > 1}:
            self.refuse(
                node, f"{self.source.text(node)} assigns to {name} twice", "write each update on a line of its own"
            )
        # Not names that Python allows, so nobody else's.
        names = {v: ast.copy_location(ast.Name(f"{ast.unparse(t)} =", ast.Load()), v) for t, v in others}
        text = self.source.text(node)
        held = zip(names.values(), self.expressions(*names), strict=True)
        parsed: list[ir.Statement] = [ir.SetTemporary(node.lineno, text, name.id, its) for name, its in held]
        for reduction, value in reduced:  # nothing in the body reads them
            parsed += self._assign(node, reduction, value, accumulators)
        self.scope.temporaries |= {name.id for name in names.values()}
        for target, value in others:
            parsed += self._assign(node, target, names[value], accumulators)
        return parsed

    def _unpacked(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
        """Each single target with its value."""
        if not isinstance(target, ast.Tuple | ast.List):
            yield target, value
            return
        starred = any(isinstance(e, ast.Starred) for e in target.elts)
        if isinstance(value, ast.Subscript) and not starred and (row := self._row(value, len(target.elts))) is not None:
            value = row
        match value:
            case ast.Attribute(value=ast.Name(id=name), attr="shape") if not starred and self.is_array(name):
                count = len(target.elts)
                self.unpackings.append(Unpacking(name, None, count, value.lineno))
                sizes: list[ast.expr] = [ast.Subscript(value, ast.Constant(k), ast.Load()) for k in range(count)]
                value = placed(value, ast.Tuple(sizes, ast.Load()))
        if starred or not isinstance(value, ast.Tuple | ast.List) or len(value.elts) != len(target.elts):
            self.refuse(
                node,
                f"{self.source.text(node)} in the loops",
                f"{len(target.elts)} targets take {len(target.elts)} values, as in a, b = b, a + b; "
                "else write one assignment for each",
            )
        for one, its in zip(target.elts, value.elts, strict=True):
            yield from self._unpacked(node, one, its)

    def _row(self, node: ast.Subscript, count: int) -> ast.Tuple | None:
        """The elements of a row of an array that has so many; None where it is none."""
        name, indices = subscripts(node)
        if name is None or not self.is_array(name) or any(isinstance(index, ast.Slice) for index in indices):
            return None
        self.unpackings.append(Unpacking(name, len(indices), count, node.lineno))
        elements: list[ast.expr] = []
        for k in range(count):
            parts = [*copy.deepcopy(indices), ast.Constant(k)]
            elements.append(ast.Subscript(ast.Name(name, ast.Load()), ast.Tuple(parts, ast.Load()), ast.Load()))
        return placed(node, ast.Tuple(elements, ast.Load()))

    def _assign_row(self, node: ast.stmt, target: ast.Subscript, value: ast.Tuple | ast.List) -> list[ir.Statement]:
        """``rows[k] = a, b``"""
        row = self._row(target, len(value.elts))
        if row is None:
            self.refuse(node, f"assignment to {self.source.text(target)}", "assign to an array element or to a name")
        text, line = self.source.text(node), node.lineno
        values = self.expressions(*value.elts)
        names = [f"{ast.unparse(target)} {k} =" for k in range(len(values))]  # not names that Python allows
        held: list[ir.Statement] = []
        for k, name in enumerate(names):
            # An array of all values is made first: they are of one kind, or it is refused.
            alike = ir.Call("element", (values[k], *values[:k], *values[k + 1 :]), line=line)
            held.append(ir.SetTemporary(line, text, name, alike))
        self.scope.temporaries |= set(names)
        stores: list[ir.Statement] = []
        for element, name in zip(row.elts, names, strict=True):
            access = self.access(element)
            stores.append(ir.Store(line, text, access, ir.Temporary(name, line=line)))
        return [*held, *stores]

    def _assign(
        self,
        node: ast.stmt,
        target: ast.expr,
        value: ast.expr,
        accumulators: tuple[str, ...],
    ) -> list[ir.Statement]:
        """One assignment to one target."""
        text = self.source.text(node)
        if isinstance(target, ast.Name):
            name = target.id
            if name in accumulators:
                return self._accumulate(node, name, None, value)
            if name in self.scope.loop_names or (name in self.scope.parameters and not self.scope.carries_scalars):
                advice = f"loop indices and arguments keep their value; use another name than {name}"
                self.refuse(node, f"{name} is assigned in the loops", advice)
            parsed = self.expression(value)
            self.scope.temporaries.add(name)
            if _may_be_array(parsed, self.scope.from_where):
                self.scope.from_where.add(name)
                self._check_not_in_place(node, name)
            return [ir.SetTemporary(node.lineno, text, name, parsed)]
        if isinstance(target, ast.Subscript) and isinstance(value, ast.Tuple | ast.List) and value.elts:
            return self._assign_row(node, target, value)
        if not isinstance(target, ast.Subscript):
            self.refuse(node, f"assignment to {self.source.text(target)}", "assign to an array element or to a name")
        access, parsed = self.refusals.each(self.expression, (_as_load(target), value))
        if not isinstance(access, ir.Access):
            self.refuse(node, f"assignment to {self.source.text(target)}", "index an array by its name: u[i, j]")
        return [ir.Store(node.lineno, text, access, parsed)]

    def _check_not_in_place(self, node: ast.stmt, name: str) -> None:
        """An array of no axes keeps its dtype, and changes under all its names."""
        if name in self.scope.changed and name in self.scope.from_where:
            advice = f"write {name} = {name} + x for {name} += x"
            self.refuse(node, f"{name} is what numpy.where gives, an array, and is changed in place", advice)

    def _accumulate(self, node: ast.stmt, name: str, operator: str | None, value: ast.expr) -> list[ir.Statement]:
        """Recognise a reduction: ``s += e``, ``s = s + e``, ``s = e + s``, ``s = max(s, e, …)`` and min alike.

        max and min take their terms one after the other, as Python does: with a NaN among them the order decides.
        """
        terms: Sequence[ir.Expression] = ()
        kind = operator
        text = self.source.text(node)
        match value:
            case _ if operator in ("+", "-"):
                terms = self.expressions(value)
            case ast.Constant() | ast.UnaryOp(operand=ast.Constant()) if operator is None:
                kind, terms = "set", self.expressions(value)
            case ast.BinOp(left=ast.Name(id=left), op=ast.Add() | ast.Sub() as op, right=right) if left == name:
                kind, terms = BINARY[type(op)], self.expressions(right)
            case ast.BinOp(left=left_value, op=ast.Add(), right=ast.Name(id=right_name)) if right_name == name:
                kind, terms = "+", self.expressions(left_value)
            case ast.Call(func=function, args=arguments, keywords=[]) if operator is None:
                kind = canonical_name(self.resolve(function))
                own = [k for k, a in enumerate(arguments) if isinstance(a, ast.Name) and a.id == name]
                if kind in ("max", "min") and own == [0] and len(arguments) > 1:
                    terms = self.expressions(*arguments[1:])
                elif kind in ("max", "min") and len(own) == 1:
                    self.refuse(node, text, f"put the reduction first: {name} = {kind}({name}, …)")
        if not terms or kind not in ("+", "-", "max", "min", "set"):
            self.refuse(
                node,
                f"{text} updates {name}, which was set before the loops",
                f"reductions are {name} = max({name}, x), {name} = min({name}, x), {name} += x and {name} = a number; "
                "other scalars are set and used within one iteration, under a name that is not set before the loops",
            )
        if kind == "-":
            kind, terms = "+", [ir.Unary("-", term, line=node.lineno) for term in terms]
        if self.scope.carries_scalars:
            return [self._add_term(node, name, kind, term) for term in terms]
        return [ir.Accumulate(node.lineno, text, name, kind, term) for term in terms]

    def _add_term(self, node: ast.stmt, name: str, kind: str, term: ir.Expression) -> ir.Statement:
        text, line = self.source.text(node), node.lineno
        if kind != "+":
            self.refuse(node, text, "a sum that is exact takes terms and nothing else")
        added = ir.Binary("+", ir.Temporary(name, line=line), term, line=line)
        return ir.AddTerm(line, text, name, added, term)


def assigned(statements: Iterable[ast.stmt]) -> set[str]:
    """The names that statements assign to."""
    nodes = (node for statement in statements for node in ast.walk(statement))
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def does_nothing(node: ast.stmt) -> bool:
    """A docstring, ``pass``, ``...`` and a bare annotation change nothing."""
    match node:
        case ast.Pass() | ast.AnnAssign(target=ast.Name(), value=None):
            return True
        case ast.Expr(value=ast.Constant(value=value)):
            return isinstance(value, str) or value is ...
    return False


def bound_names(statement: ast.stmt) -> set[str]:
    """The names that a statement gives a meaning to: also imports and definitions."""
    found = assigned([statement])
    for node in ast.walk(statement):
        if isinstance(node, ast.alias):
            found.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
    return found


def _as_load(node: ast.expr) -> ast.expr:
    """The same target read instead of written, for augmented assignments and access parsing."""
    loaded = copy.deepcopy(node)
    if isinstance(loaded, ast.Name | ast.Subscript | ast.Attribute):
        loaded.ctx = ast.Load()
    for part in ast.walk(loaded):
        if isinstance(part, ast.expr):
            ast.copy_location(part, node)
    return loaded


def _may_be_array(value: ir.Expression, names: set[str]) -> bool:
    """Whether a value may be the very array that numpy.where gave; arithmetic makes scalars of it. names: of such values."""
    match value:
        case ir.Call(function="numpy.where"):
            return True
        case ir.Call(function="min" | "max", arguments=parts) | ir.Boolean(operands=parts):
            return any(_may_be_array(part, names) for part in parts)
        case ir.Conditional(then=then, otherwise=otherwise):
            return _may_be_array(then, names) or _may_be_array(otherwise, names)
        case ir.Temporary(name=name):
            return name in names
    return False
