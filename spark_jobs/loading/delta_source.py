"""Another Delta table as a source: one version, or the rows appended since an earlier version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_core.actions.arrow_schema import LIVE_FILE_SCHEMA
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import ConfigurationError, ExpressionError
from delta_core.expressions.parse import parse_predicate
from delta_core.jobs import JobContext, JobSpec
from delta_core.jobs.params.source import RECORDED, Source
from delta_core.scan import appended_files
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage import open_store, options_for
from spark_jobs.engine_io import table_reach
from spark_jobs.expressions.sql_semantics import SqlSemantics
from spark_jobs.reader.read import read_files, read_snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def resolve_progress(source: Source, spec: JobSpec, context: JobContext) -> Source:
    """The source with `changes_since: recorded` replaced by the version that the target has recorded.

    The commit that loads the rows records the version as the `txn` of the job's idempotency key. Two jobs
    that start from the same version cannot both commit, because their commits conflict on this `txn`.

    Raises:
        ConfigurationError: the job has no idempotency key, or the key's version is not the source's version.
    """
    if source.changes_since != RECORDED:
        return source
    key = spec.idempotency
    if key is None or source.version is None or key.version != source.version:
        raise ConfigurationError(
            f"A source with changes_since {RECORDED!r} needs an idempotency key with the source's version.",
            cause=f"source.version is {source.version} and the job's key is "
            + ("missing." if key is None else f"at version {key.version}."),
            fix="Set source.version and work_version to the same version, and set work_name.",
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
    """The rows of the source's version, or only the rows appended after the version `changes_since`.

    The source's `where` is used only to prune files.

    Raises:
        TableChangedError: rows were updated or deleted since `changes_since`.
        TableNotFoundError, VersionNotFoundError: the table or the version does not exist.
        UnsupportedTableFeatureError: the table needs a feature that this library does not read.
    """
    storage_options = options_for(source.uris[0], storage_options)
    store = open_store(source.uris[0], storage_options=storage_options, clock=clock)
    snapshot = Snapshot.load(store, version=source.version, clock=clock)
    reach = table_reach(spark, store, storage_options=storage_options)
    if not isinstance(source.changes_since, int):
        return read_snapshot(spark, snapshot, reach, where=_prunable(spark, source.where, snapshot))
    snapshot.require_readable(through_scan=True)
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
    return read_files(spark, snapshot, pa.Table.from_pylist(rows, schema=LIVE_FILE_SCHEMA), reach)


def _prunable(spark: SparkSession, where: str | None, snapshot: Snapshot) -> str | None:
    """The condition if it can prune files, or else None.

    A condition that delta_core cannot parse, or that the session may evaluate differently, prunes nothing.
    """
    if where is None:
        return None
    try:
        predicate = parse_predicate(where, snapshot.schema)
    except ExpressionError:
        return None
    meaning = SqlSemantics.of(spark)
    return where if meaning.reads(where) and meaning.agrees(predicate, snapshot.schema) else None
