"""Where the points of tables with features are tried, and what is held against each end.

After each end the table is what it was or what it is to be, in rows, change data and properties, as the
library and the `deltalake` package read it; every file that any version names is there; row ids are of one
row each, below the watermark, and kept; commit times rise. Then the operation is run twice more.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import deltalake
import pyarrow as pa

from delta_core.actions import AddFile, Protocol
from delta_core.actions.json_codec import decode_commit
from delta_core.deletion_vectors.reader import deletion_vector_path
from delta_core.errors import DeltaError, DeltaWarning, TableNotFoundError
from delta_core.scan.change_data import ChangeDataScan
from delta_core.scan.row_tracking import ROW_TRACKING_COLUMNS
from delta_core.scan.scan import Scan
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.row_ids import enables_row_tracking
from tests.concurrency.kill_points.child import Request
from tests.concurrency.kill_points.evidence import Raw, damage, raw
from tests.concurrency.kill_points.featured import KEEPS_CHANGES, Changed, Featured
from tests.concurrency.kill_points.featured_changes import EVERY_FEATURED
from tests.concurrency.kill_points.featured_tables import FeaturedStart, MadeStart, Row, make_start
from tests.concurrency.kill_points.nursery import Ended, Nursery
from tests.concurrency.kill_points.places import SOURCE, Place, store_of, table_root
from tests.concurrency.kill_points.points import Point, points_of
from tests.concurrency.kill_points.power import leave_durable
from tests.concurrency.kill_points.steps import RETURNED, Moment
from tests.concurrency.matrix.featured import id_faults, log_faults

_IN_MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a table shows: rows, change data since the start, and whether the rest is as it is to be."""

    rows: tuple[Row, ...]
    changes: tuple[Changed, ...] = ()
    enabled: bool = False


@contextmanager
def featured_bench() -> Iterator[FeaturedBench]:
    """A bench in a folder of its own, in memory where the machine has one."""
    above = _IN_MEMORY if _IN_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="kill-points-", dir=above) as folder, Nursery() as nursery:
        yield FeaturedBench(folder=Path(folder), nursery=nursery)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeaturedBench:
    """See `featured_bench`."""

    folder: Path
    nursery: Nursery
    _starts: dict[tuple[FeaturedStart, Place], MadeStart] = field(default_factory=dict)

    def points(self, operation: str, place: Place, *, variant: str | None = None) -> list[Point]:
        """Every point of an operation. Raises AssertionError when an undisturbed run is not right."""
        trial = self._trial(operation, place, variant)
        try:
            moments = trial.finish("undisturbed")
            assert moments, trial.faults
            assert variant or not trial.faults, f"{operation}, {place}: {trial.faults}"
            return points_of(operation, place, moments)
        finally:
            trial.remove()

    def faults(self, point: Point, *, variant: str | None = None) -> list[str]:
        """Kill a process there, then run the operation twice more; what is wrong about any of it.

        Raises AssertionError when the process does not get there.
        """
        trial = self._trial(point.operation, point.place, variant)
        try:
            ended = trial.run(kill_at=point.at, journal=trial.journal if point.power else None)
            assert ended.killed, f"{point}: the process ended with {ended.status}: {ended.errors[-2000:]}"
            if point.power:
                leave_durable(trial.root.parent, trial.journal, point.power, Random(str(point)))
            trial.look("after the kill", lands=point.lands, whole=point.at[0] == RETURNED)
            for what in ("the second run", "the third run"):
                if not trial.faults:
                    trial.finish(what)
            return trial.faults
        finally:
            trial.remove()

    def _trial(self, operation: str, place: Place, variant: str | None) -> _Trial:
        wanted = EVERY_FEATURED[operation]
        key = (wanted.start, place)
        if key not in self._starts:
            folder = self.folder / f"{wanted.start.name}-{place.name}"
            self._starts[key] = make_start(wanted.start, place, folder)
        start = self._starts[key]
        folder = Path(tempfile.mkdtemp(dir=self.folder)) / "place"
        shutil.copytree(start.folder, folder)
        return _Trial(
            nursery=self.nursery,
            operation=wanted,
            place=place,
            start=start,
            folder=folder,
            before=raw(table_root(folder)),
            variant=variant,
        )


