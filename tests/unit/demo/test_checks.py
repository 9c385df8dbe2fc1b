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
from deltalake import CommitProperties, DeltaTable

from demo import raw_data
from demo.checks import Check, Evidence, check_all
from demo.checks.corrections import corrections
from demo.checks.gate import gate
from demo.checks.loading import loads, origins
from demo.checks.maintenance import maintained, vacuum_planned
from demo.checks.refusals import refused
from demo.checks.rollback import approvals, rolled_back
from demo.deliveries import BAD_TAIL_NUMBER, MIXED, ROTTEN
from demo.profiles import PROFILES
from demo.table_reader import LOG, TableReader
from tests.unit.demo.honest_world import FEEDS, SMALL, Facts, HonestWorld, append, by

pytestmark = pytest.mark.slow

Spoil = Callable[[Path, Facts], None]
Group = Callable[[Evidence], Iterator[Check]]


@pytest.fixture(autouse=True, scope="module")
def small_profile() -> Iterator[None]:
    PROFILES[SMALL.name] = SMALL
    yield
    del PROFILES[SMALL.name]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Facts]:
    """A world in which all went well, and its facts."""
    world = HonestWorld(tmp_path_factory.mktemp("honest"))
    return world.home, world.facts


@pytest.fixture
def world(honest: tuple[Path, Facts], tmp_path: Path) -> tuple[Path, Facts]:
    """A copy of the honest world, to be spoiled."""
    home, facts = honest
    shutil.copytree(home, tmp_path / "world")
    facts = copy.deepcopy(facts)
    facts["tables"] = {feed: str(tmp_path / "world" / feed) for feed in FEEDS}
    return tmp_path / "world", facts


def test_every_check_holds_when_all_went_well(honest: tuple[Path, Facts]) -> None:
    checks = list(check_all(Evidence(facts=honest[1])))
    assert [(check.name, check.detail) for check in checks if not check.held] == []
    assert len(checks) > 60


def test_a_check_that_cannot_be_made_did_not_hold(honest: tuple[Path, Facts]) -> None:
    facts = copy.deepcopy(honest[1])
    del facts["points"]["corrected"]
    assert "Late corrections" in {check.name for check in check_all(Evidence(facts=facts)) if not check.held}


def append_unsigned(home: Path, facts: Facts) -> None:
    append(home / "flights", raw_data.read("flights", months=(2,)), CommitProperties())


def lose_a_data_file(home: Path, facts: Facts) -> None:
    next((home / "weather").rglob("*.parquet")).unlink()


def lose_the_checkpoint(home: Path, facts: Facts) -> None:
    next((home / "flights" / LOG).glob("*.checkpoint.parquet")).unlink()
    (home / "flights" / LOG / "_last_checkpoint").unlink()


def move_point(point: str, feed: str, version: int) -> Spoil:
    def spoil(home: Path, facts: Facts) -> None:
        facts["points"][point][feed] = version

    return spoil


def task_state(purpose: str, task_id: str, state: str | None) -> Spoil:
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
    rows = rows.set_column(at, "tailnum", pa.array([BAD_TAIL_NUMBER]))
    append(home / "flights", rows, by("load-(2,)"))


def plan_to_delete_a_live_file(home: Path, facts: Facts) -> None:
    reader = TableReader(path=home / "flights")
    path = sorted(reader.paths(reader.latest_version))[0]
    facts["vacuum_plans"]["flights"]["files"].append({"path": path, "size_bytes": 1, "reason": "removed"})


def forget_reasons(home: Path, facts: Facts) -> None:
    for file in facts["vacuum_plans"]["weather"]["files"]:
        file["reason"] = ""


def remember(purpose: str, **said: Any) -> Spoil:
    def spoil(home: Path, facts: Facts) -> None:
        for one in facts["runs"]:
            if one["purpose"] == purpose:
                one.update(said)

    return spoil


def lose_quarantined_rows(home: Path, facts: Facts) -> None:
    DeltaTable(str(home / "flights" / "_deltaward" / "quarantine")).delete("carrier = 'ZZ'")


def blame_another_column(home: Path, facts: Facts) -> None:
    DeltaTable(str(home / "flights" / "_deltaward" / "quarantine")).update(
        {"_quarantine_reason": "'distance is wrong'"}
    )


def misreport_quality(home: Path, facts: Facts) -> None:
    path = home / "flights" / LOG / f"{facts['points']['gated']['flights']:020}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    (info,) = [action["commitInfo"] for action in actions if "commitInfo" in action]
    said = json.loads(info["userMetadata"])
    said["quality"]["published_rows"] += 1
    info["userMetadata"] = json.dumps(said)
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))


def load_a_script(home: Path, facts: Facts) -> None:
    page = home / "another.html"
    page.write_text('<html><script src="elsewhere.js"></script></html>')
    facts["quality"][MIXED]["report_html"] = page.as_uri()


def let_the_rotten_in(home: Path, facts: Facts) -> None:
    facts["quality"][ROTTEN]["outcome"] = "passed"


