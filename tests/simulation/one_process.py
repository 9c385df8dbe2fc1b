"""What has to be replaced in the library for a history to follow from its seed, and nothing else.

- `Transaction` draws its id with `uuid4`, V2 checkpoints and files of deletion vectors their names: here from
  the seed. Jitter is given (`random=`), or drawn from the seed where an operation of several commits begins
  its own transactions.
- On remote stores reads are made side by side in a pool of threads: here one after the other by the worker
  that asks, so that the scheduler alone decides what happens when.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any, Self
from unittest import mock
from uuid import UUID

from delta_core.checkpoint import sidecars, v2
from delta_core.deletion_vectors import writer as deletion_vector_files
from delta_core.errors import DeltaWarning
from delta_core.log import checkpoint_reader
from delta_core.snapshot import monotonic_versions, open_log
from delta_core.snapshot.monotonic_versions import MonotonicVersions
from delta_core.storage import parallel
from delta_core.storage.log_store import LogStore
from delta_core.transaction import transaction
from tests.simulation.scheduler import Scheduler


@contextmanager
def in_one_process(seed: str, scheduler: Scheduler) -> Iterator[None]:
    """Ids from the seed, no threads, a memory for each worker, and no word about what is worked around."""
    random = Random(f"ids:{seed}")

    def draw() -> UUID:
        return UUID(int=random.getrandbits(128), version=4)

    logger = logging.getLogger("delta_core")
    level = logger.level
    with ExitStack() as stack:
        for drawing in (transaction, v2, sidecars, deletion_vector_files):
            stack.enter_context(mock.patch.object(drawing, "uuid4", draw))
        jitter = Random(f"jitter:{seed}")

        def seeded() -> Random:
            return Random(jitter.random())

        stack.enter_context(mock.patch.object(transaction, "Random", seeded))
        stack.enter_context(
            mock.patch.object(monotonic_versions, "KNOWN_VERSIONS", _MonotonicVersionsOfWorkers(scheduler))
        )
        for module in (checkpoint_reader, open_log, parallel):
            stack.enter_context(mock.patch.object(module, "ThreadPoolExecutor", _Inline))
        stack.enter_context(warnings.catch_warnings())
        # A damaged hint or an unwritten one is the library's to survive, with a warning.
        warnings.simplefilter("ignore", DeltaWarning)
        stack.callback(logger.setLevel, level)
        logger.setLevel(logging.ERROR)
        yield


class _MonotonicVersionsOfWorkers(MonotonicVersions):
    """Each worker is a process of its own, and knows nothing of what the others have seen."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._scheduler = scheduler

    def _key(self, store: LogStore) -> str:
        return f"{self._scheduler.current.name} {store.uri}"


class _Done:
    """A future that has its result, or its error."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._result: Any = None
        self._error: Exception | None = None
        try:
            self._result = call()
        except Exception as error:
            self._error = error

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._result


class _Inline:
    """A pool without threads: what is submitted is done at once."""

    def __init__(self, max_workers: int, thread_name_prefix: str = "") -> None:
        assert max_workers > 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def submit(self, call: Callable[..., Any], *arguments: Any) -> _Done:
        return _Done(lambda: call(*arguments))

    def map(self, call: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
        return map(call, *arguments)
