"""The exceptions of the `deltalake` package by their names.

A call of `delta_core.deltalake` raises an error of `delta_core.errors` that is an error of this module, too,
and a `ValueError` or `TypeError` where `deltalake` raises one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

from delta_core import errors
from delta_core.boundary import public
from delta_core.deltalake.phrases import is_commit_error, with_phrase
from delta_core.errors import DeltaError as DeltaError
from delta_core.errors import TableNotFoundError as TableNotFoundError

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")


class CommitFailedError(DeltaError):
    """A commit failed: it was refused, its outcome is unknown, or another writer won."""


class DeltaProtocolError(DeltaError):
    """The table requires something that is not supported, or rows violate a rule of the table."""


class SchemaMismatchError(DeltaError):
    """The data's columns or types do not match the table's, or a change of the schema is not allowed."""


class ArgumentTypeError(errors.ConfigurationError, TypeError):
    """An argument has a type that the call does not take."""


_ALSO: tuple[tuple[type[DeltaError], type[Exception]], ...] = (
    (errors.CommitError, CommitFailedError),
    (errors.ProtocolError, DeltaProtocolError),
    (errors.ConstraintViolationError, DeltaProtocolError),
    (errors.InvalidTableError, DeltaProtocolError),
    (errors.SchemaError, SchemaMismatchError),
    (errors.ConfigurationError, ValueError),
)


def translated(error: DeltaError) -> DeltaError:
    """The same error, also as an instance of the class that `deltalake` raises, with its words."""
    cls = type(with_phrase(error))
    also = next((theirs for ours, theirs in _ALSO if isinstance(error, ours)), None)
    if is_commit_error(error):
        also = CommitFailedError
    if also is not None and not isinstance(error, also | TypeError):
        error.__class__ = _both(cls, also)
    return error


@contextmanager
def translating() -> Iterator[None]:
    """A context whose errors are translated."""
    try:
        yield
    except DeltaError as error:
        raise translated(error) from error.__cause__


def compatible(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function part of the public API of this package; see `boundary.public`."""
    checked = public(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with translating():
            return checked(*args, **kwargs)

    return call


def compatible_class(cls: type[C]) -> type[C]:
    """Make a class part of the public API of this package: its constructor, methods and properties."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and name not in ("__init__", "__arrow_c_stream__", "__arrow_c_schema__"):
            continue
        if isinstance(member, FunctionType):
            setattr(cls, name, compatible(member))
        elif isinstance(member, classmethod | staticmethod):
            setattr(cls, name, type(member)(compatible(member.__func__)))
    return cls


_BOTH: dict[tuple[type[DeltaError], type[Exception]], type[DeltaError]] = {}


def _both(cls: type[DeltaError], also: type[Exception]) -> type[DeltaError]:
    known = _BOTH.get((cls, also))
    if known is not None:
        return known

    def reduced(self: DeltaError) -> tuple[Any, ...]:
        # The class has no name of its own from which another process could load it.
        make, arguments = cast("tuple[Any, tuple[Any, ...]]", cls.__reduce__(self))
        return make, (cls, *arguments[1:])

    made = type(
        cls.__name__,
        (cls, also),
        {"__module__": cls.__module__, "__reduce__": reduced, "__doc__": cls.__doc__},
    )
    return _BOTH.setdefault((cls, also), made)
