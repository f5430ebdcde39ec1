"""Smith-Waterman: the best local alignment of two genomes, here the mitochondria of mouse and rat.

h[i, j] is the best score of an alignment that ends with base i of one sequence and base j of the other. It
follows from h[i-1, j-1], h[i-1, j] and h[i, j-1], so the 266 million cells can only be computed as a
wavefront. Heuristics such as BLAST look at a small part of them; this is the exact answer, and all of h is
kept, so that the alignment can be read off it.

Source: T. F. Smith, M. S. Waterman, "Identification of common molecular subsequences", J. Mol. Biol. 147
(1981), with a linear gap cost. Default scores are those of NCBI's megablast, doubled to be integers: match 1,
mismatch -2, gap 2.5.

    lapwing run examples/alignment.py -n 2 --check
    python examples/alignment.py --picture out/alignment.png
    mpiexec -n 2 python examples/alignment.py --bases 5000
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

import numpy as np

import lapwing as lw

DATA = Path(__file__).parent / "data"
MOUSE, RAT = str(DATA / "mouse-mitochondrion.fasta"), str(DATA / "rat-mitochondrion.fasta")


@lw.nest
def align(h, a, b, match, mismatch, gap):
    score = 0
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            s = match if a[i - 1] == b[j - 1] else mismatch
            h[i, j] = max(0, h[i - 1, j - 1] + s, h[i - 1, j] - gap, h[i, j - 1] - gap)
            score = max(score, h[i, j])
    return score


@align.problem
def problem(
    first: str = MOUSE, second: str = RAT, bases: int = 20_000, match: int = 2, mismatch: int = -4, gap: int = 5
) -> dict[str, Any]:
    """Two FASTA files, of each at most the given number of bases, and the scores."""
    a, b = read_fasta(first)[:bases], read_fasta(second)[:bases]
    h = np.zeros((len(a) + 1, len(b) + 1), np.int32)
    return {"h": h, "a": a, "b": b, "match": match, "mismatch": mismatch, "gap": gap}


def read_fasta(path: str) -> np.ndarray:
    """The letters of the first sequence in a FASTA file, as uint8 codes."""
    record = Path(path).read_text().split(">")[1]
    return np.frombuffer("".join(record.split("\n")[1:]).upper().encode(), np.uint8)


def traceback(h: Any, a: Any, b: Any, match: int, mismatch: int, gap: int) -> list[tuple[int, int]]:
    """The cells of h that the best alignment goes through, the one before its first column included."""
    i, j = (int(k) for k in np.unravel_index(np.argmax(h), h.shape))
    cells = []
    while h[i, j] > 0:
        cells.append((i, j))
        if h[i, j] == h[i - 1, j - 1] + (match if a[i - 1] == b[j - 1] else mismatch):
            i, j = i - 1, j - 1
        elif h[i, j] == h[i - 1, j] - gap:
            i -= 1
        else:
            j -= 1
    return [(i, j), *reversed(cells)]


def columns(cells: list[tuple[int, int]], a: np.ndarray, b: np.ndarray) -> tuple[str, str]:
    """The two rows of an alignment, with - for a gap."""
    steps = list(itertools.pairwise(cells))
    above = "".join(chr(a[i - 1]) if i > before else "-" for (before, _), (i, _) in steps)
    below = "".join(chr(b[j - 1]) if j > before else "-" for (_, before), (_, j) in steps)
    return above, below


def describe(score: int, cells: list[tuple[int, int]], above: str, below: str, names: list[str]) -> str:
    same = sum(x == y for x, y in zip(above, below, strict=True))
    gaps = above.count("-") + below.count("-")
    (i, j), (last_i, last_j) = cells[0], cells[-1]
    width = max(map(len, names))
    lines = [
        f"score {score}: {names[0]} {i + 1}-{last_i} with {names[1]} {j + 1}-{last_j}",
        f"{len(above)} columns, {100 * same / len(above):.1f} % identical, {gaps} gap columns; it begins",
    ]
    for at in range(0, min(180, len(above)), 60):
        top, bottom = above[at : at + 60], below[at : at + 60]
        bars = "".join("|" if x == y else " " for x, y in zip(top, bottom, strict=True))
        lines += ["", f"  {names[0]:{width}}  {top}", f"  {'':{width}}  {bars}", f"  {names[1]:{width}}  {bottom}"]
    return "\n".join(lines)


def draw(path: Path, h: np.ndarray, cells: list[tuple[int, int]], above: str, below: str, names: list[str]) -> None:
    """A map of the best score in every block of h with the alignment on it, and how alike the two are along it."""
    try:
        from matplotlib.colors import LogNorm
        from matplotlib.figure import Figure
    except ImportError:
        raise SystemExit('A picture needs matplotlib: pip install "lapwing[examples]"') from None

    block = max(1, min(h.shape) // 400)
    rows = np.stack([h[at : at + block].max(axis=0) for at in range(0, h.shape[0], block)])
    peaks = np.maximum.reduceat(rows, np.arange(0, h.shape[1], block), axis=1)
    i, j = np.array(cells).T
    same = np.array([x == y for x, y in zip(above, below, strict=True)], float)
    window = min(200, len(same))
    identity = 100 * np.convolve(same, np.ones(window) / window, "valid")

    figure = Figure(figsize=(8, 9), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(40, 1), height_ratios=(4, 1))
    top, bar, bottom = (figure.add_subplot(grid[place]) for place in ((0, 0), (0, 1), (1, 0)))
    size = (0, peaks.shape[0] * block, 0, peaks.shape[1] * block)
    colours = {"cmap": "magma", "norm": LogNorm()}
    image = top.imshow(np.maximum(peaks, 1).T, origin="lower", extent=size, aspect="auto", **colours)
    figure.colorbar(image, cax=bar, label=f"best score of an alignment ending here ({block} x {block} bases)")
    top.plot(i, j, color="black", linewidth=1)
    best = f"black: the best alignment, score {h[i[-1], j[-1]]}"
    alike = f"{100 * same.mean():.1f} % of {len(same)} columns identical"
    top.text(0.97, 0.05, f"{best}\n{alike}", transform=top.transAxes, color="white", ha="right", linespacing=1.5)
    top.set(title="Where the two genomes align", xlabel=f"{names[0]} (base)", ylabel=f"{names[1]} (base)")
    bottom.plot(i[1 + window // 2 :][: len(identity)], identity, color="#8c2981", linewidth=1)
    bottom.set(xlim=size[:2], xlabel=f"{names[0]} (base)", ylabel=f"% identical\nin {window} columns")
    bottom.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description="Align the mitochondrial genomes of mouse and rat.")
    parser.add_argument("--bases", type=int, default=20_000, help="align at most so many bases of each")
    parser.add_argument("--picture", type=Path, help="draw the alignment into this file")
    options = parser.parse_args()

    arguments = problem(bases=options.bases)
    h = lw.DistributedArray(arguments.pop("h"))
    score = align(h, **arguments)
    whole = h.numpy()  # on rank 0; None on the others
    if whole is None:
        return
    cells = traceback(whole, **arguments)
    names = ["mouse", "rat"]
    above, below = columns(cells, arguments["a"], arguments["b"])
    print(describe(score, cells, above, below, names))
    if options.picture:
        draw(options.picture, whole, cells, above, below, names)
        print(f"\npicture: {options.picture}")


if __name__ == "__main__":
    main()
