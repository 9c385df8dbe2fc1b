"""DELETE on Spark: deletes the rows that meet a condition, in one commit.

With deletion vectors Spark only finds the rows. Otherwise it also copies the other rows of their files. No
job runs for a condition over partition columns and for none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from delta_core.boundary import public
from delta_core.dml.find_rows import FoundRows
from delta_core.dml.row_statement import ChangedFiles
from delta_core.jobs import JobResult
from delta_core.jobs.params.delete import KIND
from delta_core.jobs.params.engine_io import EngineIO
from delta_core.merge.assigned import Assignments
from delta_core.merge.clauses import MergeAction
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction import CommitProperties, num_records
from spark_jobs.dml.row_values import RowValues
from spark_jobs.dml.rows_after import rows_after
from spark_jobs.dml.statement import (
    SparkStatement,
    StatementKind,
    StatementRequest,
    newest,
    request_of,
    run_statement,
)
from spark_jobs.dml.values import Caster
from spark_jobs.expressions.checks import partition_name_checks
from spark_jobs.expressions.columns import quoted
from spark_jobs.failures import ViolationToken

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.dml.clauses import Sql

_DELETE: Final = StatementKind(job=KIND, operation="DELETE", verb="delete", counted="deleted")

_NO_VALUES: Final = Assignments(matched=(), not_matched=(), not_matched_by_source=())


@public
def delete(
    spark: SparkSession,
    uri: str,
    where: Sql | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    allowed_roots: Sequence[str | os.PathLike[str]] = (),
    engine_io: str = EngineIO.AUTO,
    commit_properties: CommitProperties | None = None,
    alias: str | None = None,
) -> JobResult:
    """Delete the rows of a table for which a condition is true. Rows for which it is null are kept.

    Args:
        spark: a classic or a Connect session.
        uri: the table's URI or path.
        where: Spark SQL without subqueries, or a Column that refers to columns by name. None deletes every
            row.
        storage_options: options of the table's store. Secrets among them are used in this process only.
        allowed_roots: paths or URIs. Absolute paths in the log, as those of a shallow clone, may lead below
            them when rows are read.
        engine_io: how Spark reads and writes the files; see `spark_jobs.read`.
        commit_properties: provenance and idempotency key of the commit.
        alias: the table's alias in the condition.

    Returns:
        The result; `output["metrics"]` has the metrics, named as in delta-spark. Nothing is committed when no
        row matches and there is no idempotency key.

    Cost: one Spark job that reads the columns of the condition in the files that can match. If the table does
    not use deletion vectors, another one that reads and writes the files with matching rows. No job runs for
    a condition over partition columns only.

    Raises:
        TableNotFoundError: no table exists.
        ExpressionError: Spark refuses the condition.
        ConfigurationError: the condition has a subquery, or another argument is not valid.
        InvalidTableError: the table is append-only.
        UnsupportedTableFeatureError: the table needs an unsupported feature.
        ConcurrentModificationError: another writer changed or added matching rows. Nothing was committed.
        CommitStateUnknownError: the written files are kept, because a commit may refer to them.
        JobFailedError: Spark failed.
    """
    request = request_of(
        where,
        alias=alias,
        engine_io=engine_io,
        storage_options=storage_options,
        allowed_roots=allowed_roots,
    )
    snapshot, run = newest(uri, storage_options=storage_options, commit=commit_properties)
    return delete_from(spark, snapshot, request, run=run)


def delete_from(
    spark: SparkSession,
    snapshot: Snapshot,
    request: StatementRequest,
    *,
    before_commit: Callable[[], None] | None = None,
    run: Run = DEFAULT_RUN,
) -> JobResult:
    """`delete` with a loaded snapshot. It runs again when a compaction moved the rows.

    `before_commit` is called right before the commit. When it raises, nothing is committed and the written
    files are deleted.
    """

    def delete_rows(work: SparkStatement) -> JobResult:
        def change(found: FoundRows) -> ChangedFiles:
            if work.statement.uses_deletion_vectors:
                return work.statement.with_deletion_vectors(found)
            return _rewritten(work, found)

        return work.commit(change, find=work.find, before_commit=before_commit)

    return run_statement(spark, snapshot, request, kind=_DELETE, change_rows=delete_rows, run=run)


def _rewritten(work: SparkStatement, found: FoundRows) -> ChangedFiles:
    """The remaining rows in new files, and the deleted ones as change data where the table records it."""
    from pyspark.sql import functions as fn

    statement, names = work.statement, work.names
    copies_rows = any(not match.is_whole for match in found.matches)
    if not copies_rows:
        return statement.rewritten(found, written=(), changes=(), copied_rows=0)
    plan = statement.plan
    rest = RowValues.of(
        plan, _NO_VALUES, names, records_changes=work.records_changes, now_us=statement.run.now_ms() * 1000
    )
    assert work.condition.column is not None
    target = work.files_of(found, only_partial=not rest.records_changes)
    action = fn.when(work.condition.column, fn.lit(0))
    rows = work.rows(target, with_ids=True).withColumn(names.action, action)
    token = ViolationToken()
    checks = partition_name_checks(plan.schema, plan.partition_columns, plan.mapping)
    kept = {field.name: fn.col(quoted(field.name)) for field in plan.schema}
    rows = rows_after(
        rows,
        [(MergeAction.DELETE, {})],
        kept=kept,
        rest=rest,
        names=names,
        caster=Caster(token, first=0),
    )
    staged = work.stage(rest.completed(rows), rest, checks=checks, token=token)
    copied = sum(num_records(add) or 0 for add in staged.adds)
    before = sum((match.num_matching or 0) + match.num_left for match in found.matches)
    changed = statement.rewritten(found, written=staged.adds, changes=staged.changes, copied_rows=copied)
    return replace(changed, changed_rows=before - copied)
