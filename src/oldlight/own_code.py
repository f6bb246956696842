"""Code of one's own, named by `module:name`: what may be named, and where it is looked for.

A study file, a command line and `gym.make(channel="mine:Slow")` can name a callable of a Python module. Two things are kept apart:

**The mark** guards against accidents. Only what was written to be named is called: a callable marked with `@oldlight.registered`, or a
class that derives from the right base (a channel, a learner, `TabularMDP`, a policy). So `subprocess:getoutput` is refused, and so is
a module of Python's standard library before it is imported.

    @oldlight.registered
    def plant(horizon=10): ...                 # "mine:plant" as a process

What lies in one's own folder (that of the study, else the current one) and is not marked works for now, with a DeprecationWarning.

**Trust** guards against strangers: importing a module runs it, so `oldlight run` asks before it imports anything for a study from a
folder that has not been trusted yet (`oldlight.studies.trust`).

`resolve` is the one function that turns `module:name` into a callable. It looks in `looking_in(folder)`, after everything installed:
the folder is put at the end of `sys.path` when something is first named, and taken off again at the end of the `with` block. A
worker process leaves it there (`find_modules_in`). With `looking_in(folder, importing=False)` nothing is imported: `resolve` notes
the name and raises `NotChecked`.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from oldlight.checks import nearest

F = TypeVar("F", bound=Callable[..., Any])
MARK = "__oldlight_registered__"
OURS = __name__.partition(".")[0]


def registered(what: F) -> F:
    """Mark a function or class so that a study, a command line or a keyword may name it as `module:name`.

    Parameters
    ----------
    what : function or class
        The mark is for the callable itself: a subclass of a marked class has its own.

    Returns
    -------
    function or class
        `what`, unchanged otherwise.

    Examples
    --------
    >>> import oldlight
    >>> @oldlight.registered
    ... def plant(horizon: int = 10) -> oldlight.TabularMDP:
    ...     return oldlight.instances.forest(horizon=horizon)
    """
    if not callable(what):
        raise TypeError(f"registered is put before a function or class, not {what!r}")
    try:
        setattr(what, MARK, True)
    except (AttributeError, TypeError):
        raise TypeError(f"{what!r} cannot be marked; mark a function of your own that calls it") from None
    return what


class NotChecked(Exception):
    """A name that was not resolved, because nothing may be imported here."""


@dataclass
class Place:
    """A folder in which code of one's own is looked for, and the names that were asked for there."""

    folder: str
    importing: bool = True
    names: list[str] = field(default_factory=list)


_place: ContextVar[Place | None] = ContextVar("place", default=None)


@contextlib.contextmanager
def looking_in(folder: str | os.PathLike[str], *, importing: bool = True) -> Iterator[Place]:
    """Inside, code of one's own is that of `folder`; `names` of what is yielded are those asked for. See the module's text."""
    place = Place(os.path.realpath(folder), importing)
    there = place.folder in sys.path
    token = _place.set(place)
    try:
        yield place
    finally:
        _place.reset(token)
        if not there and place.folder in sys.path:
            sys.path.remove(place.folder)


def find_modules_in(folder: str) -> None:
    """Let Python import from `folder` too, after everything else: for worker processes, and inside `looking_in`."""
    if folder not in sys.path:
        sys.path.append(folder)


def resolve(name: str, otherwise: str, bases: Sequence[type] = ()) -> Callable[..., Any]:
    """The callable that `module:name` stands for: one that is marked, or a class that derives from one of `bases`.

    otherwise: what is said where `name` is no `module:name` at all.
    """
    module, colon, attribute = name.partition(":")
    if not colon or not _dotted(module) or not attribute.isidentifier():
        raise ValueError(f"{otherwise} (your own is given as module:name)")
    if _place.get() is None:
        with looking_in(os.getcwd()):
            return resolve(name, otherwise, bases)
    permit(name)
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{name}: no module {error.name!r} on Python's path or in {_shown_folder()}; a study looks in its own folder, "
            "everything else in the current one"
        ) from None
    if not callable(found):
        raise ValueError(f"{name}: {module} ({_file(module)}) has no {attribute} that can be called")
    made: Callable[..., Any] = found
    _refuse_unmarked(name, made, bases)
    return made


