"""Random MPI programs: complete, deterministic, free of deadlock even where every send waits for its receive.

All ranks go through the same phases in the same order. A phase is one communication in one of the styles that codes have, or a
computation; computations take their operands from the same few arrays and buffers, so what may move across what is random.
Every value stays bounded, and sums over ranks are of numbers that add exactly, in whatever order.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random

from _collectives import Collectives
from _computations import COMM, FIRST, HIGH, LAST, LOW, ME, N1, N2, NEXT, NP, PREV, S1, S2, SEEN, STEP, STEPS, I
from _flat_writer import Flat
from _messages import REAL
from _terms import Out, Term, Variable, lift

FORMS = ("c", "flat", "fixed", "mpi", "mpi_f08")


@dataclass(frozen=True)
class Generated:
    """``files`` by name; the first is the one that holds the program."""

    seed: int
    form: str
    files: dict[str, str]

    @property
    def language(self) -> str:
        return "c" if self.form in ("c", "flat") else "fortran"

    @property
    def main(self) -> str:
        """The text of the file that holds the program."""
        return next(iter(self.files.values()))


def random_program(seed: int, form: str, phases: int | None = None) -> Generated:
    """The program of this seed in this form (one of FORMS). ``phases``: how much it does; without, that is the seed's choice."""
    if phases is None:
        phases = 1 + seed % 7
    return Generated(seed, form, Maker(Random(f"{seed} {form}"), form).program(phases))


