"""The operator that runs a SQL statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.checked import checked_params
from delta_airflow.operators.rendered import as_json_object, as_locations, as_string
from delta_core.jobs.params.sql import KIND, SQL_SCHEMA, parse_sql


class DeltaSqlOperator(DeltaTableOperator):
    """Runs one SQL statement on a table, such as a MERGE, an INSERT or an OPTIMIZE.

    Needs a runner with Spark. The statement can use the table of the task, which has the name `target` in it,
    the tables in `tables`, and tables below `allowed_root_uris`. Any other table is refused.

    Args:
        statement: the statement. It is not templated: values belong into `parameters`.
        parameters: values of the parameters `:name` in the statement. They are bound, never parsed as SQL
            (templated).
        tables: names of other tables in the statement, and their URIs (templated).
        allowed_root_uris: locations below which the statement can use tables, and where files of a shallow
            clone may be; a list, or a template that renders to a list (templated).
        kwargs: those of `DeltaTableOperator` and of Airflow's BaseOperator.
    """

    template_fields: Sequence[str] = (
        *DeltaTableOperator.template_fields,
        "parameters",
        "tables",
        "allowed_root_uris",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **DeltaTableOperator.template_fields_renderers,
        "parameters": "json",
        "tables": "json",
    }

    def __init__(
        self,
        *,
        statement: str,
        parameters: Mapping[str, Any] | str | None = None,
        tables: Mapping[str, str] | str | None = None,
        allowed_root_uris: Sequence[str] | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.statement = statement
        self.parameters = parameters
        self.tables = tables
        self.allowed_root_uris = allowed_root_uris

    def job_kind(self) -> str:
        return KIND

    def job_params(self) -> Mapping[str, Any]:
        params: dict[str, Any] = {"statement": as_string("statement", self.statement)}
        for name in ("parameters", "tables"):
            if (value := getattr(self, name)) is not None:
                params[name] = as_json_object(name, value)
        if roots := as_locations("allowed_root_uris", self.allowed_root_uris):
            params["allowed_root_uris"] = roots
        return checked_params(KIND, params, schema=SQL_SCHEMA, parse=parse_sql)