def called(name: str, make: Callable[..., Any], positional: Sequence[Any], arguments: Mapping[str, Any]) -> Any:
    """make(*positional, **arguments); an unknown or missing argument is named with the nearest right one."""
    try:
        signature = inspect.signature(make)
    except (TypeError, ValueError):
        return make(*positional, **arguments)
    known = [p.name for p in signature.parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    takes_any = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    for key in arguments:
        if key not in known and not takes_any:
            _unknown(name, key, known)
    try:
        signature.bind(*positional, **arguments)
    except TypeError as error:
        raise ValueError(f"{name}: {error}; it takes {', '.join(known) or 'nothing'}") from None
    return make(*positional, **arguments)


def _unknown(name: str, key: str, known: Sequence[str]) -> NoReturn:
    raise ValueError(f"{name} has no option {key!r}{nearest(key, known) if known else '; it has none'}")


def permit(*names: str) -> None:
    """Note that `module:name` of each is about to be imported; NotChecked where nothing may be, a refusal for the standard library."""
    others = [name for name in names if name.partition(":")[0].partition(".")[0] != OURS]
    for name in others:
        module = name.partition(":")[0]
        if not _dotted(module):
            raise ValueError(f"{name!r}: {module!r} is not the name of a module")
        if module.partition(".")[0] in sys.stdlib_module_names:
            raise ValueError(
                f"{name} may not be named: {module} is a module of Python's standard library, and nothing in it is marked with "
                "@oldlight.registered. A module of your own needs another name"
            )
    place = _place.get()
    if place is not None and others:
        _note(place, others)


def _note(place: Place, names: Sequence[str]) -> None:
    place.names += [name for name in names if name not in place.names]
    if not place.importing:
        raise NotChecked(names[0])
    find_modules_in(place.folder)


def whereabouts(name: str, folder: str | os.PathLike[str]) -> str:
    """The file or folder from which the outermost module of `module:name` would be imported; nothing is."""
    top = name.partition(":")[0].partition(".")[0]
    with looking_in(folder) as place, contextlib.suppress(ValueError):
        find_modules_in(place.folder)
        spec = importlib.util.find_spec(top)
        if spec is not None:
            return spec.origin or next(iter(spec.submodule_search_locations or ()), "nowhere")
    return "not found"


def _refuse_unmarked(name: str, found: Callable[..., Any], bases: Sequence[type]) -> None:
    if _marked(found) or (isinstance(found, type) and any(base in found.__mro__ for base in bases)):
        return
    module = name.partition(":")[0]
    written = str(found.__module__) if inspect.isroutine(found) or isinstance(found, type) else module
    place = _place.get()
    if place is not None and {_folder(module), _folder(written)} == {place.folder}:
        warnings.warn(
            f"{name} is not marked: put @oldlight.registered before its definition. It works for now because it is in "
            f"{place.folder}; a later version refuses it",
            DeprecationWarning,
            stacklevel=_outside(),
        )
        return
    derive = f" (or derive it from {' or '.join(base.__name__ for base in bases[:2])})" if bases else ""
    raise ValueError(
        f"{name} may not be named: {_file(written)} does not mark it with @oldlight.registered{derive}. If it is not yours, "
        "mark a function of your own that calls it, and name that"
    )


def _marked(what: Any) -> bool:
    """Is it marked itself, not through inheritance or a __getattr__ that answers to every name?"""
    try:
        return vars(what).get(MARK) is True
    except TypeError:  # no attributes of its own
        return False


def _dotted(module: str) -> bool:
    return all(part.isidentifier() for part in module.split("."))


def _folder(module: str) -> str | None:
    """The folder in which the outermost package of an imported module lies; None for what has no file."""
    top = sys.modules.get(module.partition(".")[0])
    inside = next(iter(getattr(top, "__path__", ())), None) or getattr(top, "__file__", None)
    return None if inside is None else os.path.dirname(os.path.realpath(inside))


def _file(module: str) -> str:
    return getattr(sys.modules.get(module), "__file__", None) or f"the built-in module {module}"


def _shown_folder() -> str:
    place = _place.get()
    return os.getcwd() if place is None else place.folder


def _outside() -> int:
    """How many frames up the caller of this package is, counted for a warning of the function that asks."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == OURS:
        frame, level = frame.f_back, level + 1
    return level