class Maker(Collectives):
    # ---- control flow around them ----

    def conditional(self) -> None:
        """The start and the end of an exchange under conditions of their own, on one variable or on two."""
        w, tag = self.w, lift(self.new_tag())
        into, request = self.buffers[1], Variable("creq", "request")
        if not self.writable([into]):
            return
        flag = Variable("flag", "int")
        other = Variable("flag2", "int")
        w.assign(flag, STEP % 2)
        with w.when(flag.equals(1)):
            w.mpi("Irecv", Out(into), "nx", REAL, PREV, tag, "MPI_COMM_WORLD", Out(request))
        check: Variable = flag
        if self.chance(0.5):
            w.assign(other, flag)
            w.assign(flag, flag + 1)
            check = other
        with self.in_flight((), [into]):
            self.gap(0.5)
            x = self.random.choice(self.readable(self.lines) or self.lines)
            with w.when(check.equals(1)):
                w.mpi("Send", Out(x), "nx", REAL, NEXT, tag, "MPI_COMM_WORLD")
        with w.when(check.equals(1)):
            w.mpi("Wait", Out(request), self.status())
            with w.loop(I, 0, lift("nx") - 1):
                w.assign(into[I], 0.5 * into[I])
        if self.chance(0.5):
            with w.when(lift(STEP % 2).equals(0)):
                self.random.choice((self.broadcast, self.reduction, self.shift))()

    def convergence(self) -> None:
        """A loop that all ranks leave together, after a reduction."""
        w, xs = self.w, self.writable(self.lines)
        if not xs:
            return
        x, it = self.random.choice(xs), Variable("it", "int")
        with w.loop(it, 1, 4):
            with w.loop(I, 1, "nx"):
                w.assign(x[I], 0.5 * x[I] + 0.25 * x[I - 1])
            w.assign(S1, x["nx"])
            w.mpi("Allreduce", Out(S1), Out(S2), 1, REAL, "MPI_MAX", self.comm())
            with self.in_flight([S2], ()):  # or ranks would leave alone
                self.gap(0.3)
            with w.when(S2 < 0.4):
                w.leave()
            if self.chance(0.5):
                self.exchange(x[1], NEXT, x[lift("nx") + 1], PREV, lift(1), REAL, [x], [x])
        # The loop variable is defined after the loop, too.
        if self.chance(0.3):
            w.put(it)

    def timed(self) -> None:
        """A clock is read before and after; nothing is printed of it."""
        if self.w.body.name == "main":
            return
        start = Variable("t0", "double")
        self.w.assign(start, Term("call", ("MPI_Wtime",)))
        self.random.choice((self.halo, self.shift, self.broadcast))()
        self.w.assign(start, Term("call", ("MPI_Wtime",)) - start)
        with self.w.when(start > 1000000.0):
            self.w.put_double(start)

    def early_return(self) -> None:
        """The way out of a procedure that is never taken, as far as anybody can see before the program runs."""
        if self.w.body.name != "main":
            with self.w.when(N2 > 1000):
                self.w.go_back()
            self.random.choice((self.halo, self.shift, self.gathering))()

    def nested(self) -> None:
        """A procedure of its own, with whatever it does."""
        if self.w.body.name != "main" and not self.busy_reads and not self.busy_writes:
            self.in_procedure(1)
            self.call(self.procedures.pop())

    # ---- the program ----

    PHASES = (
        ("halo", 5), ("columns", 2), ("both_ways", 3), ("shift", 3), ("split_exchange", 1), ("short_message", 2), ("wildcard", 1),
        ("fan_in", 1), ("pipeline", 2), ("broadcast", 2), ("reduction", 3), ("gathering", 3), ("parts", 3), ("subgroup", 1),
        ("barrier", 1), ("conditional", 2), ("convergence", 1), ("probed", 1), ("timed", 1), ("nested", 2), ("early_return", 1),
    )  # fmt: skip

    def phase(self) -> None:
        names, weights = zip(*self.PHASES, strict=True)
        name = self.random.choices(names, weights)[0]
        self.w.comment(f"-- {name} --" if self.chance(0.7) else f"{name}: see above")
        getattr(self, name)()
        if name in ("halo", "columns", "both_ways") and self.chance(0.6):
            self.nests()
        if self.chance(0.5):
            self.compute()

    def call(self, name: str) -> None:
        """With the program's arrays as arguments, now and then others of the same shape than those named."""
        parameters = self.w.parameters[name]
        arguments = list(parameters)
        if self.w.body.name == "main" and self.chance(0.3):
            for group in (self.grids, self.lines, self.counters):
                places = [n for n, v in enumerate(parameters) if v in group and v.first == 0]
                # Dummies have one lower bound, actual arguments any: only those counted alike may swap in the text.
                if len(places) > 1:
                    first, second = self.random.sample(places, 2)
                    arguments[first], arguments[second] = arguments[second], arguments[first]
        self.w.call(name, *arguments)

    def exchange_pointers(self) -> None:
        """Two arrays that are reached by pointers change places."""
        if isinstance(self.w, Flat) and not self.busy_reads and not self.busy_writes and self.chance(0.3):
            self.w.exchange(*self.random.sample(self.random.choice((self.grids, self.lines)), 2))

    def in_procedure(self, count: int) -> None:
        name = self.fresh("phase")
        with self.w.procedure(name):
            for _ in range(count):
                self.phase()
        self.procedures.append(name)

    def report(self, number: int) -> None:
        for n, a in enumerate(self.arrays):
            self.w.call("report_int" if a.kind == "int" else "report", 100 * number + n, Out(a), a.elements())
        for s in (S1, S2):
            self.w.put_double(s)
        self.w.put(N1)
        self.w.put(SEEN)

    def set_up(self) -> None:
        w = self.w
        w.mpi("Comm_rank", "MPI_COMM_WORLD", Out(ME))
        w.mpi("Comm_size", "MPI_COMM_WORLD", Out(NP))
        if self.dup:
            w.mpi("Comm_dup", "MPI_COMM_WORLD", Out(COMM))
        w.assign(NEXT, (ME + 1) % NP)
        w.assign(PREV, (ME + NP - 1) % NP)
        w.assign(LOW, ME - 1)
        w.assign(HIGH, ME + 1)
        with w.when(ME.equals(0)):
            w.assign(LOW, "MPI_PROC_NULL")
        with w.when(ME.equals(NP - 1)):
            w.assign(HIGH, "MPI_PROC_NULL")
        for n, a in enumerate(self.arrays):
            w.call("fill_int" if a.kind == "int" else "fill", n, Out(a), a.elements())
        for s in (S1, S2):
            w.assign(s, 0.5)
        for count in (N1, N2, SEEN):
            w.assign(count, 0)
        w.assign(FIRST, 1)
        w.assign(LAST, "nx")
        with w.when(ME.equals(0)):
            w.assign(FIRST, 2)
        with w.when(ME.equals(NP - 1)):
            w.assign(LAST, lift("nx") - 1)
        self.move_ends()

    def program(self, phases: int) -> dict[str, str]:
        w = self.w
        w.report_procedures()
        x = Variable("x", "double", place="local")
        with w.procedure("bump", [x], "double"):
            w.assign(N2, (N2 + 1) % 100)
            if self.bumped is not None:
                w.assign(self.bumped[1], 0.5 * self.bumped[1] + 0.125)
            w.result(x * 0.5 + 0.001 * Term("double", (N2,)))
        left = phases
        while left > 0:
            count = min(left, self.random.randint(1, 3))
            self.in_procedure(count)
            left -= count
        with w.procedure("main"):
            w.start()
            self.set_up()
            with w.loop(STEP, 1, STEPS):
                for name in self.random.sample(self.procedures, len(self.procedures)):
                    self.call(name)
                    self.exchange_pointers()
                    self.gap(0.4)
                    if self.chance(0.2):
                        self.call(name)
                if self.chance(0.6):
                    self.phase()
                if self.chance(0.5):
                    self.report(1)
            self.report(9)
            if self.dup:
                w.mpi("Comm_free", Out(COMM))
            w.mpi("Finalize")
        return w.files()


if __name__ == "__main__":
    # python _programs.py FORM SEED DIRECTORY: to look into a case that failed.
    for name, text in random_program(int(sys.argv[2]), sys.argv[1]).files.items():
        (Path(sys.argv[3]) / name).write_text(text, encoding="latin-1")
