"""What of a nest's text costs much time and could be written otherwise, and what keeps its tile from faster forms: notes for its
author."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lapwing.codegen.tile import forms_of, reason_against_vectors
from lapwing.loopnest.binding import powers
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.binding.promotion import PARTS
from lapwing.loopnest.dependences import Dependence
from lapwing.tiling.transposed import reason_against


def notes(bound: BoundNest) -> tuple[str, ...]:
    """A line each, with file and line."""
    return tuple(dict.fromkeys((*_of_powers(bound), *_of_complex_powers(bound))))


def notes_of_lanes(bound: BoundNest, dependences: Sequence[Dependence]) -> tuple[str, ...]:
    """Why a chained innermost loop has no buffers or no vectors; takes some milliseconds.

    bound, dependences: in the coordinates that are cut into tiles.
    """
    forms = forms_of(bound, dependences)
    if not any(form.lanes > 1 for form in forms):
        return ()
    transposed = [form for form in forms if form.transposed]
    where = bound.nest.where(bound.nest.line)
    if not transposed:
        reason = reason_against(bound, forms[0].order)
        return () if reason is None else (f"{where}: rows are not copied into buffers: {reason}",)
    # Where one of them has vectors, that is the one to take.
    reasons = [reason_against_vectors(bound, form) for form in transposed]
    return () if None in reasons else (f"{where}: lanes in buffers are computed one by one: {reasons[0]}",)


def _of_powers(bound: BoundNest) -> Iterator[str]:
    for statement, power in powers.powers_of(bound.body):
        exponent = powers.exponent(power)
        where = bound.nest.where(statement.line)
        if exponent is None:
            yield f"{where}: x**y calls C's pow at every point, which takes about as long as twenty multiplications"
            continue
        written = _spelled(exponent)
        if exponent in powers.QUICK:
            yield (
                f"{where}: x**{exponent:g} has the bits of C's pow, by a test at every point; {written} needs none, and may "
                "differ in the last bit"
            )
        else:
            yield (
                f"{where}: x**{exponent:g} calls C's pow at every point; {written} is several times faster, and may differ in "
                "the last bit"
            )


def _of_complex_powers(bound: BoundNest) -> Iterator[str]:
    for statement in bound.body.simple:
        for node in t.walk(statement.value):
            if isinstance(node, t.Operation) and node.operator == "numpy.power" and node.dtype in PARTS:
                yield (
                    f"{bound.nest.where(statement.line)}: z**n calls NumPy's power at every point; products, as z*z*z*z, are "
                    "several times faster, and may differ in the last bit"
                )


def _spelled(exponent: float) -> str:
    """A power in multiplications and roots, where it is one of those that people write."""
    halves = abs(exponent) * 2
    if not (0 < halves <= 16 and halves.is_integer()):
        return "a formula without powers, if there is one,"
    n, half = divmod(int(halves), 2)
    text = "*".join([*["x"] * n, *["sqrt(x)"] * half])
    if exponent > 0:
        return text
    return f"1/({text})" if "*" in text else f"1/{text}"
