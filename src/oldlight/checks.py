"""Errors for people: each names the first offender, what was found, and what is allowed."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import secrets
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

SUM_TOLERANCE = 1e-9
MOST_STEPS = 10**6
P = ParamSpec("P")
R = TypeVar("R")


class TooLarge(ValueError):
    """An exact plan that does not fit in the memory allowed; the message names its size and the way out.

    Examples
    --------
    >>> import oldlight as ol
    >>> try:
    ...     ol.solve(ol.ImpairedMDP(ol.instances.sensing_chain(0.8), "constant:5"), max_bytes=1000)
    ... except ol.TooLarge as error:
    ...     print(type(error).__name__)
    TooLarge
    """


def where(name: str, index: Sequence[int], axes: Sequence[str]) -> str:
    inside = ", ".join(f"{axis}={i}" for axis, i in zip(axes, index, strict=True))
    return f"{name}[{inside}]" if inside else name


def numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """`values` as a float array; ragged lists, words and sparse matrices are refused (sparse transitions: `model.transitions`)."""
    if is_sparse(values):
        raise _sparse_refused(name, values)
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        if (matrix := first_sparse(values)) is not None:
            raise _sparse_refused(name, matrix, among=True) from None
        raise ValueError(f"{name} is not an array of numbers (rows of different length, or words?)") from None


def is_sparse(values: object) -> bool:
    """Is it a scipy.sparse matrix or array? (Asked without importing scipy.)"""
    return hasattr(values, "toarray") and hasattr(values, "nnz")


def first_sparse(values: object) -> Any:
    """The first sparse matrix in a list, or a list of lists, of them; None if there is none."""
    if is_sparse(values):
        return values
    several = isinstance(values, list | tuple) or (isinstance(values, np.ndarray) and values.dtype == object)
    found = (first_sparse(value) for value in values) if several else ()  # type: ignore[attr-defined]
    return next((matrix for matrix in found if matrix is not None), None)


def _sparse_refused(name: str, matrix: Any, among: bool = False) -> ValueError:
    kind = f"scipy.sparse {type(matrix).__name__} of shape {matrix.shape}"
    return ValueError(
        f"{name} {'holds' if among else 'is'} a {kind}, expected numpy arrays or lists of numbers; only transitions may be sparse. "
        "Convert it: .toarray()" + (" of each" if among else "")
    )


def finite_array(name: str, values: ArrayLike, axes: Sequence[str]) -> NDArray[np.float64]:
    """`values` as a float array without NaN or infinity; `axes` names its axes for the message."""
    array = numbers(name, values)
    if array.ndim != len(axes):
        raise ValueError(f"{name} has shape {array.shape}; expected the axes ({', '.join(axes)})")
    if 0 in array.shape:
        raise ValueError(f"{name} has shape {array.shape}; every axis ({', '.join(axes)}) needs at least one entry")
    bad = ~np.isfinite(array)
    if bad.any():
        index = [int(i) for i in np.argwhere(bad)[0]]
        raise ValueError(f"{where(name, index, axes)} is {array[tuple(index)]}, expected a finite number")
    return array


def probability_rows(name: str, values: ArrayLike, axes: Sequence[str]) -> NDArray[np.float64]:
    """`values` as an array whose last axis holds probabilities that sum to one."""
    array = finite_array(name, values, axes)
    negative = array < 0
    if negative.any():
        index = [int(i) for i in np.argwhere(negative)[0]]
        raise ValueError(f"{where(name, index, axes)} is {array[tuple(index)]:.12g}, expected a probability in [0, 1]")
    sums = array.sum(axis=-1)
    wrong = np.abs(sums - 1.0) > SUM_TOLERANCE
    if wrong.any():
        index = [int(i) for i in np.argwhere(wrong)[0]]
        found = float(sums[tuple(index)])
        raise ValueError(f"{where(name, index, axes[:-1])} sums to {found:.12g}, expected 1 ± {SUM_TOLERANCE:g}")
    return array


def probability(name: str, value: Any) -> float:
    """A number in [0, 1]."""
    number = real(name, value)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{name} is {number:.12g}, expected a number in [0, 1]")
    return number


def real(name: str, value: Any) -> float:
    """A finite number."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} is {value!r}, expected a number") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} is {number}, expected a finite number")
    return number


def positive(name: str, value: Any) -> float:
    """A finite number > 0."""
    number = real(name, value)
    if number <= 0:
        raise ValueError(f"{name} is {number:.12g}, expected a number > 0")
    return number


def at_least(name: str, value: Any, least: float) -> float:
    """A finite number ≥ least."""
    number = real(name, value)
    if number < least:
        raise ValueError(f"{name} is {number:.12g}, expected a number ≥ {least:g}")
    return number


