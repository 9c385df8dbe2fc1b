"""A table as the parts of `DeltaTable` share it: the session, the place and how files are reached."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import delta_core
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import ConfigurationError
from delta_core.jobs.params.engine_io import EngineIO
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage import open_store
from spark_jobs.spark_executor import SparkExecutor
from spark_jobs.writer.commits import record_commit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """A table in a session.

    Attributes:
        spark: the session.
        uri: the table's URI or path.
        name: the name by which it was opened; None for a path.
        alias: its alias in conditions and values.
        storage_options, allowed_roots, engine_io: see `spark_jobs.read`.
    """

    spark: SparkSession
    uri: str
    name: str | None = None
    alias: str | None = None
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    allowed_roots: Sequence[str | os.PathLike[str]] = ()
    engine_io: EngineIO = EngineIO.AUTO
    clock: Clock = SYSTEM_CLOCK

    def core(self, version: int | None = None) -> delta_core.DeltaTable:
        """The table at its newest version, or at a version."""
        return delta_core.DeltaTable(
            self.uri,
            version,
            storage_options=self.storage_options,
            allowed_roots=self.allowed_roots,
            clock=self.clock,
        )

    def snapshot(self) -> Snapshot:
        """The newest version."""
        store = open_store(self.uri, storage_options=self.storage_options, clock=self.clock)
        return Snapshot.load(store, clock=self.clock)

    def executor(self) -> SparkExecutor:
        """An executor that runs tasks on Spark."""
        return SparkExecutor(self.spark, storage_options=self.storage_options)

    def record(self, core: delta_core.DeltaTable) -> None:
        """Record the version that the handle shows after a commit, for `last_commit`."""
        record_commit(self.uri, core.version())

    def has_setting(self, name: str) -> bool:
        """Whether a setting of the session is `true`."""
        return (self.spark.conf.get(name, None) or "").lower() == "true"


def require_session(spark: SparkSession | None) -> SparkSession:
    """The session, or the active one without an argument.

    Raises:
        ConfigurationError: there is no session.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    if spark is not None:
        return spark
    try:
        return SparkSession.active()
    except PySparkException as error:
        raise ConfigurationError(
            "There is no Spark session.", fix="Pass a session, such as that of spark_jobs.get_session()."
        ) from error
