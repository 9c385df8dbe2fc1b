"""One holder at a time, by the store's time and put-if-absent alone."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from delta_core.clock import ManualClock
from delta_core.errors import (
    AmbiguousWriteError,
    ConfigurationError,
    LeaseError,
    LeaseFileError,
    LeaseHeldError,
    LeaseLostError,
    ObjectNotFoundError,
    StorageError,
    StorePermissionError,
)
from delta_core.leases.lease import FILES_KEPT, Lease, LeaseKeeper, acquire_lease
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import LogStore
from tests.support.faulty_store import FaultyStore, PutFault
from tests.support.store_time import Machines
from tests.support.waiting import comes_true

TTL = 60.0
DIRECTORY = "_deltaward/leases/nightly"


@pytest.fixture
def machines(tmp_path: Path) -> Machines:
    return Machines(tmp_path / "t")


def take(machines: Machines, number: int, *, store: LogStore | None = None, **options: Any) -> Lease:
    return acquire_lease(
        store or machines.store,
        "nightly",
        holder=f"machine {number}",
        ttl_seconds=TTL,
        clock=machines.clocks[number],
        **options,
    )


def documents(root: Path) -> dict[int, dict[str, Any]]:
    """What lies there, by number; read without the code under test."""
    files = sorted((root / DIRECTORY).glob("[0-9]*.json"))
    return {int(file.stem): json.loads(file.read_text()) for file in files}


def test_a_free_lease_is_had_and_another_is_told_by_whom_and_for_how_long(machines: Machines) -> None:
    lease = take(machines, 0)
    assert lease.follows is None
    assert documents(machines.store.root) == {
        1: {
            "formatVersion": 1,
            "fence": 1,
            "holder": "machine 0",
            "token": documents(machines.store.root)[1]["token"],
            "nonce": documents(machines.store.root)[1]["nonce"],
            "ttlMs": 60_000,
            "state": "held",
        }
    }
    machines.pass_time(20)
    with pytest.raises(LeaseHeldError, match=r"held by machine 0.*41\.0 seconds") as held:
        take(machines, 1)
    assert held.value.retryable
    lease.check()


@pytest.mark.parametrize("holder", [0, 1])
def test_the_clocks_of_the_machines_do_not_matter(machines: Machines, holder: int) -> None:
    # One machine is 24 years ahead of the other, and the store has a time of its own.
    lease = take(machines, holder)
    machines.pass_time(TTL)
    with pytest.raises(LeaseLostError, match="not renewed"):
        lease.check()
    with pytest.raises(LeaseHeldError):
        take(machines, 1 - holder)
    machines.pass_time(1.001)
    second = take(machines, 1 - holder)
    assert second.fence > lease.fence
    assert second.follows is not None
    assert second.follows.record.holder == f"machine {holder}"
    second.check()
    with pytest.raises(LeaseLostError, match=f"taken over by machine {1 - holder}"):
        lease.check()


def test_the_holder_s_time_begins_before_its_request(machines: Machines) -> None:
    store = FaultyStore(machines.store)
    store.before_put = lambda _: machines.pass_time(50)
    lease = take(machines, 0, store=store)
    machines.pass_time(10)
    with pytest.raises(LeaseLostError, match="not renewed"):
        lease.check()


def test_a_renewal_counts_from_when_it_was_made(machines: Machines) -> None:
    lease = take(machines, 0)
    for _ in range(10):
        machines.pass_time(40)
        lease.renew()
        with pytest.raises(LeaseHeldError):
            take(machines, 1)
        lease.check()
    found = documents(machines.store.root)
    assert list(found) == [8, 9, 10, 11], "old files are deleted, the newest never"
    assert len(found) == FILES_KEPT
    assert {document["fence"] for document in found.values()} == {1}
    machines.pass_time(61.1)
    assert take(machines, 1).fence == 12


def test_a_late_renewal_is_none_when_another_took_over(machines: Machines) -> None:
    lease = take(machines, 0)
    machines.pass_time(100)
    lease.renew()  # nobody was faster, so it is had again
    lease.check()
    machines.pass_time(100)
    second = take(machines, 1)
    with pytest.raises(LeaseLostError, match="taken over by machine 1, with number 3"):
        lease.renew()
    lease.release()
    second.check()


def test_a_released_lease_is_free_at_once(machines: Machines) -> None:
    first = take(machines, 0)
    first.release()
    first.release()
    for use in (first.check, first.renew):
        with pytest.raises(LeaseLostError, match="released"):
            use()
    second = take(machines, 1)
    assert second.follows is not None
    assert second.follows.record.state == "released"
    assert (first.fence, second.fence) == (1, 3)


def test_a_number_that_was_deleted_long_ago_makes_nobody_the_holder_again(machines: Machines) -> None:
    store = FaultyStore(machines.store)
    sleeper = take(machines, 0, store=store)
    others: list[Lease] = []

    def sleep(path: str) -> None:
        # Between the look at who has it and the writing of number 2 another takes over, and stays.
        store.before_put = None
        machines.pass_time(100)
        others.append(take(machines, 1))
        for _ in range(10):
            others[0].renew()
        assert 2 not in documents(machines.store.root)

    store.before_put = sleep
    with pytest.raises(LeaseLostError, match="taken over"):
        sleeper.renew()
    assert 2 in documents(machines.store.root), "it could be written"
    others[0].check()
    others[0].renew()
    assert 2 not in documents(machines.store.root)


def test_a_lease_whose_files_are_deleted_is_lost_and_numbers_go_on(machines: Machines) -> None:
    lease = take(machines, 0)
    for file in (machines.store.root / DIRECTORY).iterdir():
        file.unlink()
    with pytest.raises(LeaseLostError, match="files were deleted"):
        lease.check()
    again = take(machines, 1, fence_above=7)
    assert again.fence == 8
    with pytest.raises(LeaseLostError, match="taken over"):
        lease.check()


def test_holding_it_twice_in_one_process_is_refused_too(machines: Machines) -> None:
    take(machines, 0)
    with pytest.raises(LeaseHeldError):
        take(machines, 0)


@pytest.mark.parametrize(
    "fault",
    [
        PutFault.DROP_REQUEST,
        PutFault.DROP_RESPONSE,
        PutFault.EXISTS_BUT_MINE,
        PutFault.CONFLICT_409,
        PutFault.LANDS_LATE,
    ],
)
@pytest.mark.parametrize("times", [1, 3])
def test_an_unclear_answer_is_settled_by_reading_back(
    machines: Machines, fault: PutFault, times: int
) -> None:
    store = FaultyStore(machines.store)
    store.puts = [fault] * times
    lease = take(machines, 0, store=store)
    lease.check()
    store.puts = [fault] * times
    lease.renew()
    lease.check()
    assert [document["token"] for document in documents(machines.store.root).values()] == [
        documents(machines.store.root)[1]["token"]
    ] * 2
    store.puts = [fault] * times
    lease.release()
    assert documents(machines.store.root)[3]["state"] == "released"


def test_a_renewal_of_which_nobody_knew_does_not_pass_for_a_later_one(machines: Machines) -> None:
    store = FaultyStore(machines.store)
    lease = take(machines, 0, store=store)
    machines.pass_time(30)
    store.puts = [PutFault.DROP_REQUEST] * 5 + [PutFault.LANDS_LATE]
    with pytest.raises(AmbiguousWriteError):
        lease.renew()
    machines.pass_time(20)
    # Number 2 lands now, as the next request is made, and is older than what that asks for.
    lease.renew()
    assert list(documents(machines.store.root)) == [1, 2, 3]
    lease.check()


def test_a_refusal_is_passed_on(machines: Machines) -> None:
    store = FaultyStore(machines.store)
    store.puts = [PutFault.DENIED]
    with pytest.raises(StorePermissionError):
        take(machines, 0, store=store)
    assert documents(machines.store.root) == {}


def test_who_cannot_renew_stays_the_holder_until_the_time_is_over(machines: Machines) -> None:
    store = FaultyStore(machines.store)
    lease = take(machines, 0, store=store)
    machines.pass_time(30)
    store.puts = [PutFault.DROP_REQUEST] * 6
    with pytest.raises(StorageError):
        lease.renew()
    lease.check()
    machines.pass_time(30)
    with pytest.raises(LeaseLostError):
        lease.check()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "damaged"),
        ("[]", "damaged"),
        ('{"formatVersion": 2}', "format 2"),
        ('{"formatVersion": 1, "fence": true}', "damaged"),
        ('{"formatVersion": 1, "fence": 1, "holder": "x"}', "damaged"),
        ("[" * 100_000, "damaged"),
    ],
)
def test_a_file_that_cannot_be_read_gives_nobody_the_lease(
    machines: Machines, content: str, words: str
) -> None:
    lease = take(machines, 0)
    path = machines.store.root / DIRECTORY / f"{2:020d}.json"
    path.write_text(content)
    for use in (lambda: take(machines, 1), lease.check):
        with pytest.raises(LeaseFileError, match=words) as error:
            use()
        assert path.name in str(error.value)
        assert not error.value.retryable
    path.unlink()
    lease.check()


def test_other_files_in_the_directory_are_nobody_s_lease(machines: Machines) -> None:
    directory = machines.store.root / DIRECTORY
    directory.mkdir(parents=True)
    for name in ("9.json", f"{9:020d}.json.bak", "notes"):
        (directory / name).write_text("?")
    assert take(machines, 0).fence == 1


def test_a_store_whose_listings_lag_has_no_leases(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalLogStore, "consistent_listing", property(lambda _: False))
    with pytest.raises(LeaseError, match="lag"):
        take(machines, 0)


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "_x", "a" * 101, "ä"])
def test_names_stay_below_the_reserved_directory(machines: Machines, name: str) -> None:
    with pytest.raises(ConfigurationError, match="not a valid name"):
        acquire_lease(machines.store, name)


@pytest.mark.parametrize("ttl_seconds", [0.0, -1.0, float("inf"), float("nan")])
def test_a_time_must_be_possible(machines: Machines, ttl_seconds: float) -> None:
    with pytest.raises(ConfigurationError, match="cannot last"):
        acquire_lease(machines.store, "x", ttl_seconds=ttl_seconds)


class _VanishingStore(FaultyStore):
    """The newest file is deleted between the listing and the read, once."""

    vanished = False

    def read(self, path: str) -> bytes:
        if not self.vanished:
            self.vanished = True
            raise ObjectNotFoundError("gone")
        return super().read(path)


def test_a_file_that_is_deleted_after_the_listing_is_looked_for_again(machines: Machines) -> None:
    lease = take(machines, 0)
    other = acquire_lease(machines.store, "other", clock=machines.clocks[0])
    assert other.fence == 1
    with pytest.raises(LeaseHeldError):
        take(machines, 1, store=_VanishingStore(machines.store))
    lease.check()


@pytest.mark.parametrize("step", range(5))
def test_whoever_dies_at_a_step_of_taking_it_keeps_it_from_others_for_its_time_at_most(
    machines: Machines, step: int
) -> None:
    first = take(machines, 0)
    machines.pass_time(70)
    assert first.fence == 1

    class Dies(BaseException):
        pass

    class DyingStore(FaultyStore):
        calls = 0

        def _tick(self) -> None:
            if self.calls == step:
                raise Dies
            self.calls += 1

        def put_if_absent(self, path: str, data: bytes) -> None:
            self._tick()
            super().put_if_absent(path, data)
            self._tick()

        def list_directory(self, path: str, *, start_after: str | None = None) -> list[Any]:
            self._tick()
            return super().list_directory(path, start_after=start_after)

        def put(self, path: str, data: bytes) -> None:
            self._tick()
            super().put(path, data)

    with pytest.raises(Dies):
        take(machines, 1, store=DyingStore(machines.store))
    machines.pass_time(61.1)
    again = take(machines, 0)
    again.check()
    assert again.fence == max(documents(machines.store.root))


def test_a_thread_renews_it_and_stops(tmp_path: Path) -> None:
    clock = ManualClock(1)
    lease = acquire_lease(LocalLogStore(tmp_path), "nightly", ttl_seconds=60, clock=clock)
    with LeaseKeeper(lease, interval_seconds=0.05):
        for _ in range(3):
            clock.advance(40)
            renewals = max(documents(tmp_path))
            # The renewal under way may have begun before the clock moved.
            assert comes_true(lambda renewals=renewals: max(documents(tmp_path)) >= renewals + 2)
            lease.check()
    assert "deltaward-lease" not in {thread.name for thread in threading.enumerate()}
    last = max(documents(tmp_path))
    clock.advance(61)
    with pytest.raises(LeaseLostError):
        lease.check()
    assert max(documents(tmp_path)) == last


def test_it_is_renewed_after_each_third_of_its_time(tmp_path: Path) -> None:
    pauses: list[float | None] = []

    class EndsAfterThree(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout)
            return len(pauses) > 3

    keeper = LeaseKeeper(
        acquire_lease(LocalLogStore(tmp_path), "nightly", ttl_seconds=60, clock=ManualClock(1))
    )
    keeper._ended = EndsAfterThree()
    before = max(documents(tmp_path))
    with keeper:
        assert comes_true(lambda: len(pauses) == 4)
    assert pauses == [20.0] * 4
    assert max(documents(tmp_path)) == before + 3


def test_the_thread_goes_on_after_a_failure_and_ends_when_the_lease_is_lost(tmp_path: Path) -> None:
    clock = ManualClock(1)
    store = FaultyStore(LocalLogStore(tmp_path))
    lease = acquire_lease(store, "nightly", ttl_seconds=60, clock=clock)
    store.puts = [PutFault.DENIED] * 2
    with LeaseKeeper(lease, interval_seconds=0.05):
        assert comes_true(lambda: max(documents(tmp_path)) >= 3)
        another = {**max(documents(tmp_path).items())[1], "token": "another's"}
        (tmp_path / DIRECTORY / f"{1000:020d}.json").write_text(json.dumps(another))
        assert comes_true(lambda: not [t for t in threading.enumerate() if t.name == "deltaward-lease"])
    with pytest.raises(LeaseLostError):
        lease.check()


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        (1, {"ttlMs": 10**400}),
        (1, {"fence": 1 << 63}),
        (1, {"holder": "\ud800x"}),
        (10**20 - 1, {}),
        ((1 << 63) - 1, {}),
    ],
)
def test_numbers_and_texts_that_no_holder_writes_stop_by_name(
    tmp_path: Path, name: int, changed: dict[str, object]
) -> None:
    store = LocalLogStore(str(tmp_path))
    record = {"formatVersion": 1, "fence": 1, "holder": "x", "token": "t", "nonce": "n", "ttlMs": 1000}
    path = f"_deltaward/leases/m/{name:020}.json"
    store.put_if_absent(path, json.dumps({**record, "state": "held", **changed}).encode())
    with pytest.raises(LeaseFileError, match=path.rpartition("/")[2]):
        acquire_lease(store, "m")
