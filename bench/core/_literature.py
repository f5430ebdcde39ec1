"""The programs of tests/literature at sizes that take long enough to be timed, and how each runs here."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

import lapwing as lw
from lapwing.api.calls.run import run
from lapwing.planner.phased import PhasedPlan

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "literature"))
from literature_worker import FAMILIES, programs

# What each program's problem function is asked for: a tenth of a million points or more, sweeps included.
SIZES: dict[str, dict[str, Any]] = {
    # alignment
    "needleman_wunsch": {"n": 1200, "m": 1100},
    "smith_waterman": {"n": 1200, "m": 1100},
    "gotoh": {"n": 1000, "m": 1100},
    "banded_alignment": {"n": 3000, "band": 150},
    "longest_common_subsequence": {"n": 1200, "m": 1100},
    "levenshtein": {"n": 1200, "m": 1100},
    "restricted_damerau": {"n": 1200, "m": 1100},
    "dynamic_time_warping": {"n": 1200, "m": 1100, "window": 300},
    "edit_distance_table": {"n": 1200, "m": 1100},
    "warping_path_length": {"n": 1200, "m": 1100},
    # cellular
    "game_of_life": {"n": 500, "steps": 10},
    "life_on_a_torus": {"n": 400, "steps": 6},
    "elementary": {"n": 2000, "steps": 1000},
    "sandpile": {"n": 40},
    "forest_fire": {"n": 400, "steps": 12},
    "ising": {"n": 400, "sweeps": 8},
    "traffic": {"n": 400, "steps": 12},
    # dynamic_programming
    "knapsack": {"n": 200, "capacity": 5000},
    "knapsack_row": {"n": 200, "capacity": 5000},
    "coin_change": {"amount": 200_000},
    "matrix_chain": {"n": 200},
    "optimal_bst": {"n": 200},
    "nussinov": {"n": 220},
    "floyd_warshall": {"n": 128},
    "longest_increasing_subsequence": {"n": 1500},
    "minimum_path": {"n": 1200, "m": 1100},
    "largest_square": {"n": 1200, "m": 1100},
    # fluids
    "upwind": {"n": 200_000, "steps": 10},
    "lax_wendroff": {"n": 200_000, "steps": 10},
    "maccormack": {"n": 2000},
    "burgers_2d": {"n": 400, "nt": 10},
    "cavity_flow": {"n": 320, "nt": 3},
    "vorticity_streamfunction": {"n": 60, "steps": 5},
    "shallow_water": {"n": 320, "steps": 10},
    "sod_hll": {"n": 1000},
    "muscl": {"n": 200_000, "steps": 10},
    "lattice_boltzmann": {"n": 100, "steps": 10},
    # images
    "chamfer": {"n": 1000},
    "floyd_steinberg": {"n": 1000},
    "box_filter": {"n": 1000, "r": 4},
    "recursive_gaussian": {"n": 1000},
    "deriche": {"n": 1000},
    "bilateral": {"n": 200, "radius": 2},
    "median_3x3": {"n": 500},
    "canny_edges": {"n": 700},
    "connected_components": {"n": 300},
    "perona_malik": {"n": 400, "steps": 10},
    "horn_schunck": {"n": 400, "iterations": 10},
    "seam": {"n": 1200, "m": 1100},
    "haar": {"n": 1024, "levels": 3},
    "summed_area": {"n": 1000},
    "sobel": {"n": 1000},
    # linear_algebra
    "lu": {"n": 150},
    "lu_pivoting": {"n": 150},
    "cholesky": {"n": 200},
    "solve_triangular": {"n": 1000},
    "ilu0": {"n": 700},
    "conjugate_gradient": {"n": 320},
    "thomas_batch": {"n": 1000, "systems": 500},
    "gram_schmidt": {"m": 200, "n": 100},
    "doitgen": {"n": 60},
    "power_iteration": {"n": 300},
    "compact": {"n": 1_000_000},
    "csr_gauss_seidel": {"n": 20_000, "sweeps": 3},
    "jacobi_svd_sweep": {"m": 200, "n": 60},
    "matrix_product": {"n": 120},
    "atax": {"m": 1000, "n": 1000},
    # multigrid
    "two_grid": {"n": 131_072},
    "v_cycle": {"levels": 17, "cycles": 3},
    "two_grid_2d": {"n": 400},
    "v_cycle_2d": {"n": 512},
    # probability
    "hmm_forward": {"states": 32, "steps": 1000},
    "viterbi": {"states": 32, "steps": 1000},
    "kalman": {"n": 100_000},
    "kalman_many": {"tracks": 100, "steps": 100},
    "binomial_american": {"steps": 1000},
    "american_put_psor": {"M": 400, "steps": 20},
    "european_call_grid": {"n_s": 1000, "n_t": 1000},
    # reaction_diffusion
    "gray_scott": {"n": 400, "steps": 8},
    "fitzhugh_nagumo": {"n": 400, "steps": 8},
    "cahn_hilliard": {"n": 400, "steps": 8},
    "barkley": {"n": 400, "steps": 8},
    # relaxation
    "jacobi": {"n": 320},
    "jacobi_2d": {"n": 400, "tsteps": 12},
    "gauss_seidel": {"n": 400},
    "red_black": {"n": 400, "sweeps": 12},
    "sor_chebyshev": {"n": 320},
    "ssor": {"n": 400, "iterations": 12},
    "zebra_line_relaxation": {"n": 400, "sweeps": 10},
    "mehrstellen": {"n": 400, "sweeps": 12},
    "obstacle": {"n": 320},
    "gauss_seidel_27": {"n": 50, "sweeps": 3},
    "block_ssor": {"n": 150},
    "sor_3d": {"n": 64, "sweeps": 8},
    # time_stepping
    "heat_1d": {"nx": 200_000, "nt": 10},
    "heat_periodic": {"n": 400, "steps": 12},
    "heat_3d": {"n": 60, "tsteps": 10},
    "seidel_2d": {"n": 400, "tsteps": 20},
    "heat_time_levels": {"n": 400, "steps": 12},
    "crank_nicolson": {"n": 200_000, "steps": 10},
    "adi": {"n": 400, "steps": 10},
    "variable_coefficient": {"n": 400, "steps": 12},
    "dufort_frankel": {"n": 200_000, "steps": 10},
    "backward_euler": {"n": 320, "steps": 2},
    "lorenz_96": {"n": 200_000, "steps": 5},
    "heat_space_time": {"steps": 1000, "n": 1000},
    # transport
    "fast_sweeping": {"n": 300},
    "signed_sweeps": {"n": 300},
    "sn_slab": {"n": 1000, "angles": 8},
    "sn_sweep_2d": {"n": 300},
    "sweep3d": {"n": 48, "angles": 4},
    "reinitialise": {"n": 400, "steps": 5},
    "fill_depressions": {"n": 100},
    # waves
    "fdtd_1d": {"size": 200_000, "steps": 10},
    "fdtd_2d": {"n": 400, "tmax": 12},
    "fdtd_tm_mur": {"n": 400, "steps": 12},
    "wave_1d": {"n": 200_000, "Nt": 10},
    "leapfrog_2d": {"n": 400, "steps": 12},
    "schrodinger": {"n": 100_000, "steps": 5},
    "helmholtz": {"n": 320, "sweeps": 6},
    "mandelbrot": {"n": 400, "limit": 50},
    "wave_space_time": {"steps": 1000, "n": 1000},
}
FAMILY_OF = {name: family for family in FAMILIES for name in programs(family)}

INDEPENDENT, CHAINED, IN_ORDER, BY_PYTHON = "independent", "chained", "in order", "Python"
WHOLE = "whole loop"
_INDEPENDENT_RULE = "no dependence joins"  # planner.inner.choice_by_rule
_IN_ORDER_TEXT = "loops in their own order"  # a plan of loops that are not cut into tiles


@dataclass(frozen=True)
class Heaviest:
    """Of the region that takes the most time: its name, the share of a call that all regions take, what its innermost loop is
    (one of those above), and its inner form."""

    region: str
    seconds: float
    kind: str
    form: str


class Program:
    """A program with its arrays, which every call is given as they were made."""

    def __init__(self, name: str, size: dict[str, Any]) -> None:
        self.nest: lw.Nest = programs(FAMILY_OF[name])[name]
        self._made = self.nest.arguments(**self.nest.problem_function(**size))
        self.arguments = {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in self._made.items()}

    def reset(self) -> None:
        for name, value in self._made.items():
            if isinstance(value, np.ndarray):
                np.copyto(self.arguments[name], value)

    def called(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Every array after one call, and what it returned."""
        self.reset()
        returned = function(*self.arguments.values())
        arrays = {n: v.copy() for n, v in self.arguments.items() if isinstance(v, np.ndarray)}
        values = returned if isinstance(returned, tuple) else (returned,)
        return {**arrays, **{f"returned[{k}]": np.array(value) for k, value in enumerate(values)}}

    def own_seconds(self) -> Heaviest:
        """What the generated code alone takes, of all regions together, and where the most of it goes."""
        self.reset()
        if self.nest.program is None:
            try:
                outcome = run(self.nest, self.arguments)
            except lw.RefusedError as refused:  # as its call does
                outcome = run(self.nest.in_order_instead(refused), self.arguments)
            return Heaviest(self.nest.name, outcome.seconds, *_kind(outcome.plan))
        if (whole := self._in_whole_loops()) is not None:
            return whole
        self.reset()
        watched = self.nest.program.run(self.nest, self.arguments, 0)
        name, most = max(watched.regions.items(), key=lambda item: item[1].seconds)
        return Heaviest(name, sum(r.seconds for r in watched.regions.values()), *_kind(most.plan))

    def _in_whole_loops(self) -> Heaviest | None:
        """The same where the program runs loops with their regions as a whole; None where it does not."""
        program = self.nest.program
        assert program is not None
        make, found = type(program)._whole, dict[str, float]()

        def noted(number: int, nest: Any) -> Callable[..., Any]:
            done, name = make(program, number, nest), program.wholes[number].name

            def call(*values: Any) -> Any:
                start = time.perf_counter()
                returned = done(*values)
                if returned is not None:
                    found[name] = found.get(name, 0.0) + time.perf_counter() - start
                return returned

            return call

        program._whole = noted  # type: ignore[method-assign]
        try:
            self.nest(*self.arguments.values())
        finally:
            del program._whole
        if not found:
            return None
        return Heaviest(max(found, key=lambda name: found[name]), sum(found.values()), WHOLE, "plain")


