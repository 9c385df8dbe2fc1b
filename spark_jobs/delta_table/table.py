"""`spark_jobs.DeltaTable`: a table with delta-spark's methods."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import delta_core
from delta_core.boundary import public_class
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import ConfigurationError, TableNotFoundError
from delta_core.jobs.params.engine_io import EngineIO
from delta_core.maintenance.manifests import write_manifests
from delta_core.schema.partition_values import parse_timestamp
from spark_jobs import names
from spark_jobs.delta_table import features
from spark_jobs.delta_table.arguments import (
    Flag,
    condition_of,
    hadoop_options,
    must_be,
    needs,
    source_of,
    values_of,
)
from spark_jobs.delta_table.cloning import clone_to
from spark_jobs.delta_table.column_builder import DeltaColumnBuilder, delta_schema
from spark_jobs.delta_table.frames import detail_frame, empty_frame, history_frame, restore_frame
from spark_jobs.delta_table.handle import Handle, require_session
from spark_jobs.delta_table.merge_builder import DeltaMergeBuilder, own_columns
from spark_jobs.delta_table.optimize_builder import DeltaOptimizeBuilder
from spark_jobs.delta_table.table_builder import Creation, DeltaTableBuilder
from spark_jobs.delta_table.table_rows import with_table_schema
from spark_jobs.dml.delete import delete
from spark_jobs.dml.update import update
from spark_jobs.engine_io import engine_io_of, table_reach
from spark_jobs.reader.read import read_snapshot, to_epoch_ms
from spark_jobs.spark_errors import ArgumentValueError, PathNotATableError, TimestampError
from spark_jobs.writer.commits import record_commit, record_result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType as SparkStructType

    from spark_jobs.dml.clauses import Sql

_RETENTION_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
_MANIFEST = "symlink_format_manifest"


@public_class
class DeltaTable:
    """A Delta table in a Spark session. Every operation uses its newest version.

    Create one with `forPath`, `forName`, `convertToDelta`, or one of the builders.
    """

    def __init__(
        self,
        spark: SparkSession,
        uri: str,
        *,
        storage_options: Mapping[str, str] | None = None,
        allowed_roots: Sequence[str | os.PathLike[str]] = (),
        engine_io: str = EngineIO.AUTO,
        alias: str | None = None,
        name: str | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._handle = Handle(
            spark=spark,
            uri=uri,
            name=name,
            alias=alias,
            storage_options=storage_options,
            allowed_roots=allowed_roots,
            engine_io=engine_io_of(engine_io),
            clock=clock,
        )

    # ------------------------------------------------------------ opening

    @classmethod
    def forPath(  # noqa: N802 - the names of delta-spark, here and below
        cls,
        sparkSession: SparkSession,  # noqa: N803
        path: str,
        hadoopConf: Mapping[str, str] | None = None,  # noqa: N803
        *,
        storage_options: Mapping[str, str] | None = None,
        allowed_roots: Sequence[str | os.PathLike[str]] = (),
        engine_io: str = EngineIO.AUTO,
    ) -> DeltaTable:
        """Open the table at a path or URI. For `engine_io` see `spark_jobs.read`.

        Args:
            sparkSession: a classic or a Connect session.
            path: the path or URI.
            hadoopConf: settings of Hadoop. Keys, endpoint and region of S3A become storage options; other
                settings have no effect, because Hadoop does not read the log here.
            storage_options: options of the table's store.
            allowed_roots: paths or URIs. Absolute paths in the log, as those of a shallow clone, may lead
                below them when rows are read.
            engine_io: `auto`, `native` or `arrow`.

        Raises:
            PathNotATableError: no table exists at the path. It is also an `AnalysisException`.
        """
        options = {**hadoop_options(hadoopConf), **(storage_options or {})}
        table = cls(
            sparkSession,
            path,
            storage_options=options or None,
            allowed_roots=allowed_roots,
            engine_io=engine_io,
        )
        try:
            table._handle.snapshot()
        except TableNotFoundError as error:
            raise PathNotATableError(
                f"{path} is not a Delta table.", cause=error.cause or error.problem, fix=error.fix
            ) from error
        return table

    @classmethod
    def forName(  # noqa: N802
        cls,
        sparkSession: SparkSession,  # noqa: N803
        tableOrViewName: str,  # noqa: N803
        *,
        storage_options: Mapping[str, str] | None = None,
        allowed_roots: Sequence[str | os.PathLike[str]] = (),
        engine_io: str = EngineIO.AUTO,
        registry: str | os.PathLike[str] | None = None,
    ) -> DeltaTable:
        """Open a table by its name; see `spark_jobs.names.resolve`. A path is ``delta.`/path` ``.

        Args:
            sparkSession: a classic or a Connect session.
            tableOrViewName: the name. Views are refused, as in delta-spark.
            storage_options: options of the table's store.
            allowed_roots: as for `forPath`.
            engine_io: `auto`, `native` or `arrow`.
            registry: the path of a registry file.

        Raises:
            NamedTableNotFoundError: no table has the name. It is also an `AnalysisException`.
            NotADeltaTableError: the name belongs to a view or to another format.
            TableNotFoundError: the catalog has the name, and there is no table at its location.
        """
        address = names.resolve(sparkSession, tableOrViewName, registry=registry)
        table = cls(
            sparkSession,
            address.uri,
            storage_options=storage_options,
            allowed_roots=allowed_roots,
            engine_io=engine_io,
            name=address.name,
        )
        table._handle.snapshot()
        return table

    @classmethod
    def isDeltaTable(  # noqa: N802
        cls,
        sparkSession: SparkSession,  # noqa: N803
        identifier: str,
        *,
        storage_options: Mapping[str, str] | None = None,
    ) -> bool:
        """Whether there is a Delta table at the path. One listing."""
        return delta_core.DeltaTable.is_deltatable(identifier, storage_options)

    @classmethod
    def convertToDelta(  # noqa: N802
        cls,
        sparkSession: SparkSession,  # noqa: N803
        identifier: str,
        partitionSchema: str | SparkStructType | None = None,  # noqa: N803
        *,
        storage_options: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Convert a directory of Parquet files to a Delta table in place.

        Args:
            sparkSession: a classic or a Connect session.
            identifier: the directory as ``parquet.`/path` ``. A directory that is a Delta table already is
                only opened.
            partitionSchema: the partition columns of the directory names: DDL such as `day date`, or a
                StructType.
            storage_options: options of the table's store.

        Raises:
            ConfigurationError: the identifier is not a directory of Parquet files.
            DeltaError: the errors of `delta_core.convert_to_deltalake`.
        """
        from pyspark.sql.types import StructType as SparkStructType

        parts = names.parse_name(identifier).parts
        if len(parts) != 2 or parts[0].lower() not in ("parquet", "delta"):
            raise ConfigurationError(
                f"{identifier!r} cannot be converted.",
                cause="Only a directory of Parquet files can.",
                fix="Pass the directory as 'parquet.`/path`'.",
            )
        if isinstance(partitionSchema, str):
            parsed = SparkStructType.fromDDL(partitionSchema)
            must_be(parsed, SparkStructType, message="The partition schema must be a list of columns.")
            partitionSchema = parsed  # type: ignore[assignment]  # noqa: N806
        if partitionSchema is not None:
            must_be(partitionSchema, SparkStructType, message="The partition schema must be a StructType.")
        handle = Handle(spark=sparkSession, uri=parts[1], storage_options=storage_options)
        if parts[0].lower() == "parquet":
            committed = delta_core.convert_to_deltalake(
                handle.uri,
                mode="ignore",
                partition_by=None if partitionSchema is None else delta_schema(partitionSchema),  # type: ignore[arg-type]
                storage_options=storage_options,
                executor=handle.executor(),
            )
            if committed is not None:
                record_commit(handle.uri, committed.version)
        return cls.forPath(sparkSession, handle.uri, storage_options=storage_options)

    # ------------------------------------------------------------ builders

    @classmethod
    def create(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:  # noqa: N803
        """Start to create a table, which must not exist."""
        return cls._builder(sparkSession, Creation.CREATE)

    @classmethod
    def createIfNotExists(  # noqa: N802
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803
    ) -> DeltaTableBuilder:
        """Start to create a table; one that exists is only opened."""
        return cls._builder(sparkSession, Creation.CREATE_IF_NOT_EXISTS)

    @classmethod
    def replace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:  # noqa: N803
        """Start to replace a table, which must exist, by an empty table of another definition."""
        return cls._builder(sparkSession, Creation.REPLACE)

    @classmethod
    def createOrReplace(  # noqa: N802
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803
    ) -> DeltaTableBuilder:
        """Start to create a table, or to replace one that exists."""
        return cls._builder(sparkSession, Creation.CREATE_OR_REPLACE)

    @classmethod
    def columnBuilder(  # noqa: N802
        cls,
        sparkSession: SparkSession | None = None,  # noqa: N803
        colName: str = "",  # noqa: N803
    ) -> DeltaColumnBuilder:
        """Start to define a column for `DeltaTableBuilder.addColumn`."""
        return DeltaColumnBuilder(colName)

    # ------------------------------------------------------------ rows

    def alias(self, aliasName: str) -> DeltaTable:  # noqa: N803
        """The same table with an alias for conditions and values."""
        must_be(aliasName, str, message="The alias must be str.")
        return self._of(replace(self._handle, alias=aliasName))

    def toDF(self) -> DataFrame:  # noqa: N802
        """The rows of the newest version as a DataFrame, with the table's alias if it has one.

        Its schema has the comments and the NOT NULL columns of the table. In the plan every column may be
        null, so that filters reach the files; a frame that is made from it has nullable columns.
        """
        handle = self._handle
        snapshot = handle.snapshot()
        reach = table_reach(
            handle.spark,
            snapshot.store,
            engine_io=handle.engine_io,
            storage_options=handle.storage_options,
            allowed_roots=handle.allowed_roots,
            clock=handle.clock,
        )
        return with_table_schema(read_snapshot(handle.spark, snapshot, reach), snapshot.schema, handle.alias)

    def delete(self, condition: Sql | None = None) -> None:
        """Delete the rows for which the condition is true; every row without a condition.

        Args:
            condition: Spark SQL, or a Column that refers to columns by name.

        Raises:
            ArgumentTypeError: the condition has another type. It is also a TypeError.
            DeltaError: the errors of `spark_jobs.delete`.
        """
        handle = self._handle
        result = delete(
            handle.spark,
            handle.uri,
            condition_of(condition),
            storage_options=handle.storage_options,
            allowed_roots=handle.allowed_roots,
            engine_io=handle.engine_io,
            alias=handle.alias,
        )
        record_result(handle.uri, result)

    def update(self, condition: Sql | None = None, set: Mapping[str, Sql] | None = None) -> None:
        """Set columns of the rows for which the condition is true; of every row without a condition.

        Args:
            condition: Spark SQL, or a Column that refers to columns by name.
            set: a dict from column names to Spark SQL or Columns.

        Raises:
            ArgumentTypeError, ArgumentValueError: an argument has a wrong type, or `set` is missing. They
                are also a TypeError and a ValueError.
            DeltaError: the errors of `spark_jobs.update`.
        """
        handle = self._handle
        values = values_of(set, what="'set'")
        result = update(
            handle.spark,
            handle.uri,
            own_columns(values, handle.alias),
            condition_of(condition),
            storage_options=handle.storage_options,
            allowed_roots=handle.allowed_roots,
            engine_io=handle.engine_io,
            alias=handle.alias,
        )
        record_result(handle.uri, result)

    def merge(self, source: DataFrame, condition: Sql) -> DeltaMergeBuilder:
        """Start a merge of a DataFrame's rows into the table.

        Args:
            source: the rows. Give the DataFrame an alias (`updates.alias("s")`) when source and target have
                the same column names.
            condition: the condition for a match: Spark SQL, or a Column that refers to columns by name
                (`col("s.id") == col("t.id")`, not `frame["id"]`).

        Raises:
            ArgumentTypeError, ArgumentValueError: an argument has a wrong type, or is missing. They are also
                a TypeError and a ValueError.
        """
        if condition is None:
            raise ArgumentValueError(
                f"'condition' in merge cannot be {condition}.", fix="Pass SQL or a Column."
            )
        rows = source_of(source)
        condition_of(condition, what="'condition' in merge")
        return DeltaMergeBuilder(self._handle, rows, condition)

    # ------------------------------------------------------------ description

    def history(self, limit: int | None = None) -> DataFrame:
        """The table's commits as a DataFrame, newest first, in delta-spark's schema."""
        return history_frame(self._handle.spark, self._handle.core().history(limit))

    def detail(self) -> DataFrame:
        """One row that describes the table, in delta-spark's schema."""
        return detail_frame(self._handle.spark, self._handle.snapshot(), name=self._handle.name)

    # ------------------------------------------------------------ files

    def optimize(self) -> DeltaOptimizeBuilder:
        """Start to compact or Z-order the table's files. The table's rows stay the same."""
        return DeltaOptimizeBuilder(self._handle)

    def vacuum(self, retentionHours: float | None = None) -> DataFrame:  # noqa: N803
        """Delete files that no version within the retention needs.

        Args:
            retentionHours: removed files older than this are deleted; None uses the table's retention. A
                retention that is too short is refused, unless the session's setting
                `spark.databricks.delta.retentionDurationCheck.enabled` is `false`.

        Returns:
            A DataFrame without rows. `delta_core.DeltaTable.vacuum` returns the deleted paths.

        Raises:
            RetentionTooShortError: with this retention, files that readers or writers need could be deleted.
        """
        handle = self._handle
        is_checked = (handle.spark.conf.get(_RETENTION_CHECK, None) or "true").lower() != "false"
        handle.core().vacuum(
            retentionHours,
            dry_run=False,
            enforce_retention=is_checked,
            force=not is_checked,
            executor=handle.executor(),
        )
        return empty_frame(handle.spark)

    def generate(self, mode: str) -> None:
        """Write manifests of the live files for Presto and Athena.

        Args:
            mode: `symlink_format_manifest`, in any case.

        Raises:
            ArgumentValueError: the mode does not exist. It is also a ValueError.
            UnsupportedTableFeatureError: the bare files do not show the rows of the table.
        """
        needs(mode, str, name="mode")
        if mode.lower() != _MANIFEST:
            raise ArgumentValueError(
                f"Specified mode '{mode}' is not supported.", fix=f"The supported mode is '{_MANIFEST}'."
            )
        write_manifests(self._handle.snapshot())

    # ------------------------------------------------------------ versions

    def restoreToVersion(self, version: int) -> DataFrame:  # noqa: N802
        """Restore the table to a version, as a new commit.

        Returns:
            One row with the metrics, in delta-spark's schema.

        Raises:
            ArgumentValueError: the version is not an int. It is also a ValueError.
            MissingDataFileError: data files of that version are missing.
        """
        needs(version, int, name="version")
        return self._restored(version, None)

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:  # noqa: N802
        """Restore the table to a time, as a new commit.

        Args:
            timestamp: `yyyy-MM-dd` or `yyyy-MM-dd HH:mm:ss`. A time without a zone is in the session's.

        Raises:
            ArgumentValueError: the timestamp is not a string. It is also a ValueError.
            TimestampError: the string is not a timestamp. It is also an `AnalysisException`.
            MissingDataFileError: data files of that version are missing.
        """
        needs(timestamp, str, name="timestamp")
        return self._restored(None, self._epoch_ms(timestamp))

    def clone(
        self,
        target: str,
        isShallow: Flag = False,  # noqa: N803
        replace: Flag = False,
        properties: dict[str, str] | None = None,
    ) -> DeltaTable:
        """Clone the newest version.

        Args:
            target: a path, or the name of a table.
            isShallow: refer to this table's files instead of copying them.
            replace: make a clone that exists equal to this table. Otherwise the target must not exist.
            properties: properties of the clone, set in a commit of its own.

        Raises:
            ArgumentValueError: an argument has a wrong type. It is also a ValueError.
            NamedTableExistsError: the target exists. It is also an `AnalysisException`.
            CloneError: the target is a table, and not a clone of this one.
        """
        _check_clone(target, isShallow, replace, properties)
        return self._cloned(target, isShallow, replace, properties)

    def cloneAtVersion(  # noqa: N802
        self,
        version: int,
        target: str,
        isShallow: Flag = False,  # noqa: N803
        replace: Flag = False,
        properties: dict[str, str] | None = None,
    ) -> DeltaTable:
        """Clone a version. The other arguments and the errors are those of `clone`."""
        needs(version, int, name="version")
        _check_clone(target, isShallow, replace, properties)
        return self._cloned(target, isShallow, replace, properties, version=version)

    def cloneAtTimestamp(  # noqa: N802
        self,
        timestamp: str,
        target: str,
        isShallow: Flag = False,  # noqa: N803
        replace: Flag = False,
        properties: dict[str, str] | None = None,
    ) -> DeltaTable:
        """Clone the version of a time. The other arguments and the errors are those of `clone`."""
        needs(timestamp, str, name="timestamp")
        _check_clone(target, isShallow, replace, properties)
        at_ms = self._epoch_ms(timestamp)
        return self._cloned(target, isShallow, replace, properties, timestamp_ms=at_ms)

    # ------------------------------------------------------------ protocol

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:  # noqa: N802, N803
        """Raise the protocol. Versions below the table's change nothing.

        Raises:
            ArgumentValueError: a version is not an int. It is also a ValueError.
            UnsupportedTableFeatureError: this library does not support the protocol.
        """
        features.upgrade_protocol(self._handle, readerVersion, writerVersion)

    def addFeatureSupport(self, featureName: str) -> None:  # noqa: N802, N803
        """Add a table feature, without enabling it.

        Raises:
            ArgumentValueError: the name is not a string. It is also a ValueError.
            UnknownFeatureError: the feature is not known. It is also an `AnalysisException`.
        """
        features.add_feature(self._handle, featureName)

    def dropFeatureSupport(  # noqa: N802
        self,
        featureName: str,  # noqa: N803
        truncateHistory: bool | None = None,  # noqa: N803
    ) -> None:
        """Drop a table feature; see `delta_core.DeltaTable.alter.drop_feature`.

        Raises:
            ArgumentValueError: an argument has a wrong type. It is also a ValueError.
            FeatureRemovalError: the feature cannot be dropped, or not yet. It is also an
                `AnalysisException` with delta-spark's error condition where delta-spark has one.
        """
        features.drop_feature(self._handle, featureName, truncateHistory)

    # ------------------------------------------------------------ helpers

    @classmethod
    def _builder(cls, spark: SparkSession | None, creation: Creation) -> DeltaTableBuilder:
        session = require_session(spark)

        def opened(uri: str, name: str | None) -> DeltaTable:
            return cls(session, uri, name=name)

        return DeltaTableBuilder(session, creation, opened)

    def _of(self, handle: Handle) -> DeltaTable:
        table = type(self)(handle.spark, handle.uri)
        table._handle = handle
        return table

    def _restored(self, version: int | None, timestamp_ms: int | None) -> DataFrame:
        core = self._handle.core()
        plan = core.restore(version, timestamp_ms=timestamp_ms)
        self._handle.record(core)
        return restore_frame(self._handle.spark, plan)

    def _cloned(
        self,
        target: str,
        is_shallow: bool,
        replace: bool,
        properties: Mapping[str, str] | None,
        **of_version: Any,
    ) -> DeltaTable:
        handle = self._handle
        uri, name = clone_to(
            handle, target, is_shallow=is_shallow, replace=replace, properties=properties, **of_version
        )
        roots = (*handle.allowed_roots, handle.uri) if is_shallow else ()
        return type(self)(
            handle.spark, uri, storage_options=handle.storage_options, allowed_roots=roots, name=name
        )

    def _epoch_ms(self, timestamp: str) -> int:
        zone = self._handle.spark.conf.get("spark.sql.session.timeZone") or "UTC"
        try:
            moment = parse_timestamp(timestamp, zone=ZoneInfo(zone))
        except (ValueError, ZoneInfoNotFoundError) as error:
            raise TimestampError(
                f"The provided timestamp ('{timestamp}') cannot be converted to a valid timestamp.",
                cause=f"{error}. The session's time zone is {zone}.",
                fix="Write a timestamp such as 2013-01-31 08:00:00, or one with a zone.",
            ) from error
        return to_epoch_ms(moment)


def _check_clone(target: Any, is_shallow: Any, replace: Any, properties: Any) -> None:
    needs(target, str, name="target")
    needs(is_shallow, bool, name="isShallow")
    needs(replace, bool, name="replace")
    if properties is None:
        return
    needs(properties, dict, name="properties")
    for key, value in properties.items():
        needs(key, str, name=f"All property keys including {key}")
        needs(value, str, name=f"All property values including {value}")
