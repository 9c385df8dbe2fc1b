from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import deltalake
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_core import DeltaTable, write_deltalake
from delta_core.clock import SYSTEM_CLOCK
from delta_core.errors import TableNotFoundError
from delta_core.fleet.facts import BUCKETS, LayoutFacts, bucket_limits, hours_of_week, size_histogram
from delta_core.fleet.ledger import Ledger, instant
from delta_core.fleet.rows import observation_row
from delta_core.fleet.score import WEIGHTS, score
from delta_core.fleet.tidy import MANY_FILES, tidy
from delta_core.maintenance.observe import MaintenanceRules, TableHealth
from delta_core.storage.request_meter import METER
from demo.fleet_tables import Made
from tests.unit.fleet.conftest import Make


def test_each_sickness_is_found_and_an_unchanged_table_costs_one_listing(
    control: Make, lake: list[Made], tmp_path: Path
) -> None:
    first = control()
    rows = first.refresh(run_id="r1")
    due = {table.kind: rows[f"file://{tmp_path}/lake/{table.path}"]["due"] for table in lake}
    assert due == {
        "healthy": [],
        "empty": [],
        "small_files": ["optimize", "checkpoint"],
        "long_tail": ["checkpoint"],
        "deleted_rows": [],
        "retention_debt": ["vacuum"],
    }
    scores = {table.kind: rows[f"file://{tmp_path}/lake/{table.path}"]["score"] for table in lake}
    assert scores["healthy"] == scores["empty"] == 100
    assert max(scores[kind] for kind in ("small_files", "long_tail", "deleted_rows", "retention_debt")) < 100
    second = control()
    requests = METER.totals().requests
    found = second.observe(second.registry.tables[:0], run_id="none")
    assert found == []
    before, known = second.rows, second.history
    assert (len(before), known) == (len(lake), {})
    requests = METER.totals().requests
    observed = second.observe(second.registry.tables, run_id="r2")
    listings = METER.totals().requests - requests
    assert all(item.unchanged for item in observed)
    # The rest is the append to the ledger.
    assert len(lake) <= listings < len(lake) + 20
    again = {item.table.uri: observation_row(item, run_id="r2") for item in observed}
    assert all(again[uri]["score"] == row["score"] for uri, row in rows.items())


def test_a_changed_table_is_observed_again_and_a_lost_one_is_a_row_with_its_error(
    control: Make, lake: list[Made], tmp_path: Path
) -> None:
    control().refresh(run_id="r1")
    changed, lost = (f"file://{tmp_path}/lake/{table.path}" for table in lake[:2])
    write_deltalake(changed, DeltaTable(changed).to_pyarrow_table(), mode="append")
    for name in Path(lost.removeprefix("file://"), "_delta_log").iterdir():
        name.unlink()
    second = control()
    known = [second.registry.table(uri) for uri in (changed, lost)]
    new, gone = second.observe(known, run_id="r2")
    assert not new.unchanged
    assert new.outlook is not None
    assert new.outlook.health.version == DeltaTable(changed).version()
    assert gone.error is not None
    assert gone.error[0] == TableNotFoundError.code
    rows = second.rebuild(run_id="r2")
    assert rows[lost]["error"] == gone.error[1]
    assert rows[lost]["score"] is None
    # What is not observed in a run keeps its row.
    assert len(rows) == len(lake)


def test_a_lost_ledger_is_rebuilt_and_any_reader_reads_it(
    control: Make, lake: list[Made], tmp_path: Path
) -> None:
    rows = control().refresh(run_id="r1")
    shutil.rmtree(tmp_path / "control")
    again = control().refresh(run_id="r2")
    assert {uri: row["score"] for uri, row in again.items()} == {u: r["score"] for u, r in rows.items()}
    read = deltalake.DeltaTable(str(tmp_path / "control/ledger/fleet")).to_pyarrow_table()
    assert dict(zip(read["uri"].to_pylist(), read["score"].to_pylist(), strict=True)) == {
        uri: row["score"] for uri, row in again.items()
    }
    seen = deltalake.DeltaTable(str(tmp_path / "control/ledger/observations")).to_pyarrow_table()
    assert seen.num_rows == len(lake)


def test_sizes_and_hours_are_counted_in_their_buckets() -> None:
    limits = bucket_limits()
    sizes = pa.array([0, 1, limits[0] - 1, limits[0], limits[-1] - 1, limits[-1], 1 << 50]).to_numpy()
    histogram = size_histogram(sizes)
    assert (len(histogram), sum(histogram)) == (BUCKETS, 7)
    assert (histogram[0], histogram[1], histogram[-2], histogram[-1]) == (3, 1, 1, 2)
    # 1970-01-01 was a Thursday.
    assert hours_of_week([0, 3_599_999])[72] == 2


