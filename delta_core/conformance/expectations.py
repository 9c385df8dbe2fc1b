"""Assertions of the checks, which raise StoreContractError."""

from __future__ import annotations

from collections.abc import Callable

from delta_core.errors import DeltaError, StoreContractError


def require(holds: bool, problem: str, *, cause: str = "", fix: str = "") -> None:
    """Raise StoreContractError with the problem unless the condition holds."""
    if not holds:
        raise StoreContractError(problem, cause=cause, fix=fix)


def require_same(actual: object, expected: object, what: str) -> None:
    """Raise StoreContractError unless the actual value equals the expected value."""
    if actual != expected:
        raise StoreContractError(f"Wrong result for {what}: {_short(actual)} instead of {_short(expected)}.")


def require_raises(kind: type[DeltaError], call: Callable[[], object], what: str) -> None:
    """Raise StoreContractError unless a call raises an error of this class. Other errors are not caught."""
    try:
        call()
    except kind:
        return
    raise StoreContractError(f"There was no {kind.__name__} for {what}.")


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 120 else f"{shown[:100]}... ({len(shown)} characters)"
