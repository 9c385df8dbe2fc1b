"""`write_deltalake` and `convert_to_deltalake` with the arguments of the `deltalake` package."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from delta_core import dml
from delta_core import table as core
from delta_core.arguments import name_list
from delta_core.boundary import typed_iterator
from delta_core.deltalake import _changes
from delta_core.deltalake._casts import cast_to_table
from delta_core.deltalake._util import with_positional
from delta_core.deltalake.exceptions import compatible
from delta_core.deltalake.predicates import coerced
from delta_core.deltalake.protocols import with_versions_of_new_table, without_partition_columns
from delta_core.deltalake.schema import Schema, core_schema, from_arrow_fields, signed_type
from delta_core.deltalake.table import DeltaTable
from delta_core.deltalake.transaction import (
    CommitArgument,
    CommitProperties,
    HookArgument,
    PostCommitHookProperties,
    core_properties,
)
from delta_core.deltalake.writer_properties import (
    BloomFilterProperties,
    ColumnProperties,
    WriterProperties,
    parquet_options,
)
from delta_core.dml.input_data import Rows, as_rows
from delta_core.errors import ConfigurationError, TableNotFoundError
from delta_core.maintenance.convert.convert import convert_to_deltalake as convert
from delta_core.schema.arrow import from_arrow
from delta_core.schema.field_metadata import GENERATION_KEY
from delta_core.schema.types import DataType, StructField, StructType

__all__ = [
    "BloomFilterProperties",
    "ColumnProperties",
    "CommitProperties",
    "PostCommitHookProperties",
    "WriterProperties",
    "convert_to_deltalake",
    "write_deltalake",
]


@compatible
def write_deltalake(
    table_or_uri: str | os.PathLike[str] | DeltaTable | core.DeltaTable,
    data: Any,
    *,
    partition_by: Sequence[str] | str | None = None,
    mode: Literal["error", "append", "overwrite", "ignore"] = "error",
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str | None] | None = None,
    schema_mode: Literal["merge", "overwrite"] | None = None,
    storage_options: Mapping[str, str] | None = None,
    predicate: str | None = None,
    target_file_size: int | None = None,
    writer_properties: WriterProperties | None = None,
    commit_properties: CommitArgument = None,
    post_commithook_properties: HookArgument = None,
) -> None:
    """Write Arrow data to a table in one commit. The table is created when it does not exist.

    Args:
        table_or_uri: a path or URI, or an open table, which then shows the new version.
        data: any object with the Arrow C interface, such as a table or a data frame, or a list of such.
            Unsigned integers are stored as signed ones of the same width; a value that does not fit is
            refused.
        partition_by: the partition columns of a new table.
        mode: what to do when the table exists: `error`, `append`, `overwrite` its rows, or `ignore`.
        name: the name of a new table.
        description: the description of a new table.
        configuration: the properties of a new table; values of None are left out.
        schema_mode: `merge` adds the data's new columns; `overwrite` replaces the schema.
        storage_options: options of the store.
        predicate: SQL; with mode `overwrite`, replace only the rows that match.
        target_file_size: the size in bytes at which a data file is closed; the table's target when None.
        writer_properties: the encoding of the data files.
        commit_properties: provenance and limits of the commit.
        post_commithook_properties: what follows the commit.

    Raises:
        TableExistsError: mode is `error`, and the table exists.
        SchemaMismatchError: the data does not fit the table.
        DeltaProtocolError: a row violates a constraint, or the table is not supported.
        CommitFailedError: another writer's commit conflicts, or the commit failed.
    """
    if not isinstance(table_or_uri, str | os.PathLike | DeltaTable | core.DeltaTable):
        raise ConfigurationError(
            "table_or_uri must be a str, Path or DeltaTable.",
            cause=f"It is a {type(table_or_uri).__name__}.",
            fix="Pass one of them.",
        )
    target = table_or_uri.delta_table if isinstance(table_or_uri, DeltaTable) else table_or_uri
    rows = signed_rows(data)
    fields = from_arrow_fields(rows.schema)
    evolves = schema_mode == "merge" and any(GENERATION_KEY in field.metadata for field in fields)
    replaces = schema_mode == "overwrite" and mode == "overwrite" and predicate is not None
    columns = name_list(partition_by, what="partition_by")
    properties = without_partition_columns(_changes.properties_of(configuration), columns or ())
    with_versions = with_versions_of_new_table(properties, fields)
    if schema_mode == "merge" or replaces or with_versions is not properties:
        target = _opened(target, storage_options)
    if isinstance(target, core.DeltaTable):
        known = target.schema()
        if schema_mode == "merge":
            rows = cast_to_table(rows, known)
        if evolves:
            _changes.refuse_generated_columns(known, fields)
        if replaces and _types(known) == _types(fields):
            schema_mode = None  # rows that stay fit the same schema
    else:
        properties = with_versions
    dml.write_deltalake(
        target,
        rows,
        mode=mode,
        partition_by=columns,
        schema_mode=schema_mode,
        schema=_defined(fields),
        predicate=coerced(predicate, from_arrow(rows.schema)),
        configuration=properties,
        commit_properties=core_properties(commit_properties, post_commithook_properties),
        storage_options=None
        if isinstance(target, core.DeltaTable)
        else _changes.store_options(target, storage_options),
        name=name,
        description=description,
        target_file_size=target_file_size,
        parquet=parquet_options(writer_properties),
    )


@compatible
@with_positional("commit_properties", "post_commithook_properties")
def convert_to_deltalake(
    uri: str | os.PathLike[str],
    mode: Literal["error", "ignore"] = "error",
    partition_by: Schema | pa.Schema | None = None,
    partition_strategy: Literal["hive", "directory"] | None = None,
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str | None] | None = None,
    storage_options: Mapping[str, str] | None = None,
    *,
    collect_stats: bool = True,
    commit_properties: CommitArgument = None,
    post_commithook_properties: HookArgument = None,
) -> None:
    """Convert a directory of Parquet files to a Delta table in place.

    Args:
        uri: the directory.
        mode: `error`, or `ignore` a directory that is a table already.
        partition_by: the partition columns with their types.
        partition_strategy: `hive` for directories `year=2024`, `directory` for `2024`.
        name: the name of the table.
        description: the description of the table.
        configuration: the properties of the table; values of None are left out.
        storage_options: options of the store.
        collect_stats: whether to take statistics from the footers.
        commit_properties: provenance and limits of the commit.
        post_commithook_properties: what follows the commit.
    """
    if partition_by is not None and partition_strategy is None:
        raise ConfigurationError(
            "Partition strategy has to be provided with partition_by.", fix="Pass partition_strategy='hive'."
        )
    if partition_strategy not in (None, "hive", "directory"):
        raise ConfigurationError(
            "Partition strategy must be `hive` or `directory`.",
            cause=f"It is {partition_strategy!r}.",
            fix="Pass one of them.",
        )
    convert(
        uri,
        mode=mode,
        partition_by=None if partition_by is None else core_schema(partition_by),
        partition_strategy=partition_strategy,
        name=name,
        description=description,
        configuration=_changes.properties_of(configuration),
        storage_options=_changes.store_options(uri, storage_options),
        collect_stats=collect_stats,
        commit_properties=core_properties(commit_properties, post_commithook_properties),
    )


def signed_rows(data: Any) -> Rows:
    """The caller's rows with signed integers of the same width in place of unsigned ones."""
    is_list = isinstance(data, Sequence) and not isinstance(data, str | bytes) and not _has_arrow(data)
    # A sequence may have no length.
    rows = as_rows([part for part in data] if is_list else data)  # noqa: C416
    schema = pa.schema([field.with_type(signed_type(field.type)) for field in rows.schema])
    if schema.equals(rows.schema):
        return rows
    if isinstance(rows, pa.Table):
        return _cast(rows, schema)
    batches = (batch for part in rows for batch in _cast(pa.Table.from_batches([part]), schema).to_batches())
    return pa.RecordBatchReader.from_batches(schema, typed_iterator(batches, doing="reading the data"))


