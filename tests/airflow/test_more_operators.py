"""Operators for verify, fsck, clone, convert, cleanup, properties and plan: arguments, and what they do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.sdk.exceptions import AirflowFailException
from deltalake import DeltaTable as PeerTable
from deltalake import write_deltalake as peer_write

from delta_airflow.hooks.settings import RunnerName
from delta_airflow.operators.base import DeltaTableOperator
from delta_airflow.operators.cleanup import DeltaCleanupOperator
from delta_airflow.operators.clone import DeltaCloneOperator
from delta_airflow.operators.convert import DeltaConvertOperator
from delta_airflow.operators.fsck import DeltaFsckOperator
from delta_airflow.operators.load import DeltaLoadOperator
from delta_airflow.operators.optimize import DeltaOptimizeOperator
from delta_airflow.operators.plan import SEEN_KEY, DeltaPlanOperator
from delta_airflow.operators.properties import DeltaPropertiesOperator
from delta_airflow.operators.verify import NOTHING_TO_VERIFY, DeltaVerifyOperator
from delta_core.errors import ConfigurationError
from tests.support.cleared_tasks import Instance

pytestmark = pytest.mark.usefixtures("airflow_connection")

SUMMARY = {"commits": [5, 3], "version_to": 5}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    for number in (1, 2):
        peer_write(path, pa.table({"id": [number]}), mode="append")
    return path


def run(operator: DeltaTableOperator, instance: Instance | None = None) -> Any:
    return operator.execute((instance or Instance()).context)


def rendered(operator: Any, **values: Any) -> Any:
    operator.render_template_fields(values)
    return operator


# ------------------------------------------------------------ arguments


def verify(commits: Any, **changes: Any) -> DeltaVerifyOperator:
    return DeltaVerifyOperator(task_id="t", table_uri="/t", commits=commits, **changes)


@pytest.mark.parametrize(
    ("commits", "expected"),
    [
        (7, [7]),
        ([3, 5, 3], [3, 5]),
        ("7", [7]),
        ("[5, 3]", [3, 5]),
        ("None", []),
        (None, []),
        ("", []),
        ([], []),
        (SUMMARY, [3, 5]),
        (json.dumps({**SUMMARY, "note": "it's"}), [3, 5]),
        (["[5]", "None", "null", None, 8, SUMMARY], [3, 5, 8]),
        ({"commits": [], "applied_by": {"version": 2}}, [2]),
        ({"commits": [], "applied_by": None}, []),
    ],
)
def test_commits_are_numbers_results_or_templates_of_either(commits: Any, expected: list[int]) -> None:
    assert verify(commits).job_params() == {"commits": expected}


@pytest.mark.parametrize("commits", ["soon", -1, [1.5], True, ["[1"], {"commits": ["x"]}])
def test_what_is_no_commit_fails_for_good(commits: Any) -> None:
    with pytest.raises(AirflowFailException, match="commits"):
        run(verify(commits))


def test_templates_among_commits_are_rendered() -> None:
    operator = rendered(verify(["{{ a }}", "{{ b | tojson }}"]), a=[4], b=SUMMARY)
    assert operator.job_params() == {"commits": [3, 4, 5]}


@pytest.mark.parametrize(
    ("operator", "kind", "params", "has_key", "runner"),
    [
        (
            verify([1], allowed_root_uris="['/lake']"),
            "verify",
            {"commits": [1], "allowed_root_uris": ["/lake"]},
            False,
            RunnerName.INLINE,
        ),
        (DeltaFsckOperator(task_id="t", table_uri="/t"), "verify", {}, False, RunnerName.INLINE),
        (
            DeltaFsckOperator(task_id="t", table_uri="/t", allowed_root_uris=["s3://lake"]),
            "verify",
            {"allowed_root_uris": ["s3://lake"]},
            False,
            RunnerName.INLINE,
        ),
        (
            DeltaFsckOperator(task_id="t", table_uri="/t", repair="True"),
            "repair",
            {"dry_run": False},
            True,
            RunnerName.INLINE,
        ),
        (
            DeltaCloneOperator(task_id="t", table_uri="/c", source_uri="/t"),
            "clone",
            {"source_uri": "/t"},
            True,
            None,
        ),
        (
            DeltaCloneOperator(
                task_id="t",
                table_uri="/c",
                source_uri=" s3://lake/t ",
                shallow="true",
                version="0",
                allowed_root_uris='["/lake"]',
                dry_run="true",
            ),
            "clone",
            {
                "source_uri": "s3://lake/t",
                "shallow": True,
                "version": 0,
                "allowed_root_uris": ["/lake"],
                "dry_run": True,
            },
            False,
            None,
        ),
        (
            DeltaConvertOperator(
                task_id="t",
                table_uri="/t",
                partition_by={"year": "int", "day": "date"},
                partition_strategy="directory",
                table_name="orders",
                description="None",
                configuration={"delta.appendOnly": True, "delta.checkpointInterval": 20},
                collect_stats="false",
                if_exists="ignore",
            ),
            "convert",
            {
                "partition_by": [{"name": "year", "type": "int"}, {"name": "day", "type": "date"}],
                "partition_strategy": "directory",
                "name": "orders",
                "configuration": {"delta.appendOnly": "true", "delta.checkpointInterval": "20"},
                "collect_stats": False,
                "if_exists": "ignore",
            },
            True,
            None,
        ),
        (
            DeltaCleanupOperator(task_id="t", table_uri="/t", dry_run="False"),
            "cleanup_metadata",
            {"dry_run": False},
            False,
            RunnerName.INLINE,
        ),
        (
            DeltaPropertiesOperator(
                task_id="t",
                table_uri="/t",
                properties='{"delta.appendOnly": false}',
                unset="['delta.dataSkippingNumIndexedCols']",
            ),
            "properties",
            {"set": {"delta.appendOnly": "false"}, "unset": ["delta.dataSkippingNumIndexedCols"]},
            True,
            RunnerName.INLINE,
        ),
        (
            DeltaPlanOperator(
                task_id="t", table_uri="/t", rules='{"vacuum_enabled": false}', list_vacuum="true"
            ),
            "plan",
            {"rules": {"vacuum_enabled": False}, "list_vacuum": True},
            False,
            RunnerName.INLINE,
        ),
        (
            DeltaOptimizeOperator(task_id="t", table_uri="/t", dry_run="true", allowed_root_uris=["/lake"]),
            "optimize",
            {"allowed_root_uris": ["/lake"], "dry_run": True},
            False,
            None,
        ),
    ],
)
def test_arguments_become_the_parameters_of_a_job(
    operator: DeltaTableOperator,
    kind: str,
    params: Mapping[str, Any],
    has_key: bool,
    runner: RunnerName | None,
) -> None:
    assert (operator.job_kind(), dict(operator.job_params())) == (kind, params)
    assert operator.commits() is has_key
    assert operator.default_runner is runner


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: DeltaCloneOperator(task_id="t", table_uri="/c", source_uri="rel/t"), "absolute path"),
        (
            lambda: DeltaCloneOperator(
                task_id="t", table_uri="/c", source_uri="/t", version=1, timestamp="2026-01-01"
            ),
            "Both are given",
        ),
        (
            lambda: DeltaCloneOperator(task_id="t", table_uri="/c", source_uri="/t", allowed_root_uris=["x"]),
            "allowed_root_uris",
        ),
        (
            lambda: DeltaConvertOperator(task_id="t", table_uri="/t", partition_by=["day"]),  # type: ignore[arg-type]
            "partition_by",
        ),
        (
            lambda: DeltaConvertOperator(task_id="t", table_uri="/t", partition_strategy="other"),
            "'other' of partition_strategy",
        ),
        (lambda: DeltaConvertOperator(task_id="t", table_uri="/t", if_exists="drop"), "if_exists"),
        (
            lambda: DeltaConvertOperator(task_id="t", table_uri="/t", configuration={"a": None}),
            "configuration",
        ),
        (lambda: DeltaPropertiesOperator(task_id="t", table_uri="/t"), "no properties to set"),
        (lambda: DeltaFsckOperator(task_id="t", table_uri="/t", repair="perhaps"), "repair"),
        (
            lambda: DeltaFsckOperator(task_id="t", table_uri="/t", repair=True, allowed_root_uris=["/lake"]),
            "table's own root",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(make: Callable[[], DeltaTableOperator], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        make().job_params()


def test_a_loads_partition_columns_are_templated() -> None:
    source = {"format": "csv", "uris": ["/x"]}
    operator: Any = DeltaLoadOperator(
        task_id="t", table_uri="/t", source=source, partition_by="{{ columns }}"
    )
    assert rendered(operator, columns=["year", "month"]).job_params()["partition_by"] == ["year", "month"]


# ------------------------------------------------------------ what they do


def test_a_commit_is_verified_whatever_others_have_written_since(table: Path) -> None:
    compacted = run(DeltaOptimizeOperator(task_id="t", table_uri=str(table)))
    peer_write(table, pa.table({"id": [3]}), mode="append")
    operator = DeltaVerifyOperator(task_id="v", table_uri=str(table), commits=compacted)
    assert run(operator)["actual"]["failed"] == []
    (rewritten,) = PeerTable(table, version=2).file_uris()
    Path(rewritten.removeprefix("file://")).unlink()
    with pytest.raises(AirflowFailException, match="files_exist"):
        run(DeltaVerifyOperator(task_id="v", table_uri=str(table), commits=compacted))


def test_without_a_commit_nothing_is_opened(tmp_path: Path) -> None:
    operator = DeltaVerifyOperator(task_id="v", table_uri=str(tmp_path / "none"), commits=[None, "[]"])
    summary = run(operator)
    assert (summary["status"], summary["note"]) == ("succeeded", NOTHING_TO_VERIFY)
    assert (summary["commits"], summary["result_uri"]) == ([], "")
    assert json.loads(json.dumps(summary)) == summary


def test_a_table_is_checked_as_a_whole_and_repaired_when_asked_to(table: Path) -> None:
    check = DeltaFsckOperator(task_id="t", table_uri=str(table))
    assert run(check)["actual"]["failed"] == []
    gone = Path(PeerTable(table).file_uris()[0].removeprefix("file://"))
    gone.unlink()
    with pytest.raises(AirflowFailException, match="files_exist"):
        run(check)
    repaired = run(DeltaFsckOperator(task_id="t", table_uri=str(table), repair=True))
    assert (repaired["commits"], repaired["actual"]["files_removed"]) == ([2], 1)
    assert run(check)["actual"]["failed"] == []
    assert PeerTable(table).to_pyarrow_table().num_rows == 1


def test_a_table_is_cloned_and_followed(table: Path, tmp_path: Path) -> None:
    clone = DeltaCloneOperator(task_id="t", table_uri=str(tmp_path / "c"), source_uri=str(table))
    first = run(clone)
    assert (first["commits"], first["actual"]["files_copied"]) == ([0], 2)
    peer_write(table, pa.table({"id": [3]}), mode="append")
    assert run(clone, Instance().retry())["already_applied"] is True
    assert run(clone, Instance().clear())["commits"] == [1]
    assert PeerTable(tmp_path / "c").to_pyarrow_table().num_rows == 3


def test_a_directory_is_converted_once_also_when_its_task_is_cleared(tmp_path: Path) -> None:
    folder = tmp_path / "files" / "day=2026-01-01"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), folder / "a.parquet")
    convert = DeltaConvertOperator(
        task_id="t", table_uri=str(tmp_path / "files"), partition_by={"day": "date"}
    )
    assert run(convert)["metrics"]["rows"] == 1
    again = run(convert, Instance().clear())
    assert again["note"] == "applied by run scheduled__2026-01-01 at version 0; nothing was done"
    with pytest.raises(AirflowFailException, match="TABLE_EXISTS"):
        run(convert, Instance(run_id="other"))


def test_properties_are_set_through_an_operator(table: Path) -> None:
    wanted = DeltaPropertiesOperator(
        task_id="t", table_uri=str(table), properties={"delta.checkpointInterval": 20}
    )
    assert run(wanted)["commits"] == [2]
    assert PeerTable(table).metadata().configuration == {"delta.checkpointInterval": "20"}


def test_a_cleanup_plans_unless_told_otherwise(table: Path) -> None:
    assert run(DeltaCleanupOperator(task_id="t", table_uri=str(table)))["actual"] == {}


# ------------------------------------------------------------ plan


class Kept:
    """XComs of a task, from one run to the next."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def run(self, operator: DeltaPlanOperator, **changes: Any) -> Any:
        context = Instance().context
        instance = context["ti"]
        instance.xcom_push = lambda *, key, value: self.values.update({key: json.loads(json.dumps(value))})
        instance.xcom_pull = lambda *, key, **_: self.values.get(key)
        return operator.execute(context)


