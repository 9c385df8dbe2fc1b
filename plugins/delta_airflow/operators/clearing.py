"""What clearing a task means: its work is done again, or stays as it was applied.

A clearing is a person's wish, or a backfill's, that a task instance runs once more. It has a number: the
first try that belongs to it. Retries, tries after a lost worker and drivers that outlived their task have the
number of the clearing that they began under.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from delta_airflow.operators.rendered import as_optional_string
from delta_core.errors import ConfigurationError

FIRST_CLEARING: Final = 1
"""The number of a task instance that was never cleared."""

REPLACING_KINDS: Final = frozenset(
    {"clone", "merge", "optimize", "properties", "repair", "restore", "vacuum"}
)
"""Kinds whose work leads to the same table when it is done twice; `load` is one when it overwrites."""

RECORDED: Final = "recorded"
"""`changes_since` of a source that continues from the version that the table has recorded."""


class OnClear(StrEnum):
    """What a cleared task does with work that the table has already."""

    REAPPLY = "reapply"
    KEEP = "keep"


def clearing_number(*, try_number: int, max_tries: int | None, retries: int | None) -> int:
    """The first try of the clearing that a try belongs to.

    Airflow sets `max_tries` to `try_number + retries` when a task instance is cleared, and leaves it alone
    otherwise. The number is of use only as long as `retries` of the task stays what it was, so it is kept
    between the first try and this one.
    """
    if max_tries is None:
        return FIRST_CLEARING
    return min(max(FIRST_CLEARING, max_tries - (retries or 0) + 1), max(FIRST_CLEARING, try_number))


def differing_retries(*, try_number: int, max_tries: int | None, retries: int | None) -> str | None:
    """What to warn of when scheduler and worker have read other `retries`; None when they agree.

    It shows at the first try alone. The number of a later clearing is wrong then: a retry may be taken for a
    clearing, and apply work twice, or a clearing for a retry, and do nothing.
    """
    if try_number != FIRST_CLEARING or max_tries is None or max_tries == (retries or 0):
        return None
    return (
        f"The scheduler has {max_tries} retries for this task and the worker {retries or 0}: a retry may be "
        "taken for a clearing, or a clearing for a retry. Set what `retries` comes from on both alike"
    )


def reapplies_when_cleared(on_clear: object, kind: str, params: Mapping[str, Any]) -> bool:
    """Whether a cleared task does its work again: as asked, or else when its work replaces.

    Raises:
        ConfigurationError: there is no such answer, or the work cannot be done again.
    """
    asked = as_optional_string("on_clear", on_clear)
    if asked is None:
        return _replaces(kind, params)
    try:
        chosen = OnClear(asked)
    except ValueError as error:
        raise ConfigurationError(
            f"There is no on_clear {asked!r}", fix=f"Use one of {', '.join(OnClear)}, or leave it out"
        ) from error
    if chosen is OnClear.REAPPLY and _goes_on(params):
        raise ConfigurationError(
            "A load that takes the changes since the recorded version cannot be applied again",
            cause="The table has recorded that it has them, so there are none to take",
            fix="Leave on_clear out, or name the version that changes_since begins at",
        )
    return chosen is OnClear.REAPPLY


def _replaces(kind: str, params: Mapping[str, Any]) -> bool:
    if _goes_on(params):
        return False
    if kind == "load":
        return params.get("mode") != "append"
    return kind in REPLACING_KINDS


def _goes_on(params: Mapping[str, Any]) -> bool:
    source = params.get("source")
    return isinstance(source, Mapping) and source.get("changes_since") == RECORDED
