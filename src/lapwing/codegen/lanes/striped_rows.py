"""Tiles in C whose recurrences along a row are scans of narrow integers in striped rows (``codegen/striped.h``): what a row reads
of the row above, and along the row, is kept in images of rows, in which neighbours lie in neighbouring vectors.

    images of the row above, and of what all rows read alike
    for i:
        for a strip of the row:                         the loops that the body is distributed over, on images
            for all places p:  t[p] = max(0, above before[p] + s, above[p] - g)
            x = scan of x[j] = max(x[j-1] - g, t[j])
            for all places p:  above[p] = x[p]
            h[i, strip] = the strip of above, unstriped;  above before = above, one element later
        what is left of the row, as rows are that are not striped

An image of the row above is made once, for the first row, and then from what each row stores. What else a row reads is striped
when its turn comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from lapwing.affine.affine import Affine
from lapwing.codegen.body.distribution import Part, StripCall
from lapwing.codegen.body.expression import is_scan, striped_call, stripped
from lapwing.codegen.body.narrowing import NARROW
from lapwing.codegen.body.statements import IN_ORDER, INDEPENDENT
from lapwing.codegen.body.text import Lines, indented, plus
from lapwing.codegen.inner_loops.scans import behind
from lapwing.codegen.lanes.narrow_rows import NarrowRowWriter
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.tiling.faces import Face
from lapwing.tiling.inner import InnerForm

_FURTHEST = 3  # along a row, in elements of a segment, which has four (LW_SEGMENT of striped.h)
_LATER = "later"


class _NoImageError(Exception):
    """There is something that no image holds."""


@dataclass(frozen=True)
class _Image:
    """Of the elements that the iterations of a row read: ``local`` is what one reads. ``behind``: of what the row above has
    stored, how far behind the element that the iteration stores, None of others; ``stays``: whether all rows read the same."""

    load: t.Load
    local: t.Local
    behind: int | None = None
    stays: bool = False

    @property
    def is_kept(self) -> bool:
        """Whether it is there before its row's turn comes."""
        return self.stays or self.behind is not None


@dataclass
class _Striping:
    """``parts``: of the loop body, over images; ``stored``: what iterations store, by the elements that they store it to;
    ``of_rows``: what is the same for all of a row."""

    parts: list[Part] = field(default_factory=list)
    images: dict[t.Load, _Image] = field(default_factory=dict)
    stored: dict[t.Load, t.Local] = field(default_factory=dict)
    of_rows: dict[t.Load, t.Local] = field(default_factory=dict)

    def above(self, target: t.Load) -> Iterator[_Image]:
        """The images that are made of what a row stores."""
        return (i for i in self.images.values() if i.behind is not None and i.load.array == target.array)

    def of(self, local: t.Local) -> _Image | None:
        return next((image for image in self.images.values() if image.local == local), None)


