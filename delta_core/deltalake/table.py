"""`DeltaTable` with the calls of the `deltalake` package, on `delta_core.DeltaTable`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from delta_core import table as core
from delta_core.arguments import name_list
from delta_core.deltalake import _changes, _reads
from delta_core.deltalake._arrow import exported
from delta_core.deltalake._util import with_positional
from delta_core.deltalake.alterer import TableAlterer
from delta_core.deltalake.exceptions import ArgumentTypeError, compatible_class
from delta_core.deltalake.merger import MergeArguments, TableMerger
from delta_core.deltalake.optimizer import TableOptimizer
from delta_core.deltalake.predicates import Filter, predicate_of, require_valid_filters, spark_sql
from delta_core.deltalake.results import Metadata, ProtocolVersions, history_entry
from delta_core.deltalake.schema import Schema, core_schema, of_struct
from delta_core.deltalake.transaction import CommitArgument, HookArgument, core_properties
from delta_core.deltalake.writer_properties import WriterProperties, parquet_options
from delta_core.errors import ConfigurationError
from delta_core.maintenance.manifests import write_manifests
from delta_core.run import Run
from delta_core.schema.partition_values import serialize
from delta_core.schema.types import StructType

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow.dataset as ds
    import pyarrow.fs as pafs

_COMMIT = ("commit_properties", "post_commithook_properties")
_LOG_BUFFER = 4
_HOOK_FIRST = ("post_commithook_properties", "commit_properties")


class DeltaTableConfig(NamedTuple):
    """Options of an open table. None has an effect: files and statistics load on demand."""

    without_files: bool
    log_buffer_size: int
    skip_stats: bool = False


@compatible_class
class DeltaTable:
    """A table at a version, with the calls of `deltalake.DeltaTable`.

    `delta_table` is the same handle with the calls of `delta_core`, which the documentation describes.
    """

    def __init__(
        self,
        table_uri: str | os.PathLike[str],
        version: int | None = None,
        storage_options: Mapping[str, str] | None = None,
        without_files: bool = False,
        log_buffer_size: int | None = None,
        skip_stats: bool = False,
    ) -> None:
        """Open a table. The last three arguments have no effect: files and statistics load on demand.

        Raises:
            TableNotFoundError: the URI does not contain a Delta table.
            VersionNotFoundError: the log does not contain the version.
        """
        for name, given in (
            ("without_files", without_files),
            ("log_buffer_size", log_buffer_size is not None),
            ("skip_stats", skip_stats),
        ):
            if given:
                warnings.warn(
                    f"The '{name}' parameter is deprecated and ignored.", DeprecationWarning, stacklevel=4
                )
        self._config = DeltaTableConfig(
            without_files, _LOG_BUFFER if log_buffer_size is None else log_buffer_size, skip_stats
        )
        self._storage_options = storage_options
        self.delta_table = core.DeltaTable(
            table_uri, version, _changes.store_options(table_uri, storage_options)
        )

    @classmethod
    def of(cls, delta_table: core.DeltaTable) -> DeltaTable:
        """The calls of this class for an open table of `delta_core`."""
        made = cls.__new__(cls)
        made._config, made._storage_options = DeltaTableConfig(False, _LOG_BUFFER), None
        made.delta_table = delta_table
        return made

    @classmethod
    @with_positional(*_COMMIT, "raise_if_key_not_exists")
    def create(
        cls,
        table_uri: str | os.PathLike[str],
        schema: object,
        mode: Literal["error", "append", "overwrite", "ignore"] = "error",
        partition_by: Sequence[str] | str | None = None,
        name: str | None = None,
        description: str | None = None,
        configuration: Mapping[str, str | None] | None = None,
        storage_options: Mapping[str, str] | None = None,
        *,
        commit_properties: CommitArgument = None,
        post_commithook_properties: HookArgument = None,
        raise_if_key_not_exists: bool = True,
    ) -> DeltaTable:
        """Create an empty table and open it.

        Args:
            table_uri: a path or URI.
            schema: a `Schema`, or any schema with the Arrow C interface.
            mode: what to do when the table exists: `error`, `append` (an error, too), `overwrite` its schema
                and rows, or `ignore`.
            partition_by: the partition columns.
            name: the name of the table.
            description: the description of the table.
            configuration: the properties of the table; values of None are left out.
            storage_options: options of the store.
            commit_properties: provenance and limits of the commit.
            post_commithook_properties: what follows the commit.
            raise_if_key_not_exists: no effect: an unknown property in `delta.` is always refused.

        Raises:
            TableExistsError: the table exists, and the mode is `error` or `append`.
        """
        opened = _changes.create_table(
            table_uri,
            core_schema(schema),
            mode=mode,
            partition_by=name_list(partition_by, what="partition_by") or (),
            name=name,
            description=description,
            configuration=_changes.properties_of(configuration),
            commit=core_properties(commit_properties, post_commithook_properties),
            storage_options=_changes.store_options(table_uri, storage_options),
        )
        return cls.of(opened)

    @staticmethod
    def is_deltatable(
        table_uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None
    ) -> bool:
        """Whether there is a Delta table at the URI."""
        return core.DeltaTable.is_deltatable(table_uri, _changes.store_options(table_uri, storage_options))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, DeltaTable)
            and self.table_uri == other.table_uri
            and self.version() == other.version()
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"DeltaTable({self.table_uri!r}, version={self.version()})"

    # ------------------------------------------------------------ properties of the table

    @property
    def table_config(self) -> DeltaTableConfig:
        """The options with which the table was opened. None has an effect."""
        return self._config

    @property
    def table_uri(self) -> str:
        """The table's URI, with a slash at the end."""
        uri = self.delta_table.table_uri
        return uri if uri.endswith("/") else uri + "/"

    def version(self) -> int:
        """The version that the handle shows."""
        return self.delta_table.version()

    def schema(self) -> Schema:
        """The schema."""
        return of_struct(self.delta_table.schema())

    def metadata(self) -> Metadata:
        """Id, name, description, partition columns and properties."""
        return Metadata.of(self.delta_table.metadata())

    def protocol(self) -> ProtocolVersions:
        """The versions and features that the table requires."""
        return ProtocolVersions.of(self.delta_table.protocol())

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The commits up to the handle's version, newest first, as dictionaries."""
        return [history_entry(entry) for entry in self.delta_table.history(limit)]

    def transaction_version(self, app_id: str) -> int | None:
        """The newest version of an application's `txn` action; None without one."""
        transaction = self.delta_table.transactions().get(app_id)
        return None if transaction is None else transaction.version

    def partitions(
        self, partition_filters: Filter | None = None, *, file_pruning_predicate: Filter | None = None
    ) -> list[dict[str, Any]]:
        """The partitions with live files, with their values as strings of the log."""
        chosen = _one_filter("partition_filters", partition_filters, file_pruning_predicate)
        rows = self.delta_table.partitions(predicate_of(chosen))
        return [_logged(row, self.delta_table.schema()) for row in rows]

    def file_uris(
        self, partition_filters: Filter | None = None, *, file_pruning_predicate: Filter | None = None
    ) -> list[str]:
        """The files, or those that may have rows that match: paths of this machine, or URIs.

        Files with deletion vectors have deleted rows, too: see `deletion_vectors`. With column mapping, the
        columns have other names in the files.
        """
        chosen = _one_filter("partition_filters", partition_filters, file_pruning_predicate)
        require_valid_filters(chosen, self.delta_table.schema())
        uris = _reads.file_uris(self.delta_table, predicate_of(chosen))
        return [_local_path(uri) for uri in uris]

    def get_add_actions(self, flatten: bool = False) -> Any:
        """The live files with their partition values and statistics, one row each."""
        return exported(_reads.add_actions(self.delta_table, flatten))

    def count(self) -> int:
        """The number of rows."""
        return self.delta_table.count()

    # ------------------------------------------------------------ the version that the handle shows

    def load_as_version(self, version: int | str | datetime) -> None:
        """Show another version: by number, or as of a time. A datetime without a time zone is in UTC.

        A time after the newest commit shows the newest version, and one before the oldest the oldest.
        """
        if isinstance(version, int) and not isinstance(version, bool):
            self.delta_table.load_as_version(version)
            return
        self.delta_table.load_as_version(_reads.version_at(self.delta_table, _time(version)))

    def update_incremental(self) -> None:
        """Show the latest version. Reads only the new commits."""
        self.delta_table.update_incremental()

    # ------------------------------------------------------------ rows

    def to_pyarrow_dataset(
        self,
        partitions: Filter | None = None,
        filesystem: pafs.FileSystem | None = None,
        parquet_read_options: ds.ParquetReadOptions | None = None,
        schema: pa.Schema | None = None,
        as_large_types: bool = False,
        file_pruning_predicate: Filter | None = None,
    ) -> ds.Dataset:
        """The version as a dataset of Arrow; see `delta_core.DeltaTable.to_pyarrow_dataset`.

        Tables with deletion vectors or column mapping work, too: their rows are read into memory.
        """
        if schema is None and as_large_types:
            schema = pa.schema(self.schema().to_arrow(as_large_types=True))
        return self.delta_table.to_pyarrow_dataset(
            predicate_of(_one_filter("partitions", partitions, file_pruning_predicate)),
            schema=schema,
            filesystem=filesystem,
            parquet_read_options=parquet_read_options,
        )

    def to_pyarrow_table(
        self,
        partitions: Filter | None = None,
        columns: Sequence[str] | None = None,
        filesystem: pafs.FileSystem | None = None,
        filters: Any = None,
    ) -> pa.Table:
        """The rows as one table in memory.

        Args:
            partitions: a filter by partition columns; deprecated.
            columns: the columns to return, in this order; None returns all.
            filesystem: opens the files, by paths relative to the table; the table's store when None.
            filters: an expression of pyarrow, a list of tuples, or such lists joined by OR.
        """
        if partitions is not None:
            warnings.warn(
                "`partitions` is deprecated; use `filters` instead", DeprecationWarning, stacklevel=4
            )
        if isinstance(filters, list | tuple) and not filters:
            raise ConfigurationError("Malformed filters.", cause="The list is empty.", fix="Omit `filters`.")
        return _reads.read_table(
            self.delta_table,
            columns=columns,
            partitions=predicate_of(partitions),
            filters=filters,
            filesystem=filesystem,
        )

    def to_pandas(
        self,
        partitions: Filter | None = None,
        columns: Sequence[str] | None = None,
        filesystem: pafs.FileSystem | None = None,
        filters: Any = None,
        types_mapper: Callable[[pa.DataType], Any] | None = None,
    ) -> pd.DataFrame:
        """The rows as a data frame of pandas; for the arguments see `to_pyarrow_table`."""
        rows = self.to_pyarrow_table(partitions, columns, filesystem, filters)
        return rows.to_pandas(types_mapper=types_mapper)

    def to_batches(self, columns: Sequence[str] | None = None, filters: Any = None) -> pa.RecordBatchReader:
        """The rows as a reader of batches, in bounded memory."""
        return self._reader(columns, predicate_of(filters))

    def scan(self, columns: Sequence[str] | None = None, predicate: str | None = None) -> Any:
        """The rows as a reader of batches; the predicate is SQL."""
        return exported(self._reader(columns, spark_sql(predicate)))

    def _reader(self, columns: Sequence[str] | None, predicate: Any) -> pa.RecordBatchReader:
        return self.delta_table.to_reader(columns, predicate)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.delta_table.__arrow_c_stream__(requested_schema)

    def deletion_vectors(self) -> Any:
        """The deletion vectors: `filepath`, and `selection_vector` with False for each deleted row."""
        return exported(_reads.selection_vectors(self.delta_table))

    def load_cdf(
        self,
        starting_version: int = 0,
        ending_version: int | None = None,
        starting_timestamp: str | None = None,
        ending_timestamp: str | None = None,
        columns: Sequence[str] | None = None,
        predicate: str | None = None,
        allow_out_of_range: bool = False,
    ) -> Any:
        """The rows that changed between two versions or times, both included, as a reader of batches.

        Args:
            starting_version: the first version; ignored when there is a starting time.
            ending_version: the last version; the handle's version when None.
            starting_timestamp: start at the first version at this time or later.
            ending_timestamp: end at the last version at this time or before.
            columns: the columns to return; None returns all.
            predicate: SQL over the columns.
            allow_out_of_range: return no rows, instead of an error, for a start after the newest version.
        """
        return exported(
            _reads.changes(
                self.delta_table,
                versions=(starting_version, ending_version),
                times=(starting_timestamp, ending_timestamp),
                columns=columns,
                predicate=spark_sql(predicate),
                allow_out_of_range=allow_out_of_range,
            )
        )

    # ------------------------------------------------------------ changing rows

    @with_positional(*_HOOK_FIRST)
    def delete(
        self,
        predicate: str | None = None,
        writer_properties: WriterProperties | None = None,
        *,
        commit_properties: CommitArgument = None,
        post_commithook_properties: HookArgument = None,
    ) -> dict[str, Any]:
        """Delete the rows for which a predicate is true. Returns the metrics."""
        run = self._run(commit_properties, post_commithook_properties, writer_properties)
        return _changes.delete(self.delta_table, predicate, run)

    @with_positional(*_HOOK_FIRST)
    def update(
        self,
        updates: Mapping[str, str] | None = None,
        new_values: Mapping[str, Any] | None = None,
        predicate: str | None = None,
        writer_properties: WriterProperties | None = None,
        error_on_type_mismatch: bool = True,
        *,
        commit_properties: CommitArgument = None,
        post_commithook_properties: HookArgument = None,
    ) -> dict[str, Any]:
        """Assign values to columns of the rows for which a predicate is true. Returns the metrics.

        Args:
            updates: SQL expressions by column.
            new_values: Python values by column.
            predicate: SQL; None updates every row.
            writer_properties: the encoding of new files.
            error_on_type_mismatch: no effect: a value that does not fit is always refused.
            commit_properties: provenance and limits of the commit.
            post_commithook_properties: what follows the commit.
        """
        if (updates is None) == (new_values is None):
            raise ConfigurationError(
                "Passing updates and new_values at same time is not allowed, pick one."
                if updates is not None
                else "Either updates or new_values need to be passed to update the table."
            )
        if updates is not None and not all(
            isinstance(part, str) for pair in updates.items() for part in pair
        ):
            raise ArgumentTypeError(
                "The values of the updates parameter must all be SQL strings. "
                f"Got {updates}. Did you mean to use the new_values parameter?",
                fix="Pass strings, or new_values.",
            )
        if isinstance(new_values, Mapping) and any(
            isinstance(value, dict | set | tuple) for value in new_values.values()
        ):
            raise ArgumentTypeError(
                "Invalid datatype provided in new_values, only int, float, bool, list, str or datetime or "
                "accepted."
            )
        run = self._run(commit_properties, post_commithook_properties, writer_properties)
        texts = None
        if updates is not None:
            texts = {spark_sql(name): spark_sql(text) for name, text in updates.items()}
        return _changes.update(
            self.delta_table, run, updates=texts, new_values=new_values, predicate=predicate
        )

    @with_positional(*_HOOK_FIRST)
    def merge(
        self,
        source: Any,
        predicate: str,
        source_alias: str | None = None,
        target_alias: str | None = None,
        merge_schema: bool = False,
        error_on_type_mismatch: bool = True,
        writer_properties: WriterProperties | None = None,
        streamed_exec: bool = True,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        *,
        commit_properties: CommitArgument = None,
        post_commithook_properties: HookArgument = None,
    ) -> TableMerger:
        """A builder of a MERGE; `execute()` of it merges.

        Args:
            source: any object with the Arrow C stream interface.
            predicate: which source row matches which row.
            source_alias: the name of the source in expressions.
            target_alias: the name of the table in expressions.
            merge_schema: add columns of the source that clauses use to the table.
            error_on_type_mismatch: refuse values that cannot be cast to the type of their column.
            writer_properties: the encoding of new files.
            streamed_exec: no effect: a stream is always read once, in bounded memory.
            max_spill_size: no effect: memory is bounded.
            max_temp_directory_size: no effect.
            commit_properties: provenance and limits of the commit.
            post_commithook_properties: what follows the commit.
        """
        arguments = MergeArguments(
            source=source,
            predicate=predicate,
            source_alias=source_alias,
            target_alias=target_alias,
            merge_schema=merge_schema,
            refuses_misfits=error_on_type_mismatch,
        )
        run = self._run(commit_properties, post_commithook_properties, writer_properties)
        return TableMerger(self.delta_table, arguments, run)

    @property
    def alter(self) -> TableAlterer:
        """Operations that change the table definition."""
        return TableAlterer(self.delta_table)

    @property
    def optimize(self) -> TableOptimizer:
        """Operations that rewrite files."""
        return TableOptimizer(self.delta_table)

    # ------------------------------------------------------------ files and log

    @with_positional(*_HOOK_FIRST, "full", "keep_versions")
    def vacuum(
        self,
        retention_hours: float | None = None,
        dry_run: bool = True,
        enforce_retention_duration: bool = True,
        *,
        commit_properties: CommitArgument = None,
        post_commithook_properties: HookArgument = None,
        full: bool = False,
        keep_versions: Sequence[int] | None = None,
    ) -> list[str]:
        """Delete files that no version within the retention needs.

        Args:
            retention_hours: removed files older than this are deleted; None uses the table's retention.
            dry_run: only return the files that would be deleted.
            enforce_retention_duration: refuse a retention that is shorter than the table's. Passing False
                confirms that no reader and no writer uses the table.
            commit_properties: provenance of the commits that record the vacuum.
            post_commithook_properties: what follows the commits.
            full: also delete files that the log does not mention.
            keep_versions: versions whose files stay.

        Returns:
            The paths relative to the table's root.
        """
        if isinstance(retention_hours, int | float) and retention_hours < 0:
            raise ConfigurationError("The retention periods should be positive.")
        run = self._run(commit_properties, post_commithook_properties, None)
        return _changes.vacuum(
            self.delta_table,
            run,
            retention_hours=retention_hours,
            dry_run=dry_run,
            enforce_retention=enforce_retention_duration,
            full=full,
            keep_versions=keep_versions or (),
        )

    def restore(
        self,
        target: int | datetime | str,
        *,
        ignore_missing_files: bool = False,
        protocol_downgrade_allowed: bool = False,
        commit_properties: CommitArgument = None,
        post_commithook_properties: HookArgument = None,
    ) -> dict[str, Any]:
        """Restore the table to a version or time, as a new version. Returns the metrics.

        Args:
            target: a version, a datetime, or a time as a string.
            ignore_missing_files: continue without files that the store no longer has; their rows are lost.
            protocol_downgrade_allowed: no effect: the protocol stays, since readers may rely on it.
            commit_properties: provenance and limits of the commit.
            post_commithook_properties: what follows the commit.
        """
        self.delta_table.adopt_newest()
        version = target if isinstance(target, int) else _reads.version_at(self.delta_table, _time(target))
        run = self._run(commit_properties, post_commithook_properties, None)
        return _changes.restore(self.delta_table, version, ignore_missing_files, run)

    @with_positional(*_HOOK_FIRST)
    def repair(
        self,
        dry_run: bool = False,
        *,
        commit_properties: CommitArgument = None,
        post_commithook_properties: HookArgument = None,
    ) -> dict[str, Any]:
        """Remove live files from the table whose data is missing in the store. Their rows are lost."""
        properties = core_properties(commit_properties, post_commithook_properties)
        result = self.delta_table.repair(dry_run, commit_properties=properties)
        return dict(result.metrics)

    def generate(self) -> None:
        """Write manifests of the live files for engines that read symlink manifests (Presto, Athena).

        Raises:
            UnsupportedTableFeatureError: the bare files do not show the rows of the table.
        """
        write_manifests(self.delta_table.snapshot)

    def create_checkpoint(self) -> None:
        """Write a checkpoint of the handle's version."""
        self.delta_table.create_checkpoint()

    def cleanup_metadata(self) -> None:
        """Delete log files that the table's log retention no longer needs."""
        self.delta_table.cleanup_metadata()

    def compact_logs(self, starting_version: int, ending_version: int) -> None:
        """Write the log compaction file of the commits between two versions, both included."""
        _changes.compact_logs(self.delta_table, starting_version, ending_version)

    @with_positional(*_COMMIT)
    def create_write_transaction(
        self,
        actions: Sequence[Any],
        mode: str,
        schema: object,
        partition_by: Sequence[str] | str | None = None,
        partition_filters: Filter | None = None,
        *,
        commit_properties: CommitArgument = None,
        post_commithook_properties: HookArgument = None,
    ) -> None:
        """Commit files that were written without this library.

        Args:
            actions: `AddAction` and `RemoveAction` objects of `delta_core.deltalake.transaction`.
            mode: `append` or `overwrite`.
            schema: the schema of the files. It must be the table's.
            partition_by: the partition columns. They must be the table's.
            partition_filters: with mode `overwrite`, replace only the files of these partitions.
            commit_properties: provenance and limits of the commit.
            post_commithook_properties: what follows the commit.
        """
        _changes.commit_actions(
            self.delta_table,
            actions,
            mode=mode,
            schema=core_schema(schema),
            partition_by=name_list(partition_by, what="partition_by"),
            replaced=predicate_of(partition_filters),
            run=self._run(commit_properties, post_commithook_properties, None),
        )

    def _run(self, commit: CommitArgument, hooks: HookArgument, writer: WriterProperties | None) -> Run:
        run = self.delta_table.new_run(core_properties(commit, hooks))
        return replace(run, parquet=parquet_options(writer))


