"""The nests and sizes of bench/overlap/overlap.py, and the search for those where computing takes as long as transferring."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from _overlap_start import Place
from _pipelines import COMPUTE, WIRE, Case, engine

STEPS = 128  # of a pipeline, so that what its ends cost is small
LARGE_STEPS = 16  # of one with messages of 2 MiB, which takes a tenth of a second a step
BALANCE = 1.03  # compute / transfer that is searched for: with less, what takes longer than computing cannot be hidden
CLOSE = 0.03  # how far from that it may be
TRIES = 5
SEARCH_REPEAT = 4

# Makes a size from a width, a tile height and a number of steps.
Sized = Callable[[int, int, int], Case]


@dataclass(frozen=True)
class Setting:
    """A nest whose first loop is cut in two. Its ``width`` sets how much is computed for a byte that is sent.

    ``tiles`` are the heights that are tried, ``width`` is where the search begins
    and ``widest`` where memory ends it.
    """

    name: str
    title: str
    case: Sized
    tiles: tuple[int, ...]
    width: int
    widest: int
    search_steps: int = 16
    steps: int = STEPS


@dataclass(frozen=True)
class Found:
    """A size at which compute and transfer, both in seconds a step, are as near as can be. ``ratio`` is overlap / blocking
    there, None where no heights had to be compared."""

    width: int
    tile: int
    compute: float
    transfer: float
    ratio: float | None = None

    @property
    def is_balanced(self) -> bool:
        return abs(self.compute / self.transfer - BALANCE) <= 2 * CLOSE

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def _sqrt3d(side: int) -> Sized:
    def case(width: int, tile: int, steps: int) -> Case:
        return Case("sqrt3d", (width + 1, side + 1, tile * steps + 1), 1, tile, (2, 1))

    return case


def _sqrt3d_large(side: int) -> Sized:
    """Two tiles a sweep: as many as a pipeline needs would not fit memory."""

    def case(width: int, tile: int, steps: int) -> Case:
        return Case("sqrt3d_repeated", (width + 1, side + 1, 2 * tile + 1), max(1, steps // 2), tile, (2, 1))

    return case


def _advection(side: int) -> Sized:
    def case(width: int, tile: int, steps: int) -> Case:
        return Case("advection3d", (width + 1, side + 1, side + 1), tile * steps, tile, (2, 1, 1))

    return case


def _small(case: Sized, name: str, title: str, tile: int) -> Setting:
    return Setting(name, title, case, (tile,), 16, 16, 4)


SETTINGS = (
    Setting("sqrt3d", "sqrt3d f32, compute ≈ transfer", _sqrt3d(64), (128, 256, 512), 256, 512, 32),
    Setting("advection3d", "advection f64, compute ≈ transfer", _advection(32), (4, 8, 16), 640, 4096),
    Setting(
        "sqrt3d-large",
        "sqrt3d f32, its sweep repeated, messages of 2 MiB",
        _sqrt3d_large(64), (8192,), 256, 768, 8, LARGE_STEPS,
    ),
    Setting("advection3d-large", "advection f64, messages of 2 MiB", _advection(64), (64,), 640, 4096, 4, LARGE_STEPS),
)  # fmt: skip
QUICK_SETTINGS = (
    _small(_sqrt3d(8), "sqrt3d", "sqrt3d f32", 32),
    _small(_advection(8), "advection3d", "advection f64", 2),
    _small(_sqrt3d_large(8), "sqrt3d-large", "sqrt3d f32, its sweep repeated", 64),
    _small(_advection(16), "advection3d-large", "advection f64", 4),
)


def find(setting: Setting, place: Place) -> list[Found]:
    """The width for each tile height; the best, by overlap / blocking, comes first."""
    found = [_width(setting, tile, place) for tile in setting.tiles]
    if len(found) > 1:
        found = [_with_ratio(setting, f, place) for f in found]
    return sorted(found, key=lambda f: f.ratio or 0.0)


def _width(setting: Setting, tile: int, place: Place) -> Found:
    """The width at which compute ≈ transfer. Compute grows with it, if not quite linearly: the caches see to that."""
    width = setting.width
    tried: list[Found] = []
    for _ in range(TRIES):
        race = place.race(setting.case(width, tile, setting.search_steps), (COMPUTE, WIRE), SEARCH_REPEAT)
        # The least: whatever else runs only adds.
        compute, transfer = (min(race.seconds(c.name)) / setting.search_steps for c in (COMPUTE, WIRE))
        tried.append(Found(width, tile, compute, transfer))
        wanted = round(width * BALANCE * transfer / compute / 2) * 2  # equal halves
        wanted = min(max(wanted, 4), setting.widest)
        if abs(compute / transfer - BALANCE) <= CLOSE or wanted in {f.width for f in tried}:
            break
        width = wanted
    return min(tried, key=lambda f: abs(f.compute / f.transfer - BALANCE))


def _with_ratio(setting: Setting, found: Found, place: Place) -> Found:
    case = setting.case(found.width, found.tile, setting.search_steps)
    race = place.race(case, (engine("blocking"), engine("overlap")), SEARCH_REPEAT)
    ratio = race.ratios("overlap", "blocking")["median"]
    return Found(found.width, found.tile, found.compute, found.transfer, ratio)
