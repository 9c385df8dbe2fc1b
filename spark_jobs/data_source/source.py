"""The data source `deltaward`: it gives a table's schema to Spark's catalog."""

from __future__ import annotations

from typing import NoReturn

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from delta_core.errors import ConfigurationError
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.open import open_store
from spark_jobs.schema import to_spark

FORMAT = "deltaward"


class DefaultSource(DataSource):
    """The source of `USING deltaward`. Its schema is that of the table's newest version."""

    @classmethod
    def name(cls) -> str:
        """The name in `USING deltaward`."""
        return FORMAT

    def schema(self) -> StructType:
        """The schema of the newest version of the table at the option `path`.

        Raises:
            ConfigurationError: there is no path.
            TableNotFoundError: no table exists at the path.
        """
        path = self.options.get("path")
        if path is None:
            raise _no_path()
        return to_spark(Snapshot.load(open_store(path)).schema)

    def reader(self, schema: StructType) -> NoReturn:
        """Raises ConfigurationError: Spark does not give a data source the location of a named table."""
        raise _no_path()


def _no_path() -> ConfigurationError:
    return ConfigurationError(
        "The data source 'deltaward' does not know the location of the table.",
        cause="Spark does not pass the location of a named table to a data source in Python.",
        fix="Read a table by its name with spark_jobs.table(spark, name), or in SQL with "
        "spark_jobs.sql(spark, text).",
    )
