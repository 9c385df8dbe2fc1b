"""A job under a lease: alone while it works, refused once it is a zombie, whenever it wakes up."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from delta_core.clock import Clock
from delta_core.errors import ObjectExistsError, StorageError
from delta_core.jobs.builtin import default_registry
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.jobs.job_spec import IdempotencyKey, JobSpec, TableRef
from delta_core.jobs.lease import FENCE_OPERATION, fence_app_id
from delta_core.jobs.registry import JobKind, JobRegistry
from delta_core.jobs.run_job import run_job
from delta_core.leases.lease import acquire_lease
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.transaction.commit_result import raise_for_result
from delta_core.transaction.observer import CommitPhase
from delta_core.transaction.transaction import Transaction
from tests.support.faulty_store import FaultyStore, PutFault
from tests.support.log_builder import add, metadata, protocol
from tests.support.store_time import Machines

Step = Callable[[], None]


def nothing() -> None:
    return None


@dataclass(kw_only=True)
class World:
    """Two machines that run jobs on one table, each with a store that can misbehave."""

    machines: Machines
    stores: list[FaultyStore]
    patience_seconds: float = 600.0
    steps: dict[str, Step] = field(default_factory=dict)
    """What happens in the middle of a job's work, by the name of the file that it adds."""

    def run(
        self, number: int, file: str, *, lease: str | None = "nightly", key: int | None = None
    ) -> JobResult:
        spec = JobSpec(
            kind="append",
            table=TableRef(uri=str(self.machines.store.root)),
            params={"file": file},
            lease=lease,
            idempotency=None if key is None else IdempotencyKey(app_id="job", version=key),
            job_id=f"job-{file}",
        )
        return run_job(spec, JobContext(clock=self.machines.clocks[number]), registry=self._registry())

    def others_take_over(self, file: str) -> Step:
        """The first machine stands still; the second one does its job under the same lease."""

        def step() -> None:
            self.stores[0].before_put = None
            self.machines.pass_time(100)
            result = self.run(1, file)
            assert result.error is None, result.error

        return step

    def log(self) -> list[dict[str, Any]]:
        files = sorted((self.machines.store.root / "_delta_log").glob("*.json"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    def files(self) -> list[str]:
        return [action["add"]["path"] for action in self.log() if "add" in action]

    def operations(self) -> list[str]:
        return [action["commitInfo"]["operation"] for action in self.log() if "commitInfo" in action]

    def lease_files(self) -> list[dict[str, Any]]:
        directory = self.machines.store.root / "_deltaward" / "leases" / "nightly"
        return [json.loads(file.read_text()) for file in sorted(directory.glob("[0-9]*.json"))]

    def _registry(self) -> JobRegistry:
        def append(spec: JobSpec, context: JobContext) -> JobResult:
            snapshot = context.require_snapshot()
            file = spec.params["file"]
            self.steps.pop(file, nothing)()
            transaction = Transaction.begin(
                snapshot,
                operation="WRITE",
                properties=replace(context.commit_properties(spec), deadline_seconds=self.patience_seconds),
                observer=context.observer,
                clock=context.clock,
            )
            committed = raise_for_result(transaction.add(add(file)).commit())
            return context.succeeded(spec, version_to=committed.version, commits=(committed.version,))

        registry = JobRegistry(group=None)
        params = {"type": "object", "properties": {"file": {"type": "string"}}}
        registry.register(JobKind(name="append", run=append, params_schema=params))
        return registry


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    machines = Machines(tmp_path / "t")
    Transaction.create(machines.store).add(protocol(), metadata()).commit()
    world = World(machines=machines, stores=[FaultyStore(machines.store) for _ in machines.clocks])

    def opened(uri: str, *, storage_options: Any, clock: Clock) -> LogStore:
        return world.stores[machines.clocks.index(clock)]  # type: ignore[arg-type, return-value]

    monkeypatch.setattr(importlib.import_module("delta_core.jobs.run_job"), "open_store", opened)
    return world


def error_code(result: JobResult) -> str | None:
    return None if result.error is None else result.error.code


def test_a_job_has_its_lease_while_it_works_and_releases_it(world: World) -> None:
    seen: list[str] = []
    world.steps["a"] = lambda: seen.extend(item["state"] for item in world.lease_files())
    assert world.run(0, "a").error is None
    assert world.run(1, "b").error is None
    assert seen == ["held"]
    found = world.lease_files()
    assert [item["state"] for item in found] == ["held", "released", "held", "released"]
    assert [item["fence"] for item in found] == [1, 1, 3, 3]
    assert "job job-a" in found[0]["holder"]
    assert world.files() == ["a", "b"]
    assert FENCE_OPERATION not in world.operations(), "nobody has to be kept out"


def test_a_lease_that_another_has_is_refused_for_now(world: World) -> None:
    refused: list[JobResult] = []
    world.steps["a"] = lambda: refused.append(world.run(1, "b"))
    assert world.run(0, "a").error is None
    assert refused[0].error is not None
    assert (refused[0].error.code, refused[0].error.retryable) == ("LEASE_HELD", True)
    assert "job job-a" in refused[0].error.message
    assert world.files() == ["a"]
    assert world.run(1, "b").error is None


def test_other_leases_and_jobs_without_one_are_not_kept_out(world: World) -> None:
    others: list[JobResult] = []
    world.steps["a"] = lambda: others.extend(
        [world.run(1, "b", lease="other"), world.run(1, "c", lease=None)]
    )
    assert world.run(0, "a").error is None
    assert [error_code(result) for result in others] == [None, None]
    assert world.files() == ["b", "c", "a"]
    assert world.lease_files()[-1]["state"] == "released"


def test_a_zombie_that_wakes_up_before_its_commit_is_refused(world: World) -> None:
    world.steps["zombie"] = world.others_take_over("b")
    result = world.run(0, "zombie")
    assert (result.status, error_code(result)) == (JobStatus.FAILED, "LEASE_LOST")
    assert result.error is not None
    assert not result.error.retryable
    assert world.files() == ["b"]


def test_a_zombie_that_wakes_up_between_the_check_and_the_write_is_refused(world: World) -> None:
    awake: list[str] = []

    def sleep(path: str) -> None:
        if path.startswith("_delta_log/"):
            awake.append(path)
            world.others_take_over("b")()

    world.stores[0].before_put = sleep
    result = world.run(0, "zombie")
    assert len(awake) == 1, "its check had passed"
    assert (result.status, error_code(result)) == (JobStatus.FAILED, "LEASE_LOST")
    assert world.files() == ["b"]
    assert world.operations() == ["CREATE TABLE", FENCE_OPERATION, "WRITE"]


class StopsOnTheWay(FaultyStore):
    """The first write to the log goes out in the middle of what another machine does meanwhile."""

    def __init__(self, world: World) -> None:
        super().__init__(world.machines.store)
        self.world = world
        self.refused: list[ObjectExistsError] = []
        self.landed_within: list[str] = []

    def put_if_absent(self, path: str, data: bytes) -> None:
        if not path.startswith("_delta_log/") or self.refused or self.landed_within:
            super().put_if_absent(path, data)
            return

        def goes_out() -> None:
            try:
                self.inner.put_if_absent(path, data)
                self.landed_within.append(path)
            except ObjectExistsError as error:
                self.refused.append(error)

        self.world.steps["b"] = goes_out
        self.world.machines.pass_time(100)
        assert self.world.run(1, "b").error is None
        if self.refused:
            raise self.refused[0]


def test_a_zombie_is_refused_while_the_next_holder_still_works(world: World) -> None:
    """Its write arrives when the next holder has read the table and has committed nothing of its own yet."""
    store = StopsOnTheWay(world)
    world.stores[0] = store
    result = world.run(0, "zombie")
    assert (len(store.refused), store.landed_within) == (1, [])
    assert error_code(result) == "LEASE_LOST"
    assert world.files() == ["b"]


def test_what_the_zombie_wrote_before_the_takeover_the_next_holder_has_seen(world: World) -> None:
    """Its request is on the way when it stops, and arrives before the fence."""
    seen: list[int] = []

    def step() -> None:
        world.machines.pass_time(100)
        world.steps["b"] = lambda: seen.append(len(world.files()))
        assert world.run(1, "b").error is None

    observed = StopsAfterPut(step)
    spec = JobSpec(
        kind="append", table=TableRef(uri="t"), params={"file": "a"}, lease="nightly", job_id="job-a"
    )
    context = JobContext(clock=world.machines.clocks[0], observer=observed)
    result = run_job(spec, context, registry=world._registry())
    assert result.error is None
    assert seen == [1]
    assert world.files() == ["a", "b"]


class StopsAfterPut:
    """Stands still once, right after the first write."""

    def __init__(self, step: Step) -> None:
        self.step = step

    def on_phase(self, phase: CommitPhase, version: int) -> None:
        if phase is CommitPhase.AFTER_PUT:
            step, self.step = self.step, nothing
            step()


def test_an_unclear_write_whose_lease_is_lost_is_unknown(world: World) -> None:
    observed = StopsAfterPut(lambda: world.machines.pass_time(100))
    world.stores[0].before_put = lambda path: world.stores[0].puts.extend(
        [PutFault.DROP_REQUEST] if path.startswith("_delta_log/") else []
    )
    spec = JobSpec(
        kind="append", table=TableRef(uri="t"), params={"file": "a"}, lease="nightly", job_id="job-a"
    )
    context = JobContext(clock=world.machines.clocks[0], observer=observed)
    result = run_job(spec, context, registry=world._registry())
    assert (result.status, error_code(result)) == (JobStatus.UNKNOWN, "COMMIT_STATE_UNKNOWN")
    assert [item["state"] for item in world.lease_files()] == ["held"], "its write may still come"


def test_a_late_write_of_a_job_that_was_given_up_cannot_come_after_the_fence(world: World) -> None:
    world.patience_seconds = 0.0
    world.stores[0].before_put = lambda path: world.stores[0].puts.extend(
        [PutFault.LANDS_LATE] if path.startswith("_delta_log/") else []
    )
    result = world.run(0, "late")
    assert result.status is JobStatus.UNKNOWN
    assert world.lease_files()[-1]["state"] == "held"
    world.stores[0].before_put = None
    world.patience_seconds = 600.0
    world.machines.pass_time(100)
    assert world.run(1, "b").error is None
    # The request arrives now, and its version is taken.
    world.stores[0].puts = []
    world.stores[0].put_if_absent("anything", b"")
    assert world.files() == ["b"]


def test_a_takeover_is_recorded_in_table_and_result(world: World) -> None:
    acquire_lease(
        world.machines.store, "nightly", holder="who died", ttl_seconds=60, clock=world.machines.clocks[0]
    )
    world.machines.pass_time(62)
    result = world.run(1, "b")
    assert (result.error, result.commits) == (None, (2,))
    assert result.warnings == ("The lease 'nightly' was taken over from who died; version 1 is the fence.",)
    fence = next(action["txn"] for action in world.log() if "txn" in action)
    assert (fence["appId"], fence["version"]) == ("deltaward-lease/nightly", 2)


def test_numbers_go_on_when_somebody_deletes_the_files(world: World) -> None:
    test_a_takeover_is_recorded_in_table_and_result(world)
    for file in (world.machines.store.root / "_deltaward").rglob("*.json"):
        file.unlink()
    result = world.run(0, "c")
    assert result.error is None
    assert "a holder whose lease files are missing" in result.warnings[0]
    assert world.lease_files()[0]["fence"] == 3
    transactions = Snapshot.load(world.machines.store).transactions
    assert transactions[fence_app_id("nightly")].version == 3


@pytest.mark.parametrize("failure", [RuntimeError("?"), KeyboardInterrupt()])
def test_a_job_that_ends_nobody_knows_how_keeps_its_lease(world: World, failure: BaseException) -> None:
    def step() -> None:
        raise failure

    world.steps["a"] = step
    if isinstance(failure, Exception):
        assert world.run(0, "a").error is not None
    else:
        with pytest.raises(KeyboardInterrupt):
            world.run(0, "a")
    assert [item["state"] for item in world.lease_files()] == ["held"]
    world.machines.pass_time(62)
    assert "is the fence" in world.run(1, "b").warnings[0]


def test_a_job_that_fails_as_foreseen_releases_it(world: World) -> None:
    def step() -> None:
        raise StorageError("503")

    world.steps["a"] = step
    assert error_code(world.run(0, "a")) == "STORAGE_ERROR"
    assert world.lease_files()[-1]["state"] == "released"


def test_a_fence_that_cannot_be_written_leaves_the_lease_to_the_next(world: World) -> None:
    acquire_lease(world.machines.store, "nightly", ttl_seconds=60, clock=world.machines.clocks[0])
    world.machines.pass_time(62)
    world.stores[1].before_put = lambda path: world.stores[1].puts.extend(
        [PutFault.DENIED] if path.startswith("_delta_log/") else []
    )
    assert world.run(1, "b").error is not None
    assert world.lease_files()[-1]["state"] == "held", "a release would say that there is nobody to fence"
    world.stores[1].before_put = None
    world.machines.pass_time(62)
    assert "is the fence" in world.run(1, "b").warnings[0]
    assert world.files() == ["b"]


def test_the_table_is_read_after_the_lease_was_had(world: World) -> None:
    """The holder before did this very job, after this one had looked for its key."""

    def sleep(path: str) -> None:
        if path.startswith("_deltaward/"):
            world.stores[0].before_put = None
            assert world.run(1, "a", lease=None, key=1).error is None

    world.stores[0].before_put = sleep
    result = world.run(0, "again", key=1)
    assert (result.error, result.already_applied) == (None, True)
    assert world.files() == ["a"]


def test_a_key_that_is_in_the_table_needs_no_lease(world: World) -> None:
    assert world.run(0, "a", key=1).error is None
    acquire_lease(world.machines.store, "nightly", ttl_seconds=60, clock=world.machines.clocks[0])
    assert world.run(1, "a", key=1).already_applied


def test_a_vacuum_that_lost_its_lease_deletes_nothing(world: World, tmp_path: Path) -> None:
    orphan = world.machines.store.root / "part-0.parquet"
    orphan.write_bytes(b"x")
    world.machines.store._stamp("part-0.parquet")
    world.machines.pass_time(30 * 86_400)

    class TakesOver:
        def on_phase(self, phase: CommitPhase, version: int) -> None:
            if phase is CommitPhase.COMMITTED and "VACUUM START" in world.operations()[-1:]:
                world.machines.pass_time(100)
                acquire_lease(world.machines.store, "nightly", clock=world.machines.clocks[1])

    spec = JobSpec(
        kind="vacuum", table=TableRef(uri="t"), params={"dry_run": False}, lease="nightly", job_id="v"
    )
    # The machine's clock is the store's here: a plan goes by it.
    world.machines.clocks[0]._now_ms = world.machines.store_clock.now_ms()
    context = JobContext(clock=world.machines.clocks[0], observer=TakesOver())
    result = run_job(spec, context, registry=default_registry())
    assert error_code(result) == "LEASE_LOST"
    assert orphan.exists()
    assert world.operations()[-1] == "VACUUM START", "nor does it record an end"