def one_of(name: str, value: Any, allowed: Sequence[str]) -> str:
    """One of a few words."""
    if value not in allowed:
        words = ", ".join(repr(word) for word in allowed)
        raise ValueError(f"{name} is {value!r}, expected one of {words}")
    return str(value)


def nearest(word: str, allowed: Iterable[str]) -> str:
    """'; did you mean …?' for a typing mistake, else the list of what there is."""
    known = list(allowed)
    import difflib

    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else f"; there is {', '.join(known)}"


def renamed(old: str, new: str) -> None:
    """Warn that `old` is now called `new`; the warning points at the caller of the function that calls this one."""
    warnings.warn(f"{old} is now {new}", DeprecationWarning, stacklevel=3)


def renamed_property(old: str, new: str) -> property:
    """A property that still answers to an old name, with a DeprecationWarning: ``lead = renamed_property("lead", "warmup")``."""

    def read(self: Any) -> Any:
        renamed(f"{type(self).__name__}.{old}", f"{type(self).__name__}.{new}")
        return getattr(self, new)

    return property(read, doc=f"The old name of `{new}`.")


def renamed_keywords(**new: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: keywords that still answer to their old names, with a DeprecationWarning: ``@renamed_keywords(old="new")``."""

    def of(function: Callable[P, R]) -> Callable[P, R]:
        owner = function.__qualname__.removesuffix(".__init__")

        @functools.wraps(function)
        def call(*args: P.args, **keywords: P.kwargs) -> R:
            for old in new.keys() & keywords.keys():
                renamed(f"{owner}({old}=...)", f"{owner}({new[old]}=...)")
                keywords[new[old]] = keywords.pop(old)
            return function(*args, **keywords)

        return call

    return of


def whole(name: str, value: Any, *, least: int = 0, most: int | None = None) -> int:
    """A whole number in [least, most]."""
    allowed = f"a whole number ≥ {least}" if most is None else f"a whole number in {least}..{most}"
    if isinstance(value, bool) or not isinstance(value, int | np.integer | float) or value != value // 1:
        raise ValueError(f"{name} is {value!r}, expected {allowed}")
    if value < least or (most is not None and value > most):
        raise ValueError(f"{name} is {int(value)}, expected {allowed}")
    return int(value)


def steps(name: str, value: Any) -> int:
    """A number of steps ≥ 0; one that no plan could have is a mistake of units."""
    found = whole(name, value)
    if found > MOST_STEPS:
        raise TooLarge(
            f"{name} is {found:,} steps, expected at most {MOST_STEPS:,}: is it in milliseconds? ConstantDelay.from_ms(delay_ms, period_ms=...) makes "
            "steps of them. What is never seen within an episode is Loss(seen=0)"
        )
    return found


def names(name: str, values: Sequence[str] | None, count: int) -> tuple[str, ...] | None:
    """Optional labels: `count` different strings."""
    if values is None:
        return None
    labels = tuple(str(v) for v in values)
    if len(labels) != count:
        raise ValueError(f"{name} has {len(labels)} names, expected {count}")
    seen: set[str] = set()
    for label in labels:
        if label in seen:
            raise ValueError(f"{name} has {label!r} twice; every name must be different")
        seen.add(label)
    return labels


def within(values: NDArray[Any], low: int, end: int) -> bool:
    """Are all of them in low..end − 1?"""
    return bool((values >= low).all() and (values < end).all())


def is_power(n: int, base: int, exponent: int) -> bool:
    """n = base^exponent? Computed without numbers longer than n, whatever a file holds."""
    if base < 1 or exponent < 0 or (base > 1 and exponent >= int(n).bit_length()):
        return False
    return bool(n == int(base) ** int(exponent))


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only private copy (so that an object cannot change under its user)."""
    copy = np.array(array, order="C")
    copy.setflags(write=False)
    return copy


def write_file(path: str | os.PathLike[str], fill: Callable[[IO[bytes]], object]) -> Path:
    """Write to a temporary name beside `path`, then move into place: a fault never leaves half a file.

    A link is followed; what is not a file (a device, a pipe) is written to as it is.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{Path(path).parent}: no such folder; make it first")
    if os.path.exists(target) and not os.path.isfile(target):
        if target.is_dir():
            raise IsADirectoryError(f"{path} is a folder, expected the name of a file")
        with open(target, "wb") as stream:
            fill(stream)
        return Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    try:
        with open(temporary, "xb") as stream:
            fill(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except OSError as error:  # a full disk, a read-only folder
        raise OSError(
            error.errno, f"{path} could not be written ({error.strerror}); what was there before is untouched"
        ) from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    return Path(path)


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write a text file in UTF-8."""
    return write_file(path, lambda stream: stream.write(text.encode("utf-8")))


def save_arrays(path: str | os.PathLike[str], **arrays: ArrayLike) -> Path:
    """Write arrays as one npz file."""
    return write_file(path, lambda stream: np.savez_compressed(stream, **arrays))  # type: ignore[arg-type]