def _opened(
    target: str | os.PathLike[str] | core.DeltaTable, storage_options: Mapping[str, str] | None
) -> str | os.PathLike[str] | core.DeltaTable:
    """The open table, or the location if the table does not exist."""
    if isinstance(target, core.DeltaTable):
        return target
    try:
        return core.DeltaTable(target, storage_options=_changes.store_options(target, storage_options))
    except TableNotFoundError:
        return target


def _types(schema: StructType) -> list[tuple[str, DataType]]:
    return [(field.name.casefold(), field.data_type) for field in schema]


def _defined(defined: StructType) -> StructType | None:
    """The schema of a new table when the columns define more than types, else None."""
    is_more = any(not field.nullable or _is_defined(field) for field in defined)
    return defined if is_more else None


def _is_defined(field: StructField) -> bool:
    return any(key.startswith("delta.") for key in field.metadata)


def _has_arrow(data: object) -> bool:
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def _cast(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    try:
        return rows.cast(schema)
    except pa.ArrowInvalid as error:
        raise ConfigurationError(
            f"{_cast_words(rows, schema)}An unsigned integer does not fit the signed type of its width.",
            cause=str(error),
            fix="Cast the column to a wider type.",
        ) from error


def _cast_words(rows: pa.Table, schema: pa.Schema) -> str:
    """The words of `deltalake` for the first value that does not fit; empty for a value inside of another."""
    for field, given in zip(schema, rows.schema, strict=True):
        if not pa.types.is_unsigned_integer(given.type):
            continue
        most = 2 ** (given.type.bit_width - 1) - 1
        misfits = pc.greater(rows.column(field.name), pa.scalar(most, given.type))
        values = rows.column(field.name).filter(misfits)
        if len(values):
            ours, theirs = (f"{kind}Int{given.type.bit_width}" for kind in ("", "U"))
            return (
                "Cast error: Failed to convert into Arrow schema: Cast error: Failed to cast "
                f"{field.name} from {ours} to {theirs}: Can't cast value {values[0]} to type {ours}. "
            )
    return ""
