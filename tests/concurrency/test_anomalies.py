"""Isolation anomalies: none in recorded histories of real transactions, and each seeded kind is caught.

`make soak-anomalies` records 5,000 transactions.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from unittest.mock import patch

import pytest

from delta_core.transaction import conflict_checker
from delta_core.transaction.isolation import IsolationLevel
from tests.concurrency.anomalies.checker import Kind, find_anomalies, reorderings
from tests.concurrency.anomalies.history import Attempt, Commit, History, Read, Row
from tests.concurrency.anomalies.workload import Workload
from tests.concurrency.matrix.footprint import Box
from tests.concurrency.matrix.operations import LEVELS

pytestmark = pytest.mark.slow

TRANSACTIONS = 50

P0 = Box(partition="p0")


def row(number: int, value: str) -> Row:
    return number, "p0", value


def commit(version: int, *, added: list[Row] | None = None, removed: list[Row] | None = None) -> Commit:
    return Commit(
        version=version, name=f"t{version}", added=Counter(added or []), removed=Counter(removed or [])
    )


def ran(version: int, *rows: Row, since: int = 0, box: Box = P0) -> Attempt:
    """The client of version's commit, which began at `since` and saw rows."""
    read = Read(box=box, rows=rows)
    return Attempt(name=f"t{version}", read_version=since, version=version, reads=(read,))


def blind(version: int) -> Attempt:
    return Attempt(name=f"t{version}", read_version=0, version=version, blind=True)


def reader(version: int, *rows: Row) -> Attempt:
    return Attempt(name="reader", read_version=version, reads=(Read(box=P0, rows=rows),))


def history(*events: Commit | Attempt, level: IsolationLevel = IsolationLevel.SERIALIZABLE) -> History:
    """A history that begins with rows 1 and 2 in version 0."""
    return History(
        level=level,
        start_version=0,
        start=Counter([row(1, "start"), row(2, "start")]),
        commits=tuple(event for event in events if isinstance(event, Commit)),
        attempts=tuple(event for event in events if isinstance(event, Attempt)),
    )


ONE, TWO = row(1, "start"), row(2, "start")
FIRST = commit(1, added=[row(1, "start,t1")], removed=[ONE])
BOTH = commit(1, added=[row(1, "start,t1"), row(2, "start,t1")], removed=[ONE, TWO])
INSERT = commit(1, added=[row(3, "t1")])

BAD: dict[Kind, History] = {
    Kind.G0: history(
        # Row 1 has t1 before t2 and row 2 has t2 before t1.
        commit(1, added=[row(1, "start,t1")], removed=[ONE]),
        commit(2, added=[row(1, "start,t1,t2"), row(2, "start,t2,t1")], removed=[row(1, "start,t1"), TWO]),
    ),
    Kind.G1A: history(FIRST, reader(1, row(1, "start,gone"), TWO)),
    Kind.G1B: history(FIRST, reader(1, row(1, "start,t1~"), TWO)),
    Kind.G1C: history(
        commit(1, added=[row(3, "t1")]),
        commit(2, added=[row(4, "t2")]),
        # t1 has read what t2, which has read what t1 wrote, committed after it.
        ran(1, ONE, TWO, row(4, "t2")),
        ran(2, ONE, TWO, row(3, "t1"), since=1),
    ),
    Kind.LOST_UPDATE: history(
        FIRST, commit(2, added=[row(1, "start,t2")], removed=[row(1, "start,t1")]), ran(2, ONE, TWO)
    ),
    Kind.READ_SKEW: history(BOTH, reader(1, row(1, "start,t1"), TWO)),
    Kind.WRITE_SKEW: history(
        FIRST, commit(2, added=[row(2, "start,t2")], removed=[TWO]), ran(1, ONE, TWO), ran(2, ONE, TWO)
    ),
    Kind.PHANTOM: history(INSERT, commit(2, added=[row(4, "t2")]), blind(1), ran(2, ONE, TWO)),
    Kind.REARRANGED_ROWS: history(
        commit(1, removed=[ONE]), Attempt(name="t1", read_version=0, version=1, rearranges=True)
    ),
    Kind.LOST_COMMIT: history(FIRST, ran(2, ONE, TWO)),
}


@pytest.mark.parametrize("kind", Kind)
def test_a_seeded_anomaly_is_caught(kind: Kind) -> None:
    assert kind in {anomaly.kind for anomaly in find_anomalies(BAD[kind])}


def test_a_serial_history_has_none() -> None:
    second = commit(2, added=[row(1, "start,t1,t2")], removed=[row(1, "start,t1")])
    good = history(
        FIRST, second, ran(1, ONE, TWO), ran(2, row(1, "start,t1"), TWO, since=1), reader(0, ONE, TWO)
    )
    assert find_anomalies(good) == []


def test_a_weaker_level_allows_blind_appends_alone() -> None:
    weak = replace(BAD[Kind.PHANTOM], level=IsolationLevel.WRITE_SERIALIZABLE)
    assert find_anomalies(weak) == []
    assert reorderings(weak) == 1
    seeing = replace(weak, attempts=(replace(weak.attempts[0], blind=False), weak.attempts[1]))
    assert [anomaly.kind for anomaly in find_anomalies(seeing)] == [Kind.PHANTOM]


def test_a_file_removed_twice_is_a_lost_update() -> None:
    twice = replace(commit(2, added=[row(2, "start,t2")]), removed_twice=("a.parquet",))
    assert Kind.LOST_UPDATE in {anomaly.kind for anomaly in find_anomalies(history(FIRST, twice))}


@pytest.mark.parametrize("level", LEVELS)
def test_interleaved_transactions(level: IsolationLevel, seed: str) -> None:
    workload = Workload(seed=f"{seed}:{level}", level=level)
    recorded = workload.interleave(TRANSACTIONS)
    assert find_anomalies(recorded) == []
    assert len(recorded.attempts) == TRANSACTIONS
    assert workload.conflicts > 0, "nothing overlapped"
    assert len(recorded.commits) > TRANSACTIONS // 4


@pytest.mark.parametrize("level", LEVELS)
def test_racing_threads(level: IsolationLevel, seed: str) -> None:
    recorded = Workload(seed=f"{seed}:{level}:threads", level=level).race(TRANSACTIONS // 2, threads=4)
    assert find_anomalies(recorded) == []
    assert len(recorded.attempts) == TRANSACTIONS // 2


@pytest.mark.parametrize(
    ("missing", "kinds"),
    [
        (("concurrent_append",), {Kind.PHANTOM}),
        (("delete_read", "delete_delete", "concurrent_append"), {Kind.LOST_UPDATE, Kind.PHANTOM}),
    ],
)
def test_a_missing_rule_leaves_anomalies(missing: tuple[str, ...], kinds: set[Kind]) -> None:
    """What the library's own transactions would do to each other without the rule is found."""
    rules = tuple(rule for rule in conflict_checker.CONFLICT_RULES if rule.name not in missing)
    with patch.object(conflict_checker, "CONFLICT_RULES", rules):
        recorded = Workload(seed="without a rule", level=IsolationLevel.SERIALIZABLE).interleave(TRANSACTIONS)
    assert kinds <= {anomaly.kind for anomaly in find_anomalies(recorded)}
