"""Which calls start the operations that a wait completes: they share a request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lapwing.overlap import mpi
from lapwing.overlap.analysis.memory.mod_ref import MemoryReference, ModRef, bare
from lapwing.overlap.analysis.messages.request_copies import are_copied
from lapwing.overlap.analysis.messages.sites import Site
from lapwing.overlap.ir.accesses import Memory
from lapwing.overlap.ir.expressions import Expression
from lapwing.overlap.ir.program import Procedure


@dataclass(frozen=True)
class Piece:
    """One buffer of a call: its memory, the argument that names it, and whether it is sent, received or both."""

    reference: MemoryReference
    argument: Expression
    sent: bool
    received: bool


def everywhere(reference: MemoryReference, mod_ref: ModRef) -> MemoryReference:
    """A memory reference as other procedures may see it: by memory, including the callers' behind a dummy argument."""
    return replace(reference, symbol=None, through=False, memory=mod_ref.aliases.everywhere(reference.memory))


class Completions:
    """The starts of every completion of a program, by their statements' ids."""

    def __init__(self, sites: Sequence[Site], mod_ref: ModRef) -> None:
        self._mod_ref = mod_ref
        self._pieces: dict[int, tuple[Piece, ...]] = {}
        self._starts: dict[int, list[Site]] = {}
        self._completions: dict[int, list[Site]] = {}
        by_memory: dict[str, list[Site]] = {}
        copied = are_copied(mod_ref.program, mod_ref.graph, mod_ref.aliases, self._memory_of)
        for site in sites:
            if _makes_request(site):
                for key in self._requests(site):
                    by_memory.setdefault(key, []).append(site)
        for site in sites:
            if site.message.kind is mpi.Kind.COMPLETION or site.message.name in ("MPI_Start", "MPI_Startall"):
                requests = by_memory if copied else self._requests(site)
                found = dict.fromkeys(start for key in requests for start in by_memory.get(key, ()))
                self._starts[id(site.statement)] = list(found)
                for start in found:
                    self._completions.setdefault(id(start.statement), []).append(site)

    def pieces_of(self, site: Site) -> tuple[Piece, ...]:
        """The buffers of a call, as memory references that write where MPI does."""
        if id(site) not in self._pieces:
            self._pieces[id(site)] = tuple(self._find_pieces(site))
        return self._pieces[id(site)]

    def _find_pieces(self, site: Site) -> Iterable[Piece]:
        for buffer in site.buffers():
            if buffer.argument < len(site.call.arguments):
                argument = bare(site.call.arguments[buffer.argument])
                reference = self._mod_ref.handed(argument, site.procedure, writes=buffer.writes)
                if reference is not None:
                    yield Piece(reference, argument, buffer.reads, buffer.writes)

    def starts_of(self, site: Site) -> Sequence[Site]:
        """The nonblocking or persistent calls whose requests a completion, or MPI_Start, may name."""
        return self._starts.get(id(site.statement), ())

    def completions_of(self, site: Site) -> Sequence[Site]:
        return self._completions.get(id(site.statement), ())

    def delivered(self, site: Site) -> tuple[Piece, ...]:
        """The buffers that a completion delivers or releases, in terms of its own procedure where the starts are in it, too."""
        found: list[Piece] = []
        for start in self.starts_of(site):
            same = start.procedure.key == site.procedure.key
            for piece in self.pieces_of(start):
                found.append(piece if same else replace(piece, reference=everywhere(piece.reference, self._mod_ref)))
        return tuple(dict.fromkeys(found))

    def _requests(self, site: Site) -> Iterable[str]:
        argument = site.argument(mpi.Role.REQUEST, mpi.Role.REQUESTS)
        return () if argument is None else sorted(memory.key for memory in self._memory_of(argument, site.procedure))

    def _memory_of(self, argument: Expression, procedure: Procedure) -> frozenset[Memory]:
        reference = self._mod_ref.handed(argument, procedure, writes=True)
        return frozenset() if reference is None else everywhere(reference, self._mod_ref).memory


def _makes_request(site: Site) -> bool:
    return bool(site.message.buffers) and mpi.index_of(site.message, mpi.Role.REQUEST) is not None
