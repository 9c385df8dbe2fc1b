"""The domain with the clustering columns: as engines write it, and as we do."""

from __future__ import annotations

import json

import pytest

from delta_core.actions import DomainMetadata
from delta_core.errors import InvalidTableError, SchemaError
from delta_core.schema.types import (
    BINARY,
    BOOLEAN,
    LONG,
    STRING,
    VARIANT,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from delta_core.table_features.clustering_domain import DOMAIN, ClusteringColumns

SCHEMA = StructType(
    (
        StructField(name="A", data_type=LONG),
        StructField(
            name="b",
            data_type=StructType(
                (
                    StructField(name="c", data_type=STRING),
                    StructField(
                        name="d", data_type=LONG, metadata={"delta.columnMapping.physicalName": "col-9"}
                    ),
                )
            ),
            metadata={"delta.columnMapping.physicalName": "col-7"},
        ),
        StructField(name="x.y", data_type=LONG),
    )
)
OF_DELTA_SPARK = '{"clusteringColumns":[["a"],["b","c"]],"domainName":"delta.clustering"}'
"""What delta-spark 4.4.0 writes for CLUSTER BY (a, b.c); it does not read the flat form."""


def test_both_forms_are_read_and_the_engines_own_is_written() -> None:
    found = ClusteringColumns.parse(OF_DELTA_SPARK)
    assert found.columns == (("a",), ("b", "c"))
    assert found.render() == OF_DELTA_SPARK
    flat = ClusteringColumns.parse('{"clusteringColumns":["col-1","b.c"]}')
    assert flat.columns == (("col-1",), ("b.c",))
    assert json.loads(flat.render())["clusteringColumns"] == [["col-1"], ["b.c"]]


def test_what_else_is_there_stays() -> None:
    found = ClusteringColumns.parse(
        '{"later":{"x":1},"clusteringColumns":[],"domainName":"delta.clustering"}'
    )
    assert found.columns == ()
    assert json.loads(found.render()) == {
        "clusteringColumns": [],
        "domainName": "delta.clustering",
        "later": {"x": 1},
    }


@pytest.mark.parametrize(
    "configuration",
    ["", "[]", "{}", '{"clusteringColumns":"a"}', '{"clusteringColumns":[1]}', '{"clusteringColumns":[[]]}',
     '{"clusteringColumns":[[""]]}', '{"clusteringColumns":["a",["a"]]}', '{"clusteringColumns":[["a",1]]}'],
)  # fmt: skip
def test_what_is_no_list_of_columns_is_refused(configuration: str) -> None:
    with pytest.raises(InvalidTableError, match=r"delta\.clustering cannot be read"):
        ClusteringColumns.parse(configuration)


def test_the_domain_of_a_table() -> None:
    there = DomainMetadata(domain=DOMAIN, configuration=OF_DELTA_SPARK)
    found = ClusteringColumns.of_domains({DOMAIN: there, "other": there})
    assert found is not None
    assert found.action() == there
    assert ClusteringColumns.of_domains({}) is None
    gone = DomainMetadata(domain=DOMAIN, configuration=OF_DELTA_SPARK, removed=True)
    assert ClusteringColumns.of_domains({DOMAIN: gone}) is None


def test_users_name_columns_by_their_names_and_the_domain_has_those_of_the_files() -> None:
    chosen = ClusteringColumns.choose(SCHEMA, ["a", ("B", "D"), "x.y", ["b", "c"]])
    assert chosen.columns == (("A",), ("col-7", "col-9"), ("x.y",), ("col-7", "c"))
    assert chosen.logical(SCHEMA) == (("A",), ("b", "d"), ("x.y",), ("b", "c"))
    assert chosen.uses(["col-7"])
    assert chosen.uses(["col-7", "c"])
    assert not chosen.uses(["col-7", "e"])
    assert not chosen.uses(["x"])


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (["nope"], "column nope does not exist"),
        (["b.c"], r"column `b\.c` does not exist"),
        ([("A", "deeper")], r"column A\.deeper does not exist"),
        (["A", "a"], "listed twice"),
        (["b"], "cannot be clustered by b"),
        ([()], "is empty"),
    ],
)
def test_columns_that_will_not_do(columns: list[str], problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        ClusteringColumns.choose(SCHEMA, columns)


@pytest.mark.parametrize(
    "kind",
    [BINARY, BOOLEAN, VARIANT, ArrayType(element_type=LONG), MapType(key_type=STRING, value_type=LONG)],
)
def test_columns_without_bounds_will_not_do(kind: DataType) -> None:
    with pytest.raises(SchemaError, match="cannot be clustered by z"):
        ClusteringColumns.choose(StructType((StructField(name="z", data_type=kind),)), ["z"])


def test_a_partitioned_table_is_not_clustered() -> None:
    with pytest.raises(SchemaError, match="partitioned table"):
        ClusteringColumns.choose(SCHEMA, ["a"], partition_columns=["x.y"])


@pytest.mark.parametrize("path", [("gone",), ("A", "deeper"), ("b",), ("col-7", "d")])
def test_columns_that_the_schema_no_longer_has(path: tuple[str, ...]) -> None:
    with pytest.raises(InvalidTableError, match="which is not in its schema"):
        ClusteringColumns(columns=(path,)).logical(SCHEMA)
