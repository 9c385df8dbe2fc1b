"""One way to a Spark session: a Connect server, a local JVM, or whatever `spark-submit` has set up."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_core.errors import ConfigurationError
from spark_jobs.installed_spark import check_installed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIME_ZONE = "UTC"

_SESSION_CONF = {"spark.sql.session.timeZone": TIME_ZONE}
_MEANING_CONF = {
    # What SQL in a contract, a source or a merge means must not depend on a machine's spark-defaults.conf.
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
    # What a source's Parquet files hold.
    "spark.sql.legacy.parquet.nanosAsLong": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.int96AsTimestamp": "true",
}
_LOCAL_CONF = {
    # Local mode serves nobody but this process: no web page, no port on a network interface.
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
    """The session to work in; an existing one is used again.

    The session's time zone is UTC, so that a date written as text means the same in every job. In a session
    that is made here, the other settings by which SQL text means something are Spark's defaults, whatever the
    machine's configuration says; one that exists already keeps its own.

    Args:
        remote: a Spark Connect URL (`sc://host:port/...`). Connect sessions are created anew.
        master: a Spark master (`local[2]`, `spark://...`). Without it, the one that `spark-submit` set;
            without that, Spark's default.
        conf: further settings; they win over the ones set here.
        app_name: shown in Spark's own pages.

    Raises:
        ConfigurationError: pyspark is not installed, or not as `check_installed` wants it.
            Or a Connect server does not let its sessions set one of `conf`.
        pyspark.errors.PySparkException: the server does not answer or the JVM does not start.
    """
    check_installed(with_jvm=remote is None)
    if remote is not None:
        return _connect_session(remote, conf or {}, app_name)
    # Arrow workers run the interpreter named here; the default `python3` need not have pyarrow.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)

    from pyspark.sql import SparkSession

    settings: dict[str, str] = dict(_SESSION_CONF)
    if SparkSession.getActiveSession() is None:
        settings.update(_MEANING_CONF)
    if _is_local(master):
        settings.update(_LOCAL_CONF)
    settings.update(conf or {})
    builder = SparkSession.builder.appName(app_name)
    if master is not None:
        builder = builder.master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _connect_session(remote: str, conf: Mapping[str, str], app_name: str) -> SparkSession:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.remote(remote).appName(app_name).create()
    for key, value in {**_SESSION_CONF, **_MEANING_CONF}.items():
        session.conf.set(key, value)
    for key, value in conf.items():
        _set(session, key, value)
    return session


def _set(session: SparkSession, key: str, value: str) -> None:
    from pyspark.errors import AnalysisException

    try:
        session.conf.set(key, value)
    except AnalysisException as error:
        # The session stays open otherwise, and its driver waits for nothing.
        session.stop()
        raise ConfigurationError(
            f"The Spark Connect server lets no session set {key}",
            cause=error.getCondition() or "",
            fix="Leave it out, or set it where the server is started",
        ) from error


def _is_local(master: str | None) -> bool:
    if master is not None:
        return master.startswith("local")
    # Under spark-submit the gateway's port is set, and the master is the submitter's choice.
    return "PYSPARK_GATEWAY_PORT" not in os.environ and "MASTER" not in os.environ


def is_connect(spark: SparkSession) -> bool:
    """True for a Spark Connect session."""
    return type(spark).__module__.startswith("pyspark.sql.connect")
