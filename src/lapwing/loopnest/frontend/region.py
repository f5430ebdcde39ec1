"""From a function's source to a sequential region: loops of any form, done in their own order on one rank."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from lapwing.affine.affine import Affine
from lapwing.loopnest import ir
from lapwing.loopnest.frontend.function import FunctionParser, names_of
from lapwing.loopnest.frontend.statements import assigned, does_nothing
from lapwing.loopnest.frontend.unrolling import unrolled
from lapwing.loopnest.source import FunctionSource


def parse_region(source: FunctionSource) -> ir.LoopNest:
    """Parse a function of scalars that are set, then loops, conditions and assignments, which may end in ``return`` of scalars,
    into a sequential region.

    Raises RefusedError with every part, by file and line, that is not supported.
    """
    return _RegionParser(source, carries_scalars=True).region()


class _RegionParser(FunctionParser):
    def region(self) -> ir.LoopNest:
        self.check_signature()
        statements = [s for s in self.tree.body if not does_nothing(s)]
        loops = (ast.For, ast.While, ast.If)
        first = next((k for k, s in enumerate(statements) if isinstance(s, loops)), len(statements))
        for statement in statements[:first]:
            with self.refusing(statement):
                self.setup(statement)
        inside = statements[first:]
        returned = inside[-1] if inside and isinstance(inside[-1], ast.Return) else None
        inside = inside[: len(inside) - (returned is not None)]
        last = next(
            (k for k, s in enumerate(inside) if all(isinstance(r, ast.Delete) for r in inside[k:])), len(inside)
        )
        inside, deletions = inside[:last], inside[last:]
        names = self._returned(returned)
        self.scope.assigned_in_body = assigned(inside)
        given = [n for n in (*self.scope.parameters, *self.scope.setup_names) if n in self.scope.assigned_in_body]
        given += [n for n in names if n not in self.scope.assigned_in_body]
        line = self.tree.lineno
        start = tuple(ir.SetTemporary(line, name, name, ir.Parameter(name, line=line)) for name in given)
        body = self.block(inside, ())
        self._check_counts_of_indices(body)
        dead, _ = self.deleted(deletions)
        with self.refusals.recovering():
            written = ir.written_arrays(body)
            if not written and not names and not self.refusals:
                self.refuse(self.tree, "the loops write no array and return nothing", "assign array elements")
        self.refusals.raise_if_any()
        nest = ir.LoopNest(
            name=self.tree.name,
            file=self.source.file,
            line=line,
            parameters=self.scope.parameters,
            setups=tuple(self.setups),
            loops=(ir.Loop(ir.WHOLE, (Affine(0),), (Affine(1),), 1, line),),
            body=(*start, *body),
            arrays=tuple(self.arrays),
            written=written,
            accumulators=(),
            returns=names,
            returns_tuple=returned is not None and isinstance(returned.value, ast.Tuple),
            symbols=tuple(self.symbols.items()),
            sweep_depth=0,
            is_generic=self.source.generic,
            kept=self.source.kept,
            leaves_unset=self.source.outlined is not None,
            axis_loops=_local_axes(body),
            unpackings=(*self.source.counted.unpackings, *self.unpackings),
            dead=dead,
            of_one_type=self.source.of_one_type,
            of_any_type=self.source.of_any_type,
        )
        return unrolled(nest)

    def _check_counts_of_indices(self, body: Sequence[ir.Statement]) -> None:
        """An array that is indexed by elements here and by rows there is for Python."""
        accesses = [a for s in ir.all_statements(body) for a in ir.statement_reads(s)]
        accesses += [s.target for s in ir.all_statements(body) if isinstance(s, ir.Store)]
        first: dict[str, ir.Access] = {}
        for access in accesses:
            other = first.setdefault(access.array, access)
            if len(other.subscripts) != len(access.subscripts):
                counts = f"{access.text} has {len(access.subscripts)} indices, {other.text} {len(other.subscripts)}"
                self.refusals.note(access.line, counts, "index every axis of an array")

    def _returned(self, statement: ast.Return | None) -> tuple[str, ...]:
        """The scalars that are returned."""
        value = None if statement is None else statement.value
        if value is None or (isinstance(value, ast.Constant) and value.value is None):
            return ()
        names = names_of(value)
        if not names:
            self.refusals.note(
                value.lineno, f"return of {self.source.text(value)}", "loops leave scalars, by their names"
            )
        return names


def _local_axes(body: Sequence[ir.Statement]) -> dict[str, tuple[str | None, ...]]:
    stores = (s for s in ir.all_statements(body) if isinstance(s, ir.Store))
    return {store.target.array: (None,) * len(store.target.affine) for store in stores}
