"""A kind of store with its server and a proxy in front of it, where cells are run."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.storage import open as opening
from delta_core.storage.log_store import LogStore
from tests.concurrency.ambiguity.cells import Cell, Step
from tests.concurrency.ambiguity.clients import (
    OURS,
    PEER_READS,
    Client,
    make_start,
    read_by_peer,
)
from tests.concurrency.ambiguity.judge import Evidence, Outcome, Verdict, judge
from tests.concurrency.ambiguity.one_fault import CellProxy, OneFaultEach
from tests.concurrency.ambiguity.raw_tables import raw_table
from tests.support.emulators.places import PLACES, Place
from tests.support.fault_plan import Fault, FaultKind, FaultPoint
from tests.support.faulty_store import FaultyLocalStore, PutFault

_HANG_SECONDS = 60.0
"""Longer than any client waits; the proxy's end ends it."""

_WAITING_AT_ONCE = 12

_SCHEME = "faulty"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arena:
    """Where the cells of one store run.

    Attributes:
        place: the store.
        plan: of the proxies; None for a local directory.
        endpoints: for each step of a commit the options that lead through a proxy.
    """

    place: Place
    plan: OneFaultEach | None
    endpoints: Mapping[Step, Mapping[str, str]]

    def run_all(self, cells: Iterable[Cell], client: Client = OURS) -> dict[Cell, Verdict]:
        """Every cell, each on a table of its own: those that wait side by side, then one after the other."""
        chosen = list(cells)
        waiting = [cell for cell in chosen if cell.hangs]
        found: dict[Cell, Verdict] = {}
        with ThreadPoolExecutor(_WAITING_AT_ONCE) as pool:
            found.update(zip(waiting, pool.map(lambda cell: self.run(cell, client), waiting), strict=True))
        found.update((cell, self.run(cell, client)) for cell in chosen if not cell.hangs)
        return found

    def run(self, cell: Cell, client: Client = OURS) -> Verdict:
        """One cell."""
        table = f"table-{uuid.uuid4()}"
        uri = f"{self.place.base}/{table}"
        make_start(cell.operation, uri, self.place.options)
        before = raw_table(self.place, uri)
        options = client.options(self.place, self.endpoints.get(cell.step, {}), short=cell.hangs)
        if self.plan is None:
            with _faulty_directory(cell.fault) as store_of:
                answer = client.run(cell.operation, f"{_SCHEME}:{uri}", options)
                met = sum(len(store.faults.put_paths) for store in store_of)
        else:
            self.plan.arm(table, cell)
            answer = client.run(cell.operation, uri, options)
            met = self.plan.met(table)
        if not met:
            return Verdict(outcome=Outcome.DAMAGED, detail=f"no request met the fault; {answer.error}")
        after = raw_table(self.place, uri)
        peer_reads = self.place.name in PEER_READS and after.commits
        evidence = Evidence(
            said=answer.said,
            error=answer.error,
            before=before,
            after=after,
            txn_id=answer.txn_id,
            read_by_peer=read_by_peer(self.place, uri) if peer_reads else None,
        )
        return judge(evidence, client.expected(cell.operation))


@contextmanager
def arena(store: str, folder: Path) -> Iterator[Arena]:
    """Start a store's server and the proxies before it."""
    with ExitStack() as stack:
        place = stack.enter_context(PLACES[store][0](folder))
        if place.endpoint is None:
            yield Arena(place=place, plan=None, endpoints={})
            return
        plan = OneFaultEach()
        proxied = {Step.DECIDES: place.endpoint_option}
        if store == "s3+dynamodb":
            proxied[Step.COPIES] = "AWS_ENDPOINT_URL"
        endpoints = {}
        for step, option in proxied.items():
            proxy = CellProxy(place.options[option], plan, hang_seconds=_HANG_SECONDS)
            endpoints[step] = {option: stack.enter_context(proxy).endpoint}
        yield Arena(place=place, plan=plan, endpoints=endpoints)


_LOCAL_FAULTS = {
    (FaultKind.CONFLICT_409, FaultPoint.BEFORE): PutFault.CONFLICT_409,
    (FaultKind.CONFLICT_409, FaultPoint.AFTER): PutFault.EXISTS_BUT_MINE,
    (FaultKind.DUPLICATE, FaultPoint.BEFORE): PutFault.EXISTS_BUT_MINE,
    (FaultKind.DUPLICATE, FaultPoint.AFTER): PutFault.EXISTS_BUT_MINE,
    (FaultKind.HANG, FaultPoint.BEFORE): PutFault.LANDS_LATE,
}


@contextmanager
def _faulty_directory(fault: Fault) -> Iterator[list[FaultyLocalStore]]:
    """Directories under a scheme of their own, on which the first create-only write meets the fault.

    A directory answers no numbers: what is neither *exists* nor late is an answer that never came.
    """
    lost = PutFault.DROP_REQUEST if fault.point is FaultPoint.BEFORE else PutFault.DROP_RESPONSE
    made: list[FaultyLocalStore] = []

    def open_it(uri: str, storage_options: Mapping[str, str], clock: Clock = SYSTEM_CLOCK) -> LogStore:
        store = FaultyLocalStore(Path(uri.removeprefix(f"{_SCHEME}:")))
        store.faults.puts = [_LOCAL_FAULTS.get((fault.kind, fault.point), lost)]
        made.append(store)
        return store

    with mock.patch.dict(opening._OPENERS, {_SCHEME: open_it}):
        yield made
