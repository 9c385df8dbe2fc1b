"""Names of table properties: a misspelled one would be stored and do nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, convert_to_deltalake, write_deltalake
from delta_core.dml.known_properties import OF_OTHER_WRITERS
from delta_core.errors import (
    InvalidTableError,
    InvalidTablePropertyError,
    UnsupportedTableFeatureError,
)
from delta_core.table_features.table_properties import ALL_PROPERTIES

ROWS = pa.table({"id": [1]})


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("delta.appendonly", "Use delta.appendOnly if that was meant"),
        ("DELTA.appendOnly", "Use delta.appendOnly if that was meant"),
        ("delta.logRetention", "Use delta.logRetentionDuration if that was meant"),
        ("delta.wholly.else", "For your own property"),
    ],
)
def test_an_unknown_name_is_refused(tmp_path: Path, given: str, meant: str) -> None:
    table = tmp_path / "table"
    write_deltalake(table, ROWS)
    for change in (
        lambda: write_deltalake(tmp_path / "new", ROWS, configuration={given: "true"}),
        lambda: DeltaTable.create(tmp_path / "new", ROWS.schema, configuration={given: "true"}),
        lambda: DeltaTable(table).alter.set_properties({given: "true"}),
    ):
        with pytest.raises(InvalidTablePropertyError, match=given) as caught:
            change()
        assert caught.value.fix.startswith(meant)
    assert not DeltaTable.is_deltatable(tmp_path / "new")
    assert DeltaTable(table).version() == 0


def test_names_of_other_engines_and_of_users_are_kept(tmp_path: Path) -> None:
    given = {"delta.autoOptimize.autoCompact": "true", "owner": "ann", "deltaward.team": "x"}
    write_deltalake(tmp_path, ROWS, configuration=given)
    DeltaTable(tmp_path).alter.set_properties({"delta.tuneFileSizesForRewrites": "true"})
    kept = DeltaTable(tmp_path).metadata().configuration
    assert kept == {**given, "delta.tuneFileSizesForRewrites": "true"}
    assert OF_OTHER_WRITERS.isdisjoint(item.key for item in ALL_PROPERTIES)


@pytest.mark.parametrize(
    ("key", "text", "accepted"),
    [
        ("delta.enableIcebergCompatV1", "x", "true or false"),
        ("delta.enableIcebergCompatV2", "x", "true or false"),
        ("delta.tuneFileSizesForRewrites", "yes", "true or false"),
        ("delta.autoOptimize.optimizeWrite", "1", "true or false"),
        ("delta.sampleRetentionDuration", "soon", "an interval"),
        ("delta.dropFeatureTruncateHistory.retentionDuration", "x", "an interval"),
    ],
)
def test_a_value_that_another_engine_fails_at_is_refused(
    tmp_path: Path, key: str, text: str, accepted: str
) -> None:
    # Delta-spark 4.4.0 appends to no table whose enableIcebergCompatV2 or optimizeWrite is no flag.
    table = tmp_path / "table"
    write_deltalake(table, ROWS)
    for change in (
        lambda: DeltaTable.create(tmp_path / "new", ROWS.schema, configuration={key: text}),
        lambda: DeltaTable(table).alter.set_properties({key: text}),
    ):
        with pytest.raises(InvalidTablePropertyError, match=key) as caught:
            change()
        assert accepted in caught.value.fix
    assert not DeltaTable.is_deltatable(tmp_path / "new")
    assert DeltaTable(table).version() == 0


def test_one_that_needs_a_feature_is_refused_by_the_feature(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ROWS)
    with pytest.raises(UnsupportedTableFeatureError, match="icebergCompatV3"):
        DeltaTable(tmp_path).alter.set_properties({"delta.enableIcebergCompatV3": "true"})


def test_what_the_table_has_already_may_stay_and_change(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ROWS)
    log = tmp_path / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"]["delta.fromTheFuture"] = "1"
    log.write_text("\n".join(json.dumps(action) for action in actions) + "\n")
    DeltaTable(tmp_path).alter.set_properties({"owner": "ann"})
    DeltaTable(tmp_path).alter.set_properties({"delta.fromTheFuture": "2"})
    assert DeltaTable(tmp_path).metadata().configuration == {"owner": "ann", "delta.fromTheFuture": "2"}
    write_deltalake(tmp_path, ROWS, mode="append")
    DeltaTable(tmp_path).alter.unset_properties(["delta.fromTheFuture"])


def test_a_checkpoint_policy_is_one_of_two(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ROWS)
    with pytest.raises(InvalidTablePropertyError, match="checkpointPolicy"):
        DeltaTable(tmp_path).alter.set_properties({"delta.checkpointPolicy": "v3"})
    DeltaTable(tmp_path).alter.set_properties({"delta.checkpointPolicy": "V2"})
    assert DeltaTable(tmp_path).metadata().configuration == {"delta.checkpointPolicy": "v2"}


def test_row_tracking_is_suspended_by_hand(tmp_path: Path) -> None:
    key, enabled = "delta.rowTrackingSuspended", "delta.enableRowTracking"
    write_deltalake(tmp_path, ROWS, configuration={enabled: "true"})
    table = DeltaTable(tmp_path)
    with pytest.raises(InvalidTableError, match="at the same time"):
        table.alter.set_properties({key: "true"})
    table.alter.set_properties({key: "true", enabled: "false"})
    write_deltalake(table, ROWS, mode="append")
    with pytest.raises(InvalidTablePropertyError, match=key):
        table.alter.set_properties({key: "perhaps"})
    table.alter.set_properties({key: "false"})
    table.alter.set_properties({enabled: "true"})
    assert table.to_pyarrow_table(row_ids=True)["_row_id"].to_pylist() == [0, 1]
    table.alter.unset_properties([key])
    assert key not in table.metadata().configuration


@pytest.mark.parametrize(
    ("key", "value", "cause"),
    [
        ("deltaward.versionChecksum", "true", "one of never, checkpoint, known, always"),
        ("deltaward.logCompactionInterval", "1", "below 2"),
        ("deltaward.logCompactionInterval", "often", "often"),
    ],
)
def test_a_property_of_our_own_has_a_value_that_does_something(
    tmp_path: Path, key: str, value: str, cause: str
) -> None:
    with pytest.raises(InvalidTablePropertyError, match=key) as caught:
        write_deltalake(tmp_path / "t", ROWS, configuration={key: value})
    assert cause in str(caught.value.cause)
    assert not DeltaTable.is_deltatable(tmp_path / "t")
    write_deltalake(tmp_path / "t", ROWS)
    with pytest.raises(InvalidTablePropertyError, match=key):
        DeltaTable(tmp_path / "t").alter.set_properties({key: value})
    (tmp_path / "files").mkdir()
    pq.write_table(ROWS, tmp_path / "files" / "a.parquet")
    with pytest.raises(InvalidTablePropertyError, match=key):
        convert_to_deltalake(tmp_path / "files", configuration={key: value})
