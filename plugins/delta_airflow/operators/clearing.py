"""The effect of clearing a task: its work is applied again, or kept as it was applied.

A clearing is the request of a person or a backfill to run a task instance once more. Its number is the number
of its first try. Retries, tries after a lost worker, and drivers that outlived their task have the number of
the clearing under which they started.
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
    {"clone", "delete", "merge", "optimize", "properties", "repair", "restore", "vacuum"}
)
"""Job kinds whose work has the same outcome when it is applied twice. So has a `load` that overwrites."""

RECORDED: Final = "recorded"
"""The value of `changes_since` for a source that continues from the version recorded in the table."""


class OnClear(StrEnum):
    """The behaviour of a cleared task whose work the table already has."""

    REAPPLY = "reapply"
    KEEP = "keep"


def clearing_number(*, try_number: int, max_tries: int | None, retries: int | None) -> int:
    """The number of the clearing that a try belongs to, which is the number of its first try.

    Airflow sets `max_tries` to `try_number + retries` when a task instance is cleared, and never changes it
    otherwise. The calculation is right only while `retries` of the task stays the same. Therefore the result
    is limited to the range from the first try to this one.
    """
    if max_tries is None:
        return FIRST_CLEARING
    return min(max(FIRST_CLEARING, max_tries - (retries or 0) + 1), max(FIRST_CLEARING, try_number))


def differing_retries(*, try_number: int, max_tries: int | None, retries: int | None) -> str | None:
    """A warning if scheduler and worker have read different `retries` for a task; None if they agree.

    The difference can be detected only at the first try. It makes the numbers of later clearings wrong: a
    retry can count as a clearing and apply the work twice, or a clearing can count as a retry and do nothing.
    """
    if try_number != FIRST_CLEARING or max_tries is None or max_tries == (retries or 0):
        return None
    return (
        f"The scheduler has retries={max_tries} for this task and the worker has retries={retries or 0}: "
        "a retry may count as a clearing, or a clearing as a retry. Set the same `retries` on scheduler and "
        "worker."
    )


def reapplies_when_cleared(on_clear: object, kind: str, params: Mapping[str, Any]) -> bool:
    """Whether a cleared task applies its work again.

    `on_clear` decides. By default, only work that replaces data is applied again.

    Raises:
        ConfigurationError: the value of `on_clear` is not valid, or the work cannot be applied again.
    """
    given = as_optional_string("on_clear", on_clear)
    if given is None:
        return _replaces(kind, params)
    try:
        chosen = OnClear(given)
    except ValueError as error:
        raise ConfigurationError(
            f"The value {given!r} of on_clear is not valid.",
            fix=f"Use one of {', '.join(OnClear)}, or leave on_clear out.",
        ) from error
    if chosen is OnClear.REAPPLY and _continues(params):
        raise ConfigurationError(
            "A load that takes the changes since the recorded version cannot be applied again.",
            cause="The table has already recorded these changes, so no changes remain to load.",
            fix="Leave on_clear out, or set changes_since to a version.",
        )
    return chosen is OnClear.REAPPLY


def _replaces(kind: str, params: Mapping[str, Any]) -> bool:
    if _continues(params):
        return False
    if kind == "load":
        return params.get("mode") != "append"
    return kind in REPLACING_KINDS


def _continues(params: Mapping[str, Any]) -> bool:
    """Whether the job loads the changes since the version that the table has recorded."""
    source = params.get("source")
    return isinstance(source, Mapping) and source.get("changes_since") == RECORDED
