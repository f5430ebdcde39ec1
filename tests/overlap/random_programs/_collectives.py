"""Collectives in a random program: every kind, with results that are used at once or much later."""

from __future__ import annotations

from _computations import ME, N1, NP, S1, S2, STEP, I, R
from _messages import REAL, Messages
from _terms import Out, Term, Variable, lift


class Collectives(Messages):
    # ---- collectives ----

    def exact(self, x: Variable) -> None:
        """Make the numbers of a line add exactly."""
        with self.w.loop(I, 0, lift("nx") + 1):
            self.w.assign(x[I], Term("double", (Term("int", (x[I] * 4096.0,)),)) / 4096.0)

    def broadcast(self) -> None:
        xs = self.writable(self.lines)
        if not xs:
            return
        x, root = self.random.choice(xs), self.random.choice((lift(0), STEP % NP))
        self.gap(0.3)
        if self.chance(0.5):
            self.w.mpi("Bcast", Out(x), lift("nx") + 2, REAL, root, self.comm())
        else:
            self.w.assign(N1, (N1 + ME * 3 + 1) % 17)
            self.w.mpi("Bcast", Out(N1), 1, "MPI_INTEGER", root, self.comm())
        self.gap(0.4)

    def reduction(self) -> None:
        """A scalar or a line, to all or to a root; the result is used at once or much later."""
        w, comm = self.w, self.comm()
        xs, ys = self.writable(self.lines), self.writable([*self.lines, *self.buffers])
        way = self.random.choice(("scalar", "line", "in-place", "integers"))
        operation = self.random.choice(("MPI_SUM", "MPI_MAX", "MPI_MIN"))
        to_all = self.chance(0.6)
        rest = (lift(operation), comm) if to_all else (lift(operation), STEP % NP, comm)
        name = "Allreduce" if to_all else "Reduce"
        if way == "scalar":
            w.assign(S1, Term("double", (Term("int", (S1 * 1024.0,)),)) / 1024.0)
            w.mpi(name, Out(S1), Out(S2), 1, REAL, *rest)
            self.gap(0.5)
            if xs and self.chance(0.6):
                w.assign(xs[0][1], 0.5 * xs[0][1] + 0.125 * S2)
            # Sums of sums would grow.
            w.assign(S2, 0.125 * S2)
        elif way == "integers" and len(self.writable(self.integers)) == 2:
            with w.loop(I, 0, lift("nx") - 1):
                w.assign(self.integers[0][I], self.integers[0][I] % 1000)
            w.mpi(name, Out(self.integers[0]), Out(self.integers[1]), "nx", "MPI_INTEGER", *rest)
            self.gap(0.5)
        elif xs:
            x = self.random.choice(xs)
            self.exact(x)
            if way == "in-place":
                w.mpi("Allreduce", "MPI_IN_PLACE", Out(x), "nx", REAL, operation, comm)
                self.gap(0.4)
                scaled = x
            else:
                ys = [y for y in ys if y.name != x.name]
                if not ys:
                    return
                scaled = self.random.choice(ys)
                w.mpi(name, Out(x), Out(scaled), "nx", REAL, *rest)
                self.gap(0.5)
            if self.writable([scaled]):
                with w.loop(I, 0, lift("nx") - 1):
                    w.assign(scaled[I], 0.25 * scaled[I])

    def gathering(self) -> None:
        """Gather, scatter, allgather and alltoall of equal parts."""
        w, comm, kind = self.w, self.comm(), REAL
        out, into = self.random.sample(self.buffers, 2)
        if not self.readable([out]) or not self.writable([into]):
            return
        part, root = self.random.choice((lift(3), lift("nx"))), self.random.choice((lift(0), NP - 1))
        if self.names(out) & self.names(into):
            return
        name = self.random.choice(("Gather", "Scatter", "Allgather", "Alltoall"))
        ends = (root, comm) if name in ("Gather", "Scatter") else (comm,)
        w.mpi(name, Out(out), part, kind, Out(into), part, kind, *ends)
        self.gap(0.5)
        if self.chance(0.6) and self.writable(self.lines):
            x = self.random.choice(self.writable(self.lines))
            with w.loop(I, 0, lift("nx") - 1):
                w.assign(x[I], 0.5 * x[I] + 0.25 * into[part - 1] + 0.125 * into[I])

    def parts(self) -> None:
        """The v kinds: counts that differ between ranks, exchanged by an alltoall before, then displacements."""
        w, comm = self.w, self.comm()
        out, into = self.integers
        sends, sent_at, receives, received_at = self.counts
        if len(self.writable([*self.integers, *self.counts])) < 6:
            return
        with w.loop(R, 0, NP - 1):
            w.assign(sends[R], 1 + (ME + R + STEP) % 3)
        w.mpi("Alltoall", Out(sends), 1, "MPI_INTEGER", Out(receives), 1, "MPI_INTEGER", comm)
        self.gap(0.3)
        w.assign(sent_at[0], 0)
        w.assign(received_at[0], 0)
        with w.loop(R, 1, NP - 1):
            w.assign(sent_at[R], sent_at[R - 1] + sends[R - 1])
            w.assign(received_at[R], received_at[R - 1] + receives[R - 1])
        kind = "MPI_INTEGER"
        name = self.random.choice(("Alltoallv", "Alltoallv", "Gatherv", "Scatterv", "Allgatherv"))
        everyone = (Out(receives), Out(received_at))
        if name == "Alltoallv":
            w.mpi(name, Out(out), Out(sends), Out(sent_at), kind, Out(into), *everyone, kind, comm)
        else:
            # Rank r gives or takes as much as every rank computes for it.
            with w.loop(R, 0, NP - 1):
                w.assign(receives[R], 1 + (R + STEP) % 3)
                w.assign(received_at[R], 4 * R)
            mine = receives[ME]
            if name == "Gatherv":
                w.mpi(name, Out(out), mine, kind, Out(into), *everyone, kind, 0, comm)
            elif name == "Allgatherv":
                w.mpi(name, Out(out), mine, kind, Out(into), *everyone, kind, comm)
            else:
                w.mpi(name, Out(out), *everyone, kind, Out(into), mine, kind, 0, comm)
        self.gap(0.5)
        if self.chance(0.7):
            with w.loop(I, 0, lift("nx") - 1):
                w.assign(self.counters[0][I], (self.counters[0][I] + into[I]) % 9973) if self.writable(
                    self.counters[:1]
                ) else w.assign(out[I], (into[I] + out[I]) % 9973)

    def subgroup(self) -> None:
        """A communicator of the even and of the odd ranks."""
        xs = self.writable(self.lines)
        if len(xs) < 2:
            return
        w, sub, (x, y) = self.w, Variable("half", "comm"), self.random.sample(xs, 2)
        w.mpi("Comm_split", "MPI_COMM_WORLD", ME % 2, ME, Out(sub))
        w.mpi("Allreduce", Out(x), Out(y), "nx", REAL, "MPI_MAX", sub)
        self.gap(0.4)
        if self.chance(0.5):
            w.mpi("Bcast", Out(x), 3, REAL, 0, sub)
        w.mpi("Comm_free", Out(sub))

    def barrier(self) -> None:
        self.w.mpi("Barrier", self.comm())
