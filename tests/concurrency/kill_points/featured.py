"""Operations on tables with features, killed as the others are: rows by vectors, clones, conversions, ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from delta_core import DeltaTable, clone_table, write_deltalake
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.maintenance.convert import convert_to_deltalake
from delta_core.schema.types import STRING, StructField, StructType
from delta_core.snapshot.snapshot import Snapshot
from tests.concurrency.kill_points.featured_tables import (
    ALL_ROWS,
    LATER,
    ROWS,
    TRACKED,
    FeaturedStart,
    Row,
    table_of,
)
from tests.concurrency.kill_points.operation import PROPERTIES, Here
from tests.concurrency.kill_points.places import SOURCE

Changed = tuple[str, Row]
"""A row of change data: what it is, and the row."""

_ALONE = InlineExecutor(1)
_PARTITION = StructType((StructField(name="p", data_type=STRING),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Featured:
    """An operation as a value.

    Attributes:
        run: does it, with `PROPERTIES`, as a caller that knows of no earlier run.
        commits: the names of its commits, in order; all but the last change no row and no property.
        before, after: the rows; None where there is no table.
        changes: what change data tells of it, where the start keeps change data.
        enables: a property that is there afterwards and was not before.
        shows: or what else tells that it is done.
        repeats: whether a run after a killed one may record a commit again that changes nothing.
        deletes: whether it takes objects away that were there before.
        shallow: whether it names files of another table.
    """

    name: str
    run: Callable[[Here], object]
    start: FeaturedStart
    commits: tuple[str, ...]
    before: tuple[Row, ...] | None
    after: tuple[Row, ...]
    changes: tuple[Changed, ...] = ()
    enables: str | None = None
    shows: Callable[[Snapshot], bool] | None = None
    repeats: bool = False
    deletes: bool = False
    shallow: bool = False

    def is_done(self, snapshot: Snapshot) -> bool:
        """Whether the version shows it by other things than rows."""
        if self.shows is not None:
            return self.shows(snapshot)
        return snapshot.metadata.configuration.get(self.enables or "") == "true"


_REPLACED: tuple[Row, ...] = ((50, "b", "new"), (51, "b", "new"))
_UPDATED = "id IN (4, 5, 14, 24)"
_GONE = "id IN (2, 3, 12, 21)"


def _marked(row: Row) -> Row:
    return (*row[:2], row[2] + "!") if row[0] in (4, 5, 14, 24) else row


def _updates(rows: Iterable[Row]) -> tuple[Changed, ...]:
    pairs = [(row, _marked(row)) for row in rows if _marked(row) != row]
    return tuple(
        change for old, new in pairs for change in (("update_preimage", old), ("update_postimage", new))
    )


def _update(name: str, start: FeaturedStart, before: tuple[Row, ...]) -> Featured:
    return Featured(
        name=name,
        # Applied a second time it would mark the rows a second time.
        run=lambda run: DeltaTable(run.uri).update(
            {"v": "concat(v, '!')"}, _UPDATED, commit_properties=PROPERTIES
        ),
        start=start,
        commits=("UPDATE",),
        before=before,
        after=tuple(_marked(row) for row in before),
        changes=_updates(before),
    )


def _delete(name: str, start: FeaturedStart, before: tuple[Row, ...]) -> Featured:
    gone = (2, 3, 12, 21)
    return Featured(
        name=name,
        run=lambda run: DeltaTable(run.uri).delete(_GONE, commit_properties=PROPERTIES),
        start=start,
        commits=("DELETE",),
        before=before,
        after=tuple(row for row in before if row[0] not in gone),
        changes=tuple(("delete", row) for row in before if row[0] in gone),
    )


_MERGED = (4, 14, 70)


def _merge(name: str, start: FeaturedStart, before: tuple[Row, ...]) -> Featured:
    source = table_of(*((number, "b", "new") for number in _MERGED))
    there = {row[0] for row in before}
    new = tuple((number, "b", "new") for number in _MERGED if number not in there)
    marked = [(row, (*row[:2], row[2] + "!")) for row in before if row[0] in _MERGED]
    after = dict(marked)
    return Featured(
        name=name,
        # Applied a second time it would mark the rows a second time.
        run=lambda run: (
            DeltaTable(run.uri)
            .merge(source, "target.id = source.id", commit_properties=PROPERTIES)
            .when_matched_update({"v": "concat(target.v, '!')"})
            .when_not_matched_insert_all()
            .execute()
        ),
        start=start,
        commits=("MERGE",),
        before=before,
        after=(*(after.get(row, row) for row in before), *new),
        changes=(
            *(
                change
                for old, row in marked
                for change in (("update_preimage", old), ("update_postimage", row))
            ),
            *(("insert", row) for row in new),
        ),
    )


def _clone(name: str, start: FeaturedStart, *, shallow: bool = False) -> Featured:
    again = start is FeaturedStart.CLONE
    changed = (*(row for row in ROWS if row[0] not in (3, 4)), LATER)
    return Featured(
        name=name,
        run=lambda run: clone_table(
            f"{run.uri.rpartition('/')[0]}/{SOURCE}",
            run.uri,
            shallow=shallow,
            executor=_ALONE,
            commit_properties=PROPERTIES,
        ),
        start=start,
        commits=("CLONE",),
        before=ROWS if again else None,
        after=changed if again else ROWS,
        shallow=shallow,
    )


_PARTITION_OF_NEW = _REPLACED[0][1]

_ALL = (
    _update("update by vectors", FeaturedStart.DELETION_VECTORS, ROWS),
    _update("update by rewriting", FeaturedStart.REWRITTEN, ALL_ROWS),
    _delete("delete by vectors", FeaturedStart.DELETION_VECTORS, ROWS),
    _delete("delete by rewriting", FeaturedStart.REWRITTEN, ALL_ROWS),
    _merge("merge by vectors", FeaturedStart.DELETION_VECTORS, ROWS),
    _merge("merge by rewriting", FeaturedStart.REWRITTEN, ALL_ROWS),
    Featured(
        name="dynamic partition overwrite",
        run=lambda run: write_deltalake(
            run.uri,
            table_of(*_REPLACED),
            mode="overwrite",
            partition_overwrite_mode="dynamic",
            commit_properties=PROPERTIES,
        ),
        start=FeaturedStart.DELETION_VECTORS,
        commits=("WRITE",),
        before=ROWS,
        after=(*(row for row in ROWS if row[1] != _PARTITION_OF_NEW), *_REPLACED),
        changes=(
            *(("delete", row) for row in ROWS if row[1] == _PARTITION_OF_NEW),
            *(("insert", row) for row in _REPLACED),
        ),
    ),
    Featured(
        name="purge",
        run=lambda run: DeltaTable(run.uri).optimize.purge(executor=_ALONE, commit_properties=PROPERTIES),
        start=FeaturedStart.DELETION_VECTORS,
        commits=("REORG",),
        before=ROWS,
        after=ROWS,
    ),
    Featured(
        name="row-tracking backfill",
        run=lambda run: DeltaTable(run.uri).optimize.enable_row_tracking(
            files_per_commit=2, commit_properties=PROPERTIES
        ),
        start=FeaturedStart.UNTRACKED,
        commits=(
            "ADD FEATURE",
            "ROW TRACKING BACKFILL",
            "ROW TRACKING BACKFILL",
            "SET TBLPROPERTIES",
        ),
        before=ALL_ROWS,
        after=ALL_ROWS,
        enables="delta.enableRowTracking",
    ),
    _clone("deep clone", FeaturedStart.SOURCE),
    _clone("deep clone again", FeaturedStart.CLONE),
    _clone("shallow clone", FeaturedStart.SOURCE, shallow=True),
    Featured(
        name="convert",
        run=lambda run: convert_to_deltalake(
            run.uri,
            partition_by=_PARTITION,
            configuration=TRACKED,
            executor=_ALONE,
            commit_properties=PROPERTIES,
        ),
        start=FeaturedStart.FILES,
        commits=("CONVERT",),
        before=None,
        after=ALL_ROWS,
    ),
)

FEATURED: dict[str, Featured] = {operation.name: operation for operation in _ALL}

KEEPS_CHANGES = frozenset({FeaturedStart.DELETION_VECTORS, FeaturedStart.REWRITTEN})