class StripedRowWriter(NarrowRowWriter):
    """Writes rows that are striped, where all that they read has images."""

    def __init__(self, bound: BoundNest, faces: Sequence[Face], form: InnerForm) -> None:
        super().__init__(bound, faces, form)
        self._is_on_images = False  # what is written
        self.striping: _Striping | None = None
        if self.has_scans and self._parts and len(form.order) > 1 and self._interior is None and not self._wraps:
            with suppress(_NoImageError):
                self.striping = self._striped()

    # -- the loop body on images ---------------------------------------------------------------------------------------

    @property
    def _row_loops(self) -> tuple[int, int]:
        """The loop over rows, and the one along a row."""
        rows, along = (self.nest.sweep_depth + k for k in self.form.order[-2:])
        return rows, along

    def _striped(self) -> _Striping:
        """Raises _NoImageError where there is anything that has none."""
        striping = _Striping()
        along = self.nest.loops[self._row_loops[1]]
        # Elements at the ends of rows are computed twice.
        if along.step != 1 or not all(a.operator in ("max", "min") for a in self.bound.body.accumulators):
            raise _NoImageError
        targets = {s.target.array: s.target for p in self._parts for s in p.statements if isinstance(s, t.TypedStore)}
        if not all(t.is_contiguous(target, along.name) for target in targets.values()):
            raise _NoImageError

        def placed(node: t.Typed) -> t.Typed:
            inner = node.operand if isinstance(node, t.Convert) and node.dtype == NARROW else node
            if isinstance(inner, t.Load):
                local = self._held(inner, targets.get(inner.array), striping, node.dtype)
                return node if local is None else local
            if isinstance(node, t.Index | t.AffineValue) and along.name in t.indices_of(node):
                raise _NoImageError
            if isinstance(node, t.Select) and not node.speculable:
                arms = (part for arm in (node.then, node.otherwise) for part in t.walk(arm))
                if any(isinstance(part, t.Load) for part in arms):
                    raise _NoImageError  # of elements that there may not be
            return t.mapped(node, placed)

        for part in self._parts:
            striping.parts.append(self._striped_part(part, placed, striping))
        self._leave_out_unread(striping)
        return striping

    def _held(self, load: t.Load, target: t.Load | None, striping: _Striping, dtype: str) -> t.Local | None:
        """What holds an element for the body of a loop over images; None where it is the same in all rows."""
        rows, along = (self.nest.loops[k].name for k in self._row_loops)
        if along not in t.indices_of(load):
            if dtype != NARROW or rows not in t.indices_of(load):
                return None
            return striping.of_rows.setdefault(load, t.Local(NARROW, f"{load.array} now", len(striping.of_rows) + 1))
        if dtype != NARROW:
            raise _NoImageError
        if load not in striping.images:
            striping.images[load] = self._image(load, target, len(striping.images) + 1)
        return striping.images[load].local

    def _image(self, load: t.Load, target: t.Load | None, number: int) -> _Image:
        rows, along = (self.nest.loops[k] for k in self._row_loops)
        if not t.is_contiguous(load, along.name):
            raise _NoImageError
        if target is not None:
            apart = _end(target) - _end(load)
            if apart.terms or apart.constant < 0:
                raise _NoImageError  # what comes after a strip is not there when the row above stores it
            by = apart.constant
            beside = replace(load, subscripts=(*load.subscripts[:-1], target.subscripts[-1]))
            if by <= _FURTHEST and behind(beside, target, rows.name, rows.step) == 1:
                where = "above" if by == 0 else f"above before {by}"
                return _Image(load, t.Local(NARROW, f"{load.array} {where}", 1), behind=by)
        stays = target is None and rows.name not in t.indices_of(load)
        return _Image(load, t.Local(NARROW, f"{load.array} {'striped' if stays else 'row'}", number), stays=stays)

    def _striped_part(self, part: Part, placed: Callable[[t.Typed], t.Typed], striping: _Striping) -> Part:
        statements: list[t.TypedStatement] = []
        stored: list[t.Local] = []
        for statement in part.statements:
            if isinstance(statement, t.TypedStore):
                if part is not self._parts[-1]:
                    raise _NoImageError
                target, value = statement.target, placed(statement.value)
                local = striping.stored[target] = t.Local(NARROW, f"{target.array} stored", 1)
                stored.append(local)
                value = value if value.dtype == NARROW else t.Convert(NARROW, value)
                statements.append(t.TypedLocal(statement.line, statement.text, local, value))
            else:
                statements.append(t.with_values(statement, placed))
        calls = tuple(self._striped_call(call, placed) for call in part.calls)
        read = {node for s in statements for value in t.own_values(s) for node in t.walk(value)}
        images = (image.local for image in striping.images.values() if image.local in read)
        return replace(
            part,
            statements=tuple(statements),
            calls=calls,
            incoming=(*part.incoming, *images),
            outgoing=(*part.outgoing, *stored),
        )

    def _striped_call(self, call: StripCall, placed: Callable[[t.Typed], t.Typed]) -> StripCall:
        operation = call.operation
        if call.where is not None or not (is_scan(operation) or operation.operator == _LATER):
            raise _NoImageError
        before, *others = operation.operands
        operands = (before, *map(placed, others))
        if not isinstance(operands[1], t.Local) or any(operand.dtype != NARROW for operand in operands):
            raise _NoImageError
        return replace(call, operation=replace(operation, operands=operands))

    @staticmethod
    def _leave_out_unread(striping: _Striping) -> None:
        """Takes out what strips would hold that no part reads, nor a call on images."""
        read = {*striping.stored.values(), *(local for part in striping.parts for local in part.incoming)}
        terms = (call.operation.operands[1] for part in striping.parts for call in part.calls)
        read |= {term for term in terms if isinstance(term, t.Local)}
        striping.parts = [
            replace(part, outgoing=tuple(v for v in part.outgoing if v in read)) for part in striping.parts
        ]

    # -- names ---------------------------------------------------------------------------------------------------------

    @contextmanager
    def _on_images(self, part: Part) -> Iterator[None]:
        """What is written is one part of the loop body on images."""
        self._is_on_images = True
        try:
            with self._only(part):
                yield
        finally:
            self._is_on_images = False

    def point_name(self) -> str:
        if not self._is_on_images:
            return super().point_name()
        assert self.striping is not None
        number = next(k for k, part in enumerate(self.striping.parts, 1) if part is self._part)
        return self.names.get(("striped part", number), f"{self.nest.name}_striped_{number}{self.suffix}")

    def _place_in_strip(self) -> str:
        return self._c("place") if self._is_on_images else super()._place_in_strip()

    def in_strip(self, local: t.Local, iteration: str) -> str:
        if not self._is_on_images:
            return super().in_strip(local, iteration)
        array, first = self._where(local)
        return f"{array}[{plus(iteration, first) if isinstance(first, int) else f'{first} + {iteration}'}]"

    def _c(self, name: str) -> str:
        """A C variable of striped rows."""
        return self.names.get(("striped", name), name)

    def _image_name(self, image: _Image) -> str:
        return self.names.get(("image", image.load), f"{image.local.name} image")

    def _where(self, local: t.Local) -> tuple[str, str | int]:
        """The C array that holds a local of all iterations of a strip, and where in it the strip begins."""
        assert self.striping is not None
        image = self.striping.of(local)
        if image is None and local in self.striping.stored.values():
            # The last part stores it, after which nothing reads the row above.
            target = next(target for target, stored in self.striping.stored.items() if stored == local)
            image = next((i for i in self.striping.above(target) if i.behind == 0), None)
        if image is not None:
            return self._image_name(image), self._c("done") if image.is_kept else 0
        array, after = self._strip_places.get(local, (local, 0))
        if self._is_before(local):
            return self.names.get(("before", local), f"{self.strip_of(array)}_before"), 0
        return self.strip_of(array), after

    def _is_before(self, local: t.Local) -> bool:
        """Whether it is what a scan gives of the iteration before."""
        calls = (call for part in self._parts for call in part.calls if is_scan(call.operation))
        return any((local, 0) in call.results for call in calls)

    def _pointer(self, local: t.Local) -> str:
        array, first = self._where(local)
        return plus(array, first) if isinstance(first, int) else f"{array} + {first}"

    # -- C -------------------------------------------------------------------------------------------------------------

    @property
    def headers_of_rows(self) -> list[str]:
        return [] if self.striping is None else ['#include "striped.h"']

    def local_parameters(self) -> list[tuple[str, str]]:
        own = super().local_parameters()
        if self._is_on_images and self.striping is not None:
            own += [(f"int16_t {name}", name) for name in map(self.printer.name, self.striping.of_rows.values())]
        return own

    def _point_functions(self) -> Iterator[str]:
        yield from super()._point_functions()
        for part in self._striping_parts():
            if part.statements:
                with self._on_images(part):
                    yield from (*self.point_function(), "")

    def strips(self, parts: Sequence[Part]) -> Iterator[str]:
        if self.striping is None:
            yield from super().strips(parts)
            return
        aligned = " LW_SCAN_ALIGNED;"
        for declared in super().strips(parts):
            yield declared.replace("[LW_STRIP];", f"[LW_STRIP]{aligned}")
        for image in self.striping.images.values():
            name = self._image_name(image)
            yield f"{'lw_striped_row' if image.is_kept else 'lw_striped_strip'} {name};"
        own = {v: None for part in self.striping.parts for v in part.incoming if self._is_before(v)}
        own |= {v: None for v in self.striping.stored.values() if self._where(v)[0] == self.strip_of(v)}
        for local in own:
            yield f"lw_striped_strip {self._where(local)[0]};"
        yield f"lw_striped_strip {self._c('row')};"

    def _loops(self, lines: Lines, call: str) -> None:
        if self.striping is None:
            super()._loops(lines, call)
            return
        rows, along = self._row_loops
        inside, x = Lines(), self.coordinate(self.nest.loops[along].name)
        begin, striped = self._c(f"{x}_begin"), self._c("striped")
        lane, over_lanes = self.pair_names().lane, self._over_lanes()
        for name, (c_type, start, _) in self._private_accumulators().items():
            lines.add(f"{c_type} {name}[LW_STRIPED_LANES] LW_SCAN_ALIGNED;")
            lines.add(f"{over_lanes} {name}[{lane}] = {start};")
        for k in self.outer_loops()[:-1]:
            self.open_loop(inside, k)
        end, bounds = self._open_columns(inside, begin), self.loop_bounds(rows)
        length = f"lw_striped_length({end} - {begin}, {' + '.join(self._added()) or '0'})"
        inside.add(f"const int64_t {striped} = {bounds.low} < {bounds.high} ? {length} : 0;")
        self._open_strips(inside, end)
        kept = [image for image in self.striping.images.values() if image.is_kept]
        self._fill(inside, kept, (rows, bounds.low))
        inside.close()
        self.open_loop(inside, rows)
        inside.add(*(f"const {c_type} {name} = {text};" for c_type, name, text in self._row_names))
        for load, local in self.striping.of_rows.items():
            name = self.printer.name(local)
            inside.add(f"int16_t {name} = (int16_t){self.printer.print(load)};", f"LW_OPAQUE({name});")
        inside.add(*(f"int16_t {end} = 0;" for end in self._ends()))
        self._open_strips(inside, end)
        self._strip(inside, self.striping)
        inside.close()
        rest = f"lw_striped_rest({begin}, {striped}, {end})"
        fetched, self._fetched = self._fetched, []  # what is left is short
        self._plain_loop(inside, along, rest, end, INDEPENDENT)
        self._fetched = fetched
        inside.add(IN_ORDER)
        inside.close_all()
        self.sweep_indices(lines, "\n".join([call, *inside.texts]))
        lines.include(inside)
        for name, (_, _, fold) in self._private_accumulators().items():
            lines.add(f"{over_lanes} {fold.format(f'{name}[{lane}]')}")

    def _open_columns(self, lines: Lines, begin: str) -> str:
        """The loop over columns, whose images hold all of a row; the C text of where it ends. begin: where it begins."""
        along = self._row_loops[1]
        low, last, end = self.loop_bounds(along).low, self.loop_end(lines, along), self._c("columns_end")
        lines.open(f"for (int64_t {begin} = {low}; {begin} < {last}; {begin} += LW_STRIPED_ROW) {{")
        lines.add(f"const int64_t {end} = lw_min_i64({begin} + LW_STRIPED_ROW, {last});")
        return end

    def _over_lanes(self) -> str:
        lane = self.pair_names().lane
        return f"for (int {lane} = 0; {lane} < LW_STRIPED_LANES; ++{lane})"

    def _added(self) -> Iterator[str]:
        """The sizes of what scans add from element to element."""
        for part in self._parts:
            for call in part.calls:
                yield from (f"lw_striped_size({scalar})" for scalar in self._scalars_of(call))

    def _open_strips(self, lines: Lines, end: str) -> None:
        x = self.coordinate(self.nest.loops[self._row_loops[1]].name)
        done, first = self._c("done"), f"{self._c(f'{x}_begin')} + {self._c('done')}"
        lines.open(f"for (int64_t {done} = 0; {done} < {self._c('striped')}; {done} += LW_STRIPED_STRIP) {{")
        lines.add(f"const int64_t {self._c('first')} = lw_min_i64({first}, {end} - LW_STRIPED_STRIP);")

    def _at(self, lines: Lines, place: str, *texts: str, row: tuple[int, str] | None = None) -> None:
        """Lines in which the loop along the row is at a place. row: where that over rows is, outside of it."""
        along = self._row_loops[1]
        lines.open("{")
        self.indices_of(lines, (*([row] if row is not None else []), (along, place)), "\n".join(texts))
        lines.add(*texts)
        lines.close()

    def _fill(self, lines: Lines, images: Sequence[_Image], row: tuple[int, str] | None = None) -> None:
        """Makes images of a strip from arrays."""
        place, buffer = self._c("place"), self._c("row")
        for image in images:
            element = self.printer.in_array(image.load)
            self._at(
                lines,
                self._c("first"),
                f"{self._over_places()} {buffer}[{place}] = (int16_t)(&{element})[{place}];",
                f"lw_striped({buffer}, {self._pointer(image.local)});",
                row=row,
            )

    def _over_places(self) -> str:
        place = self._c("place")
        return f"for (int {place} = 0; {place} < LW_STRIPED_STRIP; ++{place})"

    def _strip(self, lines: Lines, striping: _Striping) -> None:
        """A strip of a row."""
        first = self._c("first")
        if self._fetched:
            fetches = (f"LW_STRIPED_FETCH_AHEAD({self.printer.in_array(target)});" for target in self._fetched)
            self._at(lines, first, *fetches)
        self._fill(lines, [image for image in striping.images.values() if not image.is_kept])
        for part in striping.parts:
            if part.statements:
                with self._on_images(part):
                    self._over_images(lines)
            for call in part.calls:
                self._at(lines, first, *self._called(call))
        for target, local in striping.stored.items():
            self._store(lines, striping, target, local)

    def _over_images(self, lines: Lines) -> None:
        """The loop of a part over all places of a strip, by lanes where these reduce something."""
        call, lane = self.point_call(), self.pair_names().lane
        lanes = self.private_of(lane)
        by_lanes = self.point_call(lanes)
        if by_lanes == call:
            lines.add(INDEPENDENT)
            lines.open(f"{self._over_places()} {{")
            lines.add(call)
            lines.close()
            return
        vector = self._c("vector")
        lines.open(f"for (int {vector} = 0; {vector} < LW_STRIPED_STRIP; {vector} += LW_STRIPED_LANES) {{")
        lines.add(INDEPENDENT)
        lines.open(f"{self._over_lanes()} {{")
        lines.add(f"const int {self._c('place')} = {vector} + {lane};", by_lanes)
        lines.close()
        lines.close()

    def _ends(self) -> list[str]:
        """C variables of what calls are given of the iteration before a strip."""
        return [self._end_name(call) for part in self._striping_parts() for call in part.calls]

    def _end_name(self, call: StripCall) -> str:
        (local, _), *_ = call.results
        return self.names.get(("end of", local), f"{self.strip_of(local)}_end")

    def _called(self, call: StripCall) -> Iterator[str]:
        """The lines of a call on images. What comes before a strip is that of the strip before, but for the first one, and the
        last one where it begins before the end of the one before it."""
        operation, end = call.operation, self._end_name(call)
        first, terms = operation.operands[:2]
        assert isinstance(terms, t.Local)
        x, done, begins = self.coordinate(self.nest.loops[self._row_loops[1]].name), self._c("done"), self._c("first")
        in_array = stripped(self.printer.print(first))
        yield f"if ({done} == 0 || {begins} != {self._c(f'{x}_begin')} + {done}) {end} = (int16_t){in_array};"
        strip = self._pointer(terms)
        if operation.operator == _LATER:
            ((local, _),) = call.results
            yield f"lw_striped_before(&{end}, 1, {strip}, {self._pointer(local)});"
            yield f"{end} = ({strip})[LW_STRIPED_STRIP - 1];"
            return
        (array, _), *_ = call.results
        result = f"{self.strip_of(array)} + 1"
        yield striped_call(operation, [end, strip], self._scalars_of(call), result)
        read = {local for part in self._striping_parts() for local in part.incoming}
        for local, after in call.results:
            if after == 0 and local in read:
                yield f"lw_striped_before(&{end}, 1, {result}, {self._pointer(local)});"
        yield f"{end} = {self.strip_of(array)}[LW_STRIPED_STRIP];"

    def _striping_parts(self) -> Sequence[Part]:
        return () if self.striping is None else self.striping.parts

    def _store(self, lines: Lines, striping: _Striping, target: t.Load, local: t.Local) -> None:
        """Stores a strip to an array, and makes the images of it that the next row reads."""
        place, buffer, before = (self._c(name) for name in ("place", "row", "before"))
        image, element = self._pointer(local), self.printer.in_array(target)
        texts = [
            f"lw_unstriped({image}, {buffer});",
            INDEPENDENT,
            f"{self._over_places()} (&{element})[{place}] = {buffer}[{place}];",
        ]
        for above in striping.above(target):
            by, to = above.behind, self._pointer(above.local)
            if by:  # the others are where the strip was stored
                elements = ", ".join(f"(int16_t)(&{element})[{k}]" for k in range(-by, 0))
                texts += [
                    "{",
                    *indented(
                        [
                            f"const int16_t {before}[] = {{{elements}}};",
                            f"lw_striped_before({before}, {by}, {image}, {to});",
                        ]
                    ),
                    "}",
                ]
        self._at(lines, self._c("first"), *texts)


def _end(load: t.Load) -> Affine:
    last = load.subscripts[-1]
    assert isinstance(last, t.AffineSubscript)
    return last.affine + last.wrap
