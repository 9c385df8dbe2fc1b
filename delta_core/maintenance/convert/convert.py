"""`convert_to_deltalake`: the public function that converts a directory of Parquet files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal

import pyarrow as pa

from delta_core.boundary import public
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import ConfigurationError, TableExistsError
from delta_core.execution.executor import Executor
from delta_core.log.log_path import LOG_DIRECTORY
from delta_core.maintenance.convert.apply import apply_conversion, plan_conversion, table_exists
from delta_core.maintenance.convert.listing import PartitionStrategy
from delta_core.run import Run
from delta_core.schema.arrow import from_arrow
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.storage.open import open_store
from delta_core.transaction.commit_properties import (
    DEFAULT_COMMIT_PROPERTIES,
    CommitProperties,
)
from delta_core.transaction.commit_result import Committed


@public
def convert_to_deltalake(
    uri: str | os.PathLike[str],
    *,
    mode: Literal["error", "ignore"] = "error",
    partition_by: StructType | pa.Schema | None = None,
    partition_strategy: PartitionStrategy | None = None,
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    collect_stats: bool = True,
    commit_properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    executor: Executor | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Committed | None:
    """Convert a directory of Parquet files to a Delta table in place, like Spark's CONVERT TO DELTA.

    No file is moved, changed or copied; one commit adds all files. Every file below the directory becomes
    part of the table, except files and directories whose names begin with `_` or `.`. A file that is not
    Parquet is refused. Files that another program writes to the directory meanwhile are not added.

    The table's schema is the union of the files' schemas, with every column nullable. A column must have the
    same type in all files; `byte`, `short` and `int` count as the same type. With the property
    `delta.enableTypeWidening` types may differ if they widen without loss. Times stored as INT96 become
    `timestamp`. Column names that require column mapping, such as names with spaces, require the property
    `delta.columnMapping.mode` = `name`.

    Requests: a listing of the directory, two or three small reads of each file, several files at a time, and
    the commit.

    Args:
        uri: the directory.
        mode: `error` raises an error when the directory is already a table; `ignore` returns None.
        partition_by: the partition columns in the directory names, with their types, in the order of the
            directories. Values are percent-decoded; times without a time zone are UTC.
        partition_strategy: `hive`, the default, for directories `year=2024/month=5`; `directory` for
            `2024/5`.
        name: the name of the table.
        description: the description of the table.
        configuration: the properties of the table.
        storage_options: options of the store.
        collect_stats: whether to take column statistics from the footers, which lets readers skip files. Row
            counts are always taken.
        commit_properties: provenance, idempotency key and limits of the commit.
        executor: runs the tasks that read footers; threads of this process when None.
        clock: source of the current time.

    Returns:
        The commit; `AlreadyApplied` when there is a table with the idempotency key; None when mode is
        `ignore` and there is a table.

    Raises:
        TableExistsError: there is already a transaction log, or another writer creates one meanwhile.
        NestedTableError: the directory is a partition directory, or in the log, of another table.
        InvalidTableError: the directory has no files, or another table, or a file is not Parquet.
        SchemaError: the files' schemas are incompatible, a Delta table cannot have a column's type, or the
            partition columns are missing or do not match the directories.
        InvalidTablePropertyError: a property is unknown, or existing files do not guarantee what it claims.
        UnsupportedTableFeatureError: a property requires an unsupported feature.
        ConfigurationError: the mode or the partition strategy is not valid.
    """
    run = Run(clock=clock, executor=executor, commit=commit_properties)
    _require_one_of("mode", mode, ("error", "ignore"))
    strategy = "hive" if partition_strategy is None else partition_strategy
    _require_one_of("partition_strategy", strategy, ("hive", "directory"))
    store = open_store(uri, storage_options=storage_options, clock=clock)
    if store.list_directory(LOG_DIRECTORY):
        return _existing(store, mode, run)
    try:
        plan = plan_conversion(
            store,
            partition_by=from_arrow(partition_by) if isinstance(partition_by, pa.Schema) else partition_by,
            partition_strategy=strategy,
            name=name,
            description=description,
            configuration=configuration,
            collect_stats=collect_stats,
            run=run,
        )
        return apply_conversion(plan, run=run)
    except TableExistsError:
        return _existing(store, mode, run)


def _existing(store: LogStore, mode: str, run: Run) -> Committed | None:
    if Snapshot.exists(store):
        applied = run.already_applied(Snapshot.load(store, clock=run.clock))
        if applied is not None:
            return applied
    if mode == "ignore":
        return None
    raise table_exists(store)


def _require_one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigurationError(
            f"The argument `{name}` cannot be {value!r}.",
            fix=f"Pass one of {', '.join(map(repr, allowed))}.",
        )
