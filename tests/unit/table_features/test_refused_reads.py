"""Tables that are refused because their rows, or their list of files, could be misread."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import (
    CorruptLogError,
    InvalidTablePropertyError,
    RowTrackingDisabledError,
    UnsupportedTableFeatureError,
)
from delta_core.scan.scan import Scan
from delta_core.snapshot.snapshot import Snapshot
from tests.support.log_builder import LogBuilder, add, metadata, protocol


def _snapshot(log: LogBuilder) -> Snapshot:
    return Snapshot.load(log.store, clock=log.clock)


def test_the_files_of_a_table_with_an_unknown_reader_feature_are_not_listed(tmp_path: Path) -> None:
    features = frozenset({"fromTheFuture"})
    log = LogBuilder(tmp_path)
    log.commit(
        protocol(
            min_reader_version=3, min_writer_version=7, reader_features=features, writer_features=features
        ),
        metadata(),
        add("a"),
    )
    snapshot = _snapshot(log)
    assert snapshot.version == 0, "what does not depend on files is known"
    with pytest.raises(UnsupportedTableFeatureError, match=r"list the table's files.*fromTheFuture"):
        _ = snapshot.files


def test_mapped_columns_that_the_protocol_does_not_announce_are_not_read(tmp_path: Path) -> None:
    """Without the feature other engines read nulls where this one would read values."""
    log = LogBuilder(tmp_path)
    log.commit(protocol(), metadata(configuration={"delta.columnMapping.mode": "name"}), add("a"))
    with pytest.raises(
        CorruptLogError, match="its columns are mapped, and its protocol does not list columnMapping"
    ):
        Scan(_snapshot(log)).to_table()


def test_a_change_of_type_that_is_no_widening_is_not_read(tmp_path: Path) -> None:
    """PROTOCOL.md, "Type Widening": files of before the change hold texts, which are no numbers."""
    changes = [{"fromType": "string", "toType": "long"}]
    column: dict[str, Any] = {"name": "id", "type": "long", "nullable": True}
    schema = {"type": "struct", "fields": [{**column, "metadata": {"delta.typeChanges": changes}}]}
    features = frozenset({"typeWidening"})
    log = LogBuilder(tmp_path)
    log.commit(
        protocol(
            min_reader_version=3, min_writer_version=7, reader_features=features, writer_features=features
        ),
        metadata(schema_string=json.dumps(schema), partition_columns=()),
        add("a", partition_values={}),
    )
    with pytest.raises(
        UnsupportedTableFeatureError, match="unsupported table feature typeWidening"
    ) as caught:
        Scan(_snapshot(log)).to_table()
    assert "string" in caught.value.cause
    assert "long" in caught.value.cause


def test_what_spark_jobs_cannot_read_is_left_to_this_library(tmp_path: Path) -> None:
    """It was said that nothing here supports the feature, of a table that had just been written here."""
    write_deltalake(tmp_path, pa.table({"id": [1]}), configuration={"delta.columnMapping.mode": "name"})
    with pytest.raises(UnsupportedTableFeatureError, match="table feature columnMapping") as caught:
        DeltaTable(tmp_path).snapshot.require_readable()
    assert "plain Parquet" in caught.value.cause
    assert "DeltaTable" in caught.value.fix


def test_row_ids_of_a_table_that_has_not_turned_them_on_are_not_made_up(tmp_path: Path) -> None:
    """The protocol lists the feature, so files may have ids; without the property some may have none."""
    log = LogBuilder(tmp_path)
    log.commit(
        protocol(min_writer_version=7, writer_features=frozenset({"rowTracking", "domainMetadata"})),
        metadata(),
        add("a"),
    )
    with pytest.raises(RowTrackingDisabledError) as caught:
        Scan(_snapshot(log), metadata_columns=["_row_id"]).to_table()
    assert "delta.enableRowTracking is not true" in caught.value.cause


def test_an_unknown_codec_makes_no_table(tmp_path: Path) -> None:
    """Found out when the first file is written, it would be too late."""
    rows = pa.table({"id": [1]})
    name = "delta.parquet.compression.codec"
    with pytest.raises(InvalidTablePropertyError, match=name):
        write_deltalake(tmp_path, rows, configuration={name: "lzo"})
    assert not any(path.is_file() for path in tmp_path.rglob("*"))
    write_deltalake(tmp_path, rows, configuration={name: "ZSTD"})
    assert DeltaTable(tmp_path).to_pyarrow_table() == rows
