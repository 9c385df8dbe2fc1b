"""Tables whose rows have ids from the day they are made: unique, counted, and kept by what moves rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.dml.definition.properties import set_properties
from delta_core.errors import ConfigurationError, InvalidTableError, InvalidTablePropertyError, SchemaError
from delta_core.maintenance.clone import clone_table
from delta_core.transaction.commit_properties import CommitProperties
from delta_core.transaction.row_ids import DOMAIN, PRESERVED_TAG, watermark_of

TRACKED = {"delta.enableRowTracking": "true"}
DELETION_VECTORS = {"delta.enableDeletionVectors": "true"}
NAMES = (
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
)


def rows(*numbers: int, value: str = "") -> pa.Table:
    values = pa.array([value or f"v{n}" for n in numbers], pa.string())
    return pa.table({"n": pa.array(numbers, pa.int64()), "v": values})


def make(root: Path, *, configuration: dict[str, str] | None = None) -> DeltaTable:
    """Rows 0 to 19 in two files."""
    write_deltalake(root, rows(*range(10)), configuration={**TRACKED, **(configuration or {})})
    write_deltalake(root, rows(*range(10, 20)), mode="append")
    return DeltaTable(root)


def found(root: Path, version: int | None = None) -> dict[int, tuple[int, int]]:
    """Each row's id and commit version; what every table must keep to is checked on the way."""
    table = DeltaTable(root, version=version)
    columns = table.to_pyarrow_table(row_ids=True).to_pydict()
    result = dict(
        zip(columns["n"], zip(columns["_row_id"], columns["_row_commit_version"], strict=True), strict=True)
    )
    ids = [row_id for row_id, _ in result.values()]
    assert len(set(ids)) == len(ids) == len(columns["n"])
    domain = table.snapshot.domain(DOMAIN)
    assert domain is not None
    assert watermark_of(domain) >= max(ids, default=-1)
    assert all(since <= table.version() for _, since in result.values())
    return result


def watermark(root: Path) -> int:
    domain = DeltaTable(root).snapshot.domain(DOMAIN)
    assert domain is not None
    return watermark_of(domain)


def preserved(root: Path) -> Any:
    info = DeltaTable(root).history(1)[0].commit_info
    return info.extra["tags"][PRESERVED_TAG]


