"""Whole runs against a directory, and a store that refuses, hangs or breaks: what the report says of each."""

from __future__ import annotations

import json
import platform
import threading
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from delta_core.cli import conformance_command
from delta_core.cli.app import app
from delta_core.clock import ManualClock
from delta_core.conformance import suite
from delta_core.conformance.check import Check, CheckResult, Context, Status
from delta_core.conformance.environment import surroundings
from delta_core.conformance.place import PREFIX, CleanUp, Place
from delta_core.conformance.report import ConformanceReport
from delta_core.errors import ConfigurationError, StoreContractError
from delta_core.version import VERSION
from tests.support.webhdfs_server import FakeHdfs, FakeNode, HdfsError


class _NeverDeletes(FakeHdfs):
    def _delete(self, path: str, query: dict[str, str]) -> Any:
        raise HdfsError(403, "AccessControlException", "Permission denied")


@pytest.mark.slow
def test_a_directory_is_certified_and_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = ("contract", "delete", "ranges", "names", "race", "commits")
    monkeypatch.setattr(suite, "CHECKS", [check for check in suite.CHECKS if check.name in quick])
    monkeypatch.setenv("DELTAWARD_STORAGE_OPTIONS", "")
    (tmp_path / "mine").write_text("stays")
    report = tmp_path / "report.json"
    arguments = ["store-conformance", str(tmp_path), "--writers", "2", "--report", str(report)]
    answer = CliRunner().invoke(app, arguments)
    assert answer.exit_code == 0, answer.output
    assert answer.stdout.endswith("SAFE for 2 concurrent writers\n")
    found = json.loads(report.read_text())
    assert found["certified"]
    assert {check["status"] for check in found["checks"]} == {"passed"}
    assert "races of 8 writers, in 2 processes with 4 threads each" in str(found["checks"])
    assert "20 commits of 2 processes, each in one version" in str(found["checks"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "report.json"]


def test_what_cannot_be_deleted_is_named_and_the_writers_are_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = [check for check in suite.CHECKS if check.name in ("contract", "delete")]
    monkeypatch.setattr(suite, "CHECKS", checks)
    with FakeNode(_NeverDeletes()) as node:
        report = suite.certify("hdfs://name/tables", {"webhdfs_endpoint": node.url}, writers=2)
    assert report.verdict == "SAFE for 2 concurrent writers; limited: delete"
    assert "access/one" in report.clean_up.left
    assert report.clean_up.deleted == 0
    page = report.to_markdown()
    assert "remain below hdfs://name/tables/deltaward-conformance-" in page
    assert "Grant the permission for vacuum and log cleanup." in page


def test_directories_and_what_killed_writers_left_are_cleaned_up() -> None:
    hdfs = FakeHdfs()
    with FakeNode(hdfs) as node:
        place = Place("hdfs://name/tables", {"webhdfs_endpoint": node.url, "user": "u"})
        place.store("a/b").put("c/d", b"")
        at = f"/tables/{place.uri.rpartition('/')[2]}"
        hdfs.store(f"{at}/a/.tmp-left", b"half")
        hdfs.perform("MKDIRS", f"{at}/empty/deep", {})
        hdfs.store("/tables/mine", b"stays")
        found = place.clean_up(seconds=20.0)
    assert (found.deleted, list(found.left)) == (1, [])
    assert set(hdfs.files) == {"/tables/mine"}
    assert hdfs.directories == {"", "/tables"}


def test_without_access_the_rest_is_not_run() -> None:
    heard: list[CheckResult] = []
    options = {"webhdfs_endpoint": "http://127.0.0.1:9", "user": "u"}
    report = suite.certify("hdfs://name/t", options, writers=2, max_seconds=20, on_result=heard.append)
    assert report.results[0].status is Status.NO_ACCESS
    assert {result.status for result in report.results[1:]} == {Status.NOT_RUN}
    assert report.verdict == "NOT CHECKED: the store could not be accessed"
    assert (report.certified, report.checked) == (False, False)
    assert "0 objects were deleted. The objects below hdfs://name/t/" in report.to_markdown()
    assert "remain below" not in report.to_markdown()
    assert all((report.results[0].problem, report.results[0].cause, report.results[0].fix))
    assert list(report.results) == heard


def _check(name: str, run: Any, **more: Any) -> Check:
    return Check(name=name, title=name, run=run, cause="why", fix="what to do", **more)


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Any:
    def replace(*checks: Check) -> None:
        monkeypatch.setattr(suite, "CHECKS", checks)

    return replace


def test_a_check_that_hangs_is_given_up_on(only: Any, tmp_path: Path) -> None:
    release = threading.Event()

    def hang(context: Context) -> str:
        release.wait(60)
        return ""

    only(_check("hangs", hang, seconds=0.5, decides_writers=True), _check("next", lambda context: "fine"))
    report = suite.certify(str(tmp_path), {}, writers=2)
    release.set()
    assert report.verdict == "NOT SAFE for concurrent writers; fails: hangs"
    assert report.results[2].problem.startswith("The check 'hangs' did not end within")
    assert report.results[3].status is Status.PASSED


def test_what_is_broken_otherwise_is_a_finding_with_cause_and_fix(only: Any, tmp_path: Path) -> None:
    def odd(context: Context) -> str:
        raise ZeroDivisionError("of a store")

    only(_check("odd", odd))
    report = suite.certify(str(tmp_path / "made"), {}, writers=2)
    assert report.verdict == "NOT CERTIFIED: does not keep the contract; fails: odd"
    odd_result = report.results[2]
    assert (odd_result.problem, odd_result.cause) == ("ZeroDivisionError: of a store", "why")
    assert odd_result.fix == "what to do"
    assert list(tmp_path.iterdir()) == []


def test_a_run_out_of_time_certifies_nothing(only: Any, tmp_path: Path) -> None:
    clock = ManualClock(1_700_000_000_000)

    def slow(context: Context) -> str:
        clock.advance(255.0)
        return "slow"

    only(_check("slow", slow), _check("late", lambda context: "fine"))
    report = suite.certify(str(tmp_path), {}, writers=2, max_seconds=290.0, clock=clock)
    assert report.verdict == "NOT CERTIFIED: not run: late"
    assert report.results[-1].detail == "the time limit was reached; increase --max-seconds"


def test_the_prefix_is_fresh_or_nothing_is_written(tmp_path: Path) -> None:
    place = Place(str(tmp_path), {})
    place.store("x").put("y", b"")
    with pytest.raises(StoreContractError, match="already contains the object"):
        place.require_fresh()
    found = place.clean_up(seconds=5.0)
    assert (found.deleted, list(found.left)) == (1, [])


def test_only_the_prefix_is_cleaned_up(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("kept")
    place = Place(str(tmp_path), {})
    assert place.uri.startswith(f"file://{tmp_path}/{PREFIX}")
    place.store("x").put("y", b"")
    (tmp_path / place.uri.rpartition("/")[2] / "link").symlink_to(tmp_path / "other")
    place.clean_up(seconds=5.0)
    assert [path.name for path in tmp_path.iterdir()] == ["other"]
    assert (tmp_path / "other" / "file").read_text() == "kept"


@pytest.mark.parametrize("writers", [1, 65])
def test_a_number_of_writers_that_proves_nothing(tmp_path: Path, writers: int) -> None:
    with pytest.raises(ConfigurationError, match="writers"):
        suite.certify(str(tmp_path), {}, writers=writers)


def test_a_report_shows_no_control_characters_and_no_forged_lines() -> None:
    hostile = "x\n# forged\x1b[2J | <b>\u202eevil"
    result = CheckResult(
        name="n",
        title="t",
        status=Status.FAILED,
        decides_writers=True,
        seconds=0.1,
        problem=hostile,
        cause=hostile,
        fix=hostile,
    )
    clean_up = CleanUp(deleted=0, left=[f"a{hostile}"], why=hostile)
    page = ConformanceReport(
        uri="s3://b/p",
        writers=2,
        began_ms=1_700_000_000_000,
        surroundings={"machine": hostile},
        seconds=1.0,
        results=[result],
        clean_up=clean_up,
    ).to_markdown()
    assert "\n# forged" not in page
    assert not [sign for sign in ("\x1b", "\u202e", "<b>") if sign in page]


def test_a_report_says_when_where_and_with_what(only: Any, tmp_path: Path) -> None:
    only(_check("fine", lambda context: "seen"))
    clock = ManualClock(1_700_000_000_000)
    report = suite.certify(str(tmp_path), {}, writers=2, clock=clock)
    page = report.to_markdown()
    assert "| began | 2023-11-14 22:13:20 UTC, took 0 s |" in page
    assert f"| machine | {platform.platform()} |" in page
    assert f"| deltaward | {VERSION} |" in page
    assert "| client | Python's files |" in page
    assert "| A name is created once | `preconditions` | passed |" in page
    assert "| writers | 2 processes; each races with several threads |" in page
    document = report.to_json()
    assert document["began"] == "2023-11-14 22:13:20 UTC"
    assert document["machine"] == platform.platform()


def test_the_client_of_a_cloud_is_named_with_its_version() -> None:
    assert surroundings("s3://b/p")["client"].startswith(f"obstore {version('obstore')}")
    assert surroundings("hdfs://n/p")["client"] == "Python's http.client"


def test_what_the_check_of_access_finds_broken_is_a_finding(tmp_path: Path, monkeypatch: Any) -> None:
    def lie(context: Context) -> str:
        raise StoreContractError("What was read is not what was written.")

    monkeypatch.setattr(suite, "ACCESS", replace(suite.ACCESS, run=lie))
    report = suite.certify(str(tmp_path), {}, writers=2)
    assert report.verdict == "NOT SAFE for concurrent writers; fails: access"
    assert report.checked


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_store_that_cannot_be_used_has_a_code_of_its_own(
    tmp_path: Path, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    report = tmp_path / "deep" / "report.md"
    arguments = ["store-conformance", str(tmp_path / "file"), "--report", str(report), "--quiet", *options]
    answer = CliRunner().invoke(app, arguments)
    assert answer.exit_code == 4, answer.output
    assert "NOT CHECKED" in answer.stdout
    assert "NOT SAFE" not in answer.stdout
    assert "**NOT CHECKED" in report.read_text()


@pytest.mark.parametrize("name", ["file/r.md", "folder.md", "/proc/none/r.md"])
def test_a_report_that_cannot_be_written_is_refused_before_the_run(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "folder.md").mkdir()
    monkeypatch.setattr(conformance_command, "certify", lambda *_, **__: pytest.fail("it ran"))
    answer = CliRunner().invoke(app, ["store-conformance", str(tmp_path), "--report", str(tmp_path / name)])
    assert answer.exit_code == 2, answer.output
    assert answer.stderr.startswith("error: ")
    assert "Traceback" not in answer.output


def test_a_report_that_cannot_be_written_any_more_hides_no_verdict(
    only: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "reports"

    def taken(context: Context) -> str:
        folder.rmdir()
        folder.write_text("a file now")
        return ""

    only(_check("taken", taken))
    arguments = ["store-conformance", str(tmp_path / "store"), "--quiet", "--report", str(folder / "r.md")]
    answer = CliRunner().invoke(app, arguments)
    assert answer.exit_code == 2, answer.output
    assert answer.stdout.endswith("concurrent writers\n")
    assert "cannot be written" in answer.stderr


def test_a_wrong_report_name_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    answer = CliRunner().invoke(app, ["store-conformance", str(tmp_path), "--report", "report.txt"])
    assert answer.exit_code == 2
    assert list(tmp_path.iterdir()) == []
