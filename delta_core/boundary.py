"""The boundary of the public API: plain values come in, and only typed errors go out.

Code below the boundary raises errors with a fix of their own wherever it can. This module converts the
remaining exceptions: an executor of the caller that raises, an unforeseen value, an operating system that
refuses. The typed error quotes the message of the original exception, which stays available as `__cause__`.

Exceptions that end a program, such as KeyboardInterrupt, pass through.
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
from delta_core.storage.local_system import translated

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
    """Make a function part of the public API.

    NumPy scalars become Python scalars. An argument that is annotated as `bool` must be a bool: no other
    value is converted to true or false, since a flag may decide whether files are deleted. A generator that
    the function returns raises typed errors, too.
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
            raise _call_error(error, function, given, named) from error
        if isinstance(result, GeneratorType):
            return cast(R, _typed_generator(result, doing))
        return result

    return call


def public_class(cls: type[C]) -> type[C]:
    """Make a class part of the public API: its own constructor, methods and iterators become `public`."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and name not in ("__init__", "__enter__", "__exit__", "__iter__"):
            continue
        if isinstance(member, FunctionType):
            setattr(cls, name, public(member))
        elif isinstance(member, classmethod | staticmethod):
            kind = type(member)
            setattr(cls, name, kind(public(member.__func__)))
    return cls


def typed_error(error: Exception, *, doing: str) -> DeltaError:
    """An exception as a DeltaError.

    The error itself or a DeltaError in its chain; an operating system's error, translated; else an
    UnexpectedError.

    Args:
        error: the exception that was raised.
        doing: what failed, for the message.
    """
    for link in _chain(error):
        if isinstance(link, DeltaError):
            return link if link is error else copy.copy(link)
        if isinstance(link, OSError) and link.errno is not None:
            # A string: names may be bytes, or a number where a file was opened by its descriptor.
            name = link.filename if link.filename is not None else "a file"
            path = name.decode(errors="replace") if isinstance(name, bytes) else str(name)
            return translated(link, path, "use")
    if isinstance(error, MemoryError):
        return UnexpectedError(
            f"There is not enough memory for {doing}.",
            cause=described(error),
            fix="Give the process more memory, or do less in one call.",
        )
    subject = doing if doing.endswith("()") else doing[:1].upper() + doing[1:]
    return UnexpectedError(
        f"{subject} failed with an unforeseen error.",
        cause=described(error),
        fix="Check your own code that the call uses, such as an executor or a source of rows. Otherwise "
        "this is a defect: report it with this message and the traceback.",
    )


@contextmanager
def typed_errors(doing: str) -> Iterator[None]:
    """A context whose exceptions are raised as typed errors."""
    try:
        yield
    except DeltaError:
        raise
    except Exception as error:
        raise typed_error(error, doing=doing) from error


def typed_iterator(items: Iterator[T], *, doing: str) -> Generator[T]:
    """The same items. Exceptions of the iterator are raised as typed errors."""
    with typed_errors(doing):
        yield from items


def refuse_pickle(what: str, fix: str) -> ConfigurationError:
    """The error for pickling the object `what`; `fix` is the advice in the message."""
    return ConfigurationError(
        f"{what} cannot be pickled.", cause="It holds open connections, locks or secrets.", fix=fix
    )


def _typed_generator(generator: GeneratorType[Any, Any, Any], doing: str) -> Generator[Any]:
    with typed_errors(doing):
        yield from generator


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, then its causes and contexts, nearest first."""
    seen: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and len(seen) < _MOST_LINKS and not any(link is one for one in seen):
        seen.append(link)
        yield link
        link = link.__cause__ or link.__context__


def _is_call_itself(error: Exception, *, frames: int) -> bool:
    """Whether Python refused the arguments because they do not match the parameters.

    Python's own message describes this mistake best.
    """
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
    """Name, annotation and value of each argument; nothing when the arguments do not match the parameters."""
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
            raise _wrong_argument(function, name, value, "bool", None)


def _call_error(
    error: Exception, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> DeltaError:
    """The typed error of a failed call. An argument of a wrong type is the most likely cause."""
    converted = typed_error(error, doing=f"{function.__qualname__}()")
    if not isinstance(converted, UnexpectedError) or isinstance(error, MemoryError):
        return converted
    for name, annotation, value in _bound(function, args, kwargs):
        if not _fits(value, annotation):
            return _wrong_argument(function, name, value, annotation, error)
    return converted


def _wrong_argument(
    function: Callable[..., Any], name: str, value: object, annotation: str, error: Exception | None
) -> ConfigurationError:
    cause = f"The value has the type {type(value).__name__}"
    return ConfigurationError(
        f"The {name} of {function.__qualname__}() cannot be {_shown(value)}.",
        cause=cause if error is None else f"{cause}, and the call failed with {described(error)}",
        fix=f"Pass {annotation}.",
    )


def _fits(value: object, annotation: str) -> bool:
    """Whether a value has a type that the annotation allows. True when the annotation cannot be checked."""
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
    """The members of a union annotation. Unions inside brackets are not split."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(annotation):
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and depth == 0:
            parts.append(annotation[start:at].strip())
            start = at + 1
    return [*parts, annotation[start:].strip()]


def _shown(value: object) -> str:
    try:
        representation = repr(value)
    except Exception:  # the class may define a `__repr__` that fails
        return f"a value of {type(value).__name__}"
    return (
        representation
        if len(representation) <= _SHOWN_CHARACTERS
        else f"{representation[:_SHOWN_CHARACTERS]}..."
    )
