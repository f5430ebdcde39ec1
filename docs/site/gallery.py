"""The gallery: programs of tests/literature, run through Lapwing at a size worth looking at, each with a picture.

python docs/site/gallery.py        # writes docs/_gallery: a page and a picture for each, which the site takes up
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import lapwing as lw

ROOT = Path(__file__).parents[2]
LITERATURE = ROOT / "tests" / "literature"
PAGES = ROOT / "docs" / "_gallery"
RANKS = 4  # that plans are shown for

Values = dict[str, Any]  # a program's arguments after the run by name, and what it returned as "returned"


@dataclass(frozen=True)
class Entry:
    """problem: of the program's own problem at a size, which grows with n; show: draws what came of it."""

    name: str
    title: str
    problem: Callable[[Callable[..., Values], int], Values]
    show: Callable[[Any, Values], None]
    n: int  # for the picture

    @property
    def nest(self) -> lw.Nest:
        return programs()[self.name][1]

    @property
    def family(self) -> str:
        return programs()[self.name][0]

    def run(self, n: int | None = None) -> Values:
        """What the program leaves at a size. Raises RefusedError where it is not accepted."""
        values = self.problem(self.nest.problem_function, self.n if n is None else n)
        returned = self.nest(**values)
        return {**values, "returned": returned}


@cache
def programs() -> dict[str, tuple[str, lw.Nest]]:
    """Family and nest of every program of the literature by name."""
    sys.path.insert(0, str(LITERATURE))
    from literature_worker import FAMILIES
    from literature_worker import programs as of_family

    return {name: (family, nest) for family in FAMILIES for name, nest in of_family(family).items()}


# -- pictures ------------------------------------------------------------------------------------------------------------


def image(value: Callable[[Values], Any], colours: str, **more: Any) -> Callable[[Any, Values], None]:
    """Two axes as an image."""

    def show(axes: Any, values: Values) -> None:
        axes.imshow(np.asarray(value(values), float), cmap=colours, interpolation="nearest", **more)

    return show


def balanced(value: Callable[[Values], Any]) -> Callable[[Any, Values], None]:
    """As an image with zero in the middle of its colours."""

    def show(axes: Any, values: Values) -> None:
        shown = np.asarray(value(values), float)
        most = float(np.percentile(np.abs(shown), 99.5)) or 1.0
        axes.imshow(shown, cmap="RdBu_r", vmin=-most, vmax=most)

    return show


def returned(values: Values) -> Any:
    return values["returned"]


def _quiet_source(problem: Callable[..., Values], n: int) -> Values:
    values = problem(n=n, steps=3 * n)
    values["c2"] = np.where(np.arange(n)[:, None] < 0.62 * n, 1.0, 0.35) * np.ones((n, n))
    return values


