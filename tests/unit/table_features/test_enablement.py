"""Which protocol a definition gets: as delta-spark chooses it, and by the protocol's own rules."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from delta_core.actions import Protocol
from delta_core.errors import InvalidTablePropertyError, UnsupportedTableFeatureError
from delta_core.schema.types import (
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP_NTZ,
    VARIANT,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from delta_core.table_features.enablement import (
    ProtocolRequest,
    evolved_protocol,
    needed_features,
    protocol_for,
    refuse_unsupported_definition,
)
from delta_core.table_features.feature import FEATURES, NO_WRITER_KINDS
from delta_core.table_features.upgrade import new_protocol

ANSWERS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "delta_spark_protocols.json").read_text(encoding="utf-8")
)
TYPES: dict[str, DataType] = {
    "BIGINT": LONG,
    "STRING": STRING,
    "INT": INTEGER,
    "TIMESTAMP_NTZ": TIMESTAMP_NTZ,
    "VARIANT": VARIANT,
    "ARRAY<STRUCT<x: TIMESTAMP_NTZ>>": ArrayType(
        element_type=StructType((StructField(name="x", data_type=TIMESTAMP_NTZ),))
    ),
}
OTHERWISE = {
    "iceberg 2 alone": "it turns column mapping on by itself, as a property that the table gets",
    "iceberg 3": "a feature that is not known here",
    "shredding": "it keeps the early name of the feature",
    "feature with another value": "its own parser's error",
    "unknown feature": "an error that has no answer",
    "feature clustering": "it wants CLUSTER BY instead; here it is refused as long as it is not written",
    "versions 8": "an error",
    "versions 0": "an error",
}
"""Definitions whose answer is no protocol, or not the one that is asked for here."""


def schema_of(text: str) -> StructType:
    """The columns of a definition, which are written in the few ways that are used there."""
    fields = []
    for column in text.split(", "):
        name, _, rest = column.partition(" ")
        metadata: dict[str, Any] = {}
        if "IDENTITY" in rest:
            metadata = {"delta.identity.start": 1, "delta.identity.step": 1}
        elif "GENERATED" in rest:
            metadata = {"delta.generationExpression": "id + 1"}
        elif "DEFAULT" in rest:
            metadata = {"CURRENT_DEFAULT": "1"}
        kind = rest.split(" GENERATED")[0].split(" DEFAULT")[0].removesuffix(" NOT NULL")
        fields.append(
            StructField(name=name, data_type=TYPES[kind], nullable="NOT NULL" not in rest, metadata=metadata)
        )
    return StructType(tuple(fields))


def given_by(statement: str) -> dict[str, str]:
    """The properties that an ALTER of a definition sets; a constraint is one."""
    if statement.startswith("ADD CONSTRAINT"):
        return {"delta.constraints.c": "id > 0"}
    pairs = statement.removeprefix("SET TBLPROPERTIES (").removesuffix(")").split(", ")
    return {key.strip("'"): value.strip("'") for key, value in (pair.split(" = ") for pair in pairs)}


def recorded(state: dict[str, Any]) -> Protocol:
    """A protocol that delta-spark committed."""
    fields = state["protocol"]
    readers, writers = fields.get("readerFeatures"), fields.get("writerFeatures")
    return Protocol(
        min_reader_version=fields["minReaderVersion"],
        min_writer_version=fields["minWriterVersion"],
        reader_features=None if readers is None else frozenset(readers),
        writer_features=None if writers is None else frozenset(writers),
    )


@pytest.mark.parametrize(
    "answer", [item for item in ANSWERS if item["name"] not in OTHERWISE], ids=lambda item: item["name"]
)
def test_the_protocol_is_the_one_that_delta_spark_chooses(answer: dict[str, Any]) -> None:
    schema = schema_of(answer["columns"])
    request = ProtocolRequest.of(answer["properties"])
    configuration = dict(request.properties)
    protocol = protocol_for(schema, configuration, request=request)
    assert protocol == recorded(answer["states"][0])
    for statement, state in zip(answer["then"], answer["states"][1:], strict=False):
        request = ProtocolRequest.of(given_by(statement))
        configuration |= request.properties
        protocol = protocol_for(schema, configuration, current=protocol, request=request)
        assert protocol == recorded(state)


def test_enough_definitions_are_compared() -> None:
    assert len([item for item in ANSWERS if item["name"] not in OTHERWISE]) >= 40
    assert set(OTHERWISE) <= {item["name"] for item in ANSWERS}


PLAIN = StructType((StructField(name="id", data_type=LONG),))


def test_an_early_name_of_a_feature_is_as_good() -> None:
    features = frozenset({"typeWidening-preview", "appendOnly", "invariants"})
    current = Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=frozenset({"typeWidening-preview"}),
        writer_features=features,
    )
    assert protocol_for(PLAIN, {"delta.enableTypeWidening": "true"}, current=current) is current


@pytest.mark.parametrize(
    ("metadata", "feature"),
    [
        ({"delta.invariants": "{}"}, "invariants"),
        ({"delta.generationExpression": "1"}, "generatedColumns"),
        ({"delta.identity.start": 1}, "identityColumns"),
        ({"CURRENT_DEFAULT": "1"}, "allowColumnDefaults"),
        ({"delta.typeChanges": []}, "typeWidening"),
    ],
)
def test_what_a_nested_field_says_is_found(metadata: dict[str, Any], feature: str) -> None:
    inner = StructType((StructField(name="x", data_type=LONG, metadata=metadata),))
    for kind in (inner, ArrayType(element_type=inner), MapType(key_type=STRING, value_type=inner)):
        schema = StructType((StructField(name="a", data_type=kind),))
        assert feature in needed_features(schema, {})
    assert feature not in needed_features(PLAIN, {})


def test_features_come_with_what_they_require() -> None:
    assert needed_features(PLAIN, {"delta.enableRowTracking": "TRUE"}) == {"rowTracking", "domainMetadata"}
    assert needed_features(PLAIN, {"delta.enableIcebergCompatV1": "true"}) == {
        "icebergCompatV1",
        "columnMapping",
    }
    assert needed_features(PLAIN, {"delta.columnMapping.mode": "none"}) == frozenset()


@pytest.mark.parametrize(
    ("properties", "name"),
    [
        ({"delta.enableIcebergCompatV3": "true"}, "icebergCompatV3"),
        ({"delta.enableVariantShredding": "true"}, "variantShredding"),
        ({"delta.feature.clustering": "supported"}, "clustering"),
    ],
)
def test_what_is_not_written_is_refused_by_its_name(properties: dict[str, str], name: str) -> None:
    request = ProtocolRequest.of(properties)
    with pytest.raises(UnsupportedTableFeatureError, match=name):
        refuse_unsupported_definition(PLAIN, request.properties, request=request)


def test_a_column_of_a_type_asks_for_its_feature_and_one_that_is_only_named_so_does_not() -> None:
    named = StructType((StructField(name="variant", data_type=LONG),))
    typed = StructType((StructField(name="v", data_type=VARIANT),))
    assert needed_features(named, {}) == frozenset()
    assert needed_features(typed, {}) == {"variantType"}
    refuse_unsupported_definition(typed, {})


def test_properties_of_the_protocol_are_told_from_those_of_the_table() -> None:
    request = ProtocolRequest.of(
        {
            "delta.Feature.DomainMetadata": "Supported",
            "delta.minreaderversion": "1",
            "delta.minWriterVersion": " 4 ",
            "delta.appendOnly": "true",
            "owner": "ann",
        }
    )
    assert request.features == {"domainMetadata"}
    assert (request.reader_version, request.writer_version) == (1, 4)
    assert request.properties == {"delta.appendOnly": "true", "owner": "ann"}
    assert not request.is_empty
    assert ProtocolRequest.of({"owner": "ann"}).is_empty


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"delta.feature.domainMetadata": "true"}, InvalidTablePropertyError),
        ({"delta.feature.ofTomorrow": "supported"}, UnsupportedTableFeatureError),
        ({"delta.minReaderVersion": "4"}, InvalidTablePropertyError),
        ({"delta.minWriterVersion": "8"}, InvalidTablePropertyError),
        ({"delta.minWriterVersion": "two"}, InvalidTablePropertyError),
        ({"delta.minReaderVersion": "3"}, InvalidTablePropertyError),
        ({"delta.minReaderVersion": "3", "delta.minWriterVersion": "6"}, InvalidTablePropertyError),
    ],
)
def test_requests_that_cannot_be_met_are_refused(given: dict[str, str], error: type[Exception]) -> None:
    with pytest.raises(error):
        ProtocolRequest.of(given)


def test_a_request_is_met_by_what_has_it() -> None:
    wide = Protocol(min_reader_version=2, min_writer_version=6)
    assert ProtocolRequest.of({"delta.minWriterVersion": "4"}).is_satisfied_by(wide)
    assert not ProtocolRequest.of({"delta.feature.domainMetadata": "supported"}).is_satisfied_by(wide)


def test_a_write_turns_nothing_on_that_was_ignored_before() -> None:
    """A property without its feature asks nothing, and refusing rows for it would be new."""
    current = Protocol(min_reader_version=1, min_writer_version=2)
    ignored = {"delta.enableIcebergCompatV3": "true"}
    wider = StructType((*PLAIN.fields, StructField(name="t", data_type=TIMESTAMP_NTZ)))
    evolved = evolved_protocol(current, ignored, before=PLAIN, after=wider)
    assert evolved.writer_features == {"appendOnly", "invariants", "timestampNtz"}
    assert evolved_protocol(current, ignored, before=PLAIN, after=PLAIN) is current


def test_a_write_brings_the_feature_of_a_new_column_unless_it_is_there_by_its_early_name() -> None:
    after = StructType((*PLAIN.fields, StructField(name="v", data_type=VARIANT)))
    plain = Protocol(min_reader_version=1, min_writer_version=2)
    evolved = evolved_protocol(plain, {}, before=PLAIN, after=after)
    assert (evolved.min_reader_version, evolved.min_writer_version) == (3, 7)
    assert evolved.reader_features == {"variantType"}
    early = new_protocol({"variantType-preview"})
    assert evolved_protocol(early, {}, before=PLAIN, after=after) == early
    assert protocol_for(after, {}, current=early) == early


def test_a_write_brings_no_column_that_needs_what_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = replace(FEATURES["variantType"], writable_by=NO_WRITER_KINDS)
    monkeypatch.setitem(FEATURES, "variantType", closed)  # type: ignore[arg-type]
    after = StructType((*PLAIN.fields, StructField(name="v", data_type=VARIANT)))
    with pytest.raises(UnsupportedTableFeatureError, match="variantType"):
        evolved_protocol(Protocol(min_reader_version=1, min_writer_version=2), {}, before=PLAIN, after=after)