@dataclass(kw_only=True)
class _Trial:
    """One table, from its start through some runs of one operation."""

    nursery: Nursery
    operation: Featured
    place: Place
    start: MadeStart
    folder: Path
    before: Raw
    variant: str | None
    faults: list[str] = field(default_factory=list)
    ids: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.operation.before is not None:
            self.ids = self._ids(Snapshot.load(self._store()))

    @property
    def root(self) -> Path:
        """Where the table's objects are."""
        return table_root(self.folder)

    @property
    def journal(self) -> Path:
        """Where flushes are noted."""
        return self.folder / "journal"

    def remove(self) -> None:
        """Delete everything."""
        shutil.rmtree(self.folder.parent)

    def run(self, *, kill_at: Moment | None = None, journal: Path | None = None) -> Ended:
        """Run the operation in a process of its own."""
        return self.nursery.run(
            Request(
                operation=self.operation.name,
                place=self.place,
                folder=self.folder,
                paths={},
                kill_at=kill_at,
                journal=journal,
                variant=self.variant,
            )
        )

    def finish(self, what: str) -> tuple[Moment, ...]:
        """Run it to its end, and look."""
        ended = self.run()
        if ended.status != 0:
            self.faults.append(f"{what} ended with {ended.status}: {ended.errors[-2000:]}")
            return ()
        self.look(what, lands=True, whole=True)
        return ended.moments

    def look(self, what: str, *, lands: bool | None, whole: bool) -> None:
        """Hold the table against what it was and what it is to be.

        Args:
            what: when, for the faults.
            lands: whether the last commit must be there; None when it may.
            whole: whether the operation has come to its end.
        """
        allowed = {True: [self._after], False: [self._before], None: [self._before, self._after]}[lands]
        seen = self._ours()
        if seen not in allowed:
            self._note(what, [f"the library reads {seen}"])
        if isinstance(seen, Seen) and not self.operation.shallow:
            self._peer(what, seen)
        found = raw(self.root)
        self._note(what, damage(self.root, found, self.before, deletes=self.operation.deletes))
        try:
            self._note(what, log_faults(self.root))
            self._note(what, [f"{name} is named and not there" for name in _missing(self.folder, found)])
            self._commits(what, found, done=seen == self._after, whole=whole)
        except (ValueError, KeyError, IndexError) as error:
            self._note(what, [f"the log cannot be read: {error!r}"])

    @property
    def _before(self) -> Seen | None:
        return None if self.operation.before is None else Seen(rows=self.operation.before)

    @property
    def _after(self) -> Seen:
        wanted = self.operation
        return Seen(
            rows=tuple(sorted(wanted.after)),
            changes=tuple(sorted(wanted.changes)),
            enabled=wanted.enables is not None or wanted.shows is not None,
        )

    def _commits(self, what: str, found: Raw, *, done: bool, whole: bool) -> None:
        names, wanted = found.operations(self.start.version), self.operation.commits
        if self.operation.repeats:
            names = tuple(name for name, _ in groupby(names))
        if (names != wanted) if whole else (names != wanted[: len(names)]):
            self._note(what, [f"the commits are {names}"])
        # Where nothing shows that it is done, as of a purge, the key is the commit's own business.
        certain = whole or self._before != self._after
        if certain and found.keyed() != (1 if done else 0):
            self._note(what, [f"{found.keyed()} commits have the key"])

    def _store(self, name: str = "table") -> Any:
        return store_of(self.place, self.folder, name)

    def _ours(self) -> Seen | str | None:
        wanted = self.operation
        try:
            snapshot = Snapshot.load(self._store())
            rows = self._rows(snapshot)
            if enables_row_tracking(snapshot.metadata):
                ids = self._rows(snapshot, ROW_TRACKING_COLUMNS)
                kept = {row[0] for row in wanted.before or ()} & {row[0] for row in wanted.after}
                before = {number: row_id for number, row_id in self.ids.items() if number in kept}
                if wrong := id_faults(snapshot, ids, before):
                    return "; ".join(wrong)
            changes: list[Changed] = []
            if wanted.start in KEEPS_CHANGES and snapshot.version > self.start.version:
                scan = ChangeDataScan(snapshot, starting_version=self.start.version + 1)
                changes = [
                    (row["_change_type"], (row["id"], row["p"], row["v"]))
                    for batch in scan.to_batches()
                    for row in batch.to_pylist()
                ]
            return Seen(
                rows=_sorted(rows),
                changes=tuple(sorted(changes)),
                enabled=wanted.is_done(snapshot),
            )
        except TableNotFoundError:
            return None
        except (DeltaError, DeltaWarning) as error:
            return f"{type(error).__name__}: {error}"

    def _rows(self, snapshot: Snapshot, metadata_columns: tuple[str, ...] = ()) -> pa.Table:
        roots = [self._store(SOURCE)] if self.operation.shallow else []
        return Scan(snapshot, metadata_columns=metadata_columns, allowed_roots=roots).to_table()

    def _ids(self, snapshot: Snapshot) -> dict[int, int]:
        if not enables_row_tracking(snapshot.metadata):
            return {}
        found = self._rows(snapshot, ROW_TRACKING_COLUMNS)
        return dict(zip(found["id"].to_pylist(), found["_row_id"].to_pylist(), strict=True))

    def _peer(self, what: str, seen: Seen) -> None:
        if not read_by_peer(Snapshot.load(self._store()).protocol):
            return
        try:
            table = deltalake.DeltaTable(str(self.root))
            found = deltalake.QueryBuilder().register("t", table).execute("SELECT id, p, v FROM t")
            rows = _sorted(pa.table(found.read_all()))
        except Exception as error:  # judged: whatever stops another reader is a fault
            self._note(what, [f"deltalake cannot read the table: {type(error).__name__}: {error}"])
            return
        if rows != seen.rows:
            self._note(what, [f"deltalake reads {rows}"])

    def _note(self, what: str, faults: list[str]) -> None:
        self.faults += [f"{what}: {fault}" for fault in faults]


