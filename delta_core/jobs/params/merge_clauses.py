"""The JSON form of the clauses of a merge, in a job's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from delta_core.errors import ConfigurationError
from delta_core.jobs.params.row_expressions import require_row_expression
from delta_core.merge.clauses import ACTIONS as ACTIONS
from delta_core.merge.clauses import MergeAction as MergeAction
from delta_core.merge.clauses import check_clauses as check_clauses

_VALUES_KEYS: Final = {"matched": "set", "not_matched": "values", "not_matched_by_source": "set"}
"""The key of the mapping of columns to expressions, by list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseParams:
    """A clause in a job's parameters, with Spark SQL as strings. See `Clause`."""

    action: MergeAction
    condition: str | None = None
    values: Mapping[str, str] | None = None


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
        InvalidJobSpecError: a condition or value has a subquery.
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
        return require_row_expression(str(value), what=what)
    raise ConfigurationError(
        f"The {what} is not SQL text.", cause=f"It is {value!r}.", fix="Give a Spark SQL expression."
    )
