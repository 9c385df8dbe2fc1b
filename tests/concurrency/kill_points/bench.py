"""Where points are tried: starts to copy, a nursery for the processes, and what is held against each end."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from delta_core.errors import DeltaError, DeltaWarning, TableNotFoundError
from delta_core.snapshot.snapshot import Snapshot
from tests.concurrency.kill_points.child import Request
from tests.concurrency.kill_points.evidence import Raw, damage, raw, state_by_peer
from tests.concurrency.kill_points.nursery import Ended, Nursery
from tests.concurrency.kill_points.operation import Operation, Start
from tests.concurrency.kill_points.operations import OPERATIONS
from tests.concurrency.kill_points.places import DECIDES, Place, store_of, table_root
from tests.concurrency.kill_points.points import Point, points_of
from tests.concurrency.kill_points.power import leave_durable
from tests.concurrency.kill_points.recovery import LEFT_BEHIND
from tests.concurrency.kill_points.steps import RETURNED, Moment
from tests.concurrency.kill_points.tables import StartTable, copied, start_table
from tests.concurrency.matrix import state as model
from tests.concurrency.matrix.state import TableState

_IN_MEMORY = Path("/dev/shm")


@contextmanager
def bench() -> Iterator[Bench]:
    """A bench in a folder of its own, in memory where the machine has one: a killed process needs no disk."""
    above = _IN_MEMORY if _IN_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="kill-points-", dir=above) as folder, Nursery() as nursery:
        yield Bench(folder=Path(folder), nursery=nursery)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """See `bench`."""

    folder: Path
    nursery: Nursery
    _starts: dict[tuple[Start, Place], StartTable] = field(default_factory=dict)
    _before: dict[Path, Raw] = field(default_factory=dict)

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
                chance = Random(str(point))
                leave_durable(table_root(trial.folder).parent, trial.journal, point.power, chance)
                trial.lost_power = True
            trial.look("after the kill", lands=point.lands, whole=point.at[0] == RETURNED)
            if not trial.faults:
                trial.repeat()
            return trial.faults
        finally:
            trial.remove()

    def _trial(self, operation: str, place: Place, variant: str | None = None) -> Trial:
        start = self._start(OPERATIONS[operation].start, place)
        folder = copied(start, Path(tempfile.mkdtemp(dir=self.folder)) / "place")
        return Trial(
            bench=self,
            operation=OPERATIONS[operation],
            place=place,
            start=start,
            before=self._before[start.folder],
            folder=folder,
            variant=variant,
        )

    def _start(self, start: Start, place: Place) -> StartTable:
        if (start, place) not in self._starts:
            made = start_table(start, place, self.folder / f"{start.name}-{place.name}")
            if start is Start.INTERRUPTED:
                self._leave_behind(made, place)
            self._starts[start, place] = made
            self._before[made.folder] = raw(table_root(made.folder))
        return self._starts[start, place]

    def _leave_behind(self, made: StartTable, place: Place) -> None:
        entry = f"after put_item {made.version:020}.json, {DECIDES}"
        ended = self.nursery.run(
            Request(
                operation=LEFT_BEHIND.name,
                place=place,
                folder=made.folder,
                paths=made.paths,
                kill_at=(entry, 1),
            )
        )
        assert ended.killed, ended


@dataclass(kw_only=True)
class Trial:
    """One table, from its start through some runs of one operation."""

    bench: Bench
    operation: Operation
    place: Place
    start: StartTable
    before: Raw
    folder: Path
    variant: str | None
    faults: list[str] = field(default_factory=list)
    lost_power: bool = False
    _looked: bool = False

    @property
    def journal(self) -> Path:
        """Where flushes are noted."""
        return self.folder / "journal"

    def remove(self) -> None:
        """Delete everything."""
        shutil.rmtree(self.folder.parent)

    def run(self, *, times: int = 1, kill_at: Moment | None = None, journal: Path | None = None) -> Ended:
        """Run the operation in a process of its own."""
        return self.bench.nursery.run(
            Request(
                operation=self.operation.name,
                place=self.place,
                folder=self.folder,
                paths=self.start.paths,
                times=times,
                kill_at=kill_at,
                journal=journal,
                variant=self.variant,
            )
        )

    def repeat(self) -> None:
        """Run the operation twice more: the first run may do what is left, the second finds all done."""
        if not self.operation.repeats:
            # The commits are counted: had the last run done anything, there would be one too many.
            self.finish("two more runs", times=2)
            return
        self.finish("the second run")
        settled = raw(table_root(self.folder)).commits
        self.finish("the third run")
        if raw(table_root(self.folder)).commits != settled:
            self.faults.append("the third run commits again")

    def finish(self, what: str, *, times: int = 1) -> tuple[Moment, ...]:
        """Run it to its end, and look."""
        ended = self.run(times=times)
        if ended.status != 0:
            self.faults.append(f"{what} ended with {ended.status}: {ended.errors[-2000:]}")
            return ()
        self.look(what, lands=True, whole=True)
        undone = self.operation.undone(table_root(self.folder))
        # A deletion is not flushed: what comes back is an orphan, which the next vacuum takes.
        if undone and not (self.lost_power and self.operation.deletes):
            self.faults.append(f"{what}: {undone}")
        return ended.moments

    def look(self, what: str, *, lands: bool | None, whole: bool) -> None:
        """Hold the table against its model.

        Args:
            what: when, for the faults.
            lands: whether the commit must be there; None when it may.
            whole: whether the operation has come to its end.
        """
        root = table_root(self.folder)
        before, after = self.start.state, self.operation.effect(self.start.state)
        allowed = {True: [after], False: [before], None: [before, after]}[lands]
        if self.place is Place.DYNAMODB:
            # Who reads the objects alone sees a commit when its file is there; our reader puts it there.
            self._peer(what, [self.start.shown, *([before] if lands else []), *allowed])
        seen = self._ours()
        if seen not in allowed:
            self._note(what, [f"the library reads {seen}"])
        self._peer(what, [seen])
        found = raw(root)
        self._note(what, damage(root, found, self.before, deletes=self.operation.deletes))
        try:
            self._commits(what, found, lands=lands, whole=whole)
        except (ValueError, KeyError, IndexError) as error:
            self._note(what, [f"the log cannot be read: {error!r}"])

    def _commits(self, what: str, found: Raw, *, lands: bool | None, whole: bool) -> None:
        keyed, names = found.keyed(), found.operations(self.start.version)
        wanted = {True: {self.operation.keyed}, False: {0}, None: {0, self.operation.keyed}}[lands]
        if self.operation.repeats:
            wanted = {0, self.operation.keyed}
        elif whole and names != self.operation.commits:
            self._note(what, [f"the commits are {names}"])
        if keyed not in wanted:
            self._note(what, [f"{keyed} commits have the key"])

    def _peer(self, what: str, allowed: list[TableState | str | None]) -> None:
        try:
            seen = state_by_peer(table_root(self.folder))
        except Exception as error:  # judged: whatever stops another reader is a fault
            self._note(what, [f"deltalake cannot read the table: {type(error).__name__}: {error}"])
            return
        if seen not in allowed:
            self._note(what, [f"deltalake reads {seen}"])

    def _ours(self) -> TableState | str | None:
        if not self._looked:
            # Every point's copy of a start has the same names: what was killed is read anew.
            model._rows_of_files.clear()
            self._looked = True
        try:
            snapshot = Snapshot.load(store_of(self.place, self.folder))
            return replace(TableState.of(snapshot), keys=())
        except TableNotFoundError:
            return None
        except (DeltaError, DeltaWarning) as error:
            return f"{type(error).__name__}: {error}"

    def _note(self, what: str, faults: list[str]) -> None:
        self.faults += [f"{what}: {fault}" for fault in faults]
