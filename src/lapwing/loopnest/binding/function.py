"""A plain Python function as a loop nest: its loops, its dependences, and its arguments' types."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from lapwing.errors import Refusal, RefusedError
from lapwing.loopnest import ir
from lapwing.loopnest.analysis import NestAnalysis
from lapwing.loopnest.source import FunctionSource, signature_of, takes_all_by_position
from lapwing.memo import Memo
from lapwing.scratch_arrays import wanted

if TYPE_CHECKING:
    from lapwing.loopnest.binding.bound_nest import BoundNest
    from lapwing.loopnest.outside import Meanings


class NestFunction:
    """``python`` is the function, the definition of what is right.

    One that is no supported nest is refused when it is used as one, not before: making this raises nothing, and ``python`` can be
    called.
    """

    def __init__(self, function: Callable[..., Any], source: FunctionSource | None = None) -> None:
        """source: of a function that was outlined; None reads it."""
        self.source = FunctionSource.of(function) if source is None else source
        self.python = function
        self._parsed: tuple[NestAnalysis, Meanings] | None = None
        self._reading = threading.RLock()  # held by the thread that reads the function, until all see what it found
        self._bound: Memo[BoundNest] = Memo()
        self._origin = self  # what this was made of with other choices: it holds what they share
        functools.update_wrapper(cast(Any, self), function)

    @property
    def name(self) -> str:
        """The function's name."""
        return str(self.python.__name__)

    @property
    def where(self) -> str:
        """``file:line`` of the function."""
        return f"{self.source.file}:{self.source.line}"

    @property
    def loops(self) -> ir.LoopNest:
        """The function as a loop nest, parsed on first use, and again when functions or modules' constants that it names have
        become others.

        Raises RefusedError, with every part of it that is not supported, by file and line; asked again, it looks again, since
        the function's globals may have changed.
        """
        return self._analysis.nest

    @property
    def _analysis(self) -> NestAnalysis:
        known = self._origin._parsed
        return known[0] if known is not None and known[1].hold else self._origin._parse()

    def _parse(self) -> NestAnalysis:
        with self._reading:
            if self._parsed is None or not self._parsed[1].hold:  # no other thread has read it meanwhile
                self._take(self._read_nest())
            assert self._parsed is not None
            return self._parsed[0]

    def _read_nest(self) -> tuple[NestAnalysis, Meanings]:
        """The function as one nest, as it is now. Raises RefusedError as ``loops`` does."""
        from lapwing.loopnest.frontend.parser import parse
        from lapwing.loopnest.outside import Meanings

        self.source = self.source.read_again()
        return NestAnalysis(parse(self.source)), Meanings(self.source)

    def _take(self, parsed: tuple[NestAnalysis, Meanings] | None) -> None:
        """From now on it is this nest; None: no nest alone."""
        self._forget()
        self._parsed = parsed

    def _forget(self) -> None:
        """What was made of the loops as they were."""
        self._bound.clear()

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """Why the function is no supported nest; () where it is one. Arguments may be refused all the same."""
        try:
            self.check()
        except RefusedError as error:
            return error.refusals
        return ()

    def check(self) -> None:
        """Raise RefusedError where the function cannot be used as what it is."""
        _ = self.loops

    @property
    def dependences(self) -> tuple[Any, ...]:
        """Flow, anti and output dependences (``lapwing.Dependence``), each with its distance vector and its accesses.

        Raises RefusedError where a distance inside a sweep is not constant.
        """
        return self._analysis.dependences

    @property
    def skew(self) -> Any:
        """The skewing after which rectangular tiles are legal (``loopnest.skew.Skew``); None where they are legal as it is.

        Raises RefusedError where no tiling that is supported respects the dependences.
        """
        return self._analysis.skew

    def arguments(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Arguments by name, defaults included. Raises RefusedError where they do not fit the signature."""
        self.check()
        signature = signature_of(self.python)
        if len(args) == len(signature.parameters) and not kwargs and takes_all_by_position(self.python):
            return dict(zip(signature.parameters, args, strict=True))
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise RefusedError(
                f"{self.where}: {self.name}: {error}. Expected {self.name}({', '.join(signature.parameters)})."
            ) from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def bind(self, arguments: Mapping[str, Any], surroundings: Mapping[str, Any] | None = None) -> BoundNest:
        """The nest with the types and sizes of these arguments; calls alike share one."""
        from lapwing.loopnest.binding.bound_nest import global_values

        surroundings = global_values(self.python) if surroundings is None else surroundings
        if self.source.outlined is None:
            return self._bind(arguments, surroundings)
        with wanted():  # other regions read what this one leaves
            return self._bind(arguments, surroundings)

    def _bind(self, arguments: Mapping[str, Any], surroundings: Mapping[str, Any]) -> BoundNest:
        from lapwing.loopnest.binding.bound_nest import bind, signature

        key = signature(arguments, surroundings)
        try:
            known = self._bound.get(key)
        except TypeError:  # an argument that cannot be hashed is no number and no array: bind says so
            return bind(self._analysis, arguments, surroundings)
        if known is None:
            known = bind(self._analysis, arguments, surroundings)
            self._bound.keep(key, known)
        return known
