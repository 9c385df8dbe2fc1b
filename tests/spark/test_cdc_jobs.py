"""The jobs of cdc_orders against a model that applies every delivered change in the order of the log."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from delta_core import DeltaTable
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult, JobStatus
from delta_core.jobs.job_spec import IdempotencyKey, JobSpec, TableRef
from delta_core.jobs.run_job import run_job
from delta_core.policies.contract import parse_contract
from spark_jobs.spark_executor import SparkExecutor
from tests.support.dag_modules import dag_config, dag_module
from tests.support.soak import rounds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

stream = dag_module("orders_source")
Change = dict[str, Any]
State = dict[int, tuple[int, dict[str, Any] | None]]


class Orders:
    """The tables `orders_changes` and `orders` below one folder."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._executor = SparkExecutor(spark)
        self._folder = folder
        self._deliveries = itertools.count()
        columns = parse_contract(dag_config("orders_contract")).columns
        assert columns is not None
        DeltaTable.create(str(folder / "orders"), columns)

    def merge_delivery(self, changes: Iterable[Change]) -> JobResult:
        """The state takes changes right from a file, without a key: every delivery counts as a new one."""
        path = self._write(changes)
        schema = dag_config("orders_changes_contract")["columns"]
        for column in schema:
            column.pop("description", None)
        return self._merge({"format": "json", "uris": [str(path)], "schema": schema})

    def append(self, changes: Iterable[Change]) -> JobResult:
        """The changes are kept as they came."""
        source = {"format": "json", "uris": [str(self._write(changes))]}
        contract = dag_config("orders_changes_contract")
        return self._run("load", "orders_changes", {"source": source, "contract": contract})

    def merge_new(self, version: int) -> JobResult:
        """The state takes what was appended since it last did."""
        uris = [str(self._folder / "orders_changes")]
        source = {"format": "delta", "uris": uris, "version": version, "changes_since": "recorded"}
        return self._merge(source, IdempotencyKey(app_id="orders", version=version))

    def state(self) -> State:
        """By id: the lsn, and the order, None when it is deleted."""
        rows = DeltaTable(str(self._folder / "orders")).to_pyarrow_table().to_pylist()
        assert len({row["id"] for row in rows}) == len(rows)
        return {
            row["id"]: (
                row["lsn"],
                None
                if row["deleted"]
                else {name: str(row[name]) for name in ("customer", "status", "amount")},
            )
            for row in rows
        }

    def _merge(self, source: dict[str, Any], key: IdempotencyKey | None = None) -> JobResult:
        rule = dag_config("orders_merge")
        params = {"source": source | {"select": rule.pop("select")}, **rule}
        return self._run("merge", "orders", params | {"contract": dag_config("orders_contract")}, key)

    def _write(self, changes: Iterable[Change]) -> Path:
        path = self._folder / f"delivery-{next(self._deliveries)}.json"
        path.write_text("".join(json.dumps(change) + "\n" for change in changes))
        return path

    def _run(
        self, kind: str, table: str, params: dict[str, Any], key: IdempotencyKey | None = None
    ) -> JobResult:
        ref = TableRef(uri=str(self._folder / table))
        spec = JobSpec(kind=kind, table=ref, params=params, idempotency=key)
        result = run_job(spec, JobContext(executor=self._executor))
        assert result.status is JobStatus.SUCCEEDED, result.error
        return result


def applied(changes: Iterable[Change]) -> State:
    """The model: everything that was delivered, once each, in the order in which it happened."""
    state: State = {}
    for change in sorted(changes, key=lambda change: change["source"]["lsn"]):
        row = change["after"] or change["before"]
        order = change["after"] and {name: change["after"][name] for name in ("customer", "status", "amount")}
        state[row["id"]] = (change["source"]["lsn"], order)
    return state


