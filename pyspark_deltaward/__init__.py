"""The module that makes the data source `deltaward` known to every Spark session.

Spark imports each module whose name begins with `pyspark_` and registers its class `DefaultSource`.
"""

from spark_jobs.data_source.source import DefaultSource

__all__ = ["DefaultSource"]
