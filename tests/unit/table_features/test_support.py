"""What is refused, by name and for what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from delta_core.actions import Protocol
from delta_core.errors import UnsupportedTableFeatureError
from delta_core.table_features.feature import (
    ALL_WRITER_KINDS,
    FEATURES,
    WriterKind,
    reader_features,
    writer_features,
)
from delta_core.table_features.support import (
    require_log_support,
    require_read_support,
    require_write_support,
)
from tests.support.log_builder import metadata, protocol


def _features(*names: str) -> Protocol:
    readers = frozenset(name for name in names if name not in FEATURES or FEATURES[name].in_reader)
    return protocol(
        min_reader_version=3, min_writer_version=7, reader_features=readers, writer_features=frozenset(names)
    )


def _schema(**field_metadata: Any) -> str:
    inner = {"name": "i", "type": "long", "nullable": True, "metadata": field_metadata}
    nested = {"type": "array", "elementType": {"type": "struct", "fields": [inner]}, "containsNull": True}
    return json.dumps(
        {"type": "struct", "fields": [{"name": "a", "type": nested, "nullable": True, "metadata": {}}]}
    )


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6])
def test_legacy_tables_are_writable_while_nothing_is_switched_on(version: int) -> None:
    legacy = protocol(min_reader_version=2 if version >= 5 else 1, min_writer_version=version)
    assert require_write_support(legacy, metadata(), writer_kind=WriterKind.COMMIT) is None


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"configuration": {"delta.enableChangeDataFeed": "TRUE"}}, "changeDataFeed"),
        ({"configuration": {"delta.columnMapping.mode": "name"}}, "columnMapping"),
        ({"schema_string": _schema(**{"delta.generationExpression": "1"})}, "generatedColumns"),
        ({"schema_string": _schema(**{"delta.identity.start": 1})}, "identityColumns"),
    ],
)
def test_active_legacy_features_are_written_by_every_kind(changes: dict[str, Any], name: str) -> None:
    assert FEATURES[name].writable_by == ALL_WRITER_KINDS
    legacy = protocol(min_reader_version=2, min_writer_version=6)
    for kind in WriterKind:
        assert require_write_support(legacy, metadata(**changes), writer_kind=kind) is None


def test_constraints_are_writable() -> None:
    constrained = metadata(configuration={"delta.constraints.c": "x > 1"})
    assert (
        require_write_support(protocol(min_writer_version=3), constrained, writer_kind=WriterKind.COMMIT)
        is None
    )
    listed = _features("checkConstraints", "invariants", "appendOnly")
    assert require_write_support(listed, constrained, writer_kind=WriterKind.COMMIT) is None


@pytest.mark.parametrize(
    "name", sorted(name for name, item in FEATURES.items() if item.writable_by == ALL_WRITER_KINDS)
)
def test_writable_features(name: str) -> None:
    assert require_write_support(_features(name), metadata(), writer_kind=WriterKind.COMMIT) is None


@pytest.mark.parametrize("name", ["icebergCompatV3", "future"])
def test_features_that_bind_every_writer(name: str) -> None:
    with pytest.raises(UnsupportedTableFeatureError, match=name):
        require_write_support(_features(name), metadata(), writer_kind=WriterKind.COMMIT)


def test_readable_but_not_writable() -> None:
    stamped = _features("rowTracking", "inCommitTimestamp-preview")
    used = metadata(configuration={"delta.enableInCommitTimestamps-preview": "true"})
    require_read_support(stamped, used)
    with pytest.raises(UnsupportedTableFeatureError, match="feature inCommitTimestamp-preview"):
        require_write_support(stamped, used, writer_kind=WriterKind.MERGE)


def test_reader_features_by_what_the_table_holds() -> None:
    listed = _features("deletionVectors", "v2Checkpoint", "columnMapping", "typeWidening", "timestampNtz")
    require_read_support(listed, metadata(), has_deletion_vectors=False, has_v2_checkpoint=False)
    with pytest.raises(UnsupportedTableFeatureError, match=r"feature deletionVectors\."):
        require_read_support(listed, metadata())
    mapped = metadata(configuration={"delta.columnMapping.mode": "id"})
    with pytest.raises(UnsupportedTableFeatureError, match="feature columnMapping"):
        require_read_support(listed, mapped, has_deletion_vectors=False, has_v2_checkpoint=False)
    widened = metadata(schema_string=_schema(**{"delta.typeChanges": []}))
    with pytest.raises(UnsupportedTableFeatureError, match="feature typeWidening"):
        require_read_support(listed, widened, has_deletion_vectors=False, has_v2_checkpoint=False)


def test_a_scan_reads_what_plain_files_do_not_tell() -> None:
    listed = _features("deletionVectors", "columnMapping", "typeWidening", "variantType", "v2Checkpoint")
    everything = metadata(
        configuration={"delta.columnMapping.mode": "name"},
        schema_string=_schema(**{"delta.typeChanges": []}),
    )
    require_read_support(listed, everything, through_scan=True)
    with pytest.raises(UnsupportedTableFeatureError, match="feature columnMapping, deletionVectors, type"):
        require_read_support(listed, everything)
    shredded = metadata(schema_string=_schema().replace("integer", "variant").replace("long", "variant"))
    require_read_support(_features("variantShredding"), shredded, through_scan=True)
    with pytest.raises(UnsupportedTableFeatureError, match="variantShredding"):
        require_read_support(_features("variantShredding"), shredded)


def test_switched_on_deletion_vectors_are_written_before_there_is_one() -> None:
    enabled = metadata(configuration={"delta.enableDeletionVectors": "true"})
    listed = _features("deletionVectors")
    require_read_support(listed, enabled, has_deletion_vectors=False)
    for kind in WriterKind:
        assert require_write_support(listed, enabled, has_deletion_vectors=False, writer_kind=kind) is None


def test_unknown_features_and_versions() -> None:
    with pytest.raises(UnsupportedTableFeatureError, match="feature alien, other") as caught:
        require_read_support(_features("alien", "other", "timestampNtz"), metadata())
    assert "unknown: alien, other" in caught.value.cause
    assert caught.value.fix
    for call in (
        lambda: require_read_support(protocol(min_reader_version=4), metadata()),
        lambda: require_log_support(protocol(min_reader_version=4), operation="x"),
    ):
        with pytest.raises(UnsupportedTableFeatureError, match="reader version 4"):
            call()
    with pytest.raises(UnsupportedTableFeatureError, match="writer version 8"):
        require_write_support(protocol(min_writer_version=8), metadata(), writer_kind=WriterKind.COMMIT)


def test_features_by_version() -> None:
    assert reader_features(protocol(min_reader_version=1)) == frozenset()
    assert reader_features(protocol(min_reader_version=2)) == {"columnMapping"}
    assert writer_features(protocol(min_writer_version=1)) == frozenset()
    assert writer_features(protocol(min_writer_version=3)) == {"appendOnly", "invariants", "checkConstraints"}
    assert writer_features(_features("a", "b")) == {"a", "b"}
