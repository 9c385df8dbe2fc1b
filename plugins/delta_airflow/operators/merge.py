"""The operator that merges rows into a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.rendered import (
    as_bool,
    as_json_object,
    as_json_objects,
    as_optional_string,
    as_string,
)
from delta_core.errors import ConfigurationError

_ACTIONS: Final[Mapping[str, Mapping[str, str | None]]] = {
    # The actions of each kind of clause, with the mapping that each action needs.
    "matched": {"update": "set", "update_all": None, "delete": None},
    "not_matched": {"insert": "values", "insert_all": None},
    "not_matched_by_source": {"update": "set", "delete": None},
}


class DeltaMergeOperator(DeltaTableOperator):
    """Updates, deletes and inserts rows of a table from the rows of a source, in one commit.

    Needs a runner with Spark. The clauses of a kind are evaluated in order, and the first whose condition is
    true is applied. Only the last clause of a kind may omit the condition. Expressions are Spark SQL.

    Args:
        source: the data to read: `format` (parquet or csv), `uris`, and optionally `options`, `schema` and
            `select`; or `format` delta with one URI and optionally a `version` (templated).
        on: the merge condition, such as `t.id = s.id`. `t` is the table and `s` the source unless other
            aliases are given (templated).
        matched: clauses for matching rows: `action` is `update` (with `set`, a mapping of column to
            expression), `update_all` or `delete`; `condition` is optional (templated).
        not_matched: clauses for rows of the source without a match: `action` is `insert` (with `values`) or
            `insert_all` (templated).
        not_matched_by_source: clauses for rows of the table without a match: `action` is `update` (with
            `set`) or `delete` (templated).
        contract: `columns` and `constraints` that each row of the source must satisfy (templated).
        deduplicate: `keys` and `order_by`. Of the source rows with equal keys, only the first is used. This
            is for events that arrive late, twice or out of order (templated).
        merge_schema: True adds the source's columns that the table lacks (templated).
        target_alias: another name for `t` (templated).
        source_alias: another name for `s` (templated).
        kwargs: those of `DeltaTableOperator` and of Airflow's BaseOperator.
    """

    template_fields: Sequence[str] = (
        *DeltaTableOperator.template_fields,
        "source",
        "on",
        "matched",
        "not_matched",
        "not_matched_by_source",
        "contract",
        "deduplicate",
        "merge_schema",
        "target_alias",
        "source_alias",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **DeltaTableOperator.template_fields_renderers,
        "source": "json",
        "matched": "json",
        "not_matched": "json",
        "not_matched_by_source": "json",
        "contract": "json",
        "deduplicate": "json",
    }

    def __init__(
        self,
        *,
        source: Mapping[str, Any] | str,
        on: str,
        matched: Sequence[Mapping[str, Any]] | str | None = None,
        not_matched: Sequence[Mapping[str, Any]] | str | None = None,
        not_matched_by_source: Sequence[Mapping[str, Any]] | str | None = None,
        contract: Mapping[str, Any] | str | None = None,
        deduplicate: Mapping[str, Any] | str | None = None,
        merge_schema: bool | str = False,
        target_alias: str | None = None,
        source_alias: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source = source
        self.on = on
        self.matched = matched
        self.not_matched = not_matched
        self.not_matched_by_source = not_matched_by_source
        self.contract = contract
        self.deduplicate = deduplicate
        self.merge_schema = merge_schema
        self.target_alias = target_alias
        self.source_alias = source_alias

    def job_kind(self) -> str:
        return "merge"

    def job_params(self) -> Mapping[str, Any]:
        params: dict[str, Any] = {
            "source": as_json_object("source", self.source),
            "on": as_string("on", self.on),
            "merge_schema": as_bool("merge_schema", self.merge_schema),
        }
        for kind in _ACTIONS:
            if clauses := as_json_objects(kind, getattr(self, kind)):
                _check_clauses(kind, clauses)
                params[kind] = clauses
        if not _ACTIONS.keys() & params.keys():
            raise ConfigurationError(
                "A merge needs at least one clause.", fix=f"Give one of {', '.join(_ACTIONS)}."
            )
        for name in ("contract", "deduplicate"):
            if (value := getattr(self, name)) is not None:
                params[name] = as_json_object(name, value)
        if "deduplicate" in params and not _is_names(params["deduplicate"].get("keys")):
            raise ConfigurationError(
                "The argument deduplicate has no keys.", fix='Give {"keys": [...], "order_by": [...]}.'
            )
        for name in ("target_alias", "source_alias"):
            if alias := as_optional_string(name, getattr(self, name)):
                params[name] = alias
        return params


def _is_names(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, str) and v for v in value)


def _check_clauses(kind: str, clauses: Sequence[Mapping[str, Any]]) -> None:
    actions = _ACTIONS[kind]
    for number, clause in enumerate(clauses):
        at = f"{kind}[{number}]"
        action = clause.get("action")
        if not isinstance(action, str) or action not in actions:
            raise ConfigurationError(
                f"The clause {at} has the unknown action {action!r}.", fix=f"Use one of {', '.join(actions)}."
            )
        needed = actions[action]
        known = {"action", "condition", *([needed] if needed else [])}
        if unknown := sorted(clause.keys() - known):
            raise ConfigurationError(
                f"The clause {at} ({action}) has unknown keys: {', '.join(map(repr, unknown))}.",
                fix=f"Use only {', '.join(sorted(known))}.",
            )
        if needed and not _is_assignment(clause.get(needed)):
            raise ConfigurationError(
                f"The clause {at} ({action}) needs {needed!r}.",
                fix=f'Give it a mapping of column to expression, such as "{needed}": {{"price": "s.price"}}.',
            )
        condition = clause.get("condition")
        if condition is not None and not (isinstance(condition, str) and condition.strip()):
            raise ConfigurationError(
                f"The condition of the clause {at} is not SQL text.", cause=f"Its value is {condition!r}."
            )
        if condition is None and number < len(clauses) - 1:
            raise ConfigurationError(
                f"The clause {at} has no condition, so the clauses after it would never be applied.",
                fix="Give the clause a condition, or put it last.",
            )


def _is_assignment(value: object) -> bool:
    return (
        isinstance(value, Mapping)
        and bool(value)
        and all(isinstance(expression, str) and expression.strip() for expression in value.values())
    )
