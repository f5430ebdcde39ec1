"""A DistributedArray among NumPy's: its elements, and what NumPy computes with them.

Functions of one element at a time are computed by every rank on its part, and give a distributed array. Extrema, sums,
means, norms and products come from the ranks' parts. What is indexed is sent to all ranks; all else is computed with
NumPy arrays, brought together on every rank. It is the same on all ranks then, and slices are copies that cannot be
written to. All of it is collective: every rank of the array does the same.

Extrema, and sums of integers, are what NumPy gives for the whole array. Floating-point sums, means, norms and products
are NumPy's of every rank's part, added in the order of the ranks, so that their last bits depend on the distribution; in
the driver of a program, which gives the bits of plain Python, the array is brought together for them (``plain_bits``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from lapwing.runtime.arrays.indexing import box_index, takes_all
from lapwing.runtime.arrays.shear import Box
from lapwing.runtime.arrays.transfer import sides

Array = npt.NDArray[Any]

_with_plain_bits: ContextVar[bool] = ContextVar("_with_plain_bits", default=False)
_SENT_AT_ONCE = 1 << 20  # bytes: of larger slices all of the array is kept
_EXTREMA: dict[str, Callable[..., Any]] = {"max": np.max, "min": np.min}
_LOGICAL: dict[str, Callable[..., Any]] = {"any": np.any, "all": np.all}
# Methods of NumPy arrays that need all elements.
_OF_ALL_ELEMENTS = frozenset(
    "T argmax argmin argsort astype clip conj cumsum diagonal dot flatten imag item nonzero prod ravel real reshape round "
    "squeeze std swapaxes take tobytes tolist trace transpose var view".split()
)


@contextmanager
def plain_bits() -> Iterator[None]:
    """What is computed here has the bits that NumPy gives for whole arrays."""
    token = _with_plain_bits.set(True)
    try:
        yield
    finally:
        _with_plain_bits.reset(token)


class Elements(NDArrayOperatorsMixin):
    """Indexing, arithmetic and NumPy's functions for an array that tells where its elements are."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    __hash__ = object.__hash__  # that of the object: its elements come and go

    @abstractmethod
    def together(self) -> Array:
        """All elements, on every rank: not to be written to. Collective."""

    @abstractmethod
    def replace(self, values: Array) -> None:
        """Take these elements, of the array's dtype and shape, the same on every rank, in the place of its own. Collective."""

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        found = _fixed(self.together())
        return found.astype(dtype) if dtype is not None and np.dtype(dtype) != found.dtype else found

    def __bool__(self) -> bool:
        return bool(self.together())

    def __float__(self) -> float:
        return float(self.together())

    def __int__(self) -> int:
        return int(self.together())

    def __iter__(self) -> Iterator[Any]:
        return iter(_fixed(self.together()))

    def __getattr__(self, name: str) -> Any:
        if name in _OF_ALL_ELEMENTS:
            return getattr(_fixed(self.together()), name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __getitem__(self, index: Any) -> Any:
        found = self.together()[_plain(index)]
        return _fixed(found.copy()) if isinstance(found, np.ndarray) else found

    def __setitem__(self, index: Any, value: Any) -> None:
        values = self.together().copy()
        values[_plain(index)] = _plain(value)
        self.replace(values)

    def copy(self) -> Array:
        """The elements as a NumPy array of this rank's own."""
        return self.together().copy()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        if (
            method == "__call__"
            and ufunc.signature is None
            and ufunc.nout == 1
            and not kwargs.keys() - {"dtype", "casting"}
        ):
            one = _shared_like(inputs) if out is None else _shared_like([*out, *inputs])
            if one is not None and (out is None or out[0] is one):
                own = _own(inputs, one, ufunc.__name__)
                if out is None:
                    return one.of_own(one.agreed(lambda: np.asarray(ufunc(*own, **kwargs))))
                target = np.empty(one.own_elements(one).shape, one.dtype)
                one.take_own(one.agreed(lambda: ufunc(*own, out=target, **kwargs)))
                return one
        call = getattr(ufunc, method)
        if out is None:
            return call(*map(_plain, inputs), **{name: _plain(value) for name, value in kwargs.items()})
        targets = [one.together().copy() if isinstance(one, Elements) else one for one in out]
        # No name for what it computes with: that is out of use when the result takes its place.
        call(*map(_plain, inputs), out=tuple(targets), **{name: _plain(value) for name, value in kwargs.items()})
        for one, values in zip(out, targets, strict=True):
            if isinstance(one, Elements):
                one.replace(values)
        return out[0] if len(out) == 1 else out

    def __array_function__(self, function: Callable[..., Any], kinds: Any, args: Any, kwargs: Any) -> Any:
        if function in _OF_ELEMENTS and not kwargs.keys() - {"rtol", "atol", "equal_nan"}:
            one = _shared_like(args)
            if one is not None:
                own = _own(args, one, function.__name__)
                return one.of_own(one.agreed(lambda: np.asarray(function(*own, **kwargs))))
        reduction = _REDUCTIONS.get(function)
        if reduction is not None:
            found = reduction(*args, **kwargs)
            if found is not None:
                return found
        return function(*map(_plain, args), **{name: _plain(value) for name, value in kwargs.items()})

    def max(self, *args: Any, **kwargs: Any) -> Any:
        """As of a NumPy array."""
        return np.max(self, *args, **kwargs)

    def min(self, *args: Any, **kwargs: Any) -> Any:
        """As of a NumPy array."""
        return np.min(self, *args, **kwargs)

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        """As of a NumPy array, but for the order in which floating-point numbers are added."""
        return np.sum(self, *args, **kwargs)

    def mean(self, *args: Any, **kwargs: Any) -> Any:
        """As of a NumPy array, but for the order in which floating-point numbers are added."""
        return np.mean(self, *args, **kwargs)

    def any(self, *args: Any, **kwargs: Any) -> Any:
        """As of a NumPy array."""
        return np.any(self, *args, **kwargs)

    def all(self, *args: Any, **kwargs: Any) -> Any:
        """As of a NumPy array."""
        return np.all(self, *args, **kwargs)


class SharedElements(Elements):
    """The same for an array of which ranks may have parts, and compute with these."""

    @property
    @abstractmethod
    def is_shared(self) -> bool:
        """Whether several ranks have parts of it."""

    @abstractmethod
    def on_all_ranks(self, box: Box, what: str) -> Array:
        """The elements of a box, on every rank. what: is asked for. Collective."""

    @abstractmethod
    def put(self, box: Box, values: Array) -> bool:
        """Take these elements, the same on every rank, where that can be done in place. Collective."""

    @abstractmethod
    def begin(self, what: str) -> None:
        """See that all ranks compute the same, of their parts. Collective."""

    @abstractmethod
    def own_elements(self, of: Any) -> Array:
        """This rank's elements; or those of another array in their places, distributed or of NumPy. Not to be written to.
        Collective, after ``begin``."""

    @abstractmethod
    def agreed(self, action: Callable[[], Array]) -> Array:
        """What an action gives; an error of some ranks on all of them. Collective."""

    @abstractmethod
    def of_own(self, values: Array) -> Any:
        """An array of other elements, of which this rank has as many: values. Collective."""

    @abstractmethod
    def take_own(self, values: Array) -> None:
        """Take other elements in the place of this rank's."""

    @abstractmethod
    def from_all(self, value: Any) -> list[Any]:
        """What every rank gives, by rank. Collective."""

    def __getitem__(self, index: Any) -> Any:
        basic = box_index(index, self.shape) if self.is_shared else None
        if basic is not None:
            box, inside = basic
            if np.prod(sides(box), dtype=np.int64) * self.dtype.itemsize <= _SENT_AT_ONCE:
                found = self.on_all_ranks(box, f"[{index}]")[inside]
                return _fixed(found) if isinstance(found, np.ndarray) else found
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        basic = box_index(index, self.shape) if self.is_shared else None
        if basic is not None and not isinstance(value, Elements):
            box, inside = basic
            values = np.empty(sides(box), self.dtype)
            if takes_all(inside, values.shape):
                values[inside] = value
                if self.put(box, values):
                    return
        super().__setitem__(index, value)


# -- of the ranks' parts ---------------------------------------------------------------------------------------------------


def _shared_like(values: Sequence[Any]) -> SharedElements | None:
    """The first array that ranks share among operands that all have its shape or are broadcast to it; None where none is."""
    arrays = [value for value in values if isinstance(value, Elements)]
    shared = [value for value in arrays if isinstance(value, SharedElements) and value.is_shared]
    if not shared or len(shared) < len(arrays) or any(one.shape != shared[0].shape for one in shared):
        return None
    for value in values:
        if isinstance(value, Elements):
            continue
        try:
            if np.broadcast_shapes(np.shape(value), shared[0].shape) != shared[0].shape:
                return None
        except ValueError:
            return None
    return shared[0]


def _have_shape_of(one: Elements, *values: Any) -> bool:
    return all(one.shape == (value.shape if isinstance(value, Elements) else np.shape(value)) for value in values)


def _own(values: Sequence[Any], one: SharedElements, what: str) -> list[Any]:
    """The operands of this rank's elements."""
    one.begin(what)
    found = []
    for value in values:
        if isinstance(value, Elements):
            found.append(one.own_elements(value))
        elif np.ndim(value):
            found.append(one.own_elements(np.broadcast_to(np.asarray(value), one.shape)))
        else:
            found.append(value)
    return found


def _extremum(name: str, of: Any, *args: Any, **kwargs: Any) -> Any:
    if args or kwargs or not isinstance(of, SharedElements) or not of.is_shared or of.dtype.kind == "c":
        return None
    (own,) = _own((of,), of, name)
    found = [value for value in of.from_all(_EXTREMA[name](own) if own.size else None) if value is not None]
    if not found:
        return None  # NumPy says what is wrong
    value = _EXTREMA[name](np.array(found, of.dtype))
    if _with_plain_bits.get() and of.dtype.kind == "f" and (value == 0 or value != value):
        return None  # which zero it is, or which NaN, depends on the order
    return value


def _total(of: SharedElements, terms: Callable[[Array], Any], what: str) -> Any:
    """The ranks' sums, added in their order."""
    (own,) = _own((of,), of, what)
    found = of.from_all(terms(own))
    return np.add.reduce(np.array(found))


def _sum(of: Any, *args: Any, **kwargs: Any) -> Any:
    if args or kwargs or not isinstance(of, SharedElements) or not of.is_shared:
        return None
    if of.dtype.kind in "fc" and _with_plain_bits.get():
        return None
    total = _total(of, np.sum, "sum")
    return total.dtype.type(total)


def _mean(of: Any, *args: Any, **kwargs: Any) -> Any:
    exact = _with_plain_bits.get()
    if (
        args
        or kwargs
        or exact
        or not isinstance(of, SharedElements)
        or not of.is_shared
        or of.dtype == np.float16
        or not of.size
    ):
        return None
    dtype = of.dtype if of.dtype.kind in "fc" else np.dtype(np.float64)
    return dtype.type(_total(of, lambda own: np.sum(own, dtype=dtype), "mean") / of.size)


def _logical(name: str, of: Any, *args: Any, **kwargs: Any) -> Any:
    if args or kwargs or not isinstance(of, SharedElements) or not of.is_shared or of.dtype.kind not in "biufc":
        return None
    (own,) = _own((of,), of, name)
    return np.bool(_LOGICAL[name](of.from_all(bool(_LOGICAL[name](own)))))


def _product(function: Callable[..., Any], a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    one = None if args or kwargs else _shared_like((a, b))
    if one is None or not _have_shape_of(one, a, b) or (function is np.dot and len(one.shape) > 1):
        return None
    kinds = {x.dtype.kind if isinstance(x, Elements) else np.asarray(x).dtype.kind for x in (a, b)}
    if kinds & set("fc") and _with_plain_bits.get():
        return None
    own = [np.ravel(x) for x in _own((a, b), one, function.__name__)]
    found = np.array(one.from_all(function(*own)))
    total = np.logical_or.reduce(found) if found.dtype.kind == "b" else np.add.reduce(found, dtype=found.dtype)
    return found.dtype.type(total)


def _norm(of: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if axis is not None or keepdims or not isinstance(of, SharedElements) or not of.is_shared:
        return None
    flat = len(of.shape) == 1
    if ord in (np.inf, -np.inf) and flat:
        return _extremum("max" if ord > 0 else "min", np.abs(of))
    if _with_plain_bits.get() or not (
        ord is None or (flat and ord == 2) or (len(of.shape) == 2 and ord in ("fro", "f"))
    ):
        return None
    if of.dtype.kind not in "fc":
        return np.float64(np.sqrt(_total(of, lambda own: _square(own.astype(float)), "norm")))
    return np.sqrt(_total(of, _square, "norm"))


def _square(own: Array) -> Any:
    flat = own.ravel()
    return flat.real.dot(flat.real) + flat.imag.dot(flat.imag) if flat.dtype.kind == "c" else flat.dot(flat)


def _whether_all(function: Callable[..., Any], a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    one = _shared_like((a, b))
    if one is None or not _have_shape_of(one, a, b):
        return None
    own = _own((a, b), one, function.__name__)
    return all(one.from_all(bool(function(*own, *args, **kwargs))))


_OF_ELEMENTS = frozenset({np.where, np.clip, np.isclose})
_REDUCTIONS: dict[Any, Callable[..., Any]] = {
    np.max: lambda *args, **kwargs: _extremum("max", *args, **kwargs),
    np.min: lambda *args, **kwargs: _extremum("min", *args, **kwargs),
    np.shape: lambda of: of.shape,
    np.ndim: lambda of: len(of.shape),
    np.size: lambda of, axis=None: of.size if axis is None else None,
    np.sum: _sum,
    np.mean: _mean,
    np.any: lambda *args, **kwargs: _logical("any", *args, **kwargs),
    np.all: lambda *args, **kwargs: _logical("all", *args, **kwargs),
    np.dot: lambda *args, **kwargs: _product(np.dot, *args, **kwargs),
    np.vdot: lambda *args, **kwargs: _product(np.vdot, *args, **kwargs),
    np.linalg.norm: _norm,
    np.allclose: lambda *args, **kwargs: _whether_all(np.allclose, *args, **kwargs),
    np.array_equal: lambda *args, **kwargs: _whether_all(np.array_equal, *args, **kwargs),
}


def _fixed(values: Array) -> Array:
    """A view that cannot be written to: nothing would come of it."""
    view = values.view()
    view.flags.writeable = False
    return view


def _plain(value: Any) -> Any:
    """With NumPy arrays in the place of distributed ones."""
    if isinstance(value, Elements):
        return _fixed(value.together())
    if isinstance(value, tuple | list):
        return type(value)(map(_plain, value))
    return value
