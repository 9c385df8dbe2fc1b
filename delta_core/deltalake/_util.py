"""Helpers that several calls of this package share."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from datetime import date, datetime
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from delta_core.deltalake.exceptions import ArgumentTypeError
from delta_core.errors import ConfigurationError

P = ParamSpec("P")
R = TypeVar("R")

_ORDER = ("commit_properties", "post_commithook_properties")


def encode_partition_value(val: Any) -> str:
    """A partition value as the string that the log has for it.

    Raises:
        ConfigurationError: the value has another type.
    """
    if isinstance(val, bool):
        return str(val).lower()
    if isinstance(val, str | int | float):
        return str(val)
    if isinstance(val, datetime):
        return val.isoformat(sep=" ")
    if isinstance(val, date):
        return val.isoformat()
    if isinstance(val, bytes):
        return val.decode("unicode_escape", "backslashreplace")
    raise ConfigurationError(
        f"Could not encode partition value for type: {val}",
        cause=f"It is of type {type(val).__name__}.",
        fix="Pass a string, a number, a date or a datetime.",
    )


def deprecate_positional_commit_args(
    method_name: str,
    args: tuple[Any, ...],
    commit_properties: Any = None,
    post_commithook_properties: Any = None,
    legacy_order: Sequence[str] = _ORDER,
) -> tuple[Any, Any]:
    """The commit arguments of a call that may pass them by position, which is deprecated.

    Raises:
        ArgumentTypeError: there are too many of them, or one is given twice.
    """
    given = {"commit_properties": commit_properties, "post_commithook_properties": post_commithook_properties}
    if not args:
        return commit_properties, post_commithook_properties
    given = named_arguments(method_name, args, given, legacy_order)
    return given["commit_properties"], given["post_commithook_properties"]


def named_arguments(
    method_name: str, args: tuple[Any, ...], given: dict[str, Any], order: Sequence[str], level: int = 4
) -> dict[str, Any]:
    """The keyword arguments of a call together with those that it passes by position.

    Raises:
        ArgumentTypeError: there are too many of them, or one is given twice.
    """
    if len(args) > len(order):
        raise ArgumentTypeError(
            f"{method_name}() takes at most {len(order)} positional commit argument(s), got {len(args)}.",
            fix="Pass them by keyword.",
        )
    warnings.warn(
        f"Passing commit arguments positionally to {method_name}() is deprecated "
        "and will be removed in a future release. Use keyword arguments instead.",
        DeprecationWarning,
        stacklevel=level,
    )
    merged = dict(given)
    for name, value in zip(order, args, strict=False):
        if merged.get(name) is not None:
            raise ArgumentTypeError(
                f"{method_name}() got multiple values for '{name}'.", fix="Pass the argument once."
            )
        merged[name] = value
    return merged


def with_positional(*order: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator for a method whose keyword arguments may follow the others by position, in this order."""

    def decorate(method: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(method).parameters.values()
        count = sum(one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for one in parameters)

        @wraps(method)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if len(args) <= count:
                return method(*args, **kwargs)
            named = named_arguments(method.__name__, args[count:], kwargs, order, level=6)
            return method(*args[:count], **named)  # type: ignore[arg-type]

        return call

    return decorate
