"""Properties: texts to values, and values that are refused."""

from __future__ import annotations

import pytest

from delta_core.checkpoint.auxiliary_files import LOG_COMPACTION_INTERVAL, VERSION_CHECKSUM
from delta_core.errors import InvalidTablePropertyError
from delta_core.snapshot.commit_time import ENABLEMENT_VERSION
from delta_core.table_features.table_properties import (
    ALL_PROPERTIES,
    DAY_MS,
    TableProperties,
    canonical_string,
    parse_bytes,
    parse_interval_ms,
)


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("interval 30 days", 30 * DAY_MS),
        ("INTERVAL 1 week", 7 * DAY_MS),
        ("interval 1 day 12 hours", DAY_MS * 3 // 2),
        ("2 hours", 7_200_000),
        ("interval 0 seconds", 0),
        ("interval 1500 milliseconds 999 microseconds", 1500),
        ("interval 4 weeks 2 days 1 hour 1 minute 1 second", 30 * DAY_MS + 3_661_000),
    ],
)
def test_intervals(text: str, expected_ms: int) -> None:
    assert parse_interval_ms(text) == expected_ms


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("delta.appendOnly", " TRUE ", "true"),
        ("delta.enableIcebergCompatV2", "False", "false"),
        ("delta.appendOnly", "yes", "yes"),
        ("delta.checkpointPolicy", "V2", "v2"),
        ("delta.logRetentionDuration", "20  Days", "interval 20 days"),
        ("delta.deletedFileRetentionDuration", "INTERVAL 1 WEEK", "interval 1 week"),
        ("delta.setTransactionRetentionDuration", "1 month", "1 month"),
        ("delta.constraints.x", "TRUE", "TRUE"),
        ("owner", "TRUE", "TRUE"),
    ],
)
def test_values_are_kept_as_every_engine_reads_them(key: str, text: str, expected: str) -> None:
    assert canonical_string(key, text) == expected


@pytest.mark.parametrize(
    "text", ["", "interval", "30", "interval 1 month", "interval 1 year", "1 day x", "d" * 9999]
)
def test_not_intervals(text: str) -> None:
    with pytest.raises(ValueError, match="interval"):
        parse_interval_ms(text)


@pytest.mark.parametrize(
    ("text", "size"), [("1024", 1024), ("128mb", 1 << 27), ("1G", 1 << 30), ("2 KiB", 2048)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


def test_defaults() -> None:
    properties = TableProperties.of({})
    properties.validate()
    assert properties.checkpoint_interval == 10
    assert properties.log_retention_ms == 30 * DAY_MS
    assert properties.deleted_file_retention_ms == 7 * DAY_MS
    assert properties.isolation_level == "WriteSerializable"
    assert properties.target_file_size_bytes == 1 << 30
    assert properties.data_skipping_num_indexed_cols == 32
    assert properties.data_skipping_stats_columns is None
    assert (properties.append_only, properties.enable_expired_log_cleanup) == (False, True)
    assert (properties.randomize_file_prefixes, properties.random_prefix_length) == (False, 2)
    assert (properties.write_stats_as_json, properties.write_stats_as_struct) == (True, False)
    assert properties.set_transaction_retention_ms is None


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("delta.appendOnly", "yes"),
        ("delta.checkpointInterval", "0"),
        ("delta.checkpointInterval", "ten"),
        ("delta.logRetentionDuration", "interval -1 days"),
        ("delta.dataSkippingNumIndexedCols", "-2"),
        ("delta.isolationLevel", "ReadCommitted"),
        ("delta.targetFileSize", "big"),
    ],
)
def test_nonsense_names_the_property(key: str, text: str) -> None:
    with pytest.raises(InvalidTablePropertyError, match=key) as caught:
        TableProperties.of({key: text}).validate()
    assert caught.value.cause
    assert caught.value.fix


FROM_ELSEWHERE = (ENABLEMENT_VERSION, VERSION_CHECKSUM, LOG_COMPACTION_INTERVAL)


@pytest.mark.parametrize(
    ("key", "text", "accepted"),
    [
        ("delta.enableDeletionVectors", "yes", "true or false"),
        ("delta.checkpointInterval", "often", "an integer of at least 1"),
        ("delta.checkpointInterval", "0", "an integer of at least 1"),
        ("delta.dataSkippingNumIndexedCols", "-2", "an integer of at least -1"),
        ("delta.isolationLevel", "x", "Set it to Serializable, WriteSerializable or SnapshotIsolation."),
        ("delta.checkpointPolicy", "x", "Set it to classic or v2."),
        ("delta.parquet.compression.codec", "x", "Set it to snappy, zstd, "),
        ("delta.parquet.format.version", "3", "Set it to 1.0.0, or 2 "),
        ("delta.universalFormat.enabledFormats", "x", "Set it to iceberg, hudi, or both"),
        ("deltaward.versionChecksum", "x", "Set it to never, checkpoint "),
        ("deltaward.logCompactionInterval", "1", "a whole number from 2 on"),
        ("delta.logRetentionDuration", "a month", "'interval 7 days'"),
        ("delta.targetFileSize", "big", "'128mb'"),
        ("delta.inCommitTimestampEnablementVersion", "x", "Set it to an integer."),
    ],
)
def test_the_fix_says_what_is_accepted(key: str, text: str, accepted: str) -> None:
    properties = {item.key: item for item in (*ALL_PROPERTIES, *FROM_ELSEWHERE)}
    with pytest.raises(InvalidTablePropertyError, match=key) as caught:
        properties[key].of({key: text})
    assert accepted in caught.value.fix
    assert "int()" not in caught.value.cause


def test_every_property_is_described() -> None:
    keys = [item.key for item in ALL_PROPERTIES]
    assert len(keys) == len(set(keys)) > 15
    assert all(item.help.endswith(".") and item.key.startswith("delta.") for item in ALL_PROPERTIES)


def test_lists_and_flags() -> None:
    properties = TableProperties.of(
        {"delta.dataSkippingStatsColumns": "a, b.c ,", "delta.appendOnly": " True "}
    )
    assert properties.data_skipping_stats_columns == ("a", "b.c")
    assert properties.append_only
