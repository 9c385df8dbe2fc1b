"""The data source `deltaward`: a table behind `spark.read`, `readStream`, `write` and `writeStream`.

It is the convenient way: rows pass through Python. `spark_jobs.read`, `write`, `stream` and `stream_to` are
the fast one. Nothing in this package may print, because Spark talks to a data source over its output.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from delta_core.snapshot.snapshot import Snapshot
from spark_jobs.data_source.options import executor_reach, no_path
from spark_jobs.data_source.readers import TableReader, TableStreamReader, read_version, row_schema
from spark_jobs.data_source.writers import TableStreamWriter, TableWriter, WriteJob
from spark_jobs.schema import to_spark
from spark_jobs.streaming.options import folded

FORMAT = "deltaward"


class DefaultSource(DataSource):
    """The source of `format("deltaward")` and of `USING deltaward`."""

    _version: int | None = None

    @classmethod
    def name(cls) -> str:
        """The name in `format` and in `USING`."""
        return FORMAT

    def schema(self) -> StructType:
        """The schema of the version that the options select, of the table at the option `path`.

        Raises:
            ConfigurationError: there is no path, or an option is not valid.
            TableNotFoundError: no table exists at the path.
            VersionNotFoundError: the version does not exist.
        """
        store, _ = executor_reach(self.options).open()
        snapshot = Snapshot.load(store, version=read_version(self.options))
        self._version = snapshot.version
        return to_spark(row_schema(snapshot, self.options)[0])

    def reader(self, schema: StructType) -> TableReader:
        """The reader of a query.

        Raises:
            ConfigurationError: there is no path, as for a named table.
        """
        if "path" not in folded(self.options):
            raise no_path()
        version = self._version if self._version is not None else read_version(self.options)
        return TableReader(self.options, version)

    def streamReader(self, schema: StructType) -> TableStreamReader:  # noqa: N802
        """The reader of a streaming query; raises as `reader`."""
        if "path" not in folded(self.options):
            raise no_path()
        return TableStreamReader(self.options, self._version)

    def writer(self, schema: StructType, overwrite: bool) -> TableWriter:
        """The writer of a DataFrame.

        Raises:
            DeltaError: the table cannot be written, or the rows do not fit it.
        """
        return TableWriter(WriteJob.of(self.options, schema, overwrite=overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> TableStreamWriter:  # noqa: N802
        """The writer of a streaming query.

        Raises:
            DeltaError: the table cannot be written, or the rows do not fit it.
        """
        job = WriteJob.of(self.options, schema, overwrite=overwrite)
        named = folded(self.options)
        return TableStreamWriter(job, job.options.app_id, named.get("checkpointlocation"))
