"""`spark_jobs.table`: the rows of a named table."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from delta_core.boundary import public
from delta_core.jobs.params.engine_io import EngineIO
from spark_jobs.names.resolve import resolve
from spark_jobs.reader.read import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@public
def table(
    spark: SparkSession,
    name: str,
    version: int | None = None,
    timestamp: str | dt.datetime | int | None = None,
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    registry: str | os.PathLike[str] | None = None,
    allowed_roots: Sequence[str | os.PathLike[str]] = (),
    storage_options: Mapping[str, str] | None = None,
    engine_io: str = EngineIO.AUTO,
) -> DataFrame:
    """Read one version of a named table as a DataFrame.

    Args:
        spark: a classic or a Connect session.
        name: the table's name, or a path as `delta.`/path``; see `spark_jobs.names.resolve`.
        version: the version; the newest when neither `version` nor `timestamp` is given.
        timestamp: selects the newest version at or before this time.
        columns: as in `spark_jobs.read`.
        where: as in `spark_jobs.read`.
        registry: the path of a registry file; by default that of the setting `spark.deltaward.tables`.
        allowed_roots: as in `spark_jobs.read`.
        storage_options: as in `spark_jobs.read`.
        engine_io: as in `spark_jobs.read`.

    Raises:
        NamedTableNotFoundError: no table has the name.
        NotADeltaTableError: the name belongs to a view or to a table of another format.
        DeltaError: the errors of `spark_jobs.read`.
    """
    return read(
        spark,
        resolve(spark, name, registry=registry).uri,
        version=version,
        timestamp=timestamp,
        columns=columns,
        where=where,
        allowed_roots=allowed_roots,
        storage_options=storage_options,
        engine_io=engine_io,
    )
