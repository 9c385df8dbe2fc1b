from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import ConfigurationError
from delta_core.fleet.apply import Application, apply_plan
from delta_core.fleet.control import report_of
from delta_core.fleet.ledger import Ledger
from delta_core.fleet.plan import FleetPlan
from delta_core.jobs.context import JobContext
from delta_core.leases.lease import acquire_lease
from delta_core.storage.open import open_store
from demo.fleet_tables import Made
from tests.unit.fleet.conftest import Make


def planned(control: Any, run_id: str = "r1", **options: Any) -> FleetPlan:
    plan: FleetPlan = control.plan(control.refresh(run_id=run_id), run_id=run_id, **options)
    return plan


def optimizes(uri: str) -> int:
    return sum(entry.commit_info.operation == "OPTIMIZE" for entry in DeltaTable(uri).history())


def test_what_is_due_is_done_once_and_predicted_well(control: Make, lake: list[Made], tmp_path: Path) -> None:
    first = control()
    plan = planned(first)
    assert FleetPlan.from_json(plan.to_json()) == plan
    first.ledger.save_plan(plan)
    assert first.ledger.load_plan(plan.plan_id) is not None
    assert first.ledger.load_plan(1) is None
    batches = [plan.batch(index, 3) for index in range(3)]
    assert sorted(e.uri + e.verb for b in batches for e in b.entries) == sorted(
        e.uri + e.verb for e in plan.entries
    )
    assert not set.intersection(*({e.uri for e in batch.entries} for batch in batches[:2]))
    rows = [row for batch in batches for row in apply_plan(batch, Application(ledger=first.ledger))]
    assert {row["outcome"] for row in rows} == {"succeeded"}
    assert {row["verb"] for row in rows} == {"optimize", "checkpoint", "vacuum"}
    for row in rows:
        assert row["actual_files"] == row["predicted_files"]
    assert list(apply_plan(plan, Application(ledger=first.ledger))) == []
    for table in lake:
        if table.kind == "small_files":
            assert optimizes(f"{tmp_path}/lake/{table.path}") == 1
    second = control()
    after = planned(second, "r2")
    assert after.entries == ()
    report = report_of(second.ledger, run_id="r1")
    assert report.totals["due"] == sum(table.kind == "retention_debt" for table in lake)
    assert report.verbs["optimize"]["commits"] == sum(table.kind == "small_files" for table in lake)
    assert report.failed == ()


