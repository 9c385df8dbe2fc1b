"""`DeltaOptimizeBuilder`: compaction, Z-order and clustering of a table's files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from delta_core.boundary import public_class
from delta_core.errors import ConfigurationError
from delta_core.expressions.columns import referenced_names
from delta_core.expressions.parse import parse_predicate
from delta_core.snapshot.snapshot import Snapshot
from delta_core.snapshot.table_definition import clustering_of
from spark_jobs.delta_table.arguments import column_list, must_be
from spark_jobs.delta_table.frames import optimize_frame
from spark_jobs.spark_errors import PartitionPredicateError, PartitionZOrderError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_jobs.delta_table.handle import Handle


@public_class
class DeltaOptimizeBuilder:
    """A builder for rewriting files of the whole table, or of the partitions that match `where`.

    The table's rows stay the same.
    """

    def __init__(self, handle: Handle, predicate: str | None = None) -> None:
        self._handle = handle
        self._predicate = predicate

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:  # noqa: N803 - the name of delta-spark
        """Restrict the rewrite to partitions for which the filter is true."""
        must_be(partitionFilter, str, message="The partition filter must be str.")
        return DeltaOptimizeBuilder(self._handle, partitionFilter)

    def executeCompaction(self) -> DataFrame:  # noqa: N802
        """Compact small files; cluster the files of a table that has clustering columns.

        Returns:
            One row with the metrics, in delta-spark's schema.

        Raises:
            PartitionPredicateError: the filter names a column that the table is not partitioned by. It is
                also an `AnalysisException`.
            ConcurrentDeleteDeleteError: another writer removed a file that was being rewritten.
        """
        core, executor = self._handle.core(), self._handle.executor()
        snapshot = core.snapshot
        self._check(snapshot)
        clustering = clustering_of(snapshot)
        if clustering is not None and clustering.columns:
            if self._predicate is not None:
                raise ConfigurationError(
                    "A clustered table is optimized as a whole.",
                    cause="It has no partitions that a filter could select.",
                    fix="Leave out where.",
                )
            metrics = core.optimize.cluster(executor=executor)
        else:
            metrics = core.optimize.compact(self._predicate, executor=executor)
        self._handle.record(core)
        return optimize_frame(self._handle.spark, core.snapshot, metrics)

    def executeZOrderBy(self, *cols: str | Sequence[str]) -> DataFrame:  # noqa: N802
        """Rewrite files so that each contains rows with similar values of these columns.

        Args:
            cols: the names of the columns, one by one or as one list.

        Returns:
            One row with the metrics, in delta-spark's schema.

        Raises:
            ArgumentTypeError: a name is not a string. It is also a TypeError.
            PartitionZOrderError: a column is a partition column. It is also an `AnalysisException`.
            PartitionPredicateError: the filter names a column that the table is not partitioned by.
            ConfigurationError, SchemaError: the table cannot be sorted by these columns.
        """
        names = column_list(cols, what="Z-order column")
        core, executor = self._handle.core(), self._handle.executor()
        snapshot = core.snapshot
        partitions = {name.lower() for name in snapshot.partition_columns}
        for name in names:
            if name.lower() in partitions:
                raise PartitionZOrderError(
                    f"{name} is a partition column. Z-Ordering can only be performed on data columns.",
                    fix="Name other columns; every partition is sorted on its own.",
                )
        self._check(snapshot)
        metrics = core.optimize.z_order(names, predicate=self._predicate, executor=executor)
        self._handle.record(core)
        return optimize_frame(self._handle.spark, core.snapshot, metrics)

    def _check(self, snapshot: Snapshot) -> None:
        """Refuse a filter on other columns than partition columns, with delta-spark's error."""
        if self._predicate is None:
            return
        partitions = snapshot.partition_columns
        named = referenced_names(parse_predicate(self._predicate, snapshot.schema))
        for name in sorted(named):
            if name.lower() not in {one.lower() for one in partitions}:
                raise PartitionPredicateError(
                    f"Predicate references non-partition column '{name}'. Only the partition columns may be "
                    f"referenced: [{', '.join(partitions)}].",
                    cause="The operation rewrites whole files, so a predicate can only select partitions.",
                    fix="Use the partition columns, or leave out where.",
                )
