"""Variants as Spark takes them from Python tasks."""

from __future__ import annotations

import pyarrow as pa

from delta_core.schema.arrow import variant_field
from delta_core.variants.python_values import variant_array
from spark_jobs.reader.arrow_variants import with_spark_variants


def test_variants_at_every_level_have_the_fields_and_the_mark_of_spark() -> None:
    variants = variant_array([1, None, {"a": [True]}])
    item = variant_field("element")
    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            variant_field("v"),
            pa.field("s", pa.struct([pa.field("x", pa.int64()), variant_field("v")])),
            pa.field("l", pa.list_(item)),
        ]
    )
    nested = pa.StructArray.from_arrays([pa.array([1, 2, 3]), variants], fields=schema.field("s").type.fields)
    ends = pa.array([0, 2, 2, 3], pa.int32())
    lists = pa.ListArray.from_arrays(ends, variants, type=schema.field("l").type)
    rows = pa.RecordBatch.from_arrays([pa.array([1, 2, 3]), variants, nested, lists], schema=schema)

    found = with_spark_variants(rows, schema)

    assert found.schema.names == schema.names
    kinds = [found.schema.field("v").type, found.schema.field("s").type.field("v").type]
    for kind in [*kinds, found.schema.field("l").type.value_type]:
        assert [field.name for field in kind.fields] == ["value", "metadata"]
        assert kind.field("metadata").metadata == {b"variant": b"true"}
    for name in ("id", "v", "s", "l"):
        assert found.column(name).to_pylist() == rows.column(name).to_pylist()


def test_rows_without_variants_stay_as_they_are() -> None:
    rows = pa.RecordBatch.from_pydict({"s": [{"metadata": b"", "value": b""}, None]})
    assert with_spark_variants(rows, rows.schema) is rows
