"""`convert_to_deltalake`: the public face of conversions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal

import pyarrow as pa

from delta_core.boundary import public
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.dml.definition.change import applied_before
from delta_core.errors import ConfigurationError, TableExistsError
from delta_core.execution.executor import Executor
from delta_core.log.log_path import LOG_DIRECTORY
from delta_core.maintenance.convert.apply import apply_conversion, plan_conversion, table_exists
from delta_core.maintenance.convert.listing import PartitionStrategy
from delta_core.schema.arrow import from_arrow
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.storage.open import open_store
from delta_core.transaction.commit_properties import (
    DEFAULT_COMMIT_PROPERTIES,
    CommitProperties,
    require_commit_properties,
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
    """Make a directory of Parquet files a Delta table where it lies: what Spark calls CONVERT TO DELTA.

    No file is moved, changed or copied; one commit names them all. Every file below the directory belongs to
    the table but for those whose name, or whose directory's, begins with `_` or `.`; one that is not
    Parquet is refused. Whoever writes to the directory meanwhile writes files that the table does not know.

    The table's schema is the union of the files', all nullable. A column must have one type in all of them;
    `byte`, `short` and `int` count as one, and with the property `delta.enableTypeWidening` types may
    differ that widen without loss. Times stored as INT96 are instants. Names that a table has only with
    column mapping, such as those with spaces, ask for the property `delta.columnMapping.mode` = `name`.

    Requests: a walk through the directory, two or three small reads of each file, several side by side, and
    the commit.

    Args:
        uri: the directory.
        mode: what to do when it is a table: `error`, or `ignore`.
        partition_by: the partition columns that the directories spell, with their types, in the order of the
            directories. Values are percent-decoded; times without a zone are UTC.
        partition_strategy: `hive`, also when None, for directories `year=2024/month=5`; `directory` for
            `2024/5`.
        name, description, configuration: of the table.
        storage_options: for the store.
        collect_stats: whether to take statistics of columns from the footers, which lets readers skip
            files. The number of rows is always taken.
        commit_properties: provenance, idempotency key and limits of the commit.
        executor: maps the reading of footers; threads of this process when None.
        clock: where time comes from.

    Returns:
        The commit; `AlreadyApplied` when there is a table with the idempotency key; None when mode is
        `ignore` and there is a table.

    Raises:
        TableExistsError: there is a transaction log already, or another writer makes one at the same time.
        InvalidTableError: there is no file, one that is not Parquet, or another table within.
        SchemaError: the files' schemas do not go together, a type is not one of a table's, or the partition
            columns are missing or not those of the directories.
        InvalidTablePropertyError: a property is unknown, or says what is not known of the files.
        UnsupportedTableFeatureError: a property asks for an unsupported feature.
        ConfigurationError: mode or strategy is none.
    """
    require_commit_properties(commit_properties)
    _require_one_of("mode", mode, ("error", "ignore"))
    strategy = "hive" if partition_strategy is None else partition_strategy
    _require_one_of("partition_strategy", strategy, ("hive", "directory"))
    store = open_store(uri, storage_options=storage_options, clock=clock)
    if store.list_directory(LOG_DIRECTORY):
        return _existing(store, mode, commit_properties, clock)
    try:
        plan = plan_conversion(
            store,
            partition_by=from_arrow(partition_by) if isinstance(partition_by, pa.Schema) else partition_by,
            partition_strategy=strategy,
            name=name,
            description=description,
            configuration=configuration,
            collect_stats=collect_stats,
            executor=executor,
            clock=clock,
        )
        return apply_conversion(plan, properties=commit_properties, clock=clock)
    except TableExistsError:
        return _existing(store, mode, commit_properties, clock)


def _existing(store: LogStore, mode: str, properties: CommitProperties, clock: Clock) -> Committed | None:
    if Snapshot.exists(store):
        applied = applied_before(Snapshot.load(store, clock=clock), properties=properties)
        if applied is not None:
            return applied
    if mode == "ignore":
        return None
    raise table_exists(store)


def _require_one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigurationError(f"{name} is {value!r}.", fix=f"Pass one of {', '.join(map(repr, allowed))}.")
