"""Histories in which rows go by deletion vectors, often from one file at once, and numbers are generated.

An update's rows go by a vector, and come with their ids in a new file. Data files are names here, so a tag
says what the column of ids would hold. A statement's predicate is over these ids, which is why it finds its
rows again in the files of a rewrite. Rewrites keep the order of rows or do not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa

from delta_core.actions import AddFile, RemoveFile
from delta_core.deletion_vectors.file_update import (
    DeletionVectorUnion,
    physical_records,
    removed,
    unite,
    update_deletion_vector,
)
from delta_core.deletion_vectors.reader import read_deletion_vector
from delta_core.deletion_vectors.roaring import Positions
from delta_core.deletion_vectors.writer import write_deletion_vectors
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.carried_deletions import DeletionCarrier
from delta_core.transaction.commit_result import CommitResult, Committed, Conflict
from delta_core.transaction.deletion_vector_merger import DeletionVectorMerger
from delta_core.transaction.file_actions import add_actions, remove_actions
from delta_core.transaction.owned_files import OwnedFiles
from delta_core.transaction.row_map import MovedRows, OldRows, RowMap, RowsInOrder
from tests.simulation.history import PARTITIONS, SCHEMA_STRING, STAMPED, Job, Kind, Plan
from tests.simulation.programs import Program, partition_is

FEATURES = STAMPED | {"deletionVectors", "identityColumns"}
ROWS_PER_FILE = 8
NUMBERS_TAG = "numbers"
IDS_TAG = "row ids"
HIGH_WATER_MARK = "delta.identity.highWaterMark"
MAX_MOVES = 20

_IDENTITY = {
    "delta.identity.start": 1,
    "delta.identity.step": 1,
    HIGH_WATER_MARK: 0,
    "delta.identity.allowExplicitInsert": False,
}


def rowed(plan: Plan) -> Plan:
    """The same history on a table with these features; its deletions take rows and not files."""
    random = Random(f"rows:{plan.seed}")
    schema = json.loads(SCHEMA_STRING)
    schema["fields"][0]["metadata"] = _IDENTITY

    def changed(job: Job) -> Job:
        if job.kind is Kind.DELETE or (job.kind is Kind.OVERWRITE and random.random() < 0.5):
            return replace(job, kind=Kind.TAKE_ROWS)
        if job.kind is Kind.APPEND and random.random() < 0.4:
            return replace(job, kind=random.choice((Kind.NUMBERED_APPEND, Kind.TAKE_ROWS)))
        return job

    rewriting = Random(f"rewrites:{plan.seed}")

    def rewritten(job: Job) -> Job:
        rewrites = job.kind in (Kind.READ, Kind.OVERWRITE) and rewriting.random() < 0.6
        return replace(job, kind=Kind.REWRITE) if rewrites else job

    moving = Random(f"moved rows:{plan.seed}")

    def moved(job: Job) -> Job:
        takes = job.kind is Kind.TAKE_ROWS and moving.random() < 0.4
        return replace(job, kind=Kind.MOVE_ROWS) if takes else job

    switches = {"delta.enableInCommitTimestamps": "true", "delta.enableDeletionVectors": "true"}
    return replace(
        plan,
        jobs=tuple(tuple(rewritten(moved(changed(job))) for job in jobs) for jobs in plan.jobs),
        configuration={**plan.configuration, **switches},
        features=FEATURES,
        schema_string=json.dumps(schema),
        rows_per_file=ROWS_PER_FILE,
    )


class RowProgram(Program):
    """One worker's jobs on such a table."""

    def _do(self, job: Job) -> CommitResult | None:
        if job.kind in (Kind.TAKE_ROWS, Kind.MOVE_ROWS):
            return self._follow_rows(job)
        if job.kind is Kind.REWRITE and self._rewrites_rows:
            return self._rewrite(job)
        if job.kind is Kind.NUMBERED_APPEND:
            return self._append_numbered(job)
        return super()._do(job)

    _rewrites_rows = True
    """Whether a rewrite copies rows with their ids."""

    def _follow_rows(self, job: Job) -> CommitResult | None:
        """Again on the newest version each time that a rewrite has moved the rows."""
        by = self._random.choice((2, 3, 5))
        taken = by, self._random.randrange(by)
        result: CommitResult | None = None
        for number in range(MAX_MOVES):
            moved = _RowsByTag() if taken[0] > 2 else None
            resolver = DeletionVectorMerger(self._store, clock=self._clock, moved=moved)
            result = self._take_rows(job, taken, resolver, aged=job.aged and not number)
            if not isinstance(result, Conflict) or not resolver.rows_were_moved:
                relocated = number > 0 or resolver.has_followed
                self.record.relocated += relocated and isinstance(result, Committed)
                return result
        return result

    def _take_rows(
        self, job: Job, taken: tuple[int, int], resolver: DeletionVectorMerger, *, aged: bool
    ) -> CommitResult | None:
        """Some rows of each file that the job looks at, as DELETE takes them and UPDATE writes them again."""
        snapshot, transaction = self._begin(job, aged=aged, resolver=resolver)
        if not self._takes_by_deletion_vectors(snapshot):
            return None
        by, rest = taken
        self._running["taken"] = taken
        now_ms = self._clock.now_ms()
        actions: list[RemoveFile | AddFile] = []
        partly: list[tuple[AddFile, DeletionVectorUnion]] = []
        read: list[str] = []
        ids: dict[str, list[int]] = {}
        for file in add_actions(snapshot.files.to_table(), data_change=True):
            if job.partition not in (None, file.partition_values["p"]):
                continue
            read.append(file.path)
            rows = physical_records(file)
            assert rows is not None
            dv = file.deletion_vector
            known = [] if dv is None else read_deletion_vector(self._store, dv, num_rows=rows)
            mine = _row_ids(file, rows)
            wanted = [at for at, row_id in enumerate(mine) if row_id % by == rest]
            union = unite(known, wanted, num_records=rows)  # type: ignore[arg-type]
            if union.is_unchanged:
                continue
            ids.setdefault(str(file.partition_values["p"]), []).extend(mine[at] for at in union.newly_deleted)
            if union.deletes_all:
                actions.append(removed(file, deletion_timestamp_ms=now_ms))
                continue
            partly.append((file, union))
        if not actions and not partly:
            return None
        written = write_deletion_vectors(self._store, (union.positions for _, union in partly))
        for (file, _), dv in zip(partly, written.descriptors, strict=True):
            update = update_deletion_vector(file, dv, deletion_timestamp_ms=now_ms)
            actions += [action for action in (update.remove, update.add) if action is not None]
        if job.kind is Kind.MOVE_ROWS:
            actions += [self._moved_file(job, partition, moved) for partition, moved in ids.items()]
        transaction.read_predicate(partition_is(job.partition)).read_files(read).add(*actions)
        result = transaction.commit()
        resolver.discard(result, OwnedFiles(store=self._store).with_deletion_vectors(written.descriptors))
        if isinstance(result, Committed) and not result.already_applied:
            self.record.joined += resolver.has_settled
        return result

    def _rewrite(self, job: Job) -> CommitResult | None:
        """Two files become one, with the rows that they have left: a compaction, or a Z-order."""
        snapshot = self._held if job.aged and self._held is not None else self._load()
        files = snapshot.files.to_table()
        partition = job.partition or self._random.choice(PARTITIONS)
        values = [dict(value)["p"] for value in files.column("partition_values").to_pylist()]
        files = files.filter(pa.array([value == partition for value in values], pa.bool_()))
        files = files.slice(self._random.randrange(max(1, files.num_rows)), 2)
        ids: list[int] = []
        stats: dict[str, str | None] = {}
        moved: list[MovedRows] = []
        new = super()._new_file(job, partition=partition, data_change=False)
        for file in add_actions(files, data_change=False):
            rows = physical_records(file)
            assert rows is not None
            stats[file.path] = file.stats
            dv = file.deletion_vector
            gone = set() if dv is None else set(read_deletion_vector(self._store, dv, num_rows=rows).tolist())
            left = [row_id for at, row_id in enumerate(_row_ids(file, rows)) if at not in gone]
            moved.append(MovedRows(path=file.path, target=new.path, first_row=len(ids), count=len(left)))
            ids += left
        if not ids:
            return None
        rows_map: RowMap = RowsInOrder(moved)
        if self._random.random() < 0.5:
            self._random.shuffle(ids)
            before = {add.path: add for add in add_actions(files, data_change=False)}
            rows_map = _RowsByTag(before)
        carrier = DeletionCarrier(self._store, rows_map, clock=self._clock)
        _, transaction = self._begin(job, aged=False, resolver=carrier, snapshot=snapshot)
        transaction.preserve_rows(True)
        removes = remove_actions(files, deletion_timestamp_ms=self._clock.now_ms(), data_change=False)
        # There is no footer to count the rows in.
        transaction.add(*[replace(remove, stats=stats[remove.path]) for remove in removes], _tagged(new, ids))
        result = transaction.commit()
        carrier.discard(result, OwnedFiles(store=self._store))
        if isinstance(result, Committed) and not result.already_applied:
            self.record.carried += carrier.has_settled
        return result

    def _takes_by_deletion_vectors(self, snapshot: Snapshot) -> bool:
        return True

    def _moved_file(self, job: Job, partition: str, ids: list[int]) -> AddFile:
        """A file of rows that keep the ids that they have."""
        return _tagged(super()._new_file(job, partition=partition), ids)

    def _append_numbered(self, job: Job) -> CommitResult:
        """A file whose rows get the next numbers, which its metadata gives out."""
        snapshot, transaction = self._begin(job, aged=job.aged)
        schema = json.loads(snapshot.metadata.schema_string)
        marks = schema["fields"][0]["metadata"]
        first = marks[HIGH_WATER_MARK] + 1
        marks[HIGH_WATER_MARK] += ROWS_PER_FILE
        tags = {NUMBERS_TAG: f"{first} {marks[HIGH_WATER_MARK]}"}
        file = replace(self._new_file(job), tags=tags)
        metadata = replace(snapshot.metadata, schema_string=json.dumps(schema))
        return transaction.add(metadata, file).commit()

    def _new_file(self, job: Job, *, partition: str | None = None, data_change: bool = True) -> AddFile:
        file = super()._new_file(job, partition=partition, data_change=data_change)
        return replace(file, stats=json.dumps({"numRecords": ROWS_PER_FILE}))


