"""Which expressions may be evaluated although the plain loop does not: their value is then thrown away.

Compilers turn conditions into masks, and loops into vectors, where no side of a condition can do harm. Evaluating an
expression does none where nothing in it raises; and it should cost less than the branch it saves.
"""

from __future__ import annotations

from lapwing.loopnest.binding import typed as t

_CHEAP = frozenset(
    """
    + - * & | ^ < <= > >= == != not truth wrap min max abs isnan isinf isfinite real imag conjugate complex
    numpy.maximum numpy.minimum numpy.fmax numpy.fmin numpy.where numpy.clip numpy.sign numpy.square numpy.fabs numpy.floor
    numpy.ceil numpy.trunc numpy.rint numpy.copysign
    """.split()
) | {"unary -", "unary ~"}

_CHECKED = frozenset(
    {"/", "//", "%", "<<", ">>", "&&", "||", "not zero", "carried", "exact +", "exact -", "exact *", "item"}
)


def is_cheap(node: t.Typed) -> bool:
    """Whether evaluating the expression takes little, whatever it raises."""
    return all(not isinstance(part, t.Operation) or part.operator in _CHEAP | _CHECKED for part in t.walk(node))


def is_speculable(node: t.Typed, with_divisions: bool = False) -> bool:
    """Whether evaluating the expression raises nothing and is cheap. That its elements exist is for ``guards`` to say.
    with_divisions: whether those of floats, and roots, count as cheap."""
    match node:
        case t.Operation(operator="/" | "sqrt", operands=operands, trap=None) if with_divisions:
            return all(o.dtype in ("float64", "float32") and is_speculable(o, True) for o in operands)
        case t.Convert(trap=trap) if trap is not None:
            return False
        case t.Operation(operator=operator, trap=trap) if trap is not None or operator not in _CHEAP:
            return False
        case t.Load(subscripts=subscripts) if any(isinstance(s, t.LookupSubscript) for s in subscripts):
            return False
        case t.Select(speculable=False):
            return False
    return all(is_speculable(child, with_divisions) for child in t.children(node))
