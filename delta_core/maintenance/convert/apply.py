"""Planning a conversion from the files' footers, and applying it in one commit, version 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from delta_core.actions import AddFile, Metadata, Protocol
from delta_core.dml.known_properties import refuse_unknown_properties, require_valid_values
from delta_core.dml.post_commit import commit_and_checkpoint
from delta_core.errors import InvalidTablePropertyError, TableExistsError
from delta_core.execution.executor import Executor
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.log.log_path import LOG_DIRECTORY
from delta_core.log.outer_tables import require_separate_directory
from delta_core.maintenance.convert.footers import read_file
from delta_core.maintenance.convert.listing import (
    PartitionStrategy,
    data_files,
    partition_values,
    partitioning,
    require_partitioning_given,
)
from delta_core.maintenance.convert.schema_union import SchemaUnion
from delta_core.run import DEFAULT_RUN, Run
from delta_core.schema.column_mapping import MODE_KEY, ColumnMappingMode
from delta_core.schema.evolution import require_writable_void, warn_of_void
from delta_core.schema.json import schema_from_json, schema_to_json
from delta_core.schema.mapping_assignment import assign_existing, strip_mapping
from delta_core.schema.mapping_modes import parse_mode
from delta_core.schema.table_columns import TableColumns
from delta_core.schema.types import StructField, StructType
from delta_core.storage.log_store import LogStore, ObjectInfo
from delta_core.storage.parallel import MAX_REQUESTS
from delta_core.storage.task_stores import share_with_tasks
from delta_core.storage.uri import encode_data_path
from delta_core.table_features.automatic_properties import automatic_properties
from delta_core.table_features.enablement import (
    ProtocolRequest,
    needed_features,
    protocol_for,
    refuse_unsupported_definition,
)
from delta_core.table_features.feature import WriterKind
from delta_core.table_features.internal_properties import refuse_internal_properties
from delta_core.table_features.stats_columns import require_stats_columns
from delta_core.table_features.table_properties import TableProperties
from delta_core.table_features.universal_format import require_universal_format
from delta_core.transaction.commit_result import Committed, Conflict, raise_for_result

_FILES_AT_A_TIME = 1024
"""Number of files whose results are held in memory. Only running tasks hold footers."""

_REFUSED_PROPERTIES: Mapping[str, str] = {
    "delta.constraints.": "Add the constraint after the conversion with DeltaTable.alter.add_constraint, "
    "which checks the existing rows.",
    "delta.columnmapping.maxcolumnid": "Leave the property out. The conversion sets its value.",
    "delta.enableicebergcompat": "Leave the property out. Iceberg compatibility requires that all files were "
    "written for it.",
    "delta.enablematerializepartitioncolumnsfeature": "Leave the property out. The files do not contain the "
    "partition columns.",
}
"""Properties that claim something about files which existing files do not guarantee.

By the lower-case beginning of the property's name; the values are the fixes in the error.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionPlan:
    """The table that the conversion would create.

    Attributes:
        store: the table's store.
        files: the `add` actions, ordered by path.
        metadata, protocol: the table definition.
        rows: total row count of all files.
        verified_at_ms: when the directory was read, in epoch milliseconds.
        collect_stats: whether the actions have column statistics.
    """

    store: LogStore
    files: tuple[AddFile, ...]
    metadata: Metadata
    protocol: Protocol
    rows: int
    verified_at_ms: int
    collect_stats: bool = True

    def to_json(self) -> dict[str, Any]:
        """A summary of the plan as a JSON object."""
        return {
            "table_uri": self.store.uri,
            "files": len(self.files),
            "bytes": sum(file.size_bytes for file in self.files),
            "rows": self.rows,
            "partition_columns": list(self.metadata.partition_columns),
            "schema": self.metadata.schema_string,
        }


