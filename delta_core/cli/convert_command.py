"""The command that converts a directory of Parquet files to a table: `convert`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from delta_core.cli.console import print_json, print_line
from delta_core.cli.options import Apply, AsJson, OptionFile, open_table
from delta_core.errors import ConfigurationError, SchemaError
from delta_core.maintenance.convert.apply import apply_conversion, plan_conversion
from delta_core.maintenance.messages import counted, size
from delta_core.schema.json import schema_from_json, type_from_name
from delta_core.schema.types import StructField, StructType


def convert(
    directory: Annotated[str, typer.Argument(metavar="DIRECTORY", help="Path or URI of the Parquet files.")],
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN:TYPE",
            help="A partition column of the directories, such as day:date. Repeat it for each column.",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the table.")] = None,
    description: Annotated[str | None, typer.Option(help="Description of the table.")] = None,
    stats: Annotated[
        bool, typer.Option("--stats/--no-stats", help="Collect column statistics from the Parquet footers.")
    ] = True,
    options: OptionFile = None,
    apply: Apply = False,
    as_json: AsJson = False,
) -> None:
    """Convert a directory of Parquet files to a table in place. A dry run unless --apply is given."""
    plan = plan_conversion(
        open_table(directory, options),
        partition_by=_partition_schema(partition_by or ()) if partition_by else None,
        name=name,
        description=description,
        collect_stats=stats,
    )
    committed = apply_conversion(plan) if apply else None
    plan_json = plan.to_json()
    if as_json:
        print_json({**plan_json, "version": None if committed is None else committed.version})
        return
    total, rows = size(plan_json["bytes"]), counted(plan_json["rows"], "row")
    files = f"{counted(plan_json['files'], 'file')} ({total}, {rows})"
    print_line(f"{'converted' if apply else 'would convert'} {files}")
    for field in schema_from_json(plan.metadata.schema_string):
        partition = ", a partition column" if field.name in plan.metadata.partition_columns else ""
        print_line(f"  {field.name} {field.data_type}{partition}")
    if not apply:
        print_line("pass --apply to convert")


def _partition_schema(columns: Sequence[str]) -> StructType:
    fields = []
    for argument in columns:
        column, _, kind = argument.rpartition(":")
        try:
            fields.append(StructField(name=column, data_type=type_from_name(kind)))
        except SchemaError as error:
            raise ConfigurationError(
                f"{argument!r} is not a valid partition column.",
                cause=f"{kind!r} is not a type.",
                fix="Pass a name and a type, such as day:date, year:integer or city:string.",
            ) from error
        if not column:
            raise ConfigurationError(
                f"{argument!r} is not a valid partition column.",
                fix="Pass a name and a type, such as day:date.",
            )
    return StructType(tuple(fields))