def plan(table: Path, **changes: Any) -> DeltaPlanOperator:
    return DeltaPlanOperator(task_id="t", table_uri=str(table), **changes)


def test_a_plan_of_an_unchanged_table_costs_one_listing(table: Path) -> None:
    kept = Kept()
    first = kept.run(plan(table))
    assert kept.values[SEEN_KEY]["table_uri"] == str(table)
    again = kept.run(plan(table))
    assert again["metrics"]["requests"] == 1 < first["metrics"]["requests"]
    assert again["output"]["health"]["version"] == first["output"]["health"]["version"] == 1
    peer_write(table, pa.table({"id": [3]}), mode="append")
    assert kept.run(plan(table))["output"]["health"]["version"] == 2
    assert kept.run(plan(table, remember=False))["metrics"]["requests"] > 1


def test_what_was_seen_of_another_table_is_not_used(table: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    peer_write(other, pa.table({"id": [1]}))
    kept = Kept()
    kept.run(plan(table))
    found = kept.run(plan(other))
    assert found["output"]["health"]["version"] == 0
    assert kept.values[SEEN_KEY]["table_uri"] == str(other)


def test_a_plan_says_what_is_due(table: Path) -> None:
    rules = {"compaction_min_small_files": 2, "checkpoint_enabled": False, "vacuum_enabled": False}
    assert Kept().run(plan(table, rules=rules))["output"]["due"] == ["optimize"]
