"""Messages between two ranks in a random program: halos, shifts, pipelines, and messages with something special."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager as Context
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from _computations import HIGH, IGNORE, LOW, ME, N1, NEXT, NP, PREV, S1, STEP, Computations, I, J, K, R
from _terms import Out, Section, Term, Variable, lift

SUBTAG = 500  # tags of wildcard receives lie above: nothing else may match them
REAL = "MPI_DOUBLE_PRECISION"


@dataclass(frozen=True)
class Pair:
    """A message out and one in, as MPI's first six arguments each, and the arrays they lie in."""

    send: tuple[Any, ...]
    receive: tuple[Any, ...]
    reads: Sequence[Variable]
    writes: Sequence[Variable]
    to: Variable
    source: Variable
    guarded: bool


class Messages(Computations):
    # ---- messages between neighbours ----

    def only_if(self, peer: Variable) -> Context[None]:
        """A guard on the neighbour's existence, if it may be missing."""
        if peer.name == "low":
            return self.w.when(self.random.choice((ME > 0, LOW.differs("MPI_PROC_NULL"))))
        if peer.name == "high":
            return self.w.when(self.random.choice((ME < NP - 1, HIGH.differs("MPI_PROC_NULL"))))
        return nullcontext()

    def exchange(
        self,
        out: Any,
        to: Variable,
        into: Any,
        source: Variable,
        count: Any,
        kind: str,
        reads: Sequence[Variable],
        writes: Sequence[Variable],
    ) -> None:
        """One message to ``to`` and one from ``source``, in a random style; computations go where they may."""
        tag, comm = lift(self.new_tag()), self.comm()
        send, receive = (Out(out), count, kind, to, tag, comm), (Out(into), count, kind, source, tag, comm)
        pair = Pair(send, receive, reads, writes, to, source, self.chance(0.5))
        style = self.random.choice(self.STYLES)
        self.w.comment(style)
        getattr(self, style)(pair)

    STYLES = (
        "irecv_send_wait", "irecv_send_wait", "one_call", "waitall", "isend_recv_wait", "odd_then_even", "two_requests",
    )  # fmt: skip

    def at_send(self, pair: Pair) -> Context[None]:
        return self.only_if(pair.to) if pair.guarded else nullcontext()

    def at_receive(self, pair: Pair) -> Context[None]:
        return self.only_if(pair.source) if pair.guarded else nullcontext()

    def irecv_send_wait(self, pair: Pair) -> None:
        request = self.request()
        with self.at_receive(pair):
            self.w.mpi("Irecv", *pair.receive, Out(request))
        with self.in_flight((), pair.writes):
            self.gap(0.4)
            with self.at_send(pair):
                self.w.mpi(self.random.choice(("Send", "Send", "Ssend")), *pair.send)
            self.gap(0.3)
        with self.at_receive(pair):
            self.w.mpi("Wait", Out(request), self.status())

    def one_call(self, pair: Pair) -> None:
        self.w.mpi("Sendrecv", *pair.send[:5], *pair.receive[:5], pair.send[5], self.status())

    def waitall(self, pair: Pair) -> None:
        requests = Variable("reqs", "request", (lift(2),), 1)
        calls = [("Irecv", pair.receive), ("Isend", pair.send)]
        self.random.shuffle(calls)
        for number, (name, arguments) in enumerate(calls):
            self.w.mpi(name, *arguments, Out(requests[number]))
        with self.in_flight(pair.reads, pair.writes):
            self.gap(0.5)
        self.w.mpi("Waitall", lift(2), Out(requests), lift("MPI_STATUSES_IGNORE"))

    def isend_recv_wait(self, pair: Pair) -> None:
        request = self.request()
        with self.at_send(pair):
            self.w.mpi("Isend", *pair.send, Out(request))
        with self.in_flight(pair.reads, ()):
            self.gap(0.4)
            with self.at_receive(pair):
                self.w.mpi("Recv", *pair.receive, self.status())
            self.gap(0.3)
        with self.at_send(pair):
            self.w.mpi("Wait", Out(request), self.status())

    def odd_then_even(self, pair: Pair) -> None:
        """Even ranks send first, odd ones receive first."""
        with self.w.when(lift(ME % 2).equals(0), followed=True):
            with self.at_send(pair):
                self.w.mpi("Send", *pair.send)
            with self.at_receive(pair):
                self.w.mpi("Recv", *pair.receive, self.status())
        with self.w.otherwise():
            with self.at_receive(pair):
                self.w.mpi("Recv", *pair.receive, self.status())
            with self.at_send(pair):
                self.w.mpi("Send", *pair.send)

    def two_requests(self, pair: Pair) -> None:
        arrival, departure = self.request("req"), self.request("sreq")
        self.w.mpi("Irecv", *pair.receive, Out(arrival))
        with self.in_flight((), pair.writes):
            self.gap(0.3)
            self.w.mpi("Isend", *pair.send, Out(departure))
            with self.in_flight(pair.reads, ()):
                self.gap(0.5)
        first, second = (arrival, departure) if self.chance(0.5) else (departure, arrival)
        self.w.mpi("Wait", Out(first), self.status())
        with self.in_flight((), pair.writes) if first == departure else self.in_flight(pair.reads, ()):
            self.gap(0.4)
        self.w.mpi("Wait", Out(second), self.status())

    def halo(self) -> None:
        """Rows of a grid to both neighbours: straight from the grid or packed, one direction after the other."""
        grids = self.writable(self.grids)
        if not grids:
            return
        x = self.random.choice(grids)
        below, above = self.random.choice(((LOW, HIGH), (LOW, HIGH), (PREV, NEXT)))
        last, beyond = lift("ny"), lift("ny") + 1
        directions = [(last, above, lift(0), below), (lift(1), below, beyond, above)]
        self.random.shuffle(directions)
        packed = self.chance(0.5)
        buffers = self.random.sample(self.buffers, 2)
        for row, to, halo, source in directions:
            if packed:
                self.packed_row(x, row, to, halo, source, buffers)
            else:
                self.exchange(x[row, 1], to, x[halo, 1], source, lift("nx"), REAL, [x], [x])
            self.gap(0.3)

    def packed_row(
        self, x: Variable, row: Any, to: Variable, halo: Any, source: Variable, buffers: Sequence[Variable]
    ) -> None:
        out, into = buffers
        with self.w.loop(I, 1, "nx"):
            self.w.assign(out[I - 1], x[row, I])
        self.gap(0.2)
        self.exchange(out, to, into, source, lift("nx"), REAL, [out], [into])
        self.gap(0.2)
        with self.only_if(source) if self.chance(0.6) else nullcontext(), self.w.loop(I, 1, "nx"):
            self.w.assign(x[halo, I], into[I - 1])

    def columns(self) -> None:
        """A column: packed, as a derived datatype, or as a Fortran section with gaps."""
        grids = self.writable(self.grids)
        if not grids:
            return
        w, x = self.w, self.random.choice(grids)
        below, above = self.random.choice(((LOW, HIGH), (PREV, NEXT)))
        tag, comm = lift(self.new_tag()), self.comm()
        way = self.random.choice(("packed", "packed", "type", "section"))
        if way == "type":
            kind = Variable("column", "type")
            w.mpi("Type_vector", lift("ny"), lift(1), lift("nx") + 2, REAL, Out(kind))
            w.mpi("Type_commit", Out(kind))
            last, halo = Out(x[1, "nx"]), Out(x[1, 0])
            w.mpi("Sendrecv", last, 1, kind, above, tag, halo, 1, kind, below, tag, comm, self.status())
            w.mpi("Type_free", Out(kind))
        elif way == "section" and self.form in ("mpi", "mpi_f08"):
            sent = (Section(x, ((1, lift("ny")), lift("nx"))), "ny", REAL, above, tag)
            taken = (Section(x, ((1, lift("ny")), 0)), "ny", REAL, below, tag)
            w.mpi("Sendrecv", *sent, *taken, comm, self.status())
        else:
            out, into = self.random.sample(self.buffers, 2)
            with w.loop(J, 1, "ny"):
                w.assign(out[J - 1], x[J, "nx"])
            self.exchange(out, above, into, below, lift("ny"), REAL, [out], [into])
            self.gap(0.3)
            with w.loop(J, 1, "ny"):
                w.assign(x[J, 0], into[J - 1])

    def both_ways(self) -> None:
        """Four requests at once, halos of one grid."""
        grids = self.writable(self.grids)
        if not grids:
            return
        w, x = self.w, self.random.choice(grids)
        below, above = self.random.choice(((LOW, HIGH), (PREV, NEXT)))
        requests = Variable("reqs4", "request", (lift(4),), 1)
        tag, comm = lift(self.new_tag()), self.comm()
        calls = [
            ("Irecv", x[0, 1], below),
            ("Irecv", x[lift("ny") + 1, 1], above),
            ("Isend", x[1, 1], below),
            ("Isend", x["ny", 1], above),
        ]
        if self.chance(0.3):
            calls = calls[2:] + calls[:2]
        for number, (name, at, peer) in enumerate(calls):
            w.mpi(name, Out(at), lift("nx"), REAL, peer, tag, comm, Out(requests[number]))
        with self.in_flight([x], [x]):
            self.gap(0.7)
        if self.chance(0.7):
            w.mpi("Waitall", lift(4), Out(requests), lift("MPI_STATUSES_IGNORE"))
        else:
            with w.loop(K, 0, 3):
                w.mpi("Wait", Out(requests[K]), lift(IGNORE))

    def shift(self) -> None:
        """Integers round the ring, several times."""
        if len(self.writable(self.integers)) < 2:
            return
        out, into = self.random.sample(self.integers, 2)
        with self.w.loop(R, 1, 2):
            self.exchange(out, NEXT, into, PREV, lift("nx"), "MPI_INTEGER", [out], [into])
            with self.w.loop(I, 0, lift("nx") - 1):
                self.w.assign(out[I], (into[I] * 3 + I + R) % 9973)

    def split_exchange(self) -> None:
        """Started in one procedure, completed in another, with a request that outlives both."""
        if self.form == "fixed" or self.pending.name in self.busy_writes or not self.writable([self.buffers[1]]):
            return
        w, x = self.w, self.random.choice(self.readable(self.lines) or self.lines)
        if not self.readable([x]):
            return
        into, tag = self.buffers[1], lift(self.new_tag())
        first, second = self.fresh("start"), self.fresh("finish")
        with w.procedure(first):
            w.mpi("Irecv", Out(into), "nx", REAL, PREV, tag, "MPI_COMM_WORLD", Out(self.pending))
            w.mpi("Send", Out(x[1]), "nx", REAL, NEXT, tag, "MPI_COMM_WORLD")
        with w.procedure(second):
            w.mpi("Wait", Out(self.pending), self.status())
        # A ring of synchronous sends moves because every rank has posted its receive before.
        self.call(first)
        with self.in_flight((), [into, self.pending]):
            self.gap(0.8)
        self.call(second)
        self.mix()

    # ---- messages with something special ----

    def short_message(self) -> None:
        """Fewer elements come than the receive takes; the rest of the buffer keeps what it held, and is read."""
        out, into = self.random.sample(self.buffers, 2)
        targets = self.writable(self.lines)
        if not self.readable([out]) or not self.writable([into]) or not targets or self.names(out) & self.names(into):
            return
        w, tag, comm, status = self.w, lift(self.new_tag()), self.comm(), Variable("stat", "status")
        counted = self.chance(0.5)
        request = self.request()
        if self.chance(0.5):
            w.mpi("Irecv", Out(into), "nx", REAL, PREV, tag, comm, Out(request))
            w.mpi("Send", Out(out), 3, REAL, NEXT, tag, comm)
            w.mpi("Wait", Out(request), Out(status) if counted else lift(IGNORE))
        else:
            w.mpi("Isend", Out(out), 2 + ME % 2, REAL, NEXT, tag, comm, Out(request))
            w.mpi(
                "Recv",
                Out(into),
                "nx",
                REAL,
                PREV,
                tag,
                comm,
                Out(status) if counted else lift(IGNORE),
            )
            w.mpi("Wait", Out(request), lift(IGNORE))
        if counted:
            w.mpi("Get_count", Out(status), REAL, Out(N1))
        upper = N1 - 1 if counted and self.chance(0.5) else lift("nx") - 1
        with w.loop(I, 0, upper):
            w.assign(targets[0][I], 0.5 * targets[0][I] + 0.5 * into[I])

    def wildcard(self) -> None:
        """From anybody, though only one rank sends with this tag."""
        self.named += 1
        w, tag, into = self.w, lift(SUBTAG + self.named), self.buffers[1]
        if not self.writable([into]):
            return
        status, request = Variable("stat", "status"), self.request()
        w.mpi("Irecv", Out(into), "nx", REAL, "MPI_ANY_SOURCE", tag, "MPI_COMM_WORLD", Out(request))
        with self.in_flight((), [into]):
            self.gap(0.4)
            source = self.random.choice(self.readable(self.lines) or self.lines)
            w.mpi("Send", Out(source), "nx", REAL, NEXT, tag, "MPI_COMM_WORLD")
        w.mpi("Wait", Out(request), Out(status))
        w.assign(N1, Term("pick", (status, "MPI_SOURCE")))
        w.assign(S1, S1 * 0.5 + into[2] + 0.125 * Term("double", (N1,)))

    def fan_in(self) -> None:
        """Rank 0 receives from every other one in turn, and answers."""
        if not self.writable(self.lines):
            return
        w, tag, x, s = self.w, lift(self.new_tag()), self.random.choice(self.writable(self.lines)), self.buffers[1]
        if not self.writable([s]):
            return
        with w.when(ME.equals(0), followed=True), w.loop(R, 1, NP - 1):
            w.mpi("Recv", Out(s), "nx", REAL, R, tag, "MPI_COMM_WORLD", self.status())
            with w.loop(I, 1, "nx"):
                w.assign(x[I], 0.5 * x[I] + 0.25 * s[I - 1])
            if self.chance(0.5):
                w.mpi("Send", Out(x[1]), 2, REAL, R, tag, "MPI_COMM_WORLD")
                answered = True
            else:
                answered = False
        with w.otherwise():
            w.mpi("Send", Out(x[1]), "nx", REAL, 0, tag, "MPI_COMM_WORLD")
            if answered:
                w.mpi("Recv", Out(x[2]), 2, REAL, 0, tag, "MPI_COMM_WORLD", lift(IGNORE))

    def pipeline(self) -> None:
        """A wavefront: every row waits for the rank before."""
        grids = self.writable(self.grids)
        if not grids:
            return
        w, x, tag, comm = self.w, self.random.choice(grids), lift(self.new_tag()), self.comm()
        buffer = self.buffers[1]
        buffered = self.chance(0.5) and bool(self.writable([buffer]))
        down = self.chance(0.3)
        with w.loop(J, "ny", 1, -1) if down else w.loop(J, 1, "ny"):
            with w.when(ME > 0):
                target = buffer[0] if buffered else x[J, 0]
                w.mpi("Recv", Out(target), 1, REAL, ME - 1, tag, comm, self.status())
                if buffered:
                    w.assign(x[J, 0], buffer[0])
            before = J + 1 if down else J - 1
            with w.loop(I, 1, "nx"):
                w.assign(x[J, I], 0.25 * x[J, I] + 0.25 * x[J, I - 1] + 0.25 * x[before, I] + 0.0625)
            with w.when(ME < NP - 1):
                w.mpi("Send", Out(x[J, "nx"]), 1, REAL, ME + 1, tag, comm)

    def probed(self) -> None:
        """The size of a message is asked for before it is received."""
        into, xs = self.buffers[3], self.readable(self.lines)
        if not self.writable([into]) or not xs:
            return
        w, tag, request, status = self.w, lift(self.new_tag()), self.request(), Variable("stat", "status")
        w.mpi(
            "Isend",
            Out(self.random.choice(xs)),
            2 + STEP,
            REAL,
            NEXT,
            tag,
            "MPI_COMM_WORLD",
            Out(request),
        )
        w.mpi("Probe", PREV, tag, "MPI_COMM_WORLD", Out(status))
        w.mpi("Get_count", Out(status), REAL, Out(N1))
        w.mpi("Recv", Out(into), N1, REAL, PREV, tag, "MPI_COMM_WORLD", lift(IGNORE))
        w.mpi("Wait", Out(request), lift(IGNORE))

    def call(self, name: str) -> None:
        raise NotImplementedError
