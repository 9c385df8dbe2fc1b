"""The inputs of the writer vectors: for each feature a table and what is done to it, as data.

What the words mean is in docs/writer-vectors.md. Operations of the library that are not there yet are left
out with their vector, until they are.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def field(name: str, kind: Any, *, nullable: bool = True, **rules: Any) -> Json:
    """A column as the log's schemas have it; `__` in a rule's name is a dot."""
    metadata = {key.replace("__", "."): value for key, value in rules.items()}
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}


_ID, _N, _P = field("id", "long"), field("n", "integer"), field("p", "string")


def _rows(first: int, count: int, **more: Any) -> list[Json]:
    values = [
        {"id": key, "n": None if key % 3 == 0 else key * 10, "p": None if key % 4 == 0 else f"p{key % 2}"}
        for key in range(first, first + count)
    ]
    return [{**row, **more} for row in values]


def _create(*fields: Json, by: list[str] | None = None, **properties: str) -> Json:
    return {
        "do": "create",
        "schema": {"type": "struct", "fields": [*(_ID, _N, _P), *fields]},
        "partitionBy": by or [],
        "properties": {key.replace("__", "."): value for key, value in properties.items()},
    }


_APPEND = {"do": "append", "rows": _rows(1, 4)}
_MORE = {"do": "append", "rows": _rows(5, 4)}
_DELETE = {"do": "delete", "where": "id IN (2, 5)"}
_REPLACE = {"do": "overwrite", "where": "id >= 7", "rows": _rows(9, 2)}
_COMPACT = {"do": "compact"}
_RESTORE = {"do": "restore", "version": 1}
_ALL = [_APPEND, _MORE, _DELETE, _REPLACE, _COMPACT]


def _supported(feature: str) -> dict[str, str]:
    return {f"delta__feature__{feature}": "supported"}


_NO_NAMES = "010000"
_NULL = {"metadata": _NO_NAMES, "value": "00"}
_STRING = {"metadata": _NO_NAMES, "value": "0d616263"}
_OBJECT = {"metadata": "11020001026162", "value": "020200010002040c050c06"}
"""The variants null, "abc" and {"a": 5, "b": 6}."""


INPUTS: dict[str, list[Json]] = {
    "plain": [_create(), *_ALL, _RESTORE, {"do": "overwrite", "rows": _rows(20, 2)}],
    "partitioned": [_create(by=["p"]), *_ALL, {"do": "delete", "where": "p = 'p1'"}],
    "append-only": [
        _create(delta__appendOnly="true"),
        _APPEND,
        _MORE,
        {**_DELETE, "refused": True},
        {**_REPLACE, "refused": True},
        {"do": "set", "properties": {"delta.appendOnly": "false"}},
        _DELETE,
    ],
    "not-null": [
        _create(field("q", "string", nullable=False)),
        {"do": "append", "rows": _rows(1, 3, q="q")},
        {"do": "append", "rows": _rows(4, 1, q=None), "refused": True},
    ],
    "invariants": [
        _create(field("q", "integer", delta__invariants='{"expression": {"expression": "q > 3"}}')),
        {"do": "append", "rows": _rows(1, 3, q=4)},
        {"do": "append", "rows": _rows(4, 1, q=3), "refused": True},
        {"do": "append", "rows": _rows(4, 1, q=None), "refused": True},
    ],
    "constraints": [
        _create(),
        _APPEND,
        {"do": "addConstraint", "name": "positive", "expression": "id > 0"},
        _MORE,
        {"do": "append", "rows": _rows(-3, 2), "refused": True},
        {"do": "addConstraint", "name": "small", "expression": "n < 50", "refused": True},
        {"do": "dropConstraint", "name": "positive"},
        {"do": "append", "rows": _rows(-3, 2)},
    ],
    "generated": [
        _create(field("g", "integer", delta__generationExpression="n + 1")),
        *_ALL,
        {"do": "append", "rows": _rows(20, 1, g=7), "refused": True},
    ],
    "defaults": [
        _create(field("d", "string", CURRENT_DEFAULT="'none given'"), **_supported("allowColumnDefaults")),
        *_ALL,
        {"do": "setDefault", "column": "d", "expression": "'other'"},
        {"do": "append", "rows": _rows(30, 1)},
    ],
    "identity": [
        _create(
            field(
                "i",
                "long",
                delta__identity__start=10,
                delta__identity__step=5,
                delta__identity__allowExplicitInsert=False,
            )
        ),
        *_ALL,
        {"do": "append", "rows": _rows(20, 1, i=7), "refused": True},
    ],
    "mapping-name": [
        _create(field("x", "integer"), delta__columnMapping__mode="name"),
        {"do": "append", "rows": _rows(1, 3, x=1)},
        {"do": "renameColumn", "column": "x", "name": "y y"},
        {"do": "append", "rows": [{**row, "y y": 2} for row in _rows(4, 2)]},
        {"do": "dropColumn", "column": "y y"},
        *_ALL[1:],
    ],
    "mapping-id": [_create(delta__columnMapping__mode="id", by=["p"]), *_ALL],
    "mapping-later": [
        _create(),
        _APPEND,
        {"do": "set", "properties": {"delta.columnMapping.mode": "name"}},
        _MORE,
    ],
    "type-widening": [
        _create(field("s", "short"), delta__enableTypeWidening="true"),
        {"do": "append", "rows": _rows(1, 2, s=7)},
        {"do": "changeType", "column": "s", "type": "long"},
        {"do": "append", "rows": _rows(3, 2, s=2**40)},
        _COMPACT,
    ],
    "timestamp-ntz": [
        _create(field("local", "timestamp_ntz")),
        {"do": "append", "rows": _rows(1, 2, local="2024-02-29T12:30:00.123456")},
        {"do": "append", "rows": _rows(3, 2, local=None)},
    ],
    "variants": [
        _create(field("v", "variant"), field("s", {"type": "struct", "fields": [field("x", "variant")]})),
        {
            "do": "append",
            "rows": [
                {**row, "v": value, "s": {"x": value}}
                for row, value in zip(_rows(1, 4), [_OBJECT, None, _NULL, _STRING], strict=True)
            ],
        },
        {"do": "append", "rows": _rows(5, 4, v=_STRING)},
        *_ALL[2:],
        {"do": "update", "set": {"v": "s.x"}, "where": "id IN (1, 9)"},
        _RESTORE,
    ],
    "in-commit-timestamps": [_create(delta__enableInCommitTimestamps="true"), *_ALL],
    "in-commit-timestamps-later": [
        _create(),
        _APPEND,
        {"do": "set", "properties": {"delta.enableInCommitTimestamps": "true"}},
        _MORE,
    ],
    "checkpoint": [
        _create(by=["p"]),
        _APPEND,
        {"do": "delete", "where": "p = 'p1'"},
        {"do": "checkpoint"},
    ],
    "struct-statistics": [
        _create(
            field("d", "decimal(38,10)"),
            field("at", "timestamp"),
            by=["p"],
            delta__checkpoint__writeStatsAsStruct="true",
            delta__checkpoint__writeStatsAsJson="false",
        ),
        {
            "do": "append",
            "rows": _rows(
                1, 3, d="9999999999999999999999999999.9999999999", at="2024-02-29T12:30:00.123456Z"
            ),
        },
        {"do": "checkpoint"},
    ],
    "dropped-feature": [
        _create(delta__enableDeletionVectors="true", **_supported("vacuumProtocolCheck")),
        _APPEND,
        {"do": "dropFeature", "feature": "vacuumProtocolCheck"},
        {"do": "delete", "where": "id = 2"},
        {"do": "dropFeature", "feature": "deletionVectors"},
        _MORE,
    ],
    "v2-checkpoint": [_create(delta__checkpointPolicy="v2"), *_ALL, {"do": "checkpoint"}, _RESTORE],
    "vacuum-check": [_create(**_supported("vacuumProtocolCheck")), _APPEND, {"do": "vacuum"}],
    "domains": [
        _create(**_supported("domainMetadata")),
        {"do": "setDomain", "domain": "app.state", "configuration": '{"a": 1}'},
        _APPEND,
        {"do": "removeDomain", "domain": "app.state"},
    ],
    "change-data": [
        _create(delta__enableChangeDataFeed="true"),
        *_ALL,
        {"do": "update", "set": {"n": "id + 1"}, "where": "id < 4"},
        {"do": "overwrite", "rows": _rows(20, 2)},
    ],
    "deletion-vectors": [
        _create(delta__enableDeletionVectors="true"),
        *_ALL[:3],
        {"do": "delete", "where": "id = 3"},
        {"do": "purge"},
        _RESTORE,
    ],
    "row-tracking": [_create(delta__enableRowTracking="true"), *_ALL, _RESTORE],
    "materialized-partitions": [
        _create(by=["p"], delta__enableMaterializePartitionColumnsFeature="true"),
        *_ALL,
    ],
    "iceberg-v1": [
        _create(by=["p"], delta__enableIcebergCompatV1="true", delta__columnMapping__mode="name"),
        *_ALL,
        {"do": "set", "properties": {"delta.enableDeletionVectors": "true"}, "refused": True},
    ],
    "iceberg-v2": [
        _create(
            field("list", {"type": "array", "elementType": "integer", "containsNull": True}),
            field(
                "map",
                {
                    "type": "map",
                    "keyType": "string",
                    "valueType": {"type": "array", "elementType": "timestamp", "containsNull": True},
                    "valueContainsNull": True,
                },
            ),
            by=["p"],
            delta__enableIcebergCompatV2="true",
            delta__columnMapping__mode="name",
        ),
        {"do": "append", "rows": _rows(1, 4, list=[1, None], map=[])},
        *_ALL[1:],
        {"do": "set", "properties": {"delta.enableDeletionVectors": "true"}, "refused": True},
    ],
    "clustering": [
        {
            **_create(
                field("s", {"type": "struct", "fields": [field("x", "integer")]}),
                delta__columnMapping__mode="name",
                delta__dataSkippingNumIndexedCols="0",
            ),
            "clusterBy": [["n"], ["s", "x"]],
        },
        {"do": "append", "rows": _rows(1, 4, s={"x": 3})},
        {"do": "append", "rows": _rows(5, 4, s={"x": 4})},
        {"do": "cluster"},
        {"do": "delete", "where": "id IN (2, 5)"},
        {"do": "append", "rows": _rows(9, 2, s=None)},
        {"do": "cluster"},
        {"do": "clusterBy", "columns": [["n"]]},
        {"do": "renameColumn", "column": "n", "name": "number"},
        {"do": "clusterBy", "columns": []},
        {"do": "restore", "version": 3},
    ],
    "overwrite-partitions": [
        _create(by=["p"]),
        _APPEND,
        _MORE,
        {"do": "overwritePartitions", "rows": [{"id": 9, "n": 1, "p": "p0"}, {"id": 10, "n": 2, "p": None}]},
    ],
    "update": [_create(), _APPEND, _MORE, {"do": "update", "set": {"n": "id + 1"}, "where": "id IN (2, 5)"}],
    "types": [
        {
            "do": "create",
            "schema": {
                "type": "struct",
                "fields": [
                    _ID,
                    field("b", "byte"),
                    field("yes", "boolean"),
                    field("d", "double"),
                    field("day", "date"),
                    field("at", "timestamp"),
                    field("money", "decimal(8,2)"),
                    field("raw", "binary"),
                    field("rec", {"type": "struct", "fields": [field("a", "integer"), field("t", "string")]}),
                    field("list", {"type": "array", "elementType": "integer", "containsNull": True}),
                    field(
                        "map",
                        {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True},
                    ),
                ],
            },
            "partitionBy": [],
            "properties": {},
        },
        {
            "do": "append",
            "rows": [
                {
                    "id": 1,
                    "b": -128,
                    "yes": True,
                    "d": -0.25,
                    "day": "1969-12-31",
                    "at": "2024-02-29T12:30:00.123456Z",
                    "money": "-1.50",
                    "raw": "00ff",
                    "rec": {"a": 1, "t": None},
                    "list": [1, None],
                    "map": [["k", 7]],
                },
                {
                    "id": 2,
                    **dict.fromkeys(
                        ("b", "yes", "d", "day", "at", "money", "raw", "rec", "list", "map"), None
                    ),
                },
                {
                    "id": 3,
                    "b": 127,
                    "yes": False,
                    "d": "NaN",
                    "day": "9999-12-31",
                    "at": "1969-12-31T23:59:59.999999Z",
                    "money": "999999.99",
                    "raw": "",
                    "rec": {"a": None, "t": "x" * 40},
                    "list": [],
                    "map": [],
                },
            ],
        },
    ],
}
"""By the vector's name; the first operation creates the table."""
