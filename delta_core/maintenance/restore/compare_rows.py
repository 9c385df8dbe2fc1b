"""The exact difference in rows between two versions, from the files that they do not share.

Rows are compared as a multiset, over the columns of both versions. A column that one version lacks is null in
that version. A column whose type changed is compared in the wider type. When neither type widens to the
other, it is compared as two columns, so that every row with a value in it differs. All NaN values are equal,
and so are 0.0 and -0.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.errors import DeltaError, InvalidTableError, RestoreError
from delta_core.maintenance.restore.compared_columns import ComparedColumns
from delta_core.maintenance.restore.files import RestoredFile, file_keys
from delta_core.maintenance.restore.plan import RestorePlan
from delta_core.maintenance.restore.row_diff import RowDiff
from delta_core.maintenance.restore.row_matching import DEFAULT_ROWS_IN_MEMORY, RowMatcher
from delta_core.maintenance.restore.samples import sample_row
from delta_core.run import DEFAULT_RUN, Run
from delta_core.scan.record_batches import FileReader
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess

MAX_SAMPLE_ROWS = 20
_BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    raw_path: str
    partition_values: Mapping[str, str | None]
    rows: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """The files that only this version of the two has."""

    snapshot: Snapshot
    files: Sequence[_File]
    reader: FileReader
    access: DataAccess

    def batches(self, number: int) -> Iterator[pa.RecordBatch]:
        file = self.files[number]
        place = self.access.locate(file.raw_path, store=self.snapshot.store)
        yield from self.reader.read(place.store, place.path, file.partition_values)

    def num_rows(self) -> int:
        """Row count from statistics, or else from footers; a file that cannot be opened counts as empty."""
        return sum(self._rows_of(file) if file.rows is None else file.rows for file in self.files)

    def _rows_of(self, file: _File) -> int:
        try:
            with self.access.open_logged(file.raw_path, store=self.snapshot.store) as source:
                return int(pq.read_metadata(source).num_rows)
        except (DeltaError, pa.ArrowException, OSError):
            return 0


def diff_rows(
    snapshot: Snapshot,
    plan: RestorePlan,
    *,
    sample_rows: int = MAX_SAMPLE_ROWS,
    rows_in_memory: int = DEFAULT_ROWS_IN_MEMORY,
    run: Run = DEFAULT_RUN,
) -> RowDiff:
    """The rows that the plan would remove and the rows that it would restore.

    Reads every file that the plan adds or removes once, and the files of sample rows a second time. Memory is
    bounded by a row group and by `rows_in_memory`; beyond that, 24 bytes for each row are written to a
    temporary directory. A missing or damaged file is left out, and the result names it.

    Args:
        snapshot: the version that the plan would replace.
        plan: made from `snapshot` by `plan_restore`.
        sample_rows: how many sample rows of each kind to return, at most 20; 0 for none.
        rows_in_memory: approximate number of rows that are compared at once.
        run: the surroundings. Its clock, progress and allowed roots are used.

    Raises:
        RestoreError: the plan is for another version, or `sample_rows` is out of range.
        UnsupportedTableFeatureError: a version has features with which the files cannot be read as they are,
            for instance column mapping or deletion vectors.
    """
    if plan.version != snapshot.version:
        raise RestoreError(
            f"The plan is for version {plan.version}, but the snapshot is version {snapshot.version}.",
            fix="Plan the restore again.",
        )
    if not 0 <= sample_rows <= MAX_SAMPLE_ROWS:
        raise RestoreError(
            f"The number of sample rows cannot be {sample_rows}.",
            fix=f"Pass a number from 0 to {MAX_SAMPLE_ROWS}.",
        )
    target = Snapshot.load(snapshot.store, version=plan.target_version, clock=run.clock)
    for version in (snapshot, target):
        # The files are read one by one, without deletion vectors and column mapping.
        version.require_readable(operation="compare the rows of two versions")
    columns = ComparedColumns.of(snapshot.schema, target.schema)
    sides = (
        _side(snapshot, plan.removed, run.access),
        _side(target, plan.added, run.access),
    )
    total = len(sides[0].files) + len(sides[1].files)
    rows: list[int] = [0, 0]
    unreadable: list[set[int]] = [set(), set()]
    done = 0
    with RowMatcher(
        expected_rows=sides[0].num_rows() + sides[1].num_rows(), rows_in_memory=rows_in_memory
    ) as matcher:
        for number, side in enumerate(sides):
            for file in range(len(side.files)):
                run.progress.emit("rows.comparing", done=done, total=total)
                first_row = 0
                try:
                    for batch in side.batches(file):
                        arrays = columns.aligned(number, batch)
                        matcher.add(number, arrays, rows=batch.num_rows, file=file, first_row=first_row)
                        first_row += batch.num_rows
                    rows[number] += first_row
                except InvalidTableError:
                    unreadable[number].add(file)
                done += 1
        lost, returned = matcher.compare(
            left_out=(frozenset(unreadable[0]), frozenset(unreadable[1])), most_places=sample_rows
        )
    return RowDiff(
        rows_lost=lost.rows,
        rows_returned=returned.rows,
        rows_kept=rows[0] - lost.rows,
        sample_lost=tuple(_samples(sides[0], lost.places)),
        sample_returned=tuple(_samples(sides[1], returned.places)),
        only_in_snapshot=columns.only_in_snapshot,
        only_in_target=columns.only_in_target,
        incompatible=columns.incompatible,
        unreadable=tuple(
            sorted(sides[number].files[file].raw_path for number in (0, 1) for file in unreadable[number])
        ),
    )


def _side(snapshot: Snapshot, files: Sequence[RestoredFile], access: DataAccess) -> _Side:
    rows = {file.key: file.rows for file in files}
    live = snapshot.files.to_table(["path", "partition_values", "deletion_vector"])
    return _Side(
        snapshot=snapshot,
        files=[
            _File(raw_path=key[0], partition_values=dict(values or ()), rows=rows[key])
            for key, values in zip(file_keys(live), live["partition_values"].to_pylist(), strict=True)
            if key in rows
        ],
        reader=FileReader(
            schema=snapshot.schema,
            partition_columns=snapshot.partition_columns,
            batch_rows=_BATCH_ROWS,
            access=access,
        ),
        access=access,
    )


def _samples(side: _Side, places: Sequence[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """The rows at the given, sorted places. Each file is read once, up to the last row needed."""
    rows_by_file: dict[int, list[int]] = {}
    for file, row in places:
        rows_by_file.setdefault(file, []).append(row)
    for file, numbers in rows_by_file.items():
        pending = list(numbers)
        first_row = 0
        for batch in side.batches(file):
            while pending and pending[0] < first_row + batch.num_rows:
                yield sample_row(batch, pending.pop(0) - first_row)
            if not pending:
                break
            first_row += batch.num_rows
