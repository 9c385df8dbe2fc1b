"""The clauses of a merge: the actions of each list, their JSON form, and the rules for a list of clauses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

from delta_core.errors import ConfigurationError


class MergeAction(StrEnum):
    """The action of a clause. The `_ALL` actions use every column of the source by name."""

    UPDATE = "update"
    UPDATE_ALL = "update_all"
    DELETE = "delete"
    INSERT = "insert"
    INSERT_ALL = "insert_all"

    @property
    def takes_all(self) -> bool:
        """True for the actions that are written `*`."""
        return self in (MergeAction.UPDATE_ALL, MergeAction.INSERT_ALL)

    @property
    def takes_values(self) -> bool:
        """True for the actions that need a mapping of columns to expressions."""
        return self in (MergeAction.UPDATE, MergeAction.INSERT)

    @property
    def kind(self) -> str:
        """The kind of action: `update`, `delete` or `insert`."""
        return self.value.removesuffix("_all")


ACTIONS: Final[Mapping[str, tuple[MergeAction, ...]]] = {
    "matched": (MergeAction.UPDATE, MergeAction.UPDATE_ALL, MergeAction.DELETE),
    "not_matched": (MergeAction.INSERT, MergeAction.INSERT_ALL),
    "not_matched_by_source": (MergeAction.UPDATE, MergeAction.DELETE),
}
"""The actions that each list of clauses allows."""

_VALUES_KEYS: Final = {"matched": "set", "not_matched": "values", "not_matched_by_source": "set"}
"""The key of the mapping of columns to expressions, by list."""


class Clause(Protocol):
    """A clause, with conditions and values as SQL text or in another form."""

    @property
    def action(self) -> MergeAction:
        """The action of the clause."""

    @property
    def condition(self) -> object | None:
        """The clause applies to rows for which this is true; None applies it to every row."""

    @property
    def values(self) -> Mapping[str, object] | None:
        """For `UPDATE` and `INSERT`, a map from target columns to expressions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseParams:
    """A clause in a job's parameters, with Spark SQL as strings. See `Clause`."""

    action: MergeAction
    condition: str | None = None
    values: Mapping[str, str] | None = None


def check_clauses(lists: Mapping[str, Sequence[Clause]]) -> None:
    """Check the lists of clauses of one merge, by the names in `ACTIONS`.

    Raises:
        ConfigurationError: the merge has no clause, a clause has an action that its list does not allow or
            lacks values, or a clause follows a clause without a condition and could never apply.
    """
    if not any(lists.values()):
        raise ConfigurationError(
            "The merge has no clause.", fix="Add a clause for matched rows or for unmatched rows."
        )
    for name, clauses in lists.items():
        for index, clause in enumerate(clauses):
            _check(name, index, clause, is_last=index == len(clauses) - 1)


def clauses_schema(name: str) -> dict[str, Any]:
    """JSON Schema of the list of clauses with that name."""
    properties: dict[str, Any] = {
        "action": {"enum": [action.value for action in ACTIONS[name]]},
        "condition": {"type": ["string", "null"], "minLength": 1},
        _VALUES_KEYS[name]: {"type": ["object", "null"], "description": "column: Spark SQL expression"},
    }
    return {
        "type": "array",
        "description": "the first clause whose condition is true applies to a row",
        "items": {
            "type": "object",
            "required": ["action"],
            "additionalProperties": False,
            "properties": properties,
        },
    }


def parse_clauses(params: Mapping[str, Any]) -> dict[str, tuple[ClauseParams, ...]]:
    """The lists of clauses in a job's parameters that conform to `clauses_schema`, by the names in `ACTIONS`.

    Raises:
        ConfigurationError: see `check_clauses`; or a condition or value is not SQL text.
    """
    lists = {
        name: tuple(
            _parse_clause(f"{name}[{index}]", item, _VALUES_KEYS[name])
            for index, item in enumerate(params.get(name) or ())
        )
        for name in ACTIONS
    }
    check_clauses(lists)
    return lists


def _parse_clause(at: str, item: Mapping[str, Any], values_key: str) -> ClauseParams:
    condition, values = item.get("condition"), item.get(values_key)
    return ClauseParams(
        action=MergeAction(item["action"]),
        condition=None if condition is None else _sql(f"condition of the clause {at}", condition),
        values=None
        if values is None
        else {key: _sql(f"value of {key!r} in the clause {at}", sql) for key, sql in values.items()},
    )


def _sql(what: str, value: object) -> str:
    """The SQL text of a condition or value, which may be a number or a boolean in JSON."""
    if isinstance(value, (str, int, float)) and str(value).strip():
        return str(value)
    raise ConfigurationError(
        f"The {what} is not SQL text.", cause=f"It is {value!r}.", fix="Give a Spark SQL expression."
    )


def _check(name: str, index: int, clause: Clause, *, is_last: bool) -> None:
    if clause.action not in ACTIONS[name]:
        raise ConfigurationError(
            f"The action {clause.action.value!r} is not allowed for {name} rows.",
            fix=f"Choose {', '.join(action.value for action in ACTIONS[name])}.",
        )
    if clause.action.takes_values != bool(clause.values):
        raise ConfigurationError(
            f"The {name} clause {index + 1} ({clause.action.value}) "
            + ("sets no column." if clause.action.takes_values else "takes no values."),
            fix="Name the columns and their values, or use the action that takes all columns.",
        )
    if clause.condition is None and not is_last:
        raise ConfigurationError(
            f"The {name} clause {index + 1} has no condition, so the later clauses can never apply.",
            fix="Add a condition to every clause of the list except the last.",
        )