def plan_conversion(
    store: LogStore,
    *,
    partition_by: StructType | None = None,
    partition_strategy: PartitionStrategy = "hive",
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str] | None = None,
    collect_stats: bool = True,
    run: Run = DEFAULT_RUN,
) -> ConversionPlan:
    """Plan the conversion of the Parquet files below a store's root. Writes nothing.

    Requests: one listing of the directory, and the footer of each file, several at a time. The footer of a
    file that was read before the table's full schema was known is read twice. Memory: the actions, and the
    footers that are being read.

    Args:
        store: the store rooted at the directory.
        partition_by: the partition columns in the directory names, in their order, with types.
        partition_strategy: `hive` for directories `column=value`, `directory` for values alone.
        name, description: name and description of the table.
        configuration: table properties.
        collect_stats: whether to take column statistics from the footers; row counts are always taken.
        run: the surroundings. The clock and the executor are used.

    Raises:
        TableExistsError: there is a transaction log.
        NestedTableError: the directory belongs to another table.
        InvalidTableError: the directory has no files, or another table, or a file is not Parquet.
        SchemaError: the files' schemas are incompatible, or the directories do not match the partitioning.
        InvalidTablePropertyError: a property is unknown, or existing files do not guarantee what it claims.
        UnsupportedTableFeatureError: a property requires an unsupported feature.
    """
    verified_at_ms = run.now_ms()
    require_no_table(store)
    require_separate_directory(store)
    request = ProtocolRequest.of(configuration or {})
    properties = dict(request.properties)
    _check_properties(properties)
    files = data_files(store)
    if partition_by is None:
        require_partitioning_given(info.path for info in files)
    columns = tuple(partitioning(partition_by.fields if partition_by is not None else ()).fields)
    values = [partition_values(info.path, columns, strategy=partition_strategy) for info in files]
    widening = properties.get("delta.enableTypeWidening", "false").strip().lower() == "true"
    footers = _Footers(store=store, columns=columns, configuration=properties, collect_stats=collect_stats)
    with share_with_tasks(store):
        runner = run.executor or InlineExecutor(MAX_REQUESTS if store.remote else None)
        schema, described = footers.read(runner, files, SchemaUnion(widens=widening))
    names = tuple(column.name for column in columns)
    table_columns = TableColumns(schema=schema, partition_columns=names, configuration=properties).validated()
    require_writable_void(schema)
    warn_of_void(None, schema)
    require_stats_columns(table_columns)
    # Materialized columns get their names as in a table that is created empty.
    properties |= automatic_properties(needed_features(schema, properties), properties, is_new=False)
    refuse_unsupported_definition(schema, properties, request=request)
    if table_columns.is_mapped:
        # The files contain the logical names, so these become the physical names.
        unmapped = replace(table_columns, schema=strip_mapping(schema), configuration=properties)
        mapped = assign_existing(unmapped)
        schema, properties = mapped.schema, dict(mapped.configuration)
    metadata = Metadata(
        id=str(uuid4()),
        schema_string=schema_to_json(schema),
        partition_columns=names,
        configuration=properties,
        name=name,
        description=description,
        created_time_ms=run.now_ms(),
    )
    require_universal_format(metadata)
    adds = tuple(
        AddFile(
            path=encode_data_path(info.path),
            partition_values=partition,
            size_bytes=info.size_bytes,
            modification_time_ms=info.modified_ms,
            data_change=True,
            stats=stats,
        )
        for info, partition, (_, stats) in zip(files, values, described, strict=True)
    )
    return ConversionPlan(
        store=store,
        files=adds,
        metadata=metadata,
        protocol=protocol_for(schema, properties, request=request),
        rows=sum(rows for rows, _ in described),
        verified_at_ms=verified_at_ms,
        collect_stats=collect_stats,
    )


def apply_conversion(plan: ConversionPlan, *, run: Run = DEFAULT_RUN) -> Committed:
    """Commit the plan as version 0. One request when no other writer interferes; no file is opened.

    Raises:
        TableExistsError: another writer created a table at the location since the plan.
        CommitStateUnknownError: the store did not confirm whether the commit succeeded.
    """
    transaction = run.create(
        plan.store,
        operation="CONVERT",
        writer_kind=WriterKind.RESTORE,
        operation_parameters={
            "numFiles": len(plan.files),
            "partitionedBy": list(plan.metadata.partition_columns),
            "collectStats": plan.collect_stats,
            "sourceFormat": "parquet",
        },
        verified_at_ms=plan.verified_at_ms,
    )
    transaction.add(plan.protocol, plan.metadata, *plan.files)
    transaction.set_metrics({"numConvertedFiles": len(plan.files), "numOutputRows": plan.rows})
    result = commit_and_checkpoint(transaction, run.progress)
    if isinstance(result, Conflict):
        raise table_exists(plan.store) from result.error
    return raise_for_result(result)