class _RowsByTag:
    """The row map of a rewrite that sorts: as `RowsById`, with the ids of the tags."""

    def __init__(self, before: Mapping[str, AddFile] | None = None) -> None:
        self._before = before or {}

    def new_positions(
        self, rows: Sequence[OldRows], new_files: Sequence[AddFile]
    ) -> Mapping[str, Positions] | None:
        wanted = set()
        for old in rows:
            file = self._before.get(old.file.remove.path, old.file.remove)
            ids = _row_ids(file, old.file.num_records)
            wanted |= {ids[at] for at in old.positions.tolist()}
        found = {}
        for new in new_files:
            listed = (new.tags or {}).get(IDS_TAG, "").split()
            places = [at for at, row_id in enumerate(listed) if int(row_id) in wanted]
            if places:
                found[new.path] = np.array(places, np.int64)
        return found if sum(map(len, found.values())) == len(wanted) else None


def _tagged(file: AddFile, ids: Sequence[int]) -> AddFile:
    tags = {IDS_TAG: " ".join(map(str, ids))}
    return replace(file, stats=json.dumps({"numRecords": len(ids)}), tags=tags)


def _row_ids(file: AddFile | RemoveFile, rows: int) -> list[int]:
    """The ids of a file's rows, by position."""
    if tag := (file.tags or {}).get(IDS_TAG):
        return [int(row_id) for row_id in tag.split()]
    if file.base_row_id is None:
        return list(range(rows))
    return list(range(file.base_row_id, file.base_row_id + rows))
