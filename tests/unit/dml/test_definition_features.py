"""Features by name and by property, versions by number, and metadata domains of users."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable

from delta_core import CommitProperties, DeltaTable, write_deltalake
from delta_core.actions import DomainMetadata, Protocol, SetTransaction
from delta_core.errors import (
    ConcurrentModificationError,
    ConfigurationError,
    InvalidTablePropertyError,
    UnsupportedTableFeatureError,
)
from delta_core.table_features.feature import FEATURES
from delta_core.table_features.upgrade import supported_features

ROWS = pa.table({"id": [1]})
# Clustering is turned on by saying by which columns.
WRITABLE = sorted(
    name for name, feature in FEATURES.items() if feature.may_be_enabled and name != "clustering"
)
OTHERS = sorted({*FEATURES} - {*WRITABLE})


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    write_deltalake(tmp_path / "table", ROWS)
    return DeltaTable(tmp_path / "table")


@pytest.mark.parametrize("name", WRITABLE)
def test_a_feature_is_added_by_its_name_or_by_property(table: DeltaTable, tmp_path: Path, name: str) -> None:
    table.alter.add_feature(name.upper())
    assert name in supported_features(table.protocol())
    write_deltalake(table, ROWS, mode="append")
    given = {f"delta.feature.{name}": "supported", "owner": "ann"}
    new = tmp_path / "new"
    write_deltalake(new, ROWS, configuration=given)
    created = DeltaTable(new)
    assert created.protocol() == table.protocol()
    assert created.metadata().configuration == {"owner": "ann"}
    write_deltalake(new, ROWS, mode="append", configuration=given)
    other = tmp_path / "other"
    write_deltalake(other, ROWS)
    DeltaTable(other).alter.set_properties(given)
    assert DeltaTable(other).protocol() == table.protocol()
    assert DeltaTable(other).metadata().configuration == {"owner": "ann"}


@pytest.mark.parametrize("name", [*OTHERS, "ofTomorrow"])
def test_one_that_is_not_written_is_not_added(table: DeltaTable, tmp_path: Path, name: str) -> None:
    given = {f"delta.feature.{name}": "supported"}
    for change in (
        lambda: table.alter.add_feature(name),
        lambda: table.alter.set_properties(given),
        lambda: DeltaTable.create(tmp_path / "new", ROWS.schema, configuration=given),
    ):
        with pytest.raises(UnsupportedTableFeatureError, match=name):
            change()
    assert (table.version(), DeltaTable.is_deltatable(tmp_path / "new")) == (0, False)


def test_one_that_is_there_is_no_commit(table: DeltaTable) -> None:
    first = table.alter.add_feature("vacuumProtocolCheck")
    again = table.alter.add_feature("vacuumProtocolCheck")
    assert (first.version, again.version, again.attempts) == (1, 1, 0)
    entry = table.history(1)[0].commit_info
    assert (entry.operation, entry.operation_parameters) == (
        "ADD FEATURE",
        {"feature": "vacuumProtocolCheck"},
    )
    assert table.alter.add_feature("invariants").version == 1


def test_an_added_feature_is_seen_by_a_peer(table: DeltaTable) -> None:
    table.alter.add_feature("timestampNtz")
    write_deltalake(table, ROWS, mode="append")
    peer = PeerTable(table.table_uri)
    assert peer.protocol().reader_features == ["timestampNtz"]
    assert peer.to_pyarrow_table().num_rows == 2


def test_two_who_upgrade_at_once_conflict(table: DeltaTable) -> None:
    other = DeltaTable(table.table_uri)
    other.adopt_newest = lambda: None  # type: ignore[method-assign]
    table.alter.add_feature("domainMetadata")
    with pytest.raises(ConcurrentModificationError):
        other.alter.add_feature("vacuumProtocolCheck")


@pytest.mark.parametrize(("reader", "writer"), [(1, 1), (1, 2), (1, 3), (1, 4), (2, 5), (1, 6), (2, 6)])
def test_a_table_of_old_versions_is_created_written_and_upgraded(
    tmp_path: Path, reader: int, writer: int
) -> None:
    given = {"delta.minReaderVersion": str(reader), "delta.minWriterVersion": str(writer)}
    write_deltalake(tmp_path, ROWS, configuration=given)
    table = DeltaTable(tmp_path)
    before = table.protocol()
    assert before == Protocol(min_reader_version=reader, min_writer_version=writer)
    assert table.metadata().configuration == {}
    write_deltalake(tmp_path, ROWS, mode="append", configuration=given)
    assert PeerTable(str(tmp_path)).to_pyarrow_table().num_rows == 2
    table.alter.add_feature("timestampNtz")
    assert (table.protocol().min_reader_version, table.protocol().min_writer_version) == (3, 7)
    assert supported_features(table.protocol()) == supported_features(before) | {"timestampNtz"}
    write_deltalake(tmp_path, ROWS, mode="append")
    assert table.version() == 2


def test_a_lower_version_changes_nothing_and_a_higher_one_is_reached(table: DeltaTable) -> None:
    table.alter.set_properties({"delta.minWriterVersion": "4"})
    assert table.protocol() == Protocol(min_reader_version=1, min_writer_version=4)
    table.alter.set_properties({"delta.minReaderVersion": "1", "delta.minWriterVersion": "2"})
    assert table.protocol() == Protocol(min_reader_version=1, min_writer_version=4)
    with pytest.raises(ConfigurationError, match="minWriterVersion"):
        write_deltalake(table, ROWS, mode="append", configuration={"delta.minWriterVersion": "6"})


def test_what_a_table_does_not_store_is_not_unset(table: DeltaTable) -> None:
    for key in ("delta.feature.timestampNtz", "delta.minWriterVersion"):
        with pytest.raises(InvalidTablePropertyError, match=f"{key} cannot be unset"):
            table.alter.unset_properties([key])


class TestDomains:
    def test_a_domain_is_set_changed_and_taken_away(self, table: DeltaTable) -> None:
        table.alter.set_domain_metadata("team.layout", '{"a": 1}')
        assert "domainMetadata" in supported_features(table.protocol())
        table.alter.set_domain_metadata("team.layout", '{"a": 2}')
        assert table.domain_metadata()["team.layout"].configuration == '{"a": 2}'
        table.create_checkpoint()
        table.alter.remove_domain_metadata("team.layout")
        assert dict(table.domain_metadata()) == {}
        written = (
            Path(table.table_uri.removeprefix("file://")) / "_delta_log" / f"{3:020d}.json"
        ).read_text()
        assert '"removed":true' in written.replace(" ", "")
        assert r"{\"a\": 2}" in written
        with pytest.raises(ConfigurationError, match=r"no metadata domain 'team.layout'"):
            table.alter.remove_domain_metadata("team.layout")
        assert DeltaTable(table.table_uri).version() == 3

    @pytest.mark.parametrize("domain", ["delta.clustering", "Delta.rowTracking", "delta.x", ""])
    def test_those_of_the_protocol_are_not_for_users(self, table: DeltaTable, domain: str) -> None:
        for change in (
            lambda: table.alter.set_domain_metadata(domain, "{}"),
            lambda: table.alter.remove_domain_metadata(domain),
        ):
            with pytest.raises(ConfigurationError, match="domain"):
                change()
        assert table.version() == 0

    def test_two_who_set_one_domain_conflict_and_two_domains_do_not(self, table: DeltaTable) -> None:
        table.alter.add_feature("domainMetadata")
        other = DeltaTable(table.table_uri)
        other.adopt_newest = lambda: None  # type: ignore[method-assign]
        table.alter.set_domain_metadata("a", "1")
        with pytest.raises(ConcurrentModificationError, match="'a'"):
            other.alter.set_domain_metadata("a", "2")
        other.alter.set_domain_metadata("b", "2")
        table.update_incremental()
        assert table.domain_metadata() == {
            "a": DomainMetadata(domain="a", configuration="1"),
            "b": DomainMetadata(domain="b", configuration="2"),
        }

    def test_who_removes_a_domain_that_was_set_meanwhile_conflicts(self, table: DeltaTable) -> None:
        table.alter.set_domain_metadata("a", "1")
        other = DeltaTable(table.table_uri)
        other.adopt_newest = lambda: None  # type: ignore[method-assign]
        table.alter.set_domain_metadata("a", "2")
        with pytest.raises(ConcurrentModificationError, match="'a'"):
            other.alter.remove_domain_metadata("a")
        assert DeltaTable(table.table_uri).domain_metadata()["a"].configuration == "2"

    def test_a_repeated_call_changes_nothing(self, table: DeltaTable) -> None:
        key = CommitProperties(txn=SetTransaction(app_id="job", version=1))
        table.alter.set_domain_metadata("a", "1", commit_properties=key)
        again = table.alter.set_domain_metadata("a", "1", commit_properties=key)
        assert again.already_applied
        assert table.version() == 1
        removal = CommitProperties(txn=SetTransaction(app_id="job", version=2))
        table.alter.remove_domain_metadata("a", commit_properties=removal)
        assert table.alter.remove_domain_metadata("a", commit_properties=removal).already_applied
