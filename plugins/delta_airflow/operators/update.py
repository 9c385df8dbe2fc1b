"""The operator that updates rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.checked import checked_params
from delta_airflow.operators.rendered import as_json_object, as_locations, as_optional_string
from delta_core.jobs.params.update import KIND, UPDATE_SCHEMA, parse_update


class DeltaUpdateOperator(DeltaTableOperator):
    """Sets columns of the rows of a table that meet a condition, in one commit.

    Needs a runner with Spark. In a table with deletion vectors only the updated rows are written. Clearing
    the task does not update again by default, because an expression may use the old value (see `on_clear`).

    Args:
        set: Spark SQL expressions by column, or by the path of a field of a struct, such as
            `{"price": "price * 2"}`; a mapping or JSON (templated).
        where: the condition in Spark SQL, without subqueries; None updates every row (templated).
        target_alias: the alias of the table in expressions (templated).
        allowed_root_uris: locations outside the table's root where files of a shallow clone may be; a list,
            or a template that renders to a list (templated).
        kwargs: those of `DeltaTableOperator` and of Airflow's BaseOperator.
    """

    template_fields: Sequence[str] = (
        *DeltaTableOperator.template_fields,
        "set",
        "where",
        "target_alias",
        "allowed_root_uris",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **DeltaTableOperator.template_fields_renderers,
        "set": "json",
    }

    def __init__(
        self,
        *,
        set: Mapping[str, Any] | str,
        where: str | None = None,
        target_alias: str | None = None,
        allowed_root_uris: Sequence[str] | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.set = set
        self.where = where
        self.target_alias = target_alias
        self.allowed_root_uris = allowed_root_uris

    def job_kind(self) -> str:
        return KIND

    def job_params(self) -> Mapping[str, Any]:
        params: dict[str, Any] = {"set": as_json_object("set", self.set)}
        for name in ("where", "target_alias", "allowed_root_uris"):
            if value := as_optional_string(name, getattr(self, name)):
                params[name] = value
        if roots := as_locations("allowed_root_uris", self.allowed_root_uris):
            params["allowed_root_uris"] = roots
        return checked_params(KIND, params, schema=UPDATE_SCHEMA, parse=parse_update)