def change(op: str, order: int, lsn: int, status: str = "placed") -> Change:
    row = {"id": order, "customer": f"customer {order}", "status": status, "amount": "10.50"}
    return {
        "op": op,
        "before": row if op in "ud" else None,
        "after": None if op == "d" else row,
        "source": {"table": "orders", "lsn": lsn, "ts_ms": 1_767_225_600_000 + lsn},
        "ts_ms": 1_767_225_600_000 + lsn,
    }


@pytest.mark.soak
def test_a_life_in_any_order_of_arrival_ends_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """One order for each way in which created, updated and deleted can arrive, one change a batch."""
    orders = Orders(spark, tmp_path)
    ways = list(itertools.permutations(range(3)))
    lives = [
        [change("c", order, 1), change("u", order, 2, "paid"), change("d", order, 3)]
        for order in range(len(ways))
    ]
    seen: list[Change] = []
    for step in range(3):
        batch = [lives[order][way[step]] for order, way in enumerate(ways)]
        seen += batch
        orders.merge_delivery(batch)
        assert orders.state() == applied(seen)
    assert set(orders.state().values()) == {(3, None)}


def test_a_deleted_order_stays_deleted_until_it_is_placed_again(spark: SparkSession, tmp_path: Path) -> None:
    orders = Orders(spark, tmp_path)
    orders.merge_delivery([change("d", 1, 30), change("d", 2, 30)])
    orders.merge_delivery([change("u", 1, 20, "paid"), change("c", 1, 10), change("c", 2, 40)])
    state = orders.state()
    assert state[1] == (30, None)
    assert state[2][0] == 40
    assert state[2][1] is not None


@pytest.mark.soak
def test_any_order_of_batches_and_repeats_follows_the_model(
    spark: SparkSession, tmp_path: Path, rng: random.Random
) -> None:
    count, size = rounds(usual=2, soak=8), rounds(usual=500, soak=1_000)
    happened = stream.changes(seed=rng.randrange(1 << 30), count=size)
    batches = stream.micro_batches(happened, seed=rng.randrange(1 << 30), count=count)
    order = [*range(count), *rng.sample(range(count), max(1, count // 4))]
    rng.shuffle(order)
    orders, seen = Orders(spark, tmp_path), []
    for number in order:
        seen += batches[number]
        orders.merge_delivery(batches[number])
        assert orders.state() == applied(seen), f"batches {order}, after {number}"
    assert orders.state() == applied(happened)


@pytest.mark.soak
def test_the_state_goes_on_where_it_stopped(spark: SparkSession, tmp_path: Path) -> None:
    happened = stream.changes(seed=3, count=200)
    batches = stream.micro_batches(happened, seed=3, count=3)
    orders = Orders(spark, tmp_path)
    for batch in batches[:2]:
        orders.append(batch)
    assert orders.merge_new(1).already_applied is False
    assert orders.state() == applied([*batches[0], *batches[1]])
    assert orders.merge_new(1).already_applied
    orders.append(batches[2])
    metrics = orders.merge_new(2).output["metrics"]
    assert metrics["numSourceRows"] == len({(c["after"] or c["before"])["id"] for c in batches[2]})
    assert orders.state() == applied(happened)


def test_the_stream_is_late_repeated_and_the_same_for_a_seed() -> None:
    happened = stream.changes(seed=5, count=1_000)
    assert happened == stream.changes(seed=5, count=1_000)
    assert {change["op"] for change in happened} == {"c", "u", "d", "r"}
    batches = stream.micro_batches(happened, seed=5, count=8)
    arrived = [change["source"]["lsn"] for batch in batches for change in batch]
    assert len(arrived) > len(set(arrived)) == len(happened)
    own = {change["source"]["lsn"]: number * 8 // 1_000 for number, change in enumerate(happened)}
    late = sum(
        own[change["source"]["lsn"]] < number for number, batch in enumerate(batches) for change in batch
    )
    assert late > 50
    returned = [change["after"]["id"] for change in happened if change["op"] == "c"]
    assert len(returned) > len(set(returned))
