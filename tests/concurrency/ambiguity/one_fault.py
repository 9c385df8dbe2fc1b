"""Faults for single requests of many tables behind one proxy, so that cells of one store run side by side.

A request to DynamoDB says in a header what it does and in its body for which table, so the plan is asked
about those, too.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from tests.concurrency.ambiguity.cells import Cell, Step
from tests.support.fault_plan import Fault
from tests.support.fault_proxy import FaultProxy, _Handler

_COMMIT_FILE = re.compile(r"_delta_log/\d{20}\.json(?:[?&]|$)")
_PUT_ITEM = "DynamoDB_20120810.PutItem"


@dataclass(slots=True, kw_only=True)
class _Armed:
    """A fault that waits for its request; `met` counts the requests it would fit."""

    fault: Fault
    in_dynamodb: bool
    met: int = 0


@dataclass(slots=True)
class _Seen(threading.local):
    """What the request that this thread handles says beside its target."""

    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class OneFaultEach:
    """The plan of a `FaultProxy`: the first create-only request of each armed table meets its fault."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._armed: dict[str, _Armed] = {}
        self.seen = _Seen()

    def arm(self, table: str, cell: Cell) -> None:
        """Disturb the next commit of the table, which is known by its unique name."""
        decided = cell.store == "s3+dynamodb" and cell.step is Step.DECIDES
        with self._lock:
            self._armed[table] = _Armed(fault=cell.fault, in_dynamodb=decided)

    def met(self, table: str) -> int:
        """How many requests of the kind came; the first of them met the fault."""
        with self._lock:
            return self._armed[table].met

    def next_fault(self, method: str, target: str) -> Fault | None:
        """See `FaultPlan`."""
        body = self.seen.body
        with self._lock:
            for table, armed in self._armed.items():
                if armed.in_dynamodb:
                    fits = self.seen.headers.get("X-Amz-Target") == _PUT_ITEM and table.encode() in body
                    # The entry is written again when the commit file is there.
                    fits = fits and b"attribute_not_exists" in body
                else:
                    # Google's client escapes every sign that is neither letter nor digit.
                    plain = unquote(target)
                    fits = method == "PUT" and table in plain and _commits(plain)
                if fits:
                    armed.met += 1
                    return armed.fault if armed.met == 1 else None
        return None


class CellProxy(FaultProxy):
    """A proxy whose plan knows headers and bodies."""

    def __init__(self, upstream: str, plan: OneFaultEach, *, hang_seconds: float) -> None:
        super().__init__(upstream, hang_seconds=hang_seconds)
        self.plan = plan
        self._server.RequestHandlerClass = _ShowingHandler
        self.inject(plan)


class _ShowingHandler(_Handler):
    """Shows the plan the whole request: it is asked in the thread that handles it."""

    def _body(self) -> bytes:
        body = super()._body()
        proxy = self.server.proxy
        assert isinstance(proxy, CellProxy)
        proxy.plan.seen.headers, proxy.plan.seen.body = self.headers, body
        return body


def _commits(target: str) -> bool:
    """Whether a PUT creates a commit file: an object of that name, or a rename to it."""
    return _COMMIT_FILE.search(target) is not None and ("op=" not in target or "op=RENAME" in target)
