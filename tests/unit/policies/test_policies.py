from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delta_core.errors import ConfigurationError
from delta_core.maintenance.observe import MaintenanceRules, TableHealth, decide
from delta_core.policies.load import load_policies, parse_policies
from delta_core.policies.resolve import resolve, resolve_all

STRING = """
defaults:
  compaction: {target_size_bytes: 128mb, min_small_files: 4}
  vacuum: {retention_hours: 168}
patterns:
  - match: "raw_*"
    compaction: {enabled: false, min_small_files: 9}
  - match: "*/gold/*"
    schedule: "@weekly"
tables:
  raw_flights:
    uri: "${ROOT}/raw"
    schedule: "@daily"
    vacuum: {retention_hours: 200, dry_run: false}
  weather:
    uri: "${ROOT}/gold/weather"
"""


def policies(text: str = STRING, **environment: str) -> Any:
    return parse_policies(text, source="tables.yaml", environment={"ROOT": "/data", **environment})


def test_the_table_wins_over_patterns_and_these_over_defaults() -> None:
    resolved = resolve(policies(), "raw_flights")
    assert resolved.uri == "/data/raw"
    assert resolved.schedule == "@daily"
    assert (resolved.compaction.enabled, resolved.compaction.min_small_files) == (False, 9)
    assert resolved.compaction.target_size_bytes == 128 << 20
    assert (resolved.vacuum.retention_hours, resolved.vacuum.dry_run) == (200, False)
    assert resolved.checkpoint.interval is None
    assert resolved.sources["compaction.min_small_files"] == "patterns[0]"
    assert resolved.sources["compaction.target_size_bytes"] == "defaults"
    assert resolved.sources["vacuum.retention_hours"] == "tables.raw_flights"


def test_a_table_is_found_by_any_spelling_of_its_uri() -> None:
    for uri in ("/data/gold/weather", "file:///data/gold/weather/", "/data/./gold/weather"):
        resolved = resolve(policies(), uri)
        assert resolved.name == "weather"
        assert resolved.schedule == "@weekly"


def test_a_table_without_an_entry_has_defaults_and_patterns() -> None:
    resolved = resolve(policies(), "/elsewhere/gold/x")
    assert (resolved.name, resolved.schedule) == ("/elsewhere/gold/x", "@weekly")
    assert resolved.vacuum.retention_hours == 168
    assert resolve(policies("{}"), "s3://bucket/t").rules() == MaintenanceRules()


def test_all_tables_in_the_order_of_the_file_as_json() -> None:
    resolved = resolve_all(policies())
    assert [item.name for item in resolved] == ["raw_flights", "weather"]
    assert resolved[0].to_json()["rules"]["vacuum_retention_hours"] == 200


def test_clustering_columns_reach_the_rules_unless_switched_off() -> None:
    text = """
defaults:
  clustering: {min_new_fraction: 0.5}
tables:
  first: {uri: /a, clustering: {columns: [day, id]}}
  second: {uri: /b, clustering: {columns: [day], enabled: false}}
"""
    on, off = resolve_all(policies(text))
    assert on.clustering.columns == ("day", "id")
    assert (on.rules().cluster_columns, on.rules().cluster_min_new_fraction) == (("day", "id"), 0.5)
    assert off.rules().cluster_columns == ()
    assert on.sources["clustering.columns"] == "tables.first"
    with pytest.raises(ConfigurationError, match="min_new_fraction"):
        policies("defaults: {clustering: {min_new_fraction: 2}}")


def test_an_empty_file_says_nothing() -> None:
    assert policies("").table_names == ()
    assert policies("defaults:\ntables:\n").table_names == ()


@pytest.mark.parametrize(
    ("text", "where", "why"),
    [
        ("a: [", "line ", "node content"),
        ("x: 1\n  y: 2", "line 2", "mapping values"),
        ("- a", "tables.yaml", ""),
        ("tables: {x: {}}", "tables.x.uri", "required"),
        ("defaults: {vaccum: {}}", "defaults.vaccum", "unknown"),
        ("defaults: {vacuum: {retention_hours: soon}}", "defaults.vacuum.retention_hours", "number"),
        ("defaults: {vacuum: {retention_hours: -1}}", "defaults.vacuum.retention_hours", "greater"),
        ("defaults: {vacuum: {dry_run: 'no'}}", "defaults.vacuum.dry_run", "boolean"),
        ("defaults: {compaction: {target_size_bytes: huge}}", "target_size_bytes", "not a size"),
        ("tables: {x: {uri: '${NOT_SET}'}}", "tables.x.uri", "NOT_SET is not set"),
        ("defaults: {a: 1, a: 2}", "line 1", "used twice"),
        ("1: {}", "line 1", "not a string"),
        ("a: &x [1]\nb: *x", "line 2", "aliases"),
        ("a: !!python/object/apply:os.system ['true']", "line 1", "could not determine a constructor"),
        ("patterns: [{compaction: {}}]", "patterns.0.match", "required"),
    ],
)
def test_a_bad_file_is_refused_with_key_and_cause(text: str, where: str, why: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        policies(text)
    assert where in caught.value.problem
    assert why.lower() in caught.value.cause.lower()
    assert caught.value.fix


def test_a_file_is_read_and_a_missing_one_named(tmp_path: Path) -> None:
    path = tmp_path / "tables.yaml"
    path.write_text(STRING)
    assert load_policies(path, environment={"ROOT": "/r"}).model.tables["weather"].uri == "/r/gold/weather"
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_policies(tmp_path / "none.yaml")


def facts(**changes: Any) -> TableHealth:
    fields: dict[str, Any] = dict.fromkeys(TableHealth.__dataclass_fields__, 0)
    fields |= {"uri": "u", "table_id": "i", "checkpoint_version": None, "checkpoint_interval": 10}
    return TableHealth(**{**fields, "last_optimize_ms": None, "last_vacuum_ms": None, **changes})


def test_compaction_that_a_policy_disables_is_never_due() -> None:
    health = facts(num_files=100, small_files=100, compactable_files=100)
    enabled, disabled = (
        decide(health, resolve(policies(), name).rules())[0] for name in ("weather", "raw_flights")
    )
    assert (enabled.verb, enabled.due) == ("optimize", True)
    assert (disabled.verb, disabled.due, disabled.urgency) == ("optimize", False, 0.0)
