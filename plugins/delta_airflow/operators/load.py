"""The operator that loads files into a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.checked import checked_params
from delta_airflow.operators.rendered import (
    as_bool,
    as_json_object,
    as_optional_int,
    as_optional_string,
    as_rendered_strings,
    as_string,
)
from delta_core.errors import ConfigurationError
from delta_core.jobs.params.load import KIND, LOAD_SCHEMA, MODES, parse_load

_REPLACE_WHERE = "replace_where"
"""The operator's name for the job's mode `overwrite` with a `replace_where`."""


class DeltaLoadOperator(DeltaTableOperator):
    """Reads files with Spark, checks them against a contract and writes them to a table in one commit.

    Needs a runner with Spark.

    Args:
        source: the data to read: `format` (parquet, csv, json or delta) and `uris`. Optional are `where`,
            and `select` and `group_by`, which are mappings of column to expression. Files also take
            `options` and `schema`, JSON lines `corrupt_column`, and a table `version` and `changes_since`
            (templated).
        mode: `append`, `overwrite` or `replace_where` (templated).
        partition_by: partition columns of a new table; a list, or a template that renders to a list
            (templated).
        replace_where: with mode `replace_where`: a predicate for the rows to replace. The loaded rows must
            satisfy it (templated).
        partition_overwrite_mode: with mode `overwrite`: `dynamic` replaces exactly the partitions that have
            new rows (templated).
        max_records_per_file: the maximum number of rows of a data file (templated).
        contract: `columns` and `constraints` that each row must satisfy. If a row does not, nothing is
            written (templated).
        merge_schema: True adds the source's columns that the table lacks (templated).
        overwrite_schema: with mode `overwrite`: True replaces the table's schema by that of the data
            (templated).
        deduplicate: keeps one row per key: `keys`, and optionally `order_by`, which decides the row that is
            kept, and `against_table`, which leaves out rows whose key is already in the table (templated).
        quality: a suite of expectations that the staged rows must meet before the commit, and the action if
            they do not: `suite`, `on_failure` and the other keys in docs/quality.md (templated).
        kwargs: those of `DeltaTableOperator` and of Airflow's BaseOperator.
    """

    template_fields: Sequence[str] = (
        *DeltaTableOperator.template_fields,
        "source",
        "mode",
        "partition_by",
        "replace_where",
        "partition_overwrite_mode",
        "max_records_per_file",
        "contract",
        "deduplicate",
        "quality",
        "merge_schema",
        "overwrite_schema",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **DeltaTableOperator.template_fields_renderers,
        "source": "json",
        "contract": "json",
        "deduplicate": "json",
        "quality": "json",
    }

    def __init__(
        self,
        *,
        source: Mapping[str, Any] | str,
        mode: str = "append",
        partition_by: Sequence[str] | str | None = None,
        replace_where: str | None = None,
        partition_overwrite_mode: str = "static",
        max_records_per_file: int | str | None = None,
        contract: Mapping[str, Any] | str | None = None,
        deduplicate: Mapping[str, Any] | str | None = None,
        quality: Mapping[str, Any] | str | None = None,
        merge_schema: bool | str = False,
        overwrite_schema: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source = source
        self.mode = mode
        self.partition_by = partition_by
        self.replace_where = replace_where
        self.partition_overwrite_mode = partition_overwrite_mode
        self.max_records_per_file = max_records_per_file
        self.contract = contract
        self.deduplicate = deduplicate
        self.quality = quality
        self.merge_schema = merge_schema
        self.overwrite_schema = overwrite_schema

    def job_kind(self) -> str:
        return KIND

    def job_params(self) -> Mapping[str, Any]:
        mode = as_string("mode", self.mode)
        modes = (*MODES, _REPLACE_WHERE)
        if mode not in modes:
            raise ConfigurationError(
                f"The mode {mode!r} does not exist.", fix=f"Use one of {', '.join(modes)}."
            )
        replace_where = as_optional_string("replace_where", self.replace_where)
        if (mode == _REPLACE_WHERE) != (replace_where is not None):
            raise ConfigurationError(
                "The mode replace_where and the argument replace_where require each other.",
                cause=f"The mode is {mode!r} and the argument is {replace_where!r}.",
                fix="Set both, or neither.",
            )
        params: dict[str, Any] = {
            "source": as_json_object("source", self.source),
            "mode": "overwrite" if mode == _REPLACE_WHERE else mode,
            "merge_schema": as_bool("merge_schema", self.merge_schema),
            "overwrite_schema": as_bool("overwrite_schema", self.overwrite_schema),
        }
        if partition_by := as_rendered_strings("partition_by", self.partition_by):
            params["partition_by"] = partition_by
        if replace_where is not None:
            params["replace_where"] = replace_where
        if self.partition_overwrite_mode != "static":
            params["partition_overwrite_mode"] = as_string(
                "partition_overwrite_mode", self.partition_overwrite_mode
            )
        records = as_optional_int("max_records_per_file", self.max_records_per_file, minimum=1)
        if records is not None:
            params["max_records_per_file"] = records
        if self.contract is not None:
            params["contract"] = as_json_object("contract", self.contract)
        if self.deduplicate is not None:
            params["deduplicate"] = as_json_object("deduplicate", self.deduplicate)
        if self.quality is not None:
            params["quality"] = as_json_object("quality", self.quality)
        return checked_params(KIND, params, schema=LOAD_SCHEMA, parse=parse_load)
