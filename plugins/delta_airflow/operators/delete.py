"""The operator that deletes rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.checked import checked_params
from delta_airflow.operators.rendered import as_locations, as_optional_string, as_string
from delta_core.jobs.params.delete import DELETE_SCHEMA, KIND, parse_delete


class DeltaDeleteOperator(DeltaTableOperator):
    """Deletes the rows of a table that meet a condition, in one commit.

    Needs a runner with Spark. In a table with deletion vectors no file is rewritten.

    Args:
        where: the condition in Spark SQL, without subqueries, such as `day < '2024-01-01'`. It is required;
            `true` deletes every row (templated).
        target_alias: the alias of the table in the condition (templated).
        allowed_root_uris: locations outside the table's root where files of a shallow clone may be; a list,
            or a template that renders to a list (templated).
        kwargs: those of `DeltaTableOperator` and of Airflow's BaseOperator.
    """

    template_fields: Sequence[str] = (
        *DeltaTableOperator.template_fields,
        "where",
        "target_alias",
        "allowed_root_uris",
    )

    def __init__(
        self,
        *,
        where: str,
        target_alias: str | None = None,
        allowed_root_uris: Sequence[str] | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.where = where
        self.target_alias = target_alias
        self.allowed_root_uris = allowed_root_uris

    def job_kind(self) -> str:
        return KIND

    def job_params(self) -> Mapping[str, Any]:
        params: dict[str, Any] = {"where": as_string("where", self.where)}
        if alias := as_optional_string("target_alias", self.target_alias):
            params["target_alias"] = alias
        if roots := as_locations("allowed_root_uris", self.allowed_root_uris):
            params["allowed_root_uris"] = roots
        return checked_params(KIND, params, schema=DELETE_SCHEMA, parse=parse_delete)