def require_no_table(store: LogStore) -> None:
    """Refuse a directory with a transaction log, even an incomplete one. One listing.

    Raises:
        TableExistsError: the directory has a transaction log.
    """
    if store.list_directory(LOG_DIRECTORY):
        raise table_exists(store)


def table_exists(store: LogStore) -> TableExistsError:
    """The error for a directory that is already a table."""
    return TableExistsError(
        f"There is already a transaction log at {store.uri}.",
        cause="A conversion creates version 0 of a table.",
        fix="Open the table with DeltaTable. Write the rows of files that the log does not contain.",
    )


def _check_properties(properties: Mapping[str, str]) -> None:
    for key in sorted(properties):
        for prefix, advice in _REFUSED_PROPERTIES.items():
            if key.lower().startswith(prefix) and properties[key].strip().lower() not in ("false", "none"):
                raise InvalidTablePropertyError(
                    f"The table property {key} cannot be set by a conversion.",
                    cause="Existing files were written without the property.",
                    fix=advice,
                )
    if parse_mode(properties.get(MODE_KEY, "none")) is ColumnMappingMode.ID:
        raise InvalidTablePropertyError(
            f"The table property {MODE_KEY} cannot be id in a conversion.",
            cause="The mode id finds columns by field ids, and the files were written without field ids.",
            fix="Use the mode name, which finds columns by the names in the files.",
        )
    refuse_internal_properties(properties)
    refuse_unknown_properties(properties)
    require_valid_values(properties)
    TableProperties.of(properties).validate()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Footers:
    """Reads the footers of files: their common schema, and row count and statistics of each file."""

    store: LogStore
    columns: Sequence[StructField]
    configuration: Mapping[str, str]
    collect_stats: bool

    def read(
        self, executor: Executor, files: Sequence[ObjectInfo], union: SchemaUnion
    ) -> tuple[StructType, list[tuple[int, str]]]:
        """The table's schema, and for each file its row count and its statistics."""
        schemas_of_stats: list[StructType | None] = [None] * len(files)
        described: list[tuple[int, str]] = [(0, "")] * len(files)
        self._read_some(executor, files, range(1), union, schemas_of_stats, described)
        for start in range(1, len(files), _FILES_AT_A_TIME):
            some = range(start, min(start + _FILES_AT_A_TIME, len(files)))
            self._read_some(executor, files, some, union, schemas_of_stats, described)
        final = self._table_schema(union.result())
        again = [index for index, schema in enumerate(schemas_of_stats) if schema != final]
        if self.collect_stats:
            for start in range(0, len(again), _FILES_AT_A_TIME):
                some_again = again[start : start + _FILES_AT_A_TIME]
                self._read_some(executor, files, some_again, union, schemas_of_stats, described)
        return final, described

    def _read_some(
        self,
        executor: Executor,
        files: Sequence[ObjectInfo],
        chosen: Sequence[int],
        union: SchemaUnion,
        schemas_of_stats: list[StructType | None],
        described: list[tuple[int, str]],
    ) -> None:
        expected = self._table_schema(union.result()) if union.schema.fields else None
        task = {
            "table_uri": self.store.uri,
            "schema": schema_to_json(expected) if expected is not None and self.collect_stats else None,
            "partition_columns": [column.name for column in self.columns],
            "configuration": dict(self.configuration),
        }
        own_schemas: dict[int, str] = {}
        for position, result in executor.map(read_file, [{**task, "path": files[i].path} for i in chosen]):
            index = chosen[position]
            own_schemas[index] = result["schema"]
            schemas_of_stats[index] = expected
            rows = int(result["rows"])
            described[index] = (rows, result["stats"] or f'{{"numRecords":{rows}}}')
        # In the files' order, so that the order of columns does not depend on which task finished first.
        parsed = {schema: schema_from_json(schema) for schema in set(own_schemas.values())}
        for index in sorted(own_schemas):
            union.add(parsed[own_schemas[index]], files[index].path)

    def _table_schema(self, schema: StructType) -> StructType:
        return replace(schema, fields=(*schema.fields, *self.columns))
