"""UPDATE on Spark: assigns values to columns of the rows that meet a condition, in one commit.

With deletion vectors only the updated rows are written. Otherwise the other rows of their files are copied.
The rows keep their ids.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from delta_core.boundary import public
from delta_core.dml.find_rows import FoundRows
from delta_core.dml.row_statement import ChangedFiles
from delta_core.errors import JobFailedError
from delta_core.jobs import JobResult
from delta_core.jobs.params.engine_io import EngineIO
from delta_core.jobs.params.update import KIND
from delta_core.merge.assigned import Assignments
from delta_core.merge.clauses import MergeAction
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction import CommitProperties, num_records
from spark_jobs.dml.assigned import Settings
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
from spark_jobs.expressions.checks import partition_name_checks, table_checks
from spark_jobs.expressions.columns import quoted
from spark_jobs.failures import ViolationToken
from spark_jobs.writer.staged_files import StagedFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.dml.clauses import Sql

_UPDATE: Final = StatementKind(job=KIND, operation="UPDATE", verb="update", counted="updated")


@public
def update(
    spark: SparkSession,
    uri: str,
    set: Mapping[str, Sql],
    where: Sql | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    allowed_roots: Sequence[str | os.PathLike[str]] = (),
    engine_io: str = EngineIO.AUTO,
    commit_properties: CommitProperties | None = None,
    alias: str | None = None,
) -> JobResult:
    """Assign values to columns of the rows for which a condition is true. Other rows are not changed.

    All values are computed from the old row. A value that is not of its column's type is cast, and a value
    that does not fit fails the statement. Generated columns are computed again when nothing is assigned to
    them, otherwise the assigned values are checked. A row whose partition columns change moves to another
    partition.

    Args:
        spark: a classic or a Connect session.
        uri: the table's URI or path.
        set: by column, or by the path of a field of a struct such as `address.city`: Spark SQL without
            subqueries (`DEFAULT` is the column's default), or a Column that refers to columns by name.
        where: the condition, as in `delete`; None updates every row.
        storage_options, allowed_roots, engine_io, commit_properties, alias: as in `delete`.

    Returns:
        The result; `output["metrics"]` has the metrics, named as in delta-spark. Nothing is committed when no
        row matches and there is no idempotency key.

    Cost: as `delete`, and a job that writes the updated rows.

    Raises:
        TableNotFoundError: no table exists.
        ExpressionError: Spark refuses the condition or a value, or a column does not exist.
        ConfigurationError: nothing is assigned, a column is assigned twice, an expression has a subquery, or
            another argument is not valid.
        SchemaMismatchError: an identity column is assigned, or a struct lacks a field.
        ConstraintViolationError: a row would violate a constraint, NOT NULL, a generated column or a type; no
            written file remains.
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
    return update_in(spark, snapshot, set, request, run=run)


def update_in(
    spark: SparkSession,
    snapshot: Snapshot,
    assigned: Mapping[str, Sql],
    request: StatementRequest,
    *,
    before_commit: Callable[[], None] | None = None,
    run: Run = DEFAULT_RUN,
) -> JobResult:
    """`update` with a loaded snapshot; repetition and `before_commit` as in `delete_from`."""

    def update_rows(work: SparkStatement) -> JobResult:
        plan, now_us = work.statement.plan, run.now_ms() * 1000
        settings = Settings.of(assigned, plan=plan, alias=request.alias, now_us=now_us)
        settings.require_valid(spark, request.alias)
        values: dict[str, Sql] = {name: quoted(name) for name in settings.columns}
        rest = RowValues.of(
            plan,
            Assignments(matched=(values,), not_matched=(), not_matched_by_source=()),
            work.names,
            records_changes=work.records_changes,
            now_us=now_us,
        )

        def find() -> FoundRows:
            return work.find(keeps_rows=work.statement.uses_deletion_vectors)

        def change(found: FoundRows) -> ChangedFiles:
            if not found.matches:
                return work.statement.rewritten(found, written=(), changes=(), copied_rows=0)
            return _changed(work, settings, rest, found)

        return work.commit(change, find=find, before_commit=before_commit)

    return run_statement(spark, snapshot, request, kind=_UPDATE, change_rows=update_rows, run=run)


def _changed(work: SparkStatement, settings: Settings, rest: RowValues, found: FoundRows) -> ChangedFiles:
    from pyspark.sql import functions as fn

    statement, names, plan = work.statement, work.names, rest.plan
    token = ViolationToken()
    checks = [
        *rest.checks(),
        *table_checks(plan.schema, plan.configuration),
        *partition_name_checks(plan.schema, plan.partition_columns, plan.mapping),
    ]
    caster = Caster(token, first=len(checks))
    rows = _rows(work, found)
    kept = {field.name: fn.col(quoted(field.name)) for field in plan.schema}
    after = rows_after(
        rows,
        [(MergeAction.UPDATE, settings.values(rows, caster))],
        kept=kept,
        rest=rest,
        names=names,
        caster=caster,
    )
    staged = work.stage(rest.completed(after), rest, checks=checks, casts=caster.checks, token=token)
    written = sum(num_records(add) or 0 for add in staged.adds)
    if statement.uses_deletion_vectors:
        _require_same_rows(found, written, staged)
        changed = statement.with_deletion_vectors(found, written=staged.adds, changes=staged.changes)
        return replace(changed, changed_rows=written)
    copied = sum(match.num_left for match in found.matches)
    changed = statement.rewritten(found, written=staged.adds, changes=staged.changes, copied_rows=copied)
    return replace(changed, changed_rows=written - copied)


def _require_same_rows(found: FoundRows, written: int, staged: StagedFiles) -> None:
    """Check that as many rows were written as will be deleted. Otherwise delete the written files."""
    deleted = [match.num_matching for match in found.matches]
    if None in deleted or sum(count or 0 for count in deleted) == written:
        return
    staged.discard()
    raise JobFailedError(
        f"The UPDATE found {sum(count or 0 for count in deleted)} rows and wrote {written}.",
        cause="Its condition was true for other rows when it was evaluated again.",
        fix="Use a condition that depends on the row only. Nothing was committed.",
    )


def _rows(work: SparkStatement, found: FoundRows) -> DataFrame:
    """The rows to write, by the table's alias, where `names.action` is 0 in rows to update."""
    from pyspark.sql import functions as fn

    action = work.names.action
    if work.matched is not None:
        return work.aliased(work.matched).withColumn(action, fn.lit(0))
    rows = work.rows(work.files_of(found), with_ids=True)
    condition = work.condition.column
    if condition is None:
        return rows.withColumn(action, fn.lit(0))
    if work.statement.uses_deletion_vectors:
        return rows.where(condition).withColumn(action, fn.lit(0))
    return rows.withColumn(action, fn.when(condition, fn.lit(0)))