def test_a_commit_whose_row_was_lost_is_found_and_not_repeated(
    control: Make, lake: list[Made], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = control()
    plan = planned(first)
    uris = [entry.uri for entry in plan.entries if entry.verb == "optimize"]

    class Killed(BaseException):
        pass

    def die(self: Ledger, table: str, rows: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "append", die)
        with pytest.raises(Killed):
            list(apply_plan(plan, Application(ledger=first.ledger)))
    rows = list(apply_plan(plan, Application(ledger=control().ledger)))
    commits = {row["uri"]: row["commits"] for row in rows if row["verb"] == "optimize"}
    assert set(commits) == set(uris)
    for uri, versions in commits.items():
        assert optimizes(uri) == 1
        assert len(versions) == 1
    # An older plan that comes late finds the work of this one.
    late = replace(plan, plan_id=plan.plan_id - 1)
    assert {row["outcome"] for row in apply_plan(late, Application(ledger=control().ledger))} <= {
        "superseded",
        "not_due",
    }


def test_runs_at_once_rewrite_each_table_once(control: Make, lake: list[Made], tmp_path: Path) -> None:
    plans = [planned(control(), f"r{number}") for number in range(3)]
    plans = [replace(plan, plan_id=plan.plan_id + number) for number, plan in enumerate(plans)]

    def work(plan: FleetPlan) -> list[Any]:
        return list(apply_plan(plan, Application(ledger=control().ledger)))

    with ThreadPoolExecutor(3) as pool:
        rows = [row for found in pool.map(work, plans) for row in found]
    assert not [row["error"] for row in rows if row["outcome"] in ("failed", "unknown")]
    done = Counter(row["uri"] for row in rows if row["verb"] == "optimize" and row["commits"])
    small = [f"file://{tmp_path}/lake/{table.path}" for table in lake if table.kind == "small_files"]
    assert done == Counter(small)
    assert all(optimizes(uri) == 1 for uri in small)


def test_two_plans_one_after_the_other_cluster_a_table_once(control: Make, tmp_path: Path) -> None:
    uri = f"file://{tmp_path}/lake/sales"
    for number in range(8):
        write_deltalake(uri, pa.table({"id": [number, 100 - number], "day": [1, 2]}), mode="append")
    more = "  clustering: {columns: [id]}"
    first, second = (planned(control(more), f"r{number}") for number in range(2))
    second = replace(second, plan_id=first.plan_id + 1)
    assert [entry.verb for entry in second.entries] == ["cluster"]
    for plan, outcome in ((first, "succeeded"), (second, "not_due")):
        rows = list(apply_plan(plan, Application(ledger=control().ledger)))
        assert [row["outcome"] for row in rows] == [outcome]
    assert optimizes(uri) == 1


def test_a_retry_leaves_out_the_later_verbs_of_a_table_that_failed(control: Make, lake: list[Made]) -> None:
    first = control()
    plan = planned(first)
    uri = next(entry.uri for entry in plan.entries if entry.verb == "optimize")
    mine = tuple(entry for entry in plan.entries if entry.uri == uri)
    vacuum = replace(mine[0], verb="vacuum", kind="vacuum")
    plan = replace(plan, entries=(*mine, vacuum))
    for name in Path(uri.removeprefix("file://")).glob("*.parquet"):
        name.unlink()
    for outcomes in (["failed"], []):
        rows = list(apply_plan(plan, Application(ledger=control().ledger)))
        assert [row["outcome"] for row in rows] == outcomes


def test_a_held_lease_is_waited_for_and_then_reported(
    control: Make, lake: list[Made], tmp_path: Path
) -> None:
    first = control()
    plan = planned(first)
    small = next(entry.uri for entry in plan.entries if entry.verb == "optimize")
    plan = replace(plan, entries=tuple(entry for entry in plan.entries if entry.uri == small))
    acquire_lease(open_store(small), "maintenance", holder="a notebook", ttl_seconds=3600)
    application = Application(ledger=first.ledger, context=JobContext(lease_ttl_seconds=1))
    rows = list(apply_plan(plan, application))
    assert [row["outcome"] for row in rows] == ["busy"]
    assert optimizes(small) == 0
    # It is no failure, and the next run plans it again.
    assert any(entry.uri == small for entry in planned(control(), "r2").entries)


def test_a_table_that_fails_opens_its_circuit_and_one_command_closes_it(
    control: Make, lake: list[Made], tmp_path: Path
) -> None:
    more = "  max_failures: 2"
    small = next(table for table in lake if table.kind == "small_files")
    uri = f"file://{tmp_path}/lake/{small.path}"
    for name in (tmp_path / "lake" / small.path).glob("*.parquet"):
        name.unlink()
    for number in range(2):
        now = control(more)
        plan = planned(now, f"r{number}")
        rows = list(apply_plan(plan, Application(ledger=now.ledger)))
        # The later verbs of the table do not run, and the others do.
        assert [row["verb"] for row in rows if row["uri"] == uri] == ["optimize"]
        assert [row["outcome"] for row in rows if row["uri"] == uri] == ["failed"]
    opened = control(more)
    plan = planned(opened, "r3")
    assert uri not in {entry.uri for entry in plan.entries}
    assert any("circuit --close" in item.reason or "--close" in item.reason for item in plan.deferred)
    row = control(more).rows[uri]
    assert (row["failures"], row["circuit_open"]) == (2, True)
    assert dict(report_of(opened.ledger).needing_attention)[uri].startswith("the circuit is open")
    closing = control(more)
    closing.close_circuit(closing.registry.table(uri))
    assert control(more).rows[uri]["circuit_open"] is False
    assert uri in {entry.uri for entry in planned(control(more), "r4").entries}


def test_what_is_deferred_says_why(control: Make, lake: list[Made], tmp_path: Path) -> None:
    reasons = {
        "  mode: shadow": "shadow",
        '  windows: [{cron: "0 0 29 2 *", hours: 1}]': "no window",
        "  max_age_hours: 100": "",
    }
    for more, reason in reasons.items():
        plan = planned(control(more))
        assert bool(plan.deferred) == bool(reason)
        assert all(reason in item.reason for item in plan.deferred)
    assert planned(control('  windows: [{cron: "0 0 29 2 *", hours: 1}]'), ignore_windows=True).entries
    cheap = planned(control("", "  budget: {bytes: 100}"))
    assert any("a run may spend 100" in item.reason for item in cheap.deferred)
    held = planned(control("  approval: {verbs: [optimize]}"))
    optimize = [entry for entry in held.entries if entry.verb == "optimize"]
    assert all(entry.needs_approval for entry in optimize)
    only = replace(held, entries=tuple(optimize))
    ledger = control().ledger
    assert list(apply_plan(only, Application(ledger=ledger))) == []
    done = list(apply_plan(only, Application(ledger=ledger, approved=True)))
    assert {row["outcome"] for row in done} == {"succeeded"}
    again = control("  cooldown_hours: 5")
    for entry in optimize:
        data = DeltaTable(entry.uri).to_pyarrow_table()
        for _ in range(6):
            write_deltalake(entry.uri, data.slice(0, 2), mode="append")
    assert any("cooldown_hours" in item.reason for item in planned(again, "r9").deferred)
    with pytest.raises(ConfigurationError):
        held.batch(3, 3)
    with pytest.raises(ConfigurationError, match="format"):
        FleetPlan.from_json({})


def test_a_plan_whose_window_is_over_runs_nothing(control: Make, lake: list[Made]) -> None:
    first = control()
    plan = planned(first)
    closed = replace(plan, entries=tuple(replace(entry, until_ms=1) for entry in plan.entries))
    rows = list(apply_plan(closed, Application(ledger=first.ledger)))
    assert {row["outcome"] for row in rows} == {"closed"}
