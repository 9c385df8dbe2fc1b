"""MERGE in Arrow: one commit that updates, deletes and inserts rows of a table.

The first phase (`matching`) finds the rows that change. The second (`writing`) writes them. When the table
enables deletion vectors, changed files stay and get deletion vectors. Otherwise their other rows are copied
to new files with their row ids. The source is read once.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np

from delta_core.data.row_pipeline import RowPipeline
from delta_core.data.steps.defaults import DefaultsStep
from delta_core.dml.change_files import records_changes
from delta_core.dml.find_rows import FileMatch, FoundRows
from delta_core.dml.metadata_update import MetadataUpdate, TableDefinition, plan_metadata_update
from delta_core.dml.moved_rows import MovedRowsError, follow_moved_rows
from delta_core.dml.post_commit import commit_or_raise
from delta_core.dml.row_statement import ChangedFiles, RowStatement
from delta_core.errors import ConcurrentDeleteDeleteError, InvalidTableError
from delta_core.expressions.ast import TRUE, Expression
from delta_core.merge.assigned import Assignments, assignments, evolved_schema
from delta_core.merge.clauses import MergeAction, MergeClause, MergeClauses, merge_parameters
from delta_core.merge.condition import Condition, match_predicate, read_predicate, split_condition
from delta_core.merge.deletions import MergeDeletions, committed_counts
from delta_core.merge.matching import Choice, Matcher, Matches, find_matches, thread_count
from delta_core.merge.names import MergeNames
from delta_core.merge.new_rows import ClauseValues, RowChanger
from delta_core.merge.result import Counts, MergeResult
from delta_core.merge.source import SPILL_BYTES, MergeSource, columns_of, fixed_source
from delta_core.merge.source_keys import SourceKeys
from delta_core.merge.writing import MergeWriter, Written
from delta_core.run import DEFAULT_RUN, Run
from delta_core.scan.scan import Scan
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.feature import WriterKind
from delta_core.table_features.support import require_write_support
from delta_core.transaction.commit_result import AlreadyApplied
from delta_core.transaction.file_actions import add_actions

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRequest:
    """The arguments of a merge.

    Attributes:
        on: the condition, as SQL text or a tree. A row matches when it is true.
        clauses: the clauses.
        target_alias, source_alias: the names of the table and of the source in expressions.
        merge_schema: whether the source may add columns to the table.
        refuses_misfits: whether a value that cannot be cast to its column's type is an error, or null.
        ignores_idle_matches: whether source rows for which no clause is true may match a row that another
            source row changes, as in `deltalake`. Otherwise such a merge is refused, as on Spark.
        spill_bytes: see `fixed_source`; 256 MiB when None.
        target_file_size_bytes: the size of new files; the table's size when None.
    """

    on: Any
    clauses: MergeClauses
    target_alias: str = "target"
    source_alias: str = "source"
    merge_schema: bool = False
    refuses_misfits: bool = True
    ignores_idle_matches: bool = False
    spill_bytes: int | None = None
    target_file_size_bytes: int | None = None


def merge_rows(
    snapshot: Snapshot, source: Any, request: MergeRequest, *, run: Run = DEFAULT_RUN
) -> MergeResult:
    """Merge the rows of a source into a version of a table, in one commit.

    With deletion vectors, a compaction at the same time does not conflict: see `dml.moved_rows`.

    Args:
        snapshot: the version that the merge is based on.
        source: rows with the Arrow C interface, a dataset, or a list of such parts.
        request: the condition, the clauses and their options.
        run: the surroundings, such as the clock and the commit properties.

    Cost: the columns of the condition and of the clauses' conditions are read once, in the files that the
    condition and the source's keys do not rule out. Then all columns of the files with changed rows are read
    once more, unless no new value needs them. Memory: the source, up to `spill_bytes` of a stream; 16 bytes
    and the key for each row of a source of at most 2,000,000 rows, else 8 bytes; 18 bytes for each changed
    row; one row group for each of at most four files.

    Raises:
        MergeDuplicateMatchError: several source rows match one row, and the clauses do not allow it.
        ConfigurationError: the clauses contradict each other, or the source is not Arrow data.
        ExpressionError: a condition or value is invalid, does not fit the columns, or fails on a row.
        SchemaMismatchError: a clause assigns an unknown column or an identity column, or lacks one.
        ConstraintViolationError: a row would violate a constraint, NOT NULL or a generated column.
        InvalidTableError: the table is append-only and a clause changes rows, or a file cannot be read.
        UnsupportedTableFeatureError: the table needs an unsupported feature. No file was written.
        ConcurrentModificationError: another writer changed or added rows that may match. Nothing was
            committed.
        CommitStateUnknownError: it is not known whether the commit landed. The written files were kept.
    """
    statement = _statement(snapshot, request, run)
    done = _already_done(statement, request.clauses)
    if done is not None:
        return MergeResult(committed=done)
    rows, schema = columns_of(source)
    plan = _plan(snapshot, schema, request, run)
    started = monotonic()

    def attempt(version: Snapshot, attempt_run: Run) -> MergeResult:
        if version is snapshot:
            return _Merge(statement, request, plan, fixed, started).execute()
        later = _statement(version, request, attempt_run)
        applied = _already_done(later, request.clauses)
        if applied is not None:
            return MergeResult(committed=applied)
        later_plan = _plan(version, schema, request, attempt_run)
        return _Merge(later, request, later_plan, fixed, started).execute()

    spill_bytes = SPILL_BYTES if request.spill_bytes is None else request.spill_bytes
    with fixed_source(rows, schema, spill_bytes=spill_bytes) as fixed:
        return follow_moved_rows(snapshot, run, attempt)


def _statement(snapshot: Snapshot, request: MergeRequest, run: Run) -> RowStatement:
    return RowStatement(
        snapshot=snapshot,
        operation="MERGE",
        verb="merge",
        counted="updated",
        target_file_size_bytes=request.target_file_size_bytes,
        run=run,
    )


def _already_done(statement: RowStatement, clauses: MergeClauses) -> AlreadyApplied | None:
    """The result when the table has the idempotency key. Otherwise check that the table may change."""
    snapshot = statement.snapshot
    applied = statement.run.already_applied(snapshot)
    if applied is not None:
        return applied
    snapshot.require_writable(writer_kind=WriterKind.ARROW_ROWS, operation="merge into the table")
    if snapshot.properties.append_only and not clauses.is_insert_only:
        raise InvalidTableError(
            "The table is append-only, so a merge can only insert rows.",
            cause="The table property delta.appendOnly is true.",
            fix="Leave out the clauses that update or delete, or set delta.appendOnly to false first.",
        )
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """The decisions that need no row."""

    names: MergeNames
    change: MetadataUpdate
    assigned: Assignments
    now_us: int


def _plan(snapshot: Snapshot, source: StructType, request: MergeRequest, run: Run) -> _Plan:
    clauses = request.clauses
    now_ms = run.now_ms()
    table = snapshot.schema
    names = MergeNames(
        target_alias=request.target_alias,
        source_alias=request.source_alias,
        target=table,
        source=source,
        now=_EPOCH + dt.timedelta(milliseconds=now_ms),
    )
    after = evolved_schema(table, source, clauses) if request.merge_schema else table
    change = plan_metadata_update(
        snapshot,
        data_schema=after,
        definition=TableDefinition(merge_schema=request.merge_schema),
        now_ms=now_ms,
    )
    require_write_support(
        change.protocol,
        change.metadata,
        writer_kind=WriterKind.ARROW_ROWS,
        operation="merge into the table",
    )
    assigned = assignments(
        clauses,
        plan=change.plan,
        source=source,
        source_alias=request.source_alias,
        merge_schema=request.merge_schema,
    )
    return _Plan(names=names, change=change, assigned=assigned, now_us=now_ms * 1000)


class _Merge:
    """One attempt of one merge."""

    def __init__(
        self, statement: RowStatement, request: MergeRequest, plan: _Plan, source: MergeSource, started: float
    ) -> None:
        self._statement, self._request, self._plan, self._source = statement, request, plan, source
        self._started = started
        self._clauses = request.clauses
        # The number of a clause is its place among these.
        self._changing: tuple[MergeClause, ...] = (
            *self._clauses.matched,
            *self._clauses.not_matched_by_source,
        )
        self._deletes = frozenset(
            number for number, clause in enumerate(self._changing) if clause.action is MergeAction.DELETE
        )

    def execute(self) -> MergeResult:
        statement, snapshot, run = self._statement, self._statement.snapshot, self._statement.run
        pipeline = RowPipeline(self._plan.change.plan, now_us=self._plan.now_us)
        changer = self._changer(pipeline)
        names = self._plan.names
        condition = split_condition(
            self._request.on, names, partition_columns=tuple(snapshot.partition_columns)
        )
        keys = SourceKeys(self._source, condition.equalities, names)
        matching = match_predicate(condition, keys.limits(), names, source_rows=self._source.num_rows)
        predicate = read_predicate(matching, self._clauses.not_matched_by_source, names)
        candidates = Scan(snapshot, predicate=predicate, allowed_roots=run.allowed_roots).files()
        files = list(add_actions(candidates, data_change=True))
        source_read = monotonic()
        threads = thread_count(files)
        matcher = self._matcher(condition, keys, predicate, threads)
        matches = find_matches(matcher, files, clauses=len(self._changing), threads=threads)
        scanned = monotonic()
        unmatched = np.flatnonzero(~matches.matched) if self._clauses.not_matched else np.empty(0, np.int64)
        nothing = not matches.files and not len(unmatched) and not self._plan.change.actions
        if nothing and run.commit.txn is None:
            counts = self._counts(None, matches, None, len(files), source_read, scanned, scanned)
            return self._result(None, counts)
        found = FoundRows(
            candidates=candidates,
            matches=tuple(
                FileMatch(index=item.index, file=item.file, rows=item.rows) for item in matches.files
            ),
        )
        copies = not statement.uses_deletion_vectors
        change = self._plan.change
        writer = MergeWriter(
            statement=statement,
            change=change,
            rows=changer,
            deletes=self._deletes,
            copies=copies,
            # Where no file is changed, the added files alone describe the changes.
            records_changes=bool(matches.files) and records_changes(change.protocol, change.metadata),
        )
        written = writer.write(matches.files, unmatched)
        changed = self._changed_files(found, written, copies=copies)
        rewritten = monotonic()
        with changed.owned.deleted_on_error():
            counts = self._counts(
                changed, matches, written, len(files), source_read, scanned, rewritten, found=found
            )
            empty = not (changed.adds or changed.removes or change.actions or run.commit.txn is not None)
        if empty:
            # Rows without a match, but no clause that applies to them.
            return self._result(None, counts)
        # A row that matches keeps its source row from being inserted, whether it stays (`observed`) or is
        # deleted. So its deletion by another writer would change the result, and is a conflict.
        read = None if predicate == TRUE else predicate
        resolver = None
        if statement.uses_deletion_vectors:
            resolver = MergeDeletions(
                snapshot.store,
                deletes=self._deletion_metric(),
                matches=matcher.touches,
                observed=matches.observed,
                may_insert=bool(self._clauses.not_matched),
                properties=snapshot.properties,
                access=run.access,
                clock=run.clock,
            )
        transaction = run.begin(
            snapshot,
            operation=statement.operation,
            writer_kind=WriterKind.ARROW_ROWS,
            operation_parameters=merge_parameters(self._request.on, self._clauses),
            resolver=resolver,
        )
        marked = change.with_high_water_marks_of(pipeline.high_water_marks)
        with changed.owned.deleted_on_error():
            transaction.read_predicate(read).read_files(found.read_paths)
            transaction.add(*marked.actions, *changed.removes, *changed.adds, *changed.changes)
            transaction.preserve_rows(True)
            transaction.set_metrics(counts.history)
        try:
            committed = commit_or_raise(transaction, owned=changed.owned, resolver=resolver)
        except ConcurrentDeleteDeleteError as error:
            if resolver is not None and resolver.rows_were_moved:
                raise MovedRowsError.of(error) from error
            raise
        return self._result(committed, counts)

    def _matcher(
        self, condition: Condition, keys: SourceKeys, predicate: Expression, threads: int
    ) -> Matcher:
        return Matcher(
            self._statement.snapshot,
            self._source,
            condition,
            self._clauses,
            self._plan.names,
            keys=keys,
            predicate=predicate,
            access=self._statement.run.access,
            threads=threads,
            ignores_idle_matches=self._request.ignores_idle_matches,
        )

    def _changer(self, pipeline: RowPipeline) -> RowChanger:
        plan, names, assigned = self._plan.change.plan, self._plan.names, self._plan.assigned
        defaults = DefaultsStep(plan, now_us=self._plan.now_us)

        def values(found: Mapping[str, Any], *, is_insert: bool = False, **sides: bool) -> ClauseValues:
            return ClauseValues(
                found,
                plan,
                names,
                defaults=defaults,
                is_insert=is_insert,
                refuses=self._request.refuses_misfits,
                **sides,
            )

        updates = [
            *(values(found) for found in assigned.matched),
            *(values(found, source=False) for found in assigned.not_matched_by_source),
        ]
        return RowChanger(
            plan,
            pipeline,
            self._source,
            names,
            updates=[None if number in self._deletes else clause for number, clause in enumerate(updates)],
            inserts=[values(found, is_insert=True, target=False) for found in assigned.not_matched],
            insert_choice=Choice(self._clauses.not_matched, names, target=False),
        )

    def _changed_files(self, found: FoundRows, written: Written, *, copies: bool) -> ChangedFiles:
        statement = self._statement
        if copies:
            copied = sum(match.num_left for match in found.matches)
            return statement.rewritten(
                found, written=written.files, changes=written.changes, copied_rows=copied
            )
        return statement.with_deletion_vectors(found, written=written.files, changes=written.changes)

    def _counts(
        self,
        changed: ChangedFiles | None,
        matches: Matches,
        written: Written | None,
        scanned_files: int,
        source_read: float,
        scanned: float,
        rewritten: float,
        *,
        found: FoundRows | None = None,
    ) -> Counts:
        first = len(self._clauses.matched)
        numbers = [int(count) for count in matches.counts]

        def total(start: int, stop: int, *, deleted: bool) -> int:
            return sum(numbers[i] for i in range(start, stop) if (i in self._deletes) is deleted)

        removed = () if changed is None else changed.removes
        dvs = 0 if changed is None else changed.dvs
        old_vectors = 0 if found is None else sum(m.file.deletion_vector is not None for m in found.matches)
        updated_vectors = (
            sum(m.file.deletion_vector is not None and not m.is_whole for m in found.matches)
            if found is not None and dvs
            else 0
        )
        gone = [
            match.file
            for match in (() if found is None else found.matches)
            if match.is_whole or not self._statement.uses_deletion_vectors
        ]
        output = 0 if changed is None or written is None else written.inserted
        copied = 0 if changed is None else changed.copied_rows
        updated = total(0, len(numbers), deleted=False)
        total_files = self._statement.snapshot.files.num_files
        return Counts(
            source_rows=self._source.num_rows,
            inserted=0 if written is None else written.inserted,
            matched_updated=total(0, first, deleted=False),
            by_source_updated=total(first, len(numbers), deleted=False),
            matched_deleted=total(0, first, deleted=True),
            by_source_deleted=total(first, len(numbers), deleted=True),
            copied=copied,
            output=output + copied + (updated if removed or dvs else 0),
            files_scanned=scanned_files,
            files_skipped=total_files - scanned_files,
            files_added=0 if changed is None else len(changed.written),
            files_removed=len(gone),
            bytes_added=0 if changed is None else sum(add.size_bytes for add in changed.written),
            bytes_removed=sum(file.size_bytes for file in gone),
            change_files=0 if changed is None else len(changed.changes),
            deletion_vectors_added=dvs,
            deletion_vectors_removed=old_vectors,
            deletion_vectors_updated=updated_vectors,
            source_time_ms=_ms(source_read - self._started),
            scan_time_ms=_ms(scanned - source_read),
            rewrite_time_ms=_ms(rewritten - scanned),
        )

    def _result(self, committed: Any, counts: Counts) -> MergeResult:
        total = {"execution_time_ms": _ms(monotonic() - self._started)}
        recorded = {} if committed is None else committed_counts(committed.operation_metrics)
        return MergeResult(committed=committed, metrics={**counts.metrics, **recorded, **total})

    def _deletion_metric(self) -> str | None:
        """The metric of the rows that are deleted by matched clauses only, or by the others only."""
        matched = len(self._clauses.matched)
        kinds = {number < matched for number in self._deletes}
        if len(kinds) != 1:
            return None
        return "numTargetRowsMatchedDeleted" if kinds.pop() else "numTargetRowsNotMatchedBySourceDeleted"


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
