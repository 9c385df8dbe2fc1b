"""The operator that merges rows into a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.checked import checked_params
from delta_airflow.operators.rendered import (
    as_bool,
    as_json_object,
    as_json_objects,
    as_optional_string,
    as_string,
)
from delta_core.jobs.params.merge import KIND, MERGE_SCHEMA, parse_merge
from delta_core.merge.clauses import ACTIONS


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
        target_alias: the alias of the table; `t` by default (templated).
        source_alias: the alias of the source; `s` by default (templated).
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
        return KIND

    def job_params(self) -> Mapping[str, Any]:
        params: dict[str, Any] = {
            "source": as_json_object("source", self.source),
            "on": as_string("on", self.on),
            "merge_schema": as_bool("merge_schema", self.merge_schema),
        }
        for kind in ACTIONS:
            if clauses := as_json_objects(kind, getattr(self, kind)):
                params[kind] = clauses
        for name in ("contract", "deduplicate"):
            if (value := getattr(self, name)) is not None:
                params[name] = as_json_object(name, value)
        for name in ("target_alias", "source_alias"):
            if alias := as_optional_string(name, getattr(self, name)):
                params[name] = alias
        return checked_params(KIND, params, schema=MERGE_SCHEMA, parse=parse_merge)
