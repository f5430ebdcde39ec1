"""Specialises the driver of a program to the arguments of one problem: what follows from them is computed here and now, what does
not is left to the exported program.

A state is an instruction of the driver, what every name stands for there and which ranks have which elements. States are
followed from the beginning, each once, so that the graph of blocks that comes out has a loop wherever the driver comes back to a
state it has been in (polyvariant specialisation). Names that change places move nothing: a loop with ``u, v = v, u`` is followed
round twice.

Counters of loops are left to the program unless something asks for their values; then the loop is unrolled. Numbers that change
in every iteration of a loop of which nobody knows how often it goes round are left to it as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lapwing.api.nest import Nest
from lapwing.errors import RefusedError
from lapwing.export.driver.code import driver_code
from lapwing.export.driver.operations import SpecialisedDriver
from lapwing.export.driver.partial_evaluation.blocks import Again, LoopsOf
from lapwing.export.driver.partial_evaluation.following import Following
from lapwing.export.driver.regions import RegionCalls
from lapwing.export.driver.values import NeedsValue


def specialise(nest: Nest, arguments: Mapping[str, Any], ranks: int, machine: str | None = None) -> SpecialisedDriver:
    """The program of a nest that is one, for these arguments (arrays are NumPy's) and so many ranks.

    machine: a file, or a cluster's name; None is this one. Raises RefusedError where its driver does what an exported program
    cannot, with the line and what to write instead.
    """
    program = nest.program
    assert program is not None
    file = program.program.source.file
    if program.procedures:
        name = next(iter(program.program.procedures))
        raise RefusedError(
            f"{nest.where}: {nest.name} calls {name}, a function with loops, and an exported program is one function. Write the "
            f"loops of {name} where it is called, or export it by itself."
        )
    code = driver_code(program.program)
    loops = LoopsOf(code.instructions)
    calls = RegionCalls(nest, ranks, machine)
    while True:
        following = Following(nest, code, loops, calls, arguments, ranks)
        try:
            return following.followed()
        except Again:
            continue
        except NeedsValue as needed:
            if not loops.must_be_known(needed.register):
                raise RefusedError(
                    f"{file}:{following.line}: {needed}, and that is only known when the program runs. Pass it as an argument, "
                    "or compute it from arguments alone."
                ) from None