def jitted(function: Callable[..., Any]) -> Callable[..., Any]:
    """numba's function of the same text, and of the plain functions that it calls, which numba asks to be compiled, too."""
    import numba

    names = set(function.__code__.co_names) - {function.__name__}
    called = {n: v for n, v in function.__globals__.items() if n in names}
    compiled = {n: jitted(v) for n, v in called.items() if isinstance(v, FunctionType)}
    text = FunctionType(
        function.__code__, {**function.__globals__, **compiled}, function.__name__, function.__defaults__
    )
    made: Callable[..., Any] = numba.njit(text)
    return made


def _kind(plan: Any) -> tuple[str, str]:
    if plan is None:
        return BY_PYTHON, "–"
    if isinstance(plan, PhasedPlan):
        forms = ", ".join(sorted({"plain" if form.lanes == 1 else f"lanes of {form.lanes}" for form in plan.forms}))
        independent = all(form.independent and form.lanes == 1 for form in plan.forms)
        return INDEPENDENT if independent else CHAINED, f"phases: {forms}"
    text = plan.inner.form.describe(plan.space_loops) + (" (measured)" if plan.inner.measured else "")
    if _IN_ORDER_TEXT in str(plan):
        return IN_ORDER, text
    return INDEPENDENT if plan.inner.rule.startswith(_INDEPENDENT_RULE) else CHAINED, text
