"""What a check asks of a store, and the error when it does not hold."""

from __future__ import annotations

from collections.abc import Callable

from delta_core.errors import DeltaError, StoreContractError


def require(holds: bool, problem: str, *, cause: str = "", fix: str = "") -> None:
    """Raise StoreContractError with the problem unless something holds."""
    if not holds:
        raise StoreContractError(problem, cause=cause, fix=fix)


def require_same(found: object, wanted: object, what: str) -> None:
    """Raise StoreContractError unless what was found is what was wanted."""
    if found != wanted:
        raise StoreContractError(f"{what} is {_short(found)} and should be {_short(wanted)}")


def require_raises(kind: type[DeltaError], call: Callable[[], object], what: str) -> None:
    """Raise StoreContractError unless a call raises an error of a kind; one of another kind is passed on."""
    try:
        call()
    except kind:
        return
    raise StoreContractError(f"{what} went through and should raise {kind.__name__}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:100]}... ({len(text)} characters)"
