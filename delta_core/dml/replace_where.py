"""Which files a replaceWhere takes away: whole where every row matches, rewritten where some do.

A predicate over partition columns alone decides whole files without reading them. With any other column
the candidates that partition pruning and statistics leave are read: first the columns that the predicate
names, then, of a file that matches in part, all of them. Where rows are copied, a change data feed needs all
that the commit changes in files of its own: what goes, and what comes (`change_files`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from delta_core.actions import AddCdcFile, AddFile
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.data.row_files import FileOptions, RowFileWriter
from delta_core.data.write_plan import WritePlan
from delta_core.dml.change_files import Change, ChangeFileWriter, records_changes, write_inserts
from delta_core.dml.clustered_table import plan_of
from delta_core.dml.find_rows import FoundRows, find_rows
from delta_core.dml.matched_rows import MatchedRows
from delta_core.errors import DeltaError
from delta_core.expressions.ast import Expression
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.commit_result import Rejected
from delta_core.transaction.owned_files import OwnedFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacementPlan:
    """What a replaceWhere removes.

    Attributes:
        removed: live files (LIVE_FILE_SCHEMA) that go, whole or rewritten.
        rewritten: files written with the rows of partly matching files that stay.
        changes: files of change data; none where the other actions tell all.
        read_paths: every file whose rows the decision rests on.
        kept_rows: rows that were copied.
    """

    removed: pa.Table
    rewritten: tuple[AddFile, ...]
    changes: tuple[AddCdcFile, ...] = ()
    read_paths: tuple[str, ...]
    kept_rows: int


def plan_replacement(
    snapshot: Snapshot,
    predicate: Expression,
    *,
    target_file_size_bytes: int,
    adds: Sequence[AddFile] = (),
    plan: WritePlan | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> ReplacementPlan:
    """Decide what goes, and write the rows that stay. If it fails, no file is left.

    Args:
        snapshot: the table.
        predicate: resolved against the table's schema.
        target_file_size_bytes: of files rewritten.
        adds: the files with the new rows.
        plan: what the new rows were written by; the table's when None.
        clock: where time comes from.

    Cost: no data is read for a predicate over partition columns; otherwise each candidate file is read
    once in the predicate's columns, and those matching in part once more. With a change data feed and a file
    that matches in part, all matching files and the new ones are read.
    """
    found = find_rows(snapshot, predicate)
    table_plan = plan_of(snapshot)
    partly = any(not match.is_whole for match in found.matches)
    tells = partly and records_changes(snapshot.protocol, snapshot.metadata)
    rewritten, gone = _rewritten(
        snapshot, predicate, found, table_plan, tells=tells, size=target_file_size_bytes, clock=clock
    )
    come: tuple[AddCdcFile, ...] = ()
    if tells:
        try:
            come = write_inserts(snapshot.store, plan or table_plan, adds, clock=clock)
        except DeltaError as error:
            owned = OwnedFiles(store=snapshot.store).with_data(rewritten).with_changes(gone)
            owned.discard(Rejected(error=error))
            raise
    return ReplacementPlan(
        removed=found.candidates.take(pa.array([match.index for match in found.matches], pa.int64())),
        rewritten=rewritten,
        changes=(*gone, *come),
        read_paths=found.read_paths,
        kept_rows=sum(match.num_left for match in found.matches),
    )


def _rewritten(
    snapshot: Snapshot,
    predicate: Expression,
    found: FoundRows,
    plan: WritePlan,
    *,
    tells: bool,
    size: int,
    clock: Clock,
) -> tuple[tuple[AddFile, ...], tuple[AddCdcFile, ...]]:
    """The rows that stay of files that match in part, and as change data those that go of all."""
    rows = MatchedRows(snapshot, predicate=predicate)
    files = RowFileWriter(
        snapshot.store,
        plan=plan,
        options=FileOptions(target_file_size_bytes=size),
        properties=plan.properties,
        keep_row_ids=True,
        clock=clock,
    )
    with files, ChangeFileWriter(snapshot.store, plan, clock=clock) as changes:
        for match in found.matches:
            if not tells:
                for left in rows.remaining(match):
                    files.write(left)
                continue
            for left, gone in rows.both(match):
                files.write(left)
                changes.write(gone.columns, Change.DELETE)
        return tuple(files.finish()), changes.finish()
