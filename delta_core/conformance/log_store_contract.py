"""The contract of `LogStore` as a pytest suite.

Subclass `LogStoreContract`, override the fixture `store` with one that returns an empty store, and name the
class `Test...`. A store of another package is registered for its scheme by an entry point of the group
`deltaward.log_stores`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest

from delta_core.conformance.contract import CONTRACT
from delta_core.errors import ObjectExistsError
from delta_core.storage.log_store import LogStore

RACING_THREADS = 20
RACE_ROUNDS = 20


class LogStoreContract:
    """The guarantees of `delta_core.storage.LogStore`."""

    @pytest.fixture
    def store(self) -> LogStore:
        """An empty store. Subclasses override this fixture."""
        pytest.fail("A subclass must override the fixture `store`.")

    @pytest.mark.parametrize("guarantee", CONTRACT)
    def test_the_store_keeps(self, store: LogStore, guarantee: str) -> None:
        """The store keeps one guarantee; the function in `delta_core.conformance.contract` describes it."""
        CONTRACT[guarantee](store)

    def test_exactly_one_of_racing_creators_wins(self, store: LogStore) -> None:
        """Twenty threads create one object, twenty times: the object has the winner's content."""
        for number in range(RACE_ROUNDS):
            path = f"_delta_log/{number}.json"
            winners = _race(partial(_create, store, path))
            assert len(winners) == 1
            assert store.read(path) == b"%d" % winners[0] * 4096


def _create(store: LogStore, path: str, index: int) -> None:
    store.put_if_absent(path, b"%d" % index * 4096)


def _race(attempt: Callable[[int], None]) -> list[int]:
    """Run an attempt in many threads that start together. Returns the threads without ObjectExistsError."""
    barrier = threading.Barrier(RACING_THREADS)
    winners: list[int] = []
    unexpected: list[BaseException] = []

    def run(index: int) -> None:
        barrier.wait()
        try:
            attempt(index)
        except ObjectExistsError:
            return
        except BaseException as error:
            unexpected.append(error)
            return
        winners.append(index)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(RACING_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert unexpected == []
    return winners
