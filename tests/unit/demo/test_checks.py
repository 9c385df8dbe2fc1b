"""The demonstration's checks against a world made by another writer: honest first, then spoiled."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from demo import raw_data
from demo.checks import MAINTENANCE_TASKS, ROLLBACK_TASKS, Evidence, check_all
from demo.profiles import PROFILES, Profile
from demo.table_reader import LOG, TableReader

Facts = dict[str, Any]

FEEDS = ("flights", "weather")
SMALL = Profile(name="small", first_months=(1,), single_months=(2,), feeds=FEEDS, standalone=False)


@pytest.fixture(autouse=True, scope="module")
def small_profile() -> Iterator[None]:
    PROFILES[SMALL.name] = SMALL
    yield
    del PROFILES[SMALL.name]


def by(run_id: str, dag_id: str = "flights_etl") -> CommitProperties:
    return CommitProperties(custom_metadata={"userMetadata": json.dumps({"dag": dag_id, "run": run_id})})


def run(purpose: str, dag_id: str, run_id: str, states: dict[str, list[str]], **more: Any) -> dict[str, Any]:
    return {
        "purpose": purpose,
        "dag_id": dag_id,
        "run_id": run_id,
        "state": "failed" if any("failed" in of_task for of_task in states.values()) else "success",
        "tasks": [
            {"task_id": name, "map_index": index, "state": state}
            for name, of_task in states.items()
            for index, state in enumerate(of_task)
        ],
        **more,
    }


def versions(home: Path) -> dict[str, int]:
    return {feed: DeltaTable(str(home / feed)).version() for feed in FEEDS}


def append(path: Path, rows: pa.Table, commit: CommitProperties) -> None:
    write_deltalake(
        str(path),
        rows,
        mode="append",
        partition_by=["year", "month"],
        commit_properties=commit,
        target_file_size=60_000 if path.name == "flights" else 8_000,
    )


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Facts]:
    """A world in which all went well, and its facts."""
    home = tmp_path_factory.mktemp("honest")
    facts: Facts = {"profile": SMALL.name, "tables": {feed: str(home / feed) for feed in FEEDS}, "points": {}}
    runs = facts["runs"] = []
    loaded = {f"{step}_{feed}": ["success"] for feed in FEEDS for step in ("extract", "load", "verify")}
    for months in (SMALL.first_months, *((month,) for month in SMALL.single_months)):
        run_id = f"load-{months}"
        for feed in FEEDS:
            append(home / feed, raw_data.read(feed, months=months), by(run_id))
        runs.append(run("load", "flights_etl", run_id, loaded))
        facts["points"].setdefault("first_months", versions(home))
    facts["points"] |= {"loaded": versions(home), "after_bad": versions(home)}
    refused = {
        "extract_flights": ["success"],
        "load_flights": ["failed"],
        "verify_flights": ["upstream_failed"],
    }
    log = sorted(path.name for path in (home / "flights" / LOG).iterdir())
    for batch in raw_data.BAD_BATCHES:
        runs.append(run("bad", "flights_etl", batch, refused, batch=batch, log_before=log, log_after=log))
    for feed in FEEDS:
        table = DeltaTable(str(home / feed))
        table.optimize.compact(commit_properties=by("maintain", "table_maintenance"))
        table.create_checkpoint()
    facts["points"]["maintained"] = versions(home)
    done = {f"maintain.{name}": ["success"] * len(FEEDS) for name in MAINTENANCE_TASKS}
    runs.append(run("maintenance", "table_maintenance", "maintain", done))
    facts["data_files"] = {feed: TableReader(path=home / feed).data_files() for feed in FEEDS}
    facts["vacuum_plans"] = {feed: {"files": vacuum_plan(home / feed)} for feed in FEEDS}
    for point, target in (("rolled_back", "first_months"), ("forward", "maintained")):
        flights = DeltaTable(str(home / "flights"))
        flights.restore(facts["points"][target]["flights"], commit_properties=by(point, "table_rollback"))
        runs.append(run("rollback", "table_rollback", point, {name: ["success"] for name in ROLLBACK_TASKS}))
        facts["points"][point] = versions(home)
    return home, facts


def vacuum_plan(path: Path) -> list[dict[str, Any]]:
    reader = TableReader(path=path)
    live = reader.paths(reader.latest_version)
    return [
        {"path": name, "size_bytes": size, "reason": "removed"}
        for name, size in reader.data_files().items()
        if name not in live
    ]


@pytest.fixture
def world(honest: tuple[Path, Facts], tmp_path: Path) -> tuple[Path, Facts]:
    """A copy of the honest world, to be spoiled."""
    home, facts = honest
    shutil.copytree(home, tmp_path / "world")
    facts = copy.deepcopy(facts)
    facts["tables"] = {feed: str(tmp_path / "world" / feed) for feed in FEEDS}
    return tmp_path / "world", facts


def failures(facts: Facts) -> list[str]:
    return [check.name for check in check_all(Evidence(facts=facts)) if not check.held]


def test_every_check_holds_when_all_went_well(honest: tuple[Path, Facts]) -> None:
    assert failures(honest[1]) == []
    assert len(list(check_all(Evidence(facts=honest[1])))) > 30


def append_unsigned(home: Path, facts: Facts) -> None:
    append(home / "flights", raw_data.read("flights", months=(2,)), CommitProperties())


def lose_a_data_file(home: Path, facts: Facts) -> None:
    next((home / "weather").rglob("*.parquet")).unlink()


def lose_the_checkpoint(home: Path, facts: Facts) -> None:
    next((home / "flights" / LOG).glob("*.checkpoint.parquet")).unlink()
    (home / "flights" / LOG / "_last_checkpoint").unlink()


def move_point(point: str, feed: str, version: int) -> Callable[[Path, Facts], None]:
    def spoil(home: Path, facts: Facts) -> None:
        facts["points"][point][feed] = version

    return spoil


def task_state(purpose: str, task_id: str, state: str | None) -> Callable[[Path, Facts], None]:
    def spoil(home: Path, facts: Facts) -> None:
        for one in facts["runs"]:
            if one["purpose"] == purpose:
                kept = [task for task in one["tasks"] if task["task_id"] != task_id]
                changed = [task | {"state": state} for task in one["tasks"] if task["task_id"] == task_id]
                one["tasks"] = kept + (changed if state else [])

    return spoil


def let_a_bad_batch_in(home: Path, facts: Facts) -> None:
    rows = raw_data.read("flights", months=(2,)).slice(0, 1)
    at = rows.column_names.index("tailnum")
    rows = rows.set_column(at, "tailnum", pa.array([raw_data.BAD_TAIL_NUMBER]))
    append(home / "flights", rows, by("load-(2,)"))


def plan_to_delete_a_live_file(home: Path, facts: Facts) -> None:
    reader = TableReader(path=home / "flights")
    path = sorted(reader.paths(reader.latest_version))[0]
    facts["vacuum_plans"]["flights"]["files"].append({"path": path, "size_bytes": 1, "reason": "removed"})


def forget_reasons(home: Path, facts: Facts) -> None:
    for file in facts["vacuum_plans"]["weather"]["files"]:
        file["reason"] = ""


@pytest.mark.parametrize(
    ("spoil", "found_by"),
    [
        pytest.param(
            move_point("loaded", "flights", 0), "flights: each month has the rows", id="month missing"
        ),
        pytest.param(append_unsigned, "flights: every version names the successful run", id="unsigned"),
        pytest.param(let_a_bad_batch_in, "no row of a bad batch is visible", id="bad batch visible"),
        pytest.param(
            let_a_bad_batch_in, "flights: each load run committed exactly once", id="committed twice"
        ),
        pytest.param(move_point("maintained", "weather", 1), "weather: compaction left one file", id="no-op"),
        pytest.param(
            task_state("maintenance", "maintain.verify", None),
            "each maintenance task ran",
            id="verify dropped",
        ),
        pytest.param(
            task_state("bad", "load_flights", "success"),
            "bad batch wrong_type: its load",
            id="failure hidden",
        ),
        pytest.param(
            task_state("load", "verify_weather", "failed"), "every load was verified", id="unverified"
        ),
        pytest.param(task_state("rollback", "dry_run", None), "both rollback runs planned", id="no dry run"),
        pytest.param(lose_the_checkpoint, "flights: a checkpoint was written", id="no checkpoint"),
        pytest.param(lose_a_data_file, "weather: planning deleted nothing", id="file deleted"),
        pytest.param(
            plan_to_delete_a_live_file, "flights: vacuum would delete what no live", id="live file planned"
        ),
        pytest.param(forget_reasons, "weather: the plan gives a reason for each file", id="no reason"),
        pytest.param(
            move_point("rolled_back", "flights", 1), "version 1 has the files and rows", id="restore"
        ),
    ],
)
def test_what_is_spoiled_is_found(
    world: tuple[Path, Facts], spoil: Callable[[Path, Facts], None], found_by: str
) -> None:
    spoil(*world)
    assert any(name.startswith(found_by) for name in failures(world[1])), failures(world[1])
