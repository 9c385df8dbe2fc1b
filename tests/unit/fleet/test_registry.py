from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import ConfigurationError
from delta_core.fleet.discover import discover
from delta_core.fleet.lint import lint
from delta_core.fleet.registry import registry, registry_of
from delta_core.policies.load import parse_policies
from delta_core.policies.resolve import canonical
from delta_core.storage.request_meter import METER
from demo.fleet_tables import Made
from tests.unit.fleet.conftest import Make


def test_discovery_finds_each_table_and_stops_at_its_root(tmp_path: Path, lake: list[Made]) -> None:
    prefix = tmp_path / "lake"
    inner = prefix / lake[0].path / "inside" / "_delta_log"
    inner.mkdir(parents=True)
    for skipped in ("_hidden/t", "day=1/t", ".trash/t"):
        (prefix / skipped / "_delta_log").mkdir(parents=True)
    requests = METER.totals().requests
    found = discover(str(prefix), depth=2)
    assert found.uris == tuple(sorted(f"file://{prefix}/{table.path}" for table in lake))
    assert METER.totals().requests - requests == found.listings
    assert found.too_deep == ()
    assert discover(str(prefix), depth=1).uris == ()
    assert discover(str(prefix), depth=0).too_deep == ("",)
    schema = lake[0].path.split("/")[0]
    only = discover(str(prefix), exclude=[f"{schema}/*"]).uris
    assert set(only) == {f"file://{prefix}/{t.path}" for t in lake if not t.path.startswith(f"{schema}/")}
    assert discover(f"{prefix}/{lake[0].path}").uris == (f"file://{prefix}/{lake[0].path}",)
    assert discover(str(tmp_path / "missing")).uris == ()


def test_a_discovered_uri_names_the_directory_whatever_its_name(tmp_path: Path) -> None:
    names = sorted(["%41bc", "Abc", "100%", "a b", "q?z", "x#y", "ünï", "plus+", "new\nline"])
    for name in names:
        write_deltalake(str(tmp_path / name), pa.table({"name": [name]}))
    found = discover(str(tmp_path)).uris
    assert sorted(DeltaTable(uri).to_pyarrow_table()["name"][0].as_py() for uri in found) == names
    assert [canonical(uri) for uri in found] == list(found)


def test_the_file_names_tables_and_the_rest_is_unmanaged(
    control: Make, lake: list[Made], tmp_path: Path
) -> None:
    uri = f"file://{tmp_path}/lake/{lake[0].path}"
    patterns = 'patterns: [{match: "*/healthy_*", owner: core}]'
    more = f'{patterns}\ntables: {{first: {{uri: "{uri}/", priority: 3}}}}'
    tables = control(more).registry
    assert len(tables.tables) == len(lake)
    assert tables.table("first").uri == uri
    assert tables.table(uri).policy.priority == 3
    healthy = sum(table.kind == "healthy" and table != lake[0] for table in lake)
    assert len(tables.unmanaged) == len(lake) - 1 - healthy
    with pytest.raises(ConfigurationError, match="no table"):
        tables.table("nobody")


def test_assets_belong_to_the_fleet(control: Make, lake: list[Made], tmp_path: Path) -> None:
    policies = parse_policies(
        f"""
patterns: [{{match: "s3:*", owner: core, visible_with: sales, engine: spark}}]
fleet: {{assets: ["delta://s3/bucket/a%20b", "delta://local{tmp_path}/lake/{lake[0].path}"]}}
"""
    )
    found = registry_of(policies, [], assets=["delta://gs/other/t"])
    assert [table.uri for table in found.tables] == [
        f"file://{tmp_path}/lake/{lake[0].path}",
        "gs://other/t",
        "s3://bucket/a%20b",
    ]
    policy = found.table("s3://bucket/a%20b").policy
    assert (policy.owner, policy.visible_with, policy.engine) == ("core", "sales", "spark")
    assert found.tables[0].policy == found.tables[1].policy
    row = control('patterns: [{match: "*", visible_with: sales}]').refresh(run_id="r").popitem()[1]
    assert row["visible_with"] == "sales"
    for asset in ("s3://bucket/t", "delta:///t", "delta://ftp/x", "orders"):
        with pytest.raises(ConfigurationError, match=r"fleet\.assets"):
            registry(parse_policies(f'fleet: {{assets: ["{asset}"]}}'))


def test_lint_names_each_problem(tmp_path: Path, lake: list[Made]) -> None:
    uri = f"{tmp_path}/lake/{lake[0].path}"
    policies = parse_policies(
        f"""
patterns: [{{match: "nothing_*"}}]
defaults: {{cooldown_hours: 200}}
tables:
  one: {{uri: {uri}, vacuum: {{retention_hours: 1}}}}
  two: {{uri: "file://{uri}/"}}
  inner: {{uri: {uri}/below, approval: {{verbs: [vacuum]}}, mode: plan, windows: [{{cron: "@daily",
    hours: 1}}]}}
fleet: {{prefixes: [{{uri: {tmp_path}/lake, depth: 1}}]}}
"""
    )
    problems = lint(registry(policies))
    found = {problem.rule for problem in problems}
    assert found == {
        "two-names",
        "nested-roots",
        "unreachable-pattern",
        "contradiction",
        "depth",
        "missing-table",
        "retention",
    }
    severities = [problem.severity for problem in problems]
    assert severities == sorted(severities)
    assert {"severity", "rule", "at", "message"} == set(problems[0].to_json())


@pytest.mark.parametrize(
    "setting",
    [
        'schedule: "0 25 * * *"',
        'schedule: "0 0 * *"',
        'schedule: "x * * * *"',
        "time_zone: Nowhere/Town",
        'windows: [{cron: "@daily"}]',
        "mode: sometimes",
        "priority: 0",
        "approval: {verbs: [restore]}",
    ],
)
def test_a_setting_that_is_not_valid_is_refused_with_its_key(setting: str) -> None:
    with pytest.raises(ConfigurationError, match=f"defaults.{setting.split(':')[0]}"):
        parse_policies(f"defaults: {{{setting}}}")
