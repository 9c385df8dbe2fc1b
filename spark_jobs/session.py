"""Creation of a Spark session: on a Connect server, in a local JVM, or the session of `spark-submit`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from delta_core.errors import ConfigurationError
from spark_jobs.installed_spark import check_installed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SQL_CONF = {
    "spark.sql.session.timeZone": "UTC",
    # SQL in a contract, a source or a merge must not depend on a machine's spark-defaults.conf.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "false",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    # Interpretation of a source's Parquet files.
    "spark.sql.legacy.parquet.nanosAsLong": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.int96AsTimestamp": "true",
}
_LOCAL_CONF = {
    # Local mode serves only this process: no UI, and no port on a network interface.
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def get_session(
    remote: str | None = None,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    app_name: str = "deltaward",
) -> SparkSession:
    """Create a Spark session, or return the session that this process has.

    A new session's time zone is UTC, so that a date string has the same meaning in every job. A new session
    gets Spark's defaults for the other settings that affect the meaning of SQL, regardless of the machine's
    configuration. An existing session keeps its settings, also when another thread created it. Of `conf` it
    gets the settings that can be changed while Spark runs.

    Args:
        remote: a Spark Connect URL (`sc://host:port/...`). Each call creates a new Connect session.
        master: a Spark master (`local[2]`, `spark://...`) for a new session. By default the master of
            `spark-submit`, or else Spark's default.
        conf: additional settings, which override those that this function sets.
        app_name: the application's name in the Spark UI, for a new session.

    Raises:
        ConfigurationError: pyspark is not installed, `check_installed` refuses it, or a Connect server does
            not allow a setting of `conf`.
        pyspark.errors.PySparkException: the server does not answer or the JVM does not start.
    """
    check_installed(with_jvm=remote is None)
    if remote is not None:
        return _connect_session(remote, conf or {}, app_name)
    existing = _existing_session()
    if existing is not None:
        _apply_modifiable(existing, conf or {})
        return existing
    # Arrow workers run this interpreter, because the default `python3` may not have pyarrow.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)

    from pyspark.sql import SparkSession

    local_conf = _LOCAL_CONF if _is_local(master) else {}
    builder = SparkSession.builder.appName(app_name)
    if master is not None:
        builder = builder.master(master)
    for key, value in {**_SQL_CONF, **local_conf, **(conf or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _existing_session() -> SparkSession | None:
    """The session of this thread, or else the session of this process; None when Spark does not run."""
    from pyspark import SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        session = SparkSession.active()
    except PySparkRuntimeError:
        return None
    # After `spark.sparkContext.stop()` Python still has the session.
    return session if is_connect(session) or SparkContext._active_spark_context is not None else None


def _apply_modifiable(session: SparkSession, conf: Mapping[str, str]) -> None:
    from pyspark.errors import AnalysisException

    for key, value in conf.items():
        # Settings of the JVM and of all sessions keep their values.
        with suppress(AnalysisException):
            session.conf.set(key, value)


def _connect_session(remote: str, conf: Mapping[str, str], app_name: str) -> SparkSession:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.remote(remote).appName(app_name).create()
    for key, value in _SQL_CONF.items():
        session.conf.set(key, value)
    for key, value in conf.items():
        _set(session, key, value)
    return session


def _set(session: SparkSession, key: str, value: str) -> None:
    from pyspark.errors import AnalysisException

    try:
        session.conf.set(key, value)
    except AnalysisException as error:
        # Otherwise the session would stay open without use.
        session.stop()
        raise ConfigurationError(
            f"The Spark Connect server does not allow a session to set {key}.",
            cause=f"Spark's error is {error.getCondition()}." if error.getCondition() else "",
            fix="Leave out the setting, or set it where the server is started.",
        ) from error


def _is_local(master: str | None) -> bool:
    if master is not None:
        return master.startswith("local")
    # spark-submit sets the gateway's port, and chooses the master.
    return "PYSPARK_GATEWAY_PORT" not in os.environ and "MASTER" not in os.environ


def is_connect(spark: SparkSession) -> bool:
    """True for a Spark Connect session."""
    return type(spark).__module__.startswith("pyspark.sql.connect")