def _one_filter(deprecated: str, value: Filter | None, new: Filter | None) -> Filter | None:
    if value is None:
        return new
    if new is not None:
        raise ConfigurationError(
            f"`{deprecated}` is deprecated; pass only `file_pruning_predicate`.", fix="Pass one of them."
        )
    warnings.warn(
        f"`{deprecated}` is deprecated; pass the filters to `file_pruning_predicate` instead",
        DeprecationWarning,
        stacklevel=5,
    )
    return value


def _time(value: object) -> datetime:
    """A time from a caller. Raises ArgumentTypeError or ConfigurationError for another value."""
    if isinstance(value, datetime):
        return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    if not isinstance(value, str):
        raise ArgumentTypeError(
            "Invalid datatype provided for version, only int, str or datetime are accepted.",
            cause=f"It is a {type(value).__name__}.",
            fix="Pass one of them.",
        )
    parsed = _reads.parsed_time(value)
    if parsed is None:
        raise ConfigurationError(
            f"Failed to parse datetime string: {value!r}.",
            cause="It is not a time with a time zone in RFC 3339.",
            fix="Pass a string such as '2026-01-31T12:00:00Z'.",
        )
    return parsed


def _local_path(uri: str) -> str:
    return unquote(uri.removeprefix("file://")) if uri.startswith("file://") else uri


def _logged(row: Mapping[str, Any], schema: StructType) -> dict[str, str | None]:
    """The values of a partition as strings of the log."""
    types = {name: field.data_type for name in row if (field := schema.find(name)) is not None}
    return {name: serialize(value, types[name]) for name, value in row.items()}
