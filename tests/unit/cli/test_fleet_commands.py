from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import deltalake
import pytest
from typer.testing import CliRunner

from delta_core.cli.app import app
from delta_core.cli.console import BAD_INPUT, SOME
from demo.fleet_tables import make_fleet


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("lake") / "lake"
    make_fleet(root, tables=12, files=8, seed=18)
    return root


@pytest.fixture
def here(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(prepared, tmp_path / "lake")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str, code: int = 0) -> Any:
    result = CliRunner().invoke(app, ["fleet", *arguments])
    assert result.exit_code == code, result.output
    return result


def test_the_first_ten_minutes(here: Path) -> None:
    found = call("discover", "lake")
    assert len(found.stdout.splitlines()) == 12
    assert "wrote deltaward-fleet.yaml" in found.stderr
    assert "was kept" in call("discover", "lake").stderr
    before = sorted(path for path in (here / "lake").rglob("*"))
    assert "score" in call("status").stdout
    assert "long_tail" in call("status", "--json").stdout
    # Nothing was written to a table: credentials that only read are enough.
    assert sorted(path for path in (here / "lake").rglob("*")) == before
    call("status", "--fail-below", "99", code=SOME)
    rows = json.loads(call("status", "--json", "--worst", "50").stdout)
    assert [row["score"] for row in rows] == sorted(row["score"] for row in rows)
    assert len(call("status", "--csv").stdout.splitlines()) == 13
    name = rows[0]["name"]
    assert "points lost" in call("show", name).stdout
    assert json.loads(call("show", name, "--json").stdout)["table"]["score"] == rows[0]["score"]
    assert "12 unmanaged" in call("unmanaged").stderr
    assert "unmanaged at" in call("lint").stdout
    assert "built in" in call("explain", name).stdout
    assert "defaults" in call("explain", name, "compaction.min_small_files").stdout
    call("explain", name, "no.such.key", code=BAD_INPUT)
    call("show", "nobody", code=BAD_INPUT)
    assert "closed, 0 failures" in call("circuit", name).stdout


def test_plan_apply_and_report(here: Path) -> None:
    call("discover", "lake")
    policies = here / "deltaward-fleet.yaml"
    text = policies.read_text().replace("min_small_files: 16", "min_small_files: 4")
    policies.write_text(text.replace("dry_run: true", "dry_run: false\n    min_bytes: 1"))
    assert "gain a day" in call("plan", "--save", "plan.json").stdout
    plan = json.loads((here / "plan.json").read_text())
    verbs = {entry["verb"] for entry in plan["entries"]}
    assert {"optimize", "vacuum"} <= verbs
    done = json.loads(call("apply", "--plan", "plan.json", "--json").stdout)["rows"]
    assert {row["outcome"] for row in done} == {"succeeded"}
    # A plan that is run again finds each of its verbs in the ledger.
    assert json.loads(call("apply", "--plan", "plan.json", "--json").stdout)["rows"] == []
    call("report", "--html", "report.html", "--metrics-file", "fleet.prom")
    html = (here / "report.html").read_text()
    assert "<script" not in html
    assert "http" not in html.replace("http-equiv", "")
    ledger = deltalake.DeltaTable(str(here / ".deltaward-fleet/ledger/fleet")).to_pyarrow_table()
    assert f"<b>{ledger.num_rows}</b>tables" in html
    assert (
        f"deltaward_fleet_files {sum(n or 0 for n in ledger['num_files'].to_pylist())}"
        in (here / "fleet.prom").read_text()
    )
    report = json.loads(call("report", "--json").stdout)
    assert report["verbs"]["optimize"]["actual_files"] == report["verbs"]["optimize"]["predicted_files"]
    assert "need you" in call("report").stdout
    call("apply", "--plan", "missing.json", code=BAD_INPUT)
    (here / "plan.json").write_text("{}")
    call("apply", "--plan", "plan.json", code=BAD_INPUT)


def test_without_a_policy_file_the_error_names_the_command(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert "fleet discover PREFIX" in call("status", code=BAD_INPUT).stderr