def _pile(problem: Callable[..., Values], n: int) -> Values:
    z = np.zeros((n, n), int)
    z[n // 2, n // 2] = 5 * n * n // 4
    return problem(n=n) | {"z": z}


def _past_a_disc(problem: Callable[..., Values], n: int) -> Values:
    values = problem(n=n, steps=12 * n)
    x, y = np.mgrid[: n + 8, :n]
    return values | {"obstacle": (x - n // 4) ** 2 + (y - n // 2) ** 2 < (n / 9) ** 2, "tau": 0.56, "ux0": 0.1}


def _speed(values: Values) -> Any:
    f = values["returned"]
    cx = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1])
    cy = np.array([0, 0, 1, 0, -1, 1, 1, -1, -1])
    speed = np.hypot((f * cx).sum(2), (f * cy).sum(2)) / f.sum(2)
    return np.ma.masked_array(speed, values["obstacle"]).filled(0.0).T


def _streams(axes: Any, values: Values) -> None:
    u, v = values["u"], values["v"]
    n = len(u)
    axes.imshow(np.hypot(u, v), cmap="viridis", origin="lower", vmax=1.0)
    axes.streamplot(np.arange(n), np.arange(n), u, v, color="white", density=0.9, linewidth=0.6, arrowsize=0.6)


def _few_seeds(problem: Callable[..., Values], n: int) -> Values:
    d = np.full((n, n), 9999, np.int32)
    for i, j in np.random.default_rng(4).integers(1, n - 1, (max(n // 8, 2), 2)):
        d[i, j] = 0
    return problem(n=n) | {"d": d}


def _hills(n: int) -> np.ndarray:
    """A landscape of smooth hills, between 0 and 1."""
    x, y = np.mgrid[:n, :n] / n
    rng, ground = np.random.default_rng(9), np.zeros((n, n))
    for kx, ky in rng.uniform(-5, 5, (24, 2)):
        ground += np.cos(2 * np.pi * (kx * x + ky * y) + rng.uniform(0, 6)) / (1 + kx * kx + ky * ky)
    low, high = ground.min(), ground.max()
    return (ground - low) / (high - low)


def _over_hills(problem: Callable[..., Values], n: int) -> Values:
    values = problem(n=n)
    T = np.full((n, n), 1000.0 * n)
    T[n // 3, n // 4] = 0.0
    return values | {"T": T, "slowness": 1.0 + 4.0 * _hills(n) ** 2}


def _fronts(axes: Any, values: Values) -> None:
    axes.imshow(values["slowness"], cmap="gray_r", alpha=0.6)
    axes.contour(values["T"], 24, cmap="plasma", linewidths=0.8)


def _seam(axes: Any, values: Values) -> None:
    axes.imshow(values["energy"], cmap="gray")
    axes.plot(values["path"], np.arange(len(values["path"])), color="#d55e00", linewidth=1.5)


def _grey(problem: Callable[..., Values], n: int) -> Values:
    x, y = np.mgrid[:n, :n] / n
    ball = np.sqrt(np.clip(0.16 - (x - 0.5) ** 2 - (y - 0.5) ** 2, 0, None))
    light = np.where(ball > 0, np.clip(0.15 + 2.2 * ball - 0.7 * (x - 0.5) - 0.7 * (y - 0.5), 0, 1), 0.85 - 0.5 * x)
    return problem(n=n) | {"image": 255.0 * np.clip(light, 0, 1)}


def _spiral(problem: Callable[..., Values], n: int) -> Values:
    values = problem(n=n, steps=14 * n)
    values["u"][:], values["v"][:] = 0.0, 0.0
    values["u"][0, : n // 2] = 1.0
    values["v"][:, : n // 2] = 0.375
    return values


def _spots(problem: Callable[..., Values], n: int) -> Values:
    values = problem(n=n, steps=35 * n) | {"F": 0.037, "k": 0.06}
    for i, j in np.random.default_rng(7).integers(n // 8, n - n // 8, (6, 2)):
        values["U"][i - 2 : i + 3, j - 2 : j + 3], values["V"][i - 2 : i + 3, j - 2 : j + 3] = 0.5, 0.25
    return values


def _columns(problem: Callable[..., Values], n: int) -> Values:
    values = problem(n=n, steps=max(n // 3, 4))
    x, y = np.mgrid[:n, :n] / n
    values["h"] = 1 + sum(0.5 * np.exp(-200 * ((x - a) ** 2 + (y - b) ** 2)) for a, b in ((0.3, 0.35), (0.65, 0.7)))
    return values


ENTRIES = (
    Entry("heat_periodic", "Heat on a torus", lambda p, n: p(n=n, steps=n), image(returned, "inferno"), 120),
    Entry("wave_space_time", "A wave, all its history", lambda p, n: p(steps=2 * n, n=n), balanced(lambda v: v["u"]), 160),
    Entry("leapfrog_2d", "A seismogram", _quiet_source, balanced(returned), 160),
    Entry("fdtd_tm_mur", "Maxwell's equations", lambda p, n: p(n=n, steps=n), balanced(lambda v: v["ez"].T), 160),
    Entry("burgers_2d", "Burgers' equations", lambda p, n: p(n=n, nt=12 * n), image(lambda v: v["u"], "magma"), 81),
    Entry("shallow_water", "Shallow water", _columns, image(lambda v: v["returned"][0], "Blues_r"), 120),
    Entry("cavity_flow", "A cavity with a moving lid", lambda p, n: p(n=n, nt=8 * n), _streams, 41),
    Entry("lattice_boltzmann", "Flow past a disc", _past_a_disc, image(_speed, "viridis"), 90),
    Entry("gray_scott", "Gray and Scott's reaction", _spots, image(lambda v: v["returned"][1], "cividis"), 128),
    Entry("barkley", "Spiral waves", _spiral, image(lambda v: v["u"][v["returned"]], "magma"), 110),
    Entry("cahn_hilliard", "Phase separation", lambda p, n: p(n=n, steps=12 * n), balanced(lambda v: v["c"]), 96),
    Entry("game_of_life", "Game of Life", lambda p, n: p(n=n, steps=n), image(lambda v: v["Z"], "binary"), 96),
    Entry("sandpile", "A pile of sand", _pile, image(lambda v: v["z"], "viridis"), 121),
    Entry("forest_fire", "Forest fires", lambda p, n: p(n=n, steps=n), image(lambda v: v["state"], "RdYlGn_r"), 120),
    Entry("traffic", "Traffic", lambda p, n: p(n=n, steps=4 * n), image(lambda v: v["road"], "coolwarm"), 96),
    Entry("fast_sweeping", "Travel times", _over_hills, _fronts, 140),
    Entry("mandelbrot", "The Mandelbrot set", lambda p, n: p(n=n, limit=n),
          image(lambda v: np.log1p(v["counts"]), "twilight"), 240),
    Entry("floyd_steinberg", "Dithering", _grey, image(lambda v: v["image"], "gray"), 160),
    Entry("chamfer", "Distances", _few_seeds, image(lambda v: v["d"][1:-1, 1:-1], "viridis"), 160),
    Entry("seam", "Seam carving", lambda p, n: p(n=n, m=n) | {"energy": _hills(n)}, _seam, 140),
    Entry("needleman_wunsch", "Alignment of two sequences", lambda p, n: p(n=n, m=n), image(lambda v: v["F"], "viridis"), 140),
    Entry("dynamic_time_warping", "Warping of two series", lambda p, n: p(n=n, m=n, window=n // 3),
          image(lambda v: np.where(np.isinf(v["D"]), np.nan, v["D"]), "magma"), 140),
)  # fmt: skip


def draw(entry: Entry, values: Values, file: Any) -> None:
    """A picture as PNG, of what a run left."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(4.2, 4.2), dpi=110)
    entry.show(axes, values)
    axes.set_axis_off()
    if axes.images:
        axes.set_aspect("auto")
    figure.savefig(file, format="png", bbox_inches="tight", pad_inches=0.02)
    pyplot.close(figure)


# -- pages ---------------------------------------------------------------------------------------------------------------


def described(nest: lw.Nest) -> tuple[str, str]:
    """What a program's docstring says: what it is, and its source."""
    text = " ".join((nest.python.__doc__ or "").split())
    what, _, rest = text.partition(" Source: ")
    return what, rest.partition(" Uses: ")[0]


def cut_in_short(plan: Any) -> Iterator[str]:
    """How a program was cut, a line for each nest."""
    for region in getattr(plan, "regions", ()):
        loops = ", ".join(region.loops.loop_names)
        how = "planned when it runs" if region.plan is None else region.plan.in_short().strip()
        yield f"line {region.loops.line}{f', loops {loops}' if loops else ''}: {how}"
    if not hasattr(plan, "regions"):
        yield plan.in_short().strip()


def page(entry: Entry) -> str:
    what, source = described(entry.nest)
    plan = entry.nest.plan(**entry.problem(entry.nest.problem_function, entry.n), ranks=RANKS)
    code = textwrap.dedent(inspect.getsource(entry.nest.python))
    cut = "\n".join(cut_in_short(plan))
    return (
        f"# {entry.title}\n\n{what}\n\n![{entry.title}]({entry.name}.png)\n\n"
        f"Source: {source}\n\n```python\n{code}```\n\nOn {RANKS} ranks, in short:\n\n```text\n{cut}\n```\n\n"
        f"The program with its problem: `tests/literature/{entry.family}.py`.\n"
    )


def grid(entries: Sequence[Entry]) -> str:
    """The pictures in rows, each leading to its page; in Markdown, from docs/."""
    names = [f"[![{e.title}](_gallery/{e.name}.png)](_gallery/{e.name}.md)<br>{e.title}" for e in entries]
    rows = [names[k : k + 4] for k in range(0, len(names), 4)]
    lines = [" | ".join([*row, *[""] * (4 - len(row))]) for row in rows]
    return "\n".join([f"| {lines[0]} |", "|---|---|---|---|", *(f"| {line} |" for line in lines[1:])]) + "\n"


def table() -> str:
    rows = []
    for entry in ENTRIES:
        what, source = described(entry.nest)
        link = f"[{entry.title}](../tests/literature/{entry.family}.py)"
        rows.append(f"| {link} | {what} | {source.replace('|', chr(92) + '|')} |")
    return "\n".join(["| program | what | source |", "|---|---|---|", *rows]) + "\n"


def main() -> None:
    PAGES.mkdir(exist_ok=True)
    made = []
    for entry in ENTRIES:
        try:
            values = entry.run()
        except lw.RefusedError as refused:
            print(f"gallery: {entry.name} is left out: {refused.refusals[0]}", file=sys.stderr)
            continue
        (PAGES / f"{entry.name}.md").write_text(page(entry), encoding="utf-8")
        draw(entry, values, PAGES / f"{entry.name}.png")
        made.append(entry)
    (PAGES / "grid.txt").write_text(grid(made), encoding="utf-8")


if __name__ == "__main__":
    main()