def read_by_peer(protocol: Protocol) -> bool:
    """Whether the `deltalake` package reads tables of a protocol by its queries."""
    return not (protocol.reader_features or frozenset()) - {"deletionVectors", "columnMapping"}


def _sorted(table: pa.Table) -> tuple[Row, ...]:
    columns = (table.column(name).to_pylist() for name in ("id", "p", "v"))
    return tuple(sorted(zip(*columns, strict=True)))


def _missing(folder: Path, found: Raw) -> list[str]:
    """What some version names and is in no table of the folder: rows, vectors, change data."""
    root = table_root(folder)
    named = set()
    for version, data in found.commits.items():
        for action in found.actions(version):
            named |= {_place(action[kind]["path"], folder, root) for kind in ("add", "cdc") if kind in action}
        for action in decode_commit(data, path=str(version)):
            if isinstance(action, AddFile) and action.deletion_vector is not None:
                if action.deletion_vector.storage_type == "p":  # A shallow clone's, in its source.
                    named.add(_place(action.deletion_vector.path_or_inline_dv, folder, root))
                    continue
                dv = deletion_vector_path(action.deletion_vector, root_uri=root.as_uri())
                named |= {_place(dv, folder, root)} if dv is not None else set()
    return sorted(str(path) for path in named if not path.exists())


def _place(path: str, folder: Path, root: Path) -> Path:
    """The object of a path in a log."""
    plain = unquote(path)
    if plain.startswith("s3://"):
        return folder / plain.removeprefix("s3://")
    return Path(url2pathname(urlsplit(path).path)) if path.startswith("file:") else root / plain
