"""One commit over a store with faults, and nothing around it."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from delta_core.actions import CommitInfo
from delta_core.actions.json_codec import encode_commit
from delta_core.clock import ManualClock
from delta_core.log.log_path import commit_path
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import ObjectInfo
from delta_core.transaction.commit_result import (
    CommitResult,
    Conflict,
)
from delta_core.transaction.committer import CommitRequest, Committer
from delta_core.transaction.log_tail_guard import LogTailGuard
from delta_core.transaction.observer import NULL_OBSERVER
from delta_core.transaction.winning_commit import WinningCommit
from tests.support.faulty_store import FaultyStore

DAY_MS = 86_400_000


def body(txn_id: str, version: int) -> bytes:
    return encode_commit([CommitInfo(operation="TEST", txn_id=txn_id, read_version=version - 1)])


class Harness:
    """One committer over a store with faults; version 0 exists."""

    def __init__(self, root: Path) -> None:
        self.clock = ManualClock(1_700_000_000_000)
        self.store = FaultyStore(LocalLogStore(root, clock=self.clock))
        self.store.inner.put_if_absent(commit_path(0), body("creator", 0))
        self.examined: list[int] = []
        self.refusal: Conflict | None = None
        self.refusals: dict[int, Conflict] = {}
        self.observer: Any = NULL_OBSERVER

    def other_commits(self, version: int) -> None:
        self.store.inner.put_if_absent(commit_path(version), body(f"other-{version}", version))

    def run(self, **overrides: Any) -> CommitResult:
        return self.committer(**overrides).run()

    def committer(
        self, *, known_ago_ms: int = 0, version_file: ObjectInfo | None = None, **overrides: Any
    ) -> Committer:
        def examine(winner: WinningCommit) -> Conflict | None:
            self.examined.append(winner.version)
            return self.refusals.get(winner.version, self.refusal)

        settings: dict[str, Any] = {
            "txn_id": "mine",
            "read_version": 0,
            "render": lambda version: body("mine", version),
            "examine": examine,
            "max_attempts": 50,
            "deadline_seconds": 600.0,
        }
        return Committer(
            store=self.store,
            request=CommitRequest(**{**settings, **overrides}),
            guard=LogTailGuard(
                store=self.store,
                clock=self.clock,
                verified_at_ms=self.clock.now_ms() - known_ago_ms,
                log_retention_ms=30 * DAY_MS,
                version_file=version_file,
            ),
            clock=self.clock,
            random=Random(7),
            observer=self.observer,
        )

    def versions_of_mine(self) -> list[int]:
        found = []
        for info in self.store.inner.list_directory("_delta_log"):
            if info.path.endswith(".json"):
                first = json.loads(self.store.inner.read(info.path).splitlines()[0])
                if first["commitInfo"].get("txnId") == "mine":
                    found.append(int(info.path.removeprefix("_delta_log/").removesuffix(".json")))
        return found