def test_a_table_gets_all_that_row_tracking_needs_when_it_is_made(tmp_path: Path) -> None:
    table = make(tmp_path)
    protocol = table.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 7)
    assert {"rowTracking", "domainMetadata"} <= (protocol.writer_features or frozenset())
    names = [table.metadata().configuration[key] for key in NAMES]
    assert len(set(names)) == 2
    assert not set(names) & set(table.snapshot.schema.names)
    assert found(tmp_path) == {n: (n, n // 10) for n in range(20)}
    assert preserved(tmp_path) == "true"


def test_an_empty_table_too(tmp_path: Path) -> None:
    schema = DeltaTable.create(tmp_path, schema=rows().schema, configuration=TRACKED).schema()
    assert len(schema.fields) == 2
    write_deltalake(tmp_path, rows(1, 2), mode="append")
    assert found(tmp_path) == {1: (0, 1), 2: (1, 1)}


@pytest.mark.parametrize("key", NAMES)
def test_the_hidden_columns_are_not_named_by_hand(tmp_path: Path, key: str) -> None:
    with pytest.raises(InvalidTablePropertyError, match=key):
        write_deltalake(tmp_path, rows(1), configuration={**TRACKED, key: "mine"})


@pytest.mark.parametrize("key", NAMES)
@pytest.mark.parametrize("spelled", [str, str.upper])
def test_no_column_is_called_as_a_hidden_one(tmp_path: Path, key: str, spelled: Callable[[str], str]) -> None:
    """Its values would be read as the rows' ids."""
    table = make(tmp_path)
    name = spelled(table.metadata().configuration[key])
    more = rows(20).append_column(name, pa.array([3], pa.int64()))
    with pytest.raises(SchemaError, match="row tracking"):
        write_deltalake(table, more, mode="append", schema_mode="merge")
    with pytest.raises(SchemaError, match="row tracking"):
        write_deltalake(table, more, mode="overwrite", schema_mode="overwrite")
    with pytest.raises(SchemaError, match="row tracking"):
        table.alter.add_columns(pa.field(name, pa.int64()))
    assert len(found(tmp_path)) == 20


def test_overwriting_gives_new_ids(tmp_path: Path) -> None:
    make(tmp_path)
    write_deltalake(tmp_path, rows(1, 2), mode="overwrite")
    assert found(tmp_path) == {1: (20, 2), 2: (21, 2)}
    assert preserved(tmp_path) == "true", "no row was copied"
    write_deltalake(
        tmp_path, pa.table({"n": pa.array([5], pa.int64())}), mode="overwrite", schema_mode="overwrite"
    )
    assert found(tmp_path) == {5: (22, 3)}
    assert watermark(tmp_path) == 22


@pytest.mark.parametrize("configuration", [{}, DELETION_VECTORS], ids=["rewriting", "vectors"])
def test_replacing_some_rows_keeps_the_others_ids(tmp_path: Path, configuration: dict[str, str]) -> None:
    make(tmp_path, configuration=configuration)
    before = found(tmp_path)
    write_deltalake(tmp_path, rows(5, 6, value="new"), mode="overwrite", predicate="n >= 5 AND n < 8")
    after = found(tmp_path)
    assert {n: after[n] for n in after if n not in (5, 6)} == {n: before[n] for n in before if not 5 <= n < 8}
    assert {row_id for n in (5, 6) for row_id, _ in [after[n]]}.isdisjoint(
        row_id for row_id, _ in before.values()
    )
    assert preserved(tmp_path) == "true"


@pytest.mark.parametrize("configuration", [{}, DELETION_VECTORS], ids=["rewriting", "vectors"])
def test_deleting_keeps_the_ids_of_the_rows_that_stay(tmp_path: Path, configuration: dict[str, str]) -> None:
    make(tmp_path, configuration=configuration)
    before = found(tmp_path)
    DeltaTable(tmp_path).delete("n % 3 = 0")
    assert found(tmp_path) == {n: known for n, known in before.items() if n % 3}
    assert preserved(tmp_path) == "true"
    DeltaTable(tmp_path).delete("n % 3 = 1")
    assert found(tmp_path) == {n: known for n, known in before.items() if n % 3 == 2}
    write_deltalake(tmp_path, rows(100), mode="append")
    assert found(tmp_path)[100][0] > max(row_id for row_id, _ in before.values())


@pytest.mark.parametrize("configuration", [{}, DELETION_VECTORS], ids=["rewriting", "vectors"])
def test_maintenance_keeps_ids(tmp_path: Path, configuration: dict[str, str]) -> None:
    make(tmp_path / "t", configuration=configuration)
    root = tmp_path / "t"
    DeltaTable(root).delete("n % 4 = 0")
    before, version = found(root), DeltaTable(root).version()
    DeltaTable(root).optimize.compact()
    assert found(root) == before
    DeltaTable(root).optimize.z_order(["v"])
    assert found(root) == before
    DeltaTable(root).delete("n > 10")
    highest = watermark(root)
    DeltaTable(root).restore(version)
    assert found(root) == before
    assert watermark(root) >= highest, "what was given out stays given out"
    for shallow in (True, False):
        copy = tmp_path / f"clone-{shallow}"
        clone_table(root, copy, shallow=shallow)
        table = DeltaTable(copy, allowed_roots=[str(root)]) if shallow else DeltaTable(copy)
        columns = table.to_pyarrow_table(row_ids=True).to_pydict()
        assert dict(zip(columns["n"], columns["_row_id"], strict=True)) == {
            n: row_id for n, (row_id, _) in before.items()
        }


def test_altering_a_table_with_rows_numbers_them_first(tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows(1, 2, 3))
    write_deltalake(tmp_path, rows(4, 5), mode="append")
    table = DeltaTable(tmp_path)
    table.alter.set_properties({**TRACKED, "owner": "ada"}, commit_properties=CommitProperties(txn=("a", 1)))
    assert table.metadata().configuration["owner"] == "ada"
    known = found(tmp_path)
    assert sorted(row_id for row_id, _ in known.values()) == [0, 1, 2, 3, 4]
    version = table.version()
    table.alter.set_properties(TRACKED, commit_properties=CommitProperties(txn=("a", 1)))
    assert table.version() == version, "a call that is repeated changes nothing"
    names = [table.metadata().configuration[key] for key in NAMES]
    table.alter.unset_properties(["delta.enableRowTracking"])
    write_deltalake(table, rows(6), mode="append")
    table.alter.set_properties(TRACKED)
    assert [table.metadata().configuration[key] for key in NAMES] == names
    assert found(tmp_path) == {**known, 6: (5, version + 2)}


def test_a_table_whose_rows_have_no_ids_is_not_altered_by_itself(tmp_path: Path) -> None:
    """Who alters a snapshot alone, without the commits before, is told so."""
    write_deltalake(tmp_path, rows(1))
    with pytest.raises(InvalidTableError, match="Row tracking cannot be enabled yet"):
        set_properties(DeltaTable(tmp_path).snapshot, TRACKED)
    assert DeltaTable(tmp_path).version() == 0


def test_an_empty_table_is_altered_in_one_commit(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path, schema=rows().schema)
    set_properties(DeltaTable(tmp_path).snapshot, TRACKED)
    assert DeltaTable(tmp_path).version() == 1
    write_deltalake(tmp_path, rows(7), mode="append")
    assert found(tmp_path) == {7: (0, 2)}


def test_files_without_statistics_of_columns_still_say_how_many_rows(tmp_path: Path) -> None:
    make(tmp_path, configuration={"delta.dataSkippingNumIndexedCols": "0", **DELETION_VECTORS})
    DeltaTable(tmp_path).delete("n = 3")
    assert sorted(found(tmp_path)) == [n for n in range(20) if n != 3]


def test_vectors_are_turned_on_for_a_table_that_has_rows(tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows(*range(10)))
    table = DeltaTable(tmp_path)
    table.alter.set_properties(DELETION_VECTORS)
    protocol = table.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (3, 7)
    assert "deletionVectors" in (protocol.reader_features or ())
    assert "deletionVectors" in (protocol.writer_features or ())
    assert table.delete("n < 3").metrics["num_deletion_vectors_added"] == 1
    table.alter.set_properties({"delta.enableDeletionVectors": "false"})
    # PROTOCOL.md, "Deletion Vectors": new ones only while the property is true; those there are honoured.
    assert table.delete("n < 5").metrics["num_deletion_vectors_added"] == 0
    assert sorted(table.to_pyarrow_table().column("n").to_pylist()) == [5, 6, 7, 8, 9]


def test_vectors_are_created_with_the_table(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, schema=rows().schema, configuration=DELETION_VECTORS)
    write_deltalake(table, rows(*range(10)), mode="append")
    assert table.delete("n < 3").metrics["num_deletion_vectors_added"] == 1
    with pytest.raises(ConfigurationError):
        write_deltalake(table, rows(1), mode="append", configuration={"delta.enableDeletionVectors": "false"})