def merge_less(home: Path, facts: Facts) -> None:
    """Another file than the one that was merged is said to have been delivered."""
    path = Path(facts["deliveries"]["corrections"])
    lines = path.read_text().splitlines(keepends=True)
    shorter = path.with_name("shorter.csv")
    shorter.write_text("".join(line for line in lines if ",delete," not in line))
    facts["deliveries"]["corrections"] = str(shorter)


@pytest.mark.parametrize(
    ("spoil", "group", "found_by"),
    [
        pytest.param(
            move_point("loaded", "flights", 0), loads, "flights: each month has the rows", id="month missing"
        ),
        pytest.param(
            append_unsigned, origins, "flights: every version records the successful run", id="unsigned"
        ),
        pytest.param(let_a_bad_batch_in, refused, "no row of a bad batch is visible", id="bad batch visible"),
        pytest.param(
            let_a_bad_batch_in, origins, "flights: each load run committed exactly once", id="committed twice"
        ),
        pytest.param(
            task_state("bad", "load_flights", "success"),
            refused,
            "bad batch wrong_type: its load",
            id="failure hidden",
        ),
        pytest.param(
            remember("bad", reason=None), refused, "bad batch null_key: the run records", id="no cause"
        ),
        pytest.param(
            task_state("load", "verify_weather", "failed"), loads, "every load was verified", id="unverified"
        ),
        pytest.param(lose_quarantined_rows, gate, "gate: every bad row, and no other", id="rows lost"),
        pytest.param(lose_quarantined_rows, gate, "gate: published and quarantined", id="sum is short"),
        pytest.param(blame_another_column, gate, "gate: each quarantined row records", id="wrong reason"),
        pytest.param(move_point("gated", "flights", 1), gate, "gate: the published rows are", id="not gated"),
        pytest.param(misreport_quality, gate, "gate: the commit records the outcome", id="wrong outcome"),
        pytest.param(let_the_rotten_in, gate, "gate: many_bad_rows failed", id="too much let in"),
        pytest.param(load_a_script, gate, "gate: the reports on few_bad_rows", id="page needs a network"),
        pytest.param(merge_less, corrections, "corrections: the rows are those of", id="clause lost"),
        pytest.param(merge_less, corrections, "corrections: the metrics in the history", id="counts differ"),
        pytest.param(
            move_point("corrected", "flights", 2),
            corrections,
            "corrections: afterwards every value",
            id="not merged",
        ),
        pytest.param(
            task_state("corrections", "verify", "failed"),
            corrections,
            "corrections: the run merged",
            id="merge unverified",
        ),
        pytest.param(
            move_point("maintained", "weather", 1), maintained, "weather: compaction left one", id="no-op"
        ),
        pytest.param(
            task_state("maintenance", "maintain.verify", None),
            maintained,
            "each maintenance task ran",
            id="verify dropped",
        ),
        pytest.param(
            move_point("maintained", "flights", 3), maintained, "flights: after clustering", id="no order"
        ),
        pytest.param(
            lose_the_checkpoint, maintained, "flights: a checkpoint was written", id="no checkpoint"
        ),
        pytest.param(
            lose_a_data_file, vacuum_planned, "weather: planning deleted nothing", id="file deleted"
        ),
        pytest.param(
            plan_to_delete_a_live_file,
            vacuum_planned,
            "flights: vacuum would delete exactly",
            id="live file planned",
        ),
        pytest.param(
            forget_reasons, vacuum_planned, "weather: the plan gives a reason for each file", id="no reason"
        ),
        pytest.param(
            remember("rejected", answers=[]),
            approvals,
            "the rejected rollback was rejected by",
            id="not asked",
        ),
        pytest.param(
            task_state("rejected", "restore", "success"),
            approvals,
            "the rejected rollback planned, asked for approval",
            id="answer ignored",
        ),
        pytest.param(
            move_point("rejected", "flights", 5),
            approvals,
            "the rejected rollback changed nothing",
            id="restored all the same",
        ),
        pytest.param(
            remember("rollback", answers=[{"chosen": "Approve", "by": "nobody"}]),
            approvals,
            "both applied rollbacks were approved by admin",
            id="someone else approved",
        ),
        pytest.param(
            move_point("forward", "flights", 4), approvals, "the restored versions record admin", id="unsaid"
        ),
        pytest.param(
            task_state("rollback", "dry_run", None),
            rolled_back,
            "both rollback runs planned",
            id="no dry run",
        ),
        pytest.param(
            move_point("rolled_back", "flights", 1),
            rolled_back,
            "version 1 has the files and rows",
            id="restore",
        ),
    ],
)
def test_what_is_spoiled_is_found(
    world: tuple[Path, Facts], spoil: Spoil, group: Group, found_by: str
) -> None:
    spoil(*world)
    failed = [check.name for check in group(Evidence(facts=world[1])) if not check.held]
    assert any(name.startswith(found_by) for name in failed), failed
