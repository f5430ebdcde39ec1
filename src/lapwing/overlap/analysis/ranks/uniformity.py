"""Uniformity: which calls all ranks of a communicator execute uniformly, and which values they share.

Two calls of collectives can only match if ranks reach them at the same position in their sequence of collectives. A call that
all ranks of its communicator execute uniformly (equally often, and in the same order relative to all others of its kind)
matches itself and no other call.
"""

from __future__ import annotations

from dataclasses import dataclass

from lapwing.overlap.analysis.manager import Analysis
from lapwing.overlap.analysis.ranks.communicators import WORLD, Communicator, Communicators
from lapwing.overlap.analysis.ranks.divergence import CollectiveSite, Divergence, Memories, RankDivergence, SiteKey
from lapwing.overlap.ir.expressions import Expression
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.rewriter import message_of
from lapwing.overlap.ir.statements import Call, Statement
from lapwing.overlap.source.spans import Span

__all__ = ["Divergence", "Site", "Uniformity"]


@dataclass(frozen=True)
class Site:
    """A collective site: a collective's call, or code that may contain one (``name`` is None). ``divergence``: why not all
    ranks execute it uniformly."""

    name: str | None
    span: Span
    communicator: Communicator | None
    divergence: Divergence | None


class Uniformity:
    """The uniformity of a program as it was read: takes its statements, or ones with their places."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self._program: Program = analysis.program
        self._communicators = Communicators(analysis)
        self._memories = Memories()
        self._variances: dict[str, RankDivergence] = {}
        self._sites: dict[SiteKey, Site] = {}

    def _variance(self, communicator: Communicator | None) -> RankDivergence:
        """Without a known communicator: among all ranks."""
        group, parents = (WORLD, ()) if communicator is None else (communicator.group, communicator.parents)
        if group not in self._variances:
            world = None if group == WORLD else self._variance(None)
            self._variances[group] = RankDivergence(
                self._analysis, self._program, self._communicators, self._memories, group, parents, world
            )
        return self._variances[group]

    # ---- statements and values ----------------------------------------------------------------------------------------

    def executed_uniformly(
        self, statement: Statement, procedure: Procedure, communicator: Expression | None = None
    ) -> Divergence | None:
        """Why not all ranks (of the communicator) execute the statement equally often and in the same order; None if they do."""
        return self._of(communicator, procedure).statement(statement, procedure)

    def same_value(
        self, expression: Expression, at: Statement, procedure: Procedure, communicator: Expression | None = None
    ) -> Divergence | None:
        """Why the expression, before the statement ``at``, may have different values on different ranks; None if it is
        uniform."""
        return self._of(communicator, procedure).value(expression, at, procedure)

    def _of(self, communicator: Expression | None, procedure: Procedure) -> RankDivergence:
        return self._variance(None if communicator is None else self._communicators.of(communicator, procedure))

    # ---- collectives --------------------------------------------------------------------------------------------------

    def site(self, call: Call, procedure: Procedure) -> Site | None:
        """The site of a collective's call; None if it is never reached."""
        message = message_of(call)
        name = None if message is None else message.name
        for key, collective in self._collectives.items():
            if name is not None and (collective.name, collective.procedure, collective.span) == (
                name,
                procedure.key,
                call.span,
            ):
                return self._site_of(key, collective)
        return None

    def divergent_sites(self, name: str) -> tuple[Site, ...]:
        """Calls of the collective that not all ranks execute uniformly, and unknown code that might call it."""
        sites = (
            self._site_of(key, collective)
            for key, collective in self._collectives.items()
            if collective.name in (name, None)
        )
        return tuple(site for site in sites if site.divergence is not None)

    @staticmethod
    def may_match(one: Site, two: Site) -> bool:
        """Whether both may be on the same communicator."""
        if one.communicator is None or two.communicator is None:
            return True
        return one.communicator.name == two.communicator.name

    @property
    def _collectives(self) -> dict[SiteKey, CollectiveSite]:
        return self._variance(None).collectives

    def _site_of(self, key: SiteKey, collective: CollectiveSite) -> Site:
        if key not in self._sites:
            self._sites[key] = self._find_site(key, collective)
        return self._sites[key]

    def _find_site(self, key: SiteKey, collective: CollectiveSite) -> Site:
        procedure = self._program.procedures[collective.procedure]
        known = None if collective.communicator is None else self._communicators.of(collective.communicator, procedure)
        divergence = collective.divergence
        if divergence is not None and known is not None and collective.name is not None:
            # What diverges in the world may be uniform within each group.
            divergence = self._variance(known).call(key)
        return Site(collective.name, collective.span, known, divergence)
