"""Plans a replaceWhere: files in which all rows match are removed, and partly matching files are rewritten.

A predicate on partition columns only selects whole files without reading them. For other predicates the
candidates that remain after partition pruning and data skipping are read: first the columns of the predicate,
then all columns of a partly matching file. When rows are copied, a change data feed needs all changed rows in
change data files, the removed and the new ones (`change_files`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from delta_core.actions import AddCdcFile, AddFile
from delta_core.data.row_files import FileOptions, RowFileWriter
from delta_core.data.write_plan import WritePlan, write_plan_of
from delta_core.dml.change_files import Change, ChangeFileWriter, records_changes, write_inserts
from delta_core.dml.find_rows import FoundRows, find_rows
from delta_core.dml.matched_rows import MatchedRows
from delta_core.expressions.ast import Expression
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.owned_files import OwnedFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacementPlan:
    """The file changes of a replaceWhere.

    Attributes:
        removed: live files (LIVE_FILE_SCHEMA) to remove, including those that were rewritten.
        rewritten: new files with the rows of partly matching files that do not match.
        changes: change data files; empty when the other actions describe the changes.
        read_paths: the paths of all files whose rows the outcome depends on.
        kept_rows: the number of copied rows.
        deleted_rows: the number of removed rows; None where a file with only matching rows was not read and
            has no statistics.
    """

    removed: pa.Table
    rewritten: tuple[AddFile, ...]
    changes: tuple[AddCdcFile, ...] = ()
    read_paths: tuple[str, ...]
    kept_rows: int
    deleted_rows: int | None


def plan_replacement(
    snapshot: Snapshot,
    predicate: Expression,
    *,
    target_file_size_bytes: int,
    adds: Sequence[AddFile] = (),
    plan: WritePlan | None = None,
    run: Run = DEFAULT_RUN,
) -> ReplacementPlan:
    """Select the files to remove, and copy their rows that do not match.

    After a failure, no written file remains.

    Args:
        snapshot: the version of the table.
        predicate: the predicate, resolved against the table's schema.
        target_file_size_bytes: the size of rewritten files.
        adds: the files with the new rows.
        plan: the write plan of the new rows; the table's when None.
        run: the surroundings. Its clock and its allowed roots are used.

    Cost: no data is read for a predicate on partition columns only. Otherwise the predicate's columns of each
    candidate file are read once, and partly matching files once more. With a change data feed and a partly
    matching file, all matching files and the new files are read.
    """
    found = find_rows(snapshot, predicate, allowed_roots=run.allowed_roots)
    table_plan = write_plan_of(snapshot)
    copies_rows = any(not match.is_whole for match in found.matches)
    writes_changes = copies_rows and records_changes(snapshot.protocol, snapshot.metadata)
    rewritten, deletes = _rewritten(
        snapshot,
        predicate,
        found,
        table_plan,
        writes_changes=writes_changes,
        size=target_file_size_bytes,
        run=run,
    )
    inserts: tuple[AddCdcFile, ...] = ()
    if writes_changes:
        owned = OwnedFiles(store=snapshot.store).with_data(rewritten).with_changes(deletes)
        with owned.deleted_on_error():
            inserts = write_inserts(snapshot.store, plan or table_plan, adds, clock=run.clock)
    return ReplacementPlan(
        removed=found.candidates.take(pa.array([match.index for match in found.matches], pa.int64())),
        rewritten=rewritten,
        changes=(*deletes, *inserts),
        read_paths=found.read_paths,
        kept_rows=sum(match.num_left for match in found.matches),
        deleted_rows=_deleted_rows(found),
    )


def _rewritten(
    snapshot: Snapshot,
    predicate: Expression,
    found: FoundRows,
    plan: WritePlan,
    *,
    writes_changes: bool,
    size: int,
    run: Run,
) -> tuple[tuple[AddFile, ...], tuple[AddCdcFile, ...]]:
    """Write the rows that do not match to data files of `size` bytes, and the others as change data."""
    rows = MatchedRows(snapshot, predicate=predicate, allowed_roots=run.allowed_roots)
    files = RowFileWriter(
        snapshot.store,
        plan=plan,
        options=FileOptions(target_file_size_bytes=size),
        properties=plan.properties,
        keep_row_ids=True,
        clock=run.clock,
    )
    with files, ChangeFileWriter(snapshot.store, plan, clock=run.clock) as changes:
        for match in found.matches:
            if not writes_changes:
                for kept in rows.remaining(match):
                    files.write(kept)
                continue
            for kept, deleted in rows.both(match):
                files.write(kept)
                changes.write(deleted.columns, Change.DELETE)
        return tuple(files.finish()), changes.finish()


def _deleted_rows(found: FoundRows) -> int | None:
    counts = [match.num_matching for match in found.matches]
    return None if None in counts else sum(count or 0 for count in counts)
