"""Another Delta table as a source: one version of it, or what was appended since an earlier one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_core.actions.arrow_schema import LIVE_FILE_SCHEMA
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import ConfigurationError, ExpressionError
from delta_core.expressions.parse import parse_predicate
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_spec import JobSpec
from delta_core.scan.appended import appended_files
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.open import open_store
from spark_jobs.loading.source_params import RECORDED, Source
from spark_jobs.reader.read import read_files, read_snapshot
from spark_jobs.sql_meaning import SqlMeaning

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def resolve_progress(source: Source, spec: JobSpec, context: JobContext) -> Source:
    """The source with `changes_since: recorded` replaced by the version that the target names.

    The target records it as the `txn` of the job's idempotency key, in the commit that brought the rows.
    Two jobs that start from the same version cannot both commit: the conflict rules know the key.

    Raises:
        ConfigurationError: the job has no idempotency key, or one that is not the source's version.
    """
    if source.changes_since != RECORDED:
        return source
    key = spec.idempotency
    if key is None or source.version is None or key.version != source.version:
        raise ConfigurationError(
            f"A source with changes_since {RECORDED!r} records which version of the source was reached.",
            cause=f"source.version is {source.version} and the job's key is "
            + ("missing" if key is None else f"at version {key.version}"),
            fix="Give both the same version: source.version, and work_version beside work_name",
        )
    recorded = context.snapshot.transactions.get(key.app_id) if context.snapshot is not None else None
    return replace(source, changes_since=None if recorded is None else recorded.version)


def read_delta(
    spark: SparkSession,
    source: Source,
    *,
    storage_options: Mapping[str, str] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> DataFrame:
    """The rows of the source's version, or those appended since; `where` only leaves files out.

    Raises:
        TableChangedError: rows were changed or removed since `changes_since`.
        TableNotFoundError, VersionNotFoundError: there is no such table or version.
        UnsupportedTableFeatureError: the table needs a feature that this library does not read.
    """
    store = open_store(source.uris[0], storage_options=storage_options, clock=clock)
    snapshot = Snapshot.load(store, version=source.version, clock=clock)
    if not isinstance(source.changes_since, int):
        return read_snapshot(spark, snapshot, where=_prunable(spark, source.where, snapshot))
    snapshot.require_readable()
    adds = appended_files(snapshot, since_version=source.changes_since).adds
    rows = [
        {
            "path": add.path,
            "partition_values": list(add.partition_values.items()),
            "size_bytes": add.size_bytes,
            "modification_time_ms": add.modification_time_ms,
        }
        for add in adds
    ]
    return read_files(spark, snapshot, pa.Table.from_pylist(rows, schema=LIVE_FILE_SCHEMA))


def _prunable(spark: SparkSession, where: str | None, snapshot: Snapshot) -> str | None:
    """The condition when files can be left out by it.

    One that only Spark understands prunes nothing, nor does one that means something else to its session.
    """
    if where is None:
        return None
    try:
        predicate = parse_predicate(where, snapshot.schema)
    except ExpressionError:
        return None
    meaning = SqlMeaning.of(spark)
    return where if meaning.reads(where) and meaning.agrees(predicate, snapshot.schema) else None
