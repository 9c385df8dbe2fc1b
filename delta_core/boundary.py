"""Where calls of the public face begin and end: plain values go in, and nothing but typed errors comes out.

What fails below is mended where it fails, with an error that says what to do. Here is only what is left: an
executor of somebody else's that raises, a value that nobody thought of, a system that refuses. Its own words
go into the typed error, and it itself stays there as `__cause__`.

Exceptions that end a program, such as KeyboardInterrupt, pass.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from types import FunctionType, GeneratorType
from typing import Any, Final, ParamSpec, TypeVar, cast

from delta_core.errors import ConfigurationError, DeltaError, UnexpectedError, described
from delta_core.plain_values import plain
from delta_core.storage.local_errors import translated

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")
T = TypeVar("T")

_MOST_LINKS = 16
_SHOWN_CHARACTERS = 200
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "None": (type(None),),
}
_OPEN_TYPES: Final[Mapping[str, type]] = {"Mapping[": Mapping, "Sequence[": Sequence}


def public(function: Callable[P, R]) -> Callable[P, R]:
    """A function of the public face.

    Scalars of NumPy become Python's own. An argument that is annotated as a flag is one: nothing else is
    taken for true or false, since a flag may decide whether files are deleted. A generator that is returned
    raises typed errors, too.
    """
    doing = f"{function.__qualname__}()"

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given = tuple(map(plain, args))
        named = {name: plain(value) for name, value in kwargs.items()}
        try:
            _require_flags(function, given, named)
            result = function(*given, **named)
        except DeltaError:
            raise
        except Exception as error:
            if _is_call_itself(error, frames=1):
                raise
            raise _of_call(error, function, given, named) from error
        if isinstance(result, GeneratorType):
            return cast(R, _typed(result, doing))
        return result

    return call


def public_class(found: type[C]) -> type[C]:
    """A class of the public face: its own constructor, methods and iterators are `public`."""
    for name, member in list(vars(found).items()):
        if name.startswith("_") and name not in ("__init__", "__enter__", "__exit__", "__iter__"):
            continue
        if isinstance(member, FunctionType):
            setattr(found, name, public(member))
        elif isinstance(member, classmethod | staticmethod):
            kind = type(member)
            setattr(found, name, kind(public(member.__func__)))
    return found


def typed_error(error: Exception, *, doing: str) -> DeltaError:
    """An exception as one of ours: what it is, or was made of, if that is one; a system's; else unexpected.

    Args:
        error: whatever was raised.
        doing: what failed, for the message.
    """
    for link in _chain(error):
        if isinstance(link, DeltaError):
            return link if link is error else copy.copy(link)
        if isinstance(link, OSError) and link.errno is not None:
            # A text: names may be bytes, or a number where a file was opened by its descriptor.
            name = link.filename if link.filename is not None else "a file"
            path = name.decode(errors="replace") if isinstance(name, bytes) else str(name)
            return translated(link, path, "use")
    if isinstance(error, MemoryError):
        return UnexpectedError(
            f"There is not enough memory for {doing}.",
            cause=described(error),
            fix="Give the process more memory, or the call less to do at a time.",
        )
    return UnexpectedError(
        f"{doing} failed in a way that is not foreseen.",
        cause=described(error),
        fix="If something of yours was called, such as an executor or a source of rows, see what it raised; "
        "else this is a defect, and its report needs this message and the traceback",
    )


@contextmanager
def typed_errors(doing: str) -> Iterator[None]:
    """What is raised within is raised as a typed error."""
    try:
        yield
    except DeltaError:
        raise
    except Exception as error:
        raise typed_error(error, doing=doing) from error


def typed_iterator(items: Iterator[T], *, doing: str) -> Generator[T]:
    """The same items; what the iterator raises is raised as a typed error."""
    with typed_errors(doing):
        yield from items


def refuse_pickle(what: str, fix: str) -> ConfigurationError:
    """The error for what cannot go to another process as it is."""
    return ConfigurationError(
        f"{what} cannot be pickled.", cause="It holds open connections, locks or secrets.", fix=fix
    )


def _typed(generator: GeneratorType[Any, Any, Any], doing: str) -> Generator[Any]:
    with typed_errors(doing):
        yield from generator


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and those that it was raised from, or while, nearest first."""
    seen: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and len(seen) < _MOST_LINKS and not any(link is one for one in seen):
        seen.append(link)
        yield link
        link = link.__cause__ or link.__context__


def _is_call_itself(error: Exception, *, frames: int) -> bool:
    """Whether the arguments fit no parameter: a mistake in the program, which Python itself names best."""
    trace = error.__traceback__
    for _ in range(frames):
        trace = None if trace is None else trace.tb_next
    return isinstance(error, TypeError) and trace is None


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def _bound(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Iterator[tuple[str, str, Any]]:
    """Name, annotation and value of each argument; nothing where they fit no parameter."""
    signature = _signature(function)
    try:
        arguments = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return
    for name, value in arguments.items():
        annotation = signature.parameters[name].annotation
        yield name, annotation if isinstance(annotation, str) else "", value


@cache
def _flags(function: Callable[..., Any]) -> tuple[str, ...]:
    parameters = _signature(function).parameters.values()
    return tuple(one.name for one in parameters if one.annotation == "bool")


def _require_flags(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    if not _flags(function):
        return
    for name, annotation, value in _bound(function, args, kwargs):
        if annotation == "bool" and not isinstance(value, bool):
            raise _wrong(function, name, value, "bool", None)


def _of_call(
    error: Exception, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> DeltaError:
    """The typed error of a call: an argument of another type than it takes is what is most likely wrong."""
    found = typed_error(error, doing=f"{function.__qualname__}()")
    if not isinstance(found, UnexpectedError) or isinstance(error, MemoryError):
        return found
    for name, annotation, value in _bound(function, args, kwargs):
        if not _fits(value, annotation):
            return _wrong(function, name, value, annotation, error)
    return found


def _wrong(
    function: Callable[..., Any], name: str, value: object, annotation: str, error: Exception | None
) -> ConfigurationError:
    cause = f"It is of type {type(value).__name__}"
    return ConfigurationError(
        f"The {name} of {function.__qualname__}() cannot be {_shown(value)}.",
        cause=cause if error is None else f"{cause}, and the call failed with {described(error)}",
        fix=f"Pass {annotation}.",
    )


def _fits(value: object, annotation: str) -> bool:
    """Whether a value is what an annotation in plain words asks for; True where that cannot be told."""
    for part in _alternatives(annotation):
        known = _TYPES.get(part)
        if known is not None:
            if isinstance(value, known) and (bool in known or not isinstance(value, bool)):
                return True
            continue
        opened = next((kind for start, kind in _OPEN_TYPES.items() if part.startswith(start)), None)
        if opened is None or isinstance(value, opened):
            return True
    return False


def _alternatives(annotation: str) -> list[str]:
    """The parts of a union, those within brackets left together."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(annotation):
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and depth == 0:
            parts.append(annotation[start:at].strip())
            start = at + 1
    return [*parts, annotation[start:].strip()]


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # whoever wrote the class may have written this wrong
        return f"a value of {type(value).__name__}"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
