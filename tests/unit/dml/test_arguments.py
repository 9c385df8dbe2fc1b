"""Arguments of another kind are refused by name, and leave the table as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, First, IdentityGenerator, define_column, write_deltalake
from delta_core.errors import ConfigurationError, DeltaError, InvalidTablePropertyError, SchemaError
from delta_core.schema.types import LONG, StructField, StructType

NO_STRING: Any = 5
LONE = "\ud800"


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    rows = pa.table({"a": [1], "p": ["x"]})
    write_deltalake(tmp_path / "t", rows, configuration={"delta.columnMapping.mode": "name"})
    return DeltaTable(tmp_path / "t")


CALLS: dict[str, Callable[[DeltaTable], object]] = {
    "comment": lambda t: t.alter.set_comment("a", NO_STRING),
    "comments": lambda t: t.alter.set_comment("a", ["x"]),  # type: ignore[arg-type]
    "comment that is no Unicode": lambda t: t.alter.set_comment("a", LONE),
    "rename nothing": lambda t: t.alter.rename_column(None, "b"),  # type: ignore[arg-type]
    "rename a number": lambda t: t.alter.rename_column(NO_STRING, "b"),
    "rename to a number": lambda t: t.alter.rename_column("a", NO_STRING),
    "rename to no Unicode": lambda t: t.alter.rename_column("a", LONE),
    "drop a number": lambda t: t.alter.drop_columns(NO_STRING),
    "drop numbers": lambda t: t.alter.drop_columns([NO_STRING]),
    "not null by bytes": lambda t: t.alter.set_not_null(b"a"),  # type: ignore[arg-type]
    "type of a number": lambda t: t.alter.change_type(NO_STRING, pa.int64()),
    "move to a text": lambda t: t.alter.move_column("a", "first"),  # type: ignore[arg-type]
    "move to a class": lambda t: t.alter.move_column("a", First),  # type: ignore[arg-type]
    "add at a text": lambda t: t.alter.add_columns(
        pa.field("b", pa.int64()),
        position="first",  # type: ignore[arg-type]
    ),
    "default that is a number": lambda t: t.alter.set_default("a", NO_STRING),
    "no default": lambda t: t.alter.set_default("a", None),  # type: ignore[arg-type]
    "identity of a path": lambda t: t.alter.sync_identity(("a",)),  # type: ignore[arg-type]
    "unset nothing": lambda t: t.alter.unset_properties(None),  # type: ignore[arg-type]
    "unset a number": lambda t: t.alter.unset_properties(NO_STRING),
    "no constraint": lambda t: t.alter.add_constraint(None),  # type: ignore[arg-type]
    "constraint named by a number": lambda t: t.alter.add_constraint({5: "a > 0"}),  # type: ignore[dict-item]
    "constraint that is a number": lambda t: t.alter.add_constraint({"c": NO_STRING}),
    "drop no constraint": lambda t: t.alter.drop_constraint(None),  # type: ignore[arg-type]
    "add a number": lambda t: t.alter.add_feature(NO_STRING),
    "drop no feature": lambda t: t.alter.drop_feature(None),  # type: ignore[arg-type]
    "name": lambda t: t.alter.set_name(NO_STRING),
    "no name": lambda t: t.alter.set_name(None),  # type: ignore[arg-type]
    "name that is no Unicode": lambda t: t.alter.set_name(LONE),
    "description": lambda t: t.alter.set_description(NO_STRING),
    "description that is no Unicode": lambda t: t.alter.set_description(LONE),
    "domain": lambda t: t.alter.set_domain_metadata(NO_STRING, "{}"),
    "configuration of a domain": lambda t: t.alter.set_domain_metadata("d", NO_STRING),
    "remove a domain": lambda t: t.alter.remove_domain_metadata(NO_STRING),
    "cluster by a number": lambda t: t.alter.cluster_by(NO_STRING),
    "Z-order by a number": lambda t: t.optimize.z_order(NO_STRING),
    "vacuum of millions of years": lambda t: t.vacuum(2**70),
    "vacuum of more": lambda t: t.vacuum(1e300),
    "vacuum of more than Python shows": lambda t: t.vacuum(10**5000),
}


@pytest.mark.parametrize("name", CALLS)
def test_alterations(table: DeltaTable, name: str) -> None:
    version = table.version()
    with pytest.raises(ConfigurationError) as caught:
        CALLS[name](table)
    assert caught.value.fix
    assert DeltaTable(table.table_uri).version() == version


COLUMNS: dict[str, Callable[[], object]] = {
    "name": lambda: define_column(NO_STRING, pa.int64()),
    "name that is no Unicode": lambda: define_column(LONE, pa.int64()),
    "comment": lambda: define_column("a", pa.int64(), comment=NO_STRING),
    "nullable": lambda: define_column("a", pa.int64(), nullable="no"),  # type: ignore[arg-type]
    "default": lambda: define_column("a", pa.int64(), default=NO_STRING),
    "default that is no Unicode": lambda: define_column("a", pa.string(), default=f"'{LONE}'"),
    "expression that is no Unicode": lambda: define_column("a", pa.string(), generated_always_as=f"'{LONE}'"),
    "class": lambda: define_column("a", pa.int64(), generated_always_as=IdentityGenerator),  # type: ignore[arg-type]
    "flag": lambda: define_column("a", pa.int64(), generated_always_as=True),  # type: ignore[arg-type]
    "number": lambda: define_column("a", pa.int64(), generated_always_as=NO_STRING),
    "text": lambda: define_column("a", pa.int64(), generated_by_default_as="x + 1"),  # type: ignore[arg-type]
    "start": lambda: IdentityGenerator(start="x"),  # type: ignore[arg-type]
    "step": lambda: IdentityGenerator(step=True),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_definitions(name: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        COLUMNS[name]()
    assert caught.value.fix


def test_the_fix_says_what_a_column_is_named_by(table: DeltaTable) -> None:
    with pytest.raises(ConfigurationError, match=r"5 is not a column\.") as caught:
        table.alter.rename_column(NO_STRING, "b")
    assert "name" in caught.value.fix
    with pytest.raises(ConfigurationError, match="5 is not a list of columns"):
        table.alter.drop_columns(NO_STRING)


@pytest.mark.parametrize("numbers", [{"start": 2**63}, {"step": -(2**63) - 1}])
def test_numbers_of_an_identity_column_are_named_as_they_were_passed(numbers: dict[str, int]) -> None:
    with pytest.raises(SchemaError, match=f"Its {next(iter(numbers))} is ") as caught:
        define_column("a", pa.int64(), generated_always_as=IdentityGenerator(**numbers))
    assert "identity." not in str(caught.value)


@pytest.mark.parametrize("properties", [{"owner": LONE}, {LONE: "x"}])
def test_properties_are_unicode(tmp_path: Path, table: DeltaTable, properties: dict[str, str]) -> None:
    with pytest.raises(InvalidTablePropertyError, match="Unicode"):
        table.alter.set_properties(properties)
    with pytest.raises(InvalidTablePropertyError, match="Unicode"):
        DeltaTable.create(tmp_path / "new", pa.schema([("a", pa.int64())]), configuration=properties)
    assert DeltaTable(table.table_uri).version() == 0


@pytest.mark.parametrize(
    "field",
    [
        StructField(name="a", data_type=LONG, nullable="no"),  # type: ignore[arg-type]
        StructField(name="a", data_type=LONG, metadata={"comment": 5}),
        StructField(name=NO_STRING, data_type=LONG),
        StructField(name=LONE, data_type=LONG),
        StructField(name="a", data_type=LONG, metadata={"mine": LONE}),
        StructField(
            name="s", data_type=StructType((StructField(name="a", data_type=LONG, metadata={"comment": []}),))
        ),
    ],
)
def test_fields_that_others_could_not_open(tmp_path: Path, table: DeltaTable, field: StructField) -> None:
    version = table.version()
    for schema in ([field], StructType((field,))):
        with pytest.raises(DeltaError) as caught:
            DeltaTable.create(tmp_path / "new", schema)
        assert isinstance(caught.value, SchemaError | ConfigurationError)
    with pytest.raises(DeltaError):
        table.alter.add_columns(field)
    assert DeltaTable(table.table_uri).version() == version
    assert not (tmp_path / "new" / "_delta_log").exists()


@pytest.mark.parametrize("partitions", [[], ["p"]])
@pytest.mark.parametrize("nothing", [None, []])
def test_clustering_by_nothing_changes_no_table_that_is_not_clustered(
    tmp_path: Path, partitions: list[str], nothing: list[str] | None
) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1], "p": ["x"]}), partition_by=partitions)
    table = DeltaTable(tmp_path)
    before = table.protocol()
    assert table.alter.cluster_by(nothing).version == 0
    assert DeltaTable(tmp_path).protocol() == before