HEALTH = TableHealth(
    uri="/t",
    table_id="i",
    version=1,
    timestamp_ms=0,
    observed_ms=10**9,
    num_files=100,
    total_bytes=10**6,
    average_file_bytes=10**4,
    target_file_size_bytes=1 << 27,
    small_files=0,
    small_file_bytes=0,
    compactable_files=0,
    num_partitions=1,
    checkpoint_version=None,
    checkpoint_interval=10,
    log_tail_commits=0,
    commits_in_log=1,
    tombstones=0,
    tombstone_bytes=0,
    expired_tombstones=0,
    expired_tombstone_bytes=0,
    deleted_file_retention_ms=0,
    last_optimize_ms=None,
    last_vacuum_ms=None,
)
LAYOUT = LayoutFacts(
    histogram=(0,) * BUCKETS,
    rows=10**6,
    deleted_rows=0,
    files_without_statistics=0,
    hours=(0,) * 168,
    tail_since_ms=None,
)
REPAIRS = (
    {"compactable_files": 0, "small_files": 0},
    {"unclustered_bytes": 0},
    {"log_tail_commits": 0},
    {"expired_tombstones": 0, "expired_tombstone_bytes": 0},
    {"deleted_rows": 0},
    {"files_without_statistics": 0},
    {"tail_since_ms": None},
    {"failures": 0},
)


@settings(max_examples=150, deadline=None)
@given(
    health=st.fixed_dictionaries(
        {
            "num_files": st.integers(1, 1000),
            "compactable_files": st.integers(0, 1000),
            "unclustered_bytes": st.integers(0, 10**6),
            "log_tail_commits": st.integers(0, 1000),
            "expired_tombstone_bytes": st.integers(0, 10**8),
            "expired_tombstones": st.integers(0, 100),
        }
    ),
    layout=st.fixed_dictionaries(
        {
            "deleted_rows": st.integers(0, 10**6),
            "files_without_statistics": st.integers(0, 1000),
            "tail_since_ms": st.none() | st.integers(0, 10**9),
        }
    ),
    failures=st.integers(0, 10),
    repair=st.sampled_from(REPAIRS),
)
def test_repairing_one_thing_never_lowers_the_score(
    health: dict[str, int], layout: dict[str, int], failures: int, repair: dict[str, int]
) -> None:
    rules = MaintenanceRules()
    sick = score(replace(HEALTH, **health), replace(LAYOUT, **layout), rules, failures=failures)
    health |= {name: value for name, value in repair.items() if hasattr(HEALTH, name)}
    layout |= {name: value for name, value in repair.items() if hasattr(LAYOUT, name)}
    repaired = score(
        replace(HEALTH, **health),
        replace(LAYOUT, **layout),
        rules,
        failures=repair.get("failures", failures),
    )
    assert repaired.total >= sick.total
    assert 0 <= sick.total <= 100
    assert abs(100 - sum(part.lost for part in sick.parts) - sick.total) < 0.1
    assert len(sick.reasons) == sum(part.lost > 0 for part in sick.parts)


def test_an_empty_table_has_100_and_the_weights_add_up() -> None:
    assert sum(WEIGHTS.values()) == 100
    empty = replace(HEALTH, num_files=0, total_bytes=0, log_tail_commits=500)
    assert score(empty, LAYOUT, MaintenanceRules(), failures=9).total == 100


def test_the_ledger_is_kept_small(control: Make, lake: list[Made], tmp_path: Path) -> None:
    now_ms = SYSTEM_CLOCK.now_ms()
    ledger = Ledger(control_root=str(tmp_path / "control"))
    assert tidy(ledger, keep_days=30) == {}
    old, new = instant(now_ms - 40 * 86_400_000), instant(now_ms)
    for number in range(MANY_FILES + 1):
        rows = [{"day": new.date(), "observed_at": new, "name": f"t{number}", "uri": "u"}]
        ledger.append("observations", rows)
    ledger.append("observations", [{"day": old.date(), "observed_at": old, "name": "old", "uri": "u"}])
    done = tidy(ledger, keep_days=30)
    assert (done["observations"]["deleted"], done["observations"]["compacted"]) == (True, True)
    names = [row["name"] for row in ledger.observations(columns=("name",))]
    assert sorted(names) == sorted(f"t{number}" for number in range(MANY_FILES + 1))
    assert not tidy(ledger, keep_days=30)["observations"]["compacted"]
