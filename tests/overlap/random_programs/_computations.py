"""The arrays of a random program, what of them may be touched at a place, and computations that touch it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

from _c_writer import C
from _flat_writer import Flat
from _fortran_writer import Fortran
from _terms import Out, Term, Variable, lift

STEPS = 3
I, J, K, R = (Variable(name, "int") for name in ("i", "j", "k", "r"))  # noqa: E741
N1, N2 = Variable("n1", "int", place="shared"), Variable("n2", "int", place="shared")
S1, S2 = Variable("s1", "double", place="shared"), Variable("s2", "double", place="shared")
ME, NP, PREV, NEXT, LOW, HIGH, STEP = (
    Variable(name, "int", place="shared") for name in ("me", "np", "prev", "next", "low", "high", "step")
)
SEEN = Variable("seen", "int", place="shared")  # what counters were when their loops were over
FIRST, LAST = Variable("ifirst", "int", place="shared"), Variable("ilast", "int", place="shared")
COMM = Variable("comm", "comm", place="shared")
IGNORE = "MPI_STATUS_IGNORE"


class Computations:
    """``busy_reads``: what MPI reads at this place, which the program must not write. ``busy_writes``: what MPI writes.
    ``bumped``: the line that the function with side effects changes."""

    def __init__(self, random: Random, form: str) -> None:
        self.random = random
        self.form = form
        nx, ny = "nx", "ny"
        constants = {nx: random.randint(5, 11), ny: random.randint(4, 7), "maxp": 4}
        rows, row, long = lift(ny) + 2, lift(nx) + 2, lift("maxp") * lift(nx)

        def origin() -> int:
            return random.choice((0, 0, 1))

        local = random.random() < 0.5

        def array(name: str, kind: str, *shape: Any, may_be_local: bool = True) -> Variable:
            place = "main" if local and may_be_local and random.random() < 0.6 else "shared"
            return Variable(name, kind, shape, origin(), place)

        self.grids = [array(name, "double", rows, row) for name in ("u", "v")]
        self.lines = [array(name, "double", row) for name in ("a", "b", "c")]
        self.counters = [array(name, "int", row) for name in ("kp", "kq")]
        self.buffers = [
            array(name, "double", long, may_be_local=n > 3) for n, name in enumerate(("out1", "in1", "out2", "in2"))
        ]
        self.integers = [array(name, "int", long) for name in ("iout", "iin")]
        self.counts = [array(name, "int", lift("maxp")) for name in ("scount", "sdispl", "rcount", "rdispl")]
        self.ends = Variable("ends", "int", (rows,), origin(), "shared")  # where rows end
        self.alias = Variable(
            "al",
            "double",
            (lift(nx),),
            origin(),
            "shared",
            (random.choice(self.buffers[:2]).name, random.randint(0, 3)),
        )
        arrays = [*self.grids, *self.lines, *self.counters, *self.buffers, *self.integers, *self.counts]
        scalars = [ME, NP, PREV, NEXT, LOW, HIGH, STEP, S1, S2, N1, N2, SEEN, FIRST, LAST, self.ends]
        shared = [v for v in arrays if v.place == "shared"] + scalars + [self.alias]
        self.dup = random.random() < 0.3
        if self.dup:
            shared.append(COMM)
        # Requests of split exchanges live as long as the program.
        self.pending = Variable("pend", "request", place="shared")
        if form != "fixed":
            shared.append(self.pending)
        self.arrays = arrays
        self.bumped = next((a for a in self.lines if a.place == "shared"), None)
        self.w: C | Fortran
        if form in ("c", "flat"):
            self.w = (Flat if form == "flat" else C)(random, constants, shared)
        else:
            self.w = Fortran(random, constants, shared, form)
        self.aside = Random(f"{constants} {form}")  # what it chooses leaves the rest of a seed's program as it was
        self.busy_reads: set[str] = set()
        self.busy_writes: set[str] = set()
        self.procedures: list[str] = []
        self.named = 0
        self.tag = random.choice((0, 1, 7))

    # ---- choices ----

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def comm(self) -> Any:
        return COMM if self.dup and self.chance(0.5) else lift("MPI_COMM_WORLD")

    def new_tag(self) -> int:
        """Often the same again."""
        if self.chance(0.4):
            self.tag = self.random.randint(0, 30)
        return self.tag

    def fresh(self, stem: str) -> str:
        self.named += 1
        return f"{stem}{self.named}"

    def request(self, name: str = "req") -> Variable:
        return Variable(name, "request", place=self.random.choice(("local", "local", "saved")))

    def status(self) -> Any:
        return lift(IGNORE) if self.chance(0.6) else Out(Variable("stat", "status"))

    # ---- what may be touched ----

    def names(self, array: Variable) -> set[str]:
        """The array and whatever shares its memory."""
        target = self.alias.overlays[0] if self.alias.overlays else ""
        return {array.name, "al", target} if array.name in ("al", target) else {array.name}

    def readable(self, arrays: Sequence[Variable]) -> list[Variable]:
        return [a for a in arrays if not self.names(a) & self.busy_writes]

    def writable(self, arrays: Sequence[Variable]) -> list[Variable]:
        return [a for a in arrays if not self.names(a) & (self.busy_writes | self.busy_reads)]

    @contextmanager
    def in_flight(self, reads: Sequence[Variable], writes: Sequence[Variable]) -> Iterator[None]:
        before = set(self.busy_reads), set(self.busy_writes)
        for a in reads:
            self.busy_reads |= self.names(a)
        for a in writes:
            self.busy_writes |= self.names(a)
        yield
        self.busy_reads, self.busy_writes = before

    # ---- computations ----

    COMPUTATIONS = (
        "stencil", "stencil", "boundary", "recurrence", "recurrence", "mix", "mix", "count", "scatter_local", "total",
        "touch_alias", "through_pointer", "on_condition", "print_some", "side_effect", "copy_rows", "long_loop",
        "nests", "nests", "move_ends",
    )  # fmt: skip

    def compute(self, times: int = 1) -> None:
        """Something that leaves alone what is in flight."""
        for _ in range(times):
            getattr(self, self.random.choice(self.COMPUTATIONS))()

    def gap(self, probability: float = 0.6) -> None:
        if self.chance(probability):
            self.compute(self.random.randint(1, 2))

    def look_at(self, counter: Variable) -> None:
        """Sometimes what the counter of the loop before is worth now."""
        if self.aside.random() < 0.2:
            self.w.assign(SEEN, (SEEN + counter) % 997)

    def stencil(self) -> None:
        """Interior points from all neighbours, with or without those next to the halo."""
        sources, targets = self.readable(self.grids), self.writable(self.grids)
        if not sources or not targets:
            return
        x, y = self.random.choice(sources), self.random.choice(targets)
        margin = self.random.choice((1, 1, 2))
        with self.w.loop(J, margin, lift("ny") + (1 - margin)), self.w.loop(I, 1, "nx"):
            around = x[J - 1, I] + x[J + 1, I] + x[J, I - 1] + x[J, I + 1]
            self.w.assign(y[J, I], 0.125 * around + 0.25 * x[J, I] + 0.0625)
            self.accumulate(x[J, I] - y[J, I])
        self.look_at(J)

    RESIDUALS = ("none", "none", "count", "sum", "largest", "largest", "where", "added")

    def accumulate(self, change: Term) -> None:
        """Sometimes what all iterations leave in a scalar: most of it is the same in any order, places and sums of doubles are
        not."""
        sort, scalar = self.aside.choice(self.RESIDUALS), self.aside.choice((S1, S2))
        if sort == "none" or scalar.name in self.busy_writes | self.busy_reads:
            return
        size = Term("abs", (change,))
        if sort == "sum":
            self.w.assign(SEEN, SEEN + (2 * I + ME))
        elif sort == "added":
            self.w.assign(scalar, scalar + change)
        elif sort == "count":
            with self.w.when(change > 0.125, followed=True):
                self.w.assign(SEEN, SEEN + 1)
        else:
            with self.w.when(size > scalar, followed=True):
                self.w.assign(scalar, size)
                if sort == "where":
                    self.w.assign(SEEN, 100 * J + I)

    def nests(self) -> None:
        """Rows in which several loops follow one another; the next takes what the one before makes."""
        sources, targets = self.readable(self.grids), self.writable(self.grids)
        if not sources or not targets:
            return
        with self.w.loop(J, 1, "ny"):
            for _ in range(self.random.randint(2, 4)):
                x, y = self.random.choice(sources), self.random.choice(targets)
                low = self.random.choice((lift(1), lift(1), lift(2), FIRST))
                high = self.random.choice((lift("nx"), lift("nx"), lift("nx") - 1, LAST, self.ends[J]))
                dj, di = self.random.choice(((0, 1), (0, -1), (0, 0), (1, 0), (-1, 1)))
                with self.w.loop(I, low, high):
                    self.w.assign(y[J, I], 0.5 * y[J, I] + 0.25 * x[J + dj, I + di] + 0.0625)
        self.look_at(J)

    def move_ends(self) -> None:
        with self.w.loop(J, 0, lift("ny") + 1):
            self.w.assign(self.ends[J], lift("nx") - (J + self.random.randint(0, 2)) % 3)

    def boundary(self) -> None:
        sources, targets = self.readable(self.grids), self.writable(self.grids)
        if not sources or not targets:
            return
        x, y = self.random.choice(sources), self.random.choice(targets)
        inner, outer = self.random.choice(((lift(1), lift(0)), (lift("ny"), lift("ny") + 1)))
        with self.w.loop(I, 1, "nx"):
            self.w.assign(y[inner, I], 0.5 * y[inner, I] + 0.25 * x[outer, I] + 0.125)
        self.look_at(I)

    def recurrence(self) -> None:
        targets = self.writable(self.lines)
        if targets:
            x = self.random.choice(targets)
            with self.w.loop(I, 1, "nx"):
                self.w.assign(x[I], 0.5 * x[I - 1] + 0.25 * x[I + 1] + 0.125)

    def mix(self) -> None:
        """A line from two others, buffers among them."""
        sources, targets = self.readable([*self.lines, *self.buffers]), self.writable([*self.lines, *self.buffers])
        if sources and targets:
            x, y, z = self.random.choice(targets), self.random.choice(sources), self.random.choice(sources)
            with self.w.loop(I, 0, lift("nx") - 1):
                if self.chance(0.5):
                    self.w.assign(x[I], 0.5 * y[I] + 0.25 * z[I] + 0.03125)
                else:
                    self.w.assign(x[I], 3.0 * y[I] + 5.0 * z[I])
                    self.fraction(x[I])
            self.look_at(I)

    def fraction(self, x: Term) -> None:
        """Bounded without forgetting: means alone would wipe out what a wrong value did."""
        self.w.assign(x, x - Term("double", (Term("int", (x,)),)))

    def count(self) -> None:
        every = [*self.counters, *self.integers]
        sources, targets = self.readable(every), self.writable(every)
        if sources and targets:
            x, y = self.random.choice(targets), self.random.choice(sources)
            with self.w.loop(I, 0, lift("nx") - 1):
                self.w.assign(x[I], (x[I] + y[I] * self.random.randint(2, 9) + ME) % 9973)

    def scatter_local(self) -> None:
        """Through an index array."""
        keys, sources, targets = self.readable(self.counters), self.readable(self.lines), self.writable(self.lines)
        if keys and sources and targets:
            key, x, y = self.random.choice(keys), self.random.choice(sources), self.random.choice(targets)
            with self.w.loop(I, 1, "nx"):
                self.w.assign(y[1 + key[I] % "nx"], 0.5 * x[I] + 0.25)

    def total(self) -> None:
        sources = self.readable([*self.lines, *self.buffers])
        if sources:
            x, s = self.random.choice(sources), self.random.choice((S1, S2))
            if self.busy_writes & {s.name} or self.busy_reads & {s.name}:
                return
            self.w.assign(s, 0.0)
            with self.w.loop(I, 0, lift("nx") - 1):
                self.w.assign(s, s * 0.5 + x[I])

    def touch_alias(self) -> None:
        if self.writable([self.alias]):
            with self.w.loop(I, 0, lift("nx") - 2):
                self.w.assign(self.alias[I], 0.5 * self.alias[I + 1] + 0.125)

    def through_pointer(self) -> None:
        """A line by a pointer to it: C alone."""
        targets = self.writable(self.lines)
        if targets and isinstance(self.w, C):
            pointer = Variable("ptr", "double", (lift("nx"),), overlays=("", 0))
            self.w.point(pointer, self.random.choice(targets))
            with self.w.loop(I, 1, "nx"):
                self.w.assign(pointer[I], 0.5 * pointer[I] + 0.25 * pointer[I - 1])

    def on_condition(self) -> None:
        keys, targets = self.readable(self.counters), self.writable(self.lines)
        if keys and targets:
            key, x = self.random.choice(keys), self.random.choice(targets)
            both = self.chance(0.5)
            with self.w.when(lift(key[2] % 3).equals(self.random.randint(0, 2)), followed=both):
                self.w.assign(x[2], x[2] * 0.5)
            if both:
                with self.w.otherwise():
                    self.w.assign(x[1], 0.5 * x[1] + 0.25)

    def print_some(self) -> None:
        sources = self.readable([*self.lines, *self.buffers])
        if sources and self.chance(0.5):
            self.w.put_double(self.random.choice(sources)[self.random.randint(0, 3)])

    def side_effect(self) -> None:
        """A function that counts its calls and changes a line."""
        targets = [x for x in self.writable(self.lines) if x != self.bumped]
        if targets and (self.bumped is None or self.writable([self.bumped])):
            x = self.random.choice(targets)
            self.w.assign(x[3], Term("call", ("bump", 0.5 * x[3])))

    def copy_rows(self) -> None:
        sources, targets = self.readable(self.grids), self.writable(self.lines)
        if sources and targets:
            x, y = self.random.choice(sources), self.random.choice(targets)
            row = self.random.choice((lift(0), lift(1), lift("ny"), lift("ny") + 1))
            with self.w.loop(I, 0, lift("nx") + 1):
                self.w.assign(y[I], x[row, I])

    def long_loop(self) -> None:
        targets = self.writable(self.lines)
        if targets:
            x = self.random.choice(targets)
            with self.w.loop(K, 1, 200), self.w.loop(I, 1, "nx"):
                self.w.assign(x[I], 1.5 * x[I] + 0.5 * x[I - 1])
                self.fraction(x[I])
