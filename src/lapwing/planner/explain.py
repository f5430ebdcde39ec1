"""Why a plan is as it is: the choice in words, with the runner-up and what it loses by."""

from __future__ import annotations

from collections.abc import Sequence

from lapwing.planner.optimise import Candidate, Problem
from lapwing.planner.prediction import Prediction
from lapwing.planner.rates import Rates
from lapwing.schedule.estimate import MANY_RANKS, RANKS
from lapwing.units import duration

# Overlap has to save this share of the time, or plain blocking calls do as well.
WORTHWHILE = 0.005
_PARTS = {
    "compute": "computing",
    "messages": "handling messages",
    "exposed": "transfers",
    "fill": "filling the pipeline",
    "setup": "setting up",
}


def chosen(ranked: Sequence[Candidate]) -> Candidate:
    """The fastest; the blocking one where nothing else is worth the while."""
    best = ranked[0]
    for one in ranked:
        if one.engine == "blocking" and one.seconds <= best.seconds * (1 + WORTHWHILE):
            return one
    return best


def reasons(problem: Problem, ranked: Sequence[Candidate], rates: Rates) -> tuple[str, ...]:
    """A line each: how speeds are known, the engine, the runner-up."""
    best = chosen(ranked)
    lines = [f"tiles: {rates.source}"]
    if problem.ranks > MANY_RANKS:
        lines.append(
            f"times of {problem.ranks:,} ranks are counted on from those of grids with {RANKS[0]} and {RANKS[1]} along a loop, "
            "which is mostly right to a per cent, but for blocking may be tens of per cent too long"
        )
    if problem.ranks == 1:
        return tuple(lines)
    if best.engine == "blocking" and len(problem.engines) > 1:
        share = best.prediction.transfer / max(best.prediction.compute, 1e-30)
        saved = 1 - ranked[0].seconds / max(best.seconds, 1e-30)
        lines.append(f"blocking: transfer is {share:.1%} of compute, overlap would save {max(0.0, saved):.1%}")
    other = next((c for c in ranked if _differs(c, best)), None)
    if other is not None:
        lines.append(f"runner-up {described(problem, other)}: {_loses(best.prediction, other.prediction)}")
    return tuple(lines)


def described(problem: Problem, candidate: Candidate) -> str:
    """A candidate in a few words."""
    loops = problem.bound.nest.space_loops
    mapping = candidate.cut.mapping
    name = problem.bound.nest.sweep_loops[-1].name if mapping is None else loops[mapping].name
    cut = ", ".join(f"{loop.name} in {p}" for loop, p in zip(loops, candidate.cut.grid, strict=True) if p > 1)
    return f"{candidate.engine}, {name} pipelined in tiles of {candidate.tile}, {cut}"


def _differs(one: Candidate, best: Candidate) -> bool:
    """Whether a candidate is another decision, not just another height."""
    return (one.cut, one.engine) != (best.cut, best.engine)


def _loses(best: Prediction, other: Prediction) -> str:
    parts = {word: getattr(other, part) - getattr(best, part) for part, word in _PARTS.items()}
    worst = max(parts, key=lambda word: parts[word])
    late = other.seconds - best.seconds
    if late <= 0:
        return f"{duration(other.seconds)}, as fast"
    return f"{duration(other.seconds)}, it loses {duration(parts[worst])} by {worst}"
