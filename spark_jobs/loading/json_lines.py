"""JSON lines as a DataFrame that hides nothing.

Spark's own JSON reader lets a lot pass: what follows the first value on a line, a field that the schema
does not name, a value of another type (which becomes null). Here each line is read as text and must be
exactly one object; every value stays text until it is cast, and a cast that fails is an error or, with
`corrupt_column`, a line that is kept.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from delta_core.errors import InvalidJobSpecError, SchemaMismatchError
from delta_core.schema import types as delta
from spark_jobs.failures import ViolationToken
from spark_jobs.loading.json_numbers import MarkedNumbers
from spark_jobs.loading.source_params import Source
from spark_jobs.loading.string_casts import cast_string
from spark_jobs.schema import to_spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

NOT_AN_OBJECT: Final = 1_000_000
"""The number that the error of a line that is no JSON object carries, in place of a column's position."""
SPELLED_OTHERWISE: Final = 1_000_001
"""That of a line with a field that other lines spell with other capitals: its value would be lost."""

_INFER_OPTIONS = {
    "primitivesAsString": "true",
    "mode": "PERMISSIVE",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
}
_SHOWN_CHARACTERS: Final = 300


def read_json_lines(
    spark: SparkSession,
    source: Source,
    *,
    paths: Sequence[str],
    types: delta.StructType | None,
    token: ViolationToken,
    exact: bool = True,
) -> DataFrame:
    """The objects of the lines as rows; reads the files twice, first for the names of the fields.

    A blank line is no line. A number is its text until it is cast. A line that is not UTF-8 is no object.

    Args:
        spark: the session.
        source: `schema` names all fields there may be; a field that a line lacks is null.
        paths: files and directories, escaped for Spark.
        types: types of fields when the source has no schema; a field that they do not name stays text.
        token: marks the errors of lines.
        exact: whether a value that its column's type would round or cut is not of the type.

    Raises:
        SchemaMismatchError: a field is not in the source's schema, or two differ in case alone.
    """
    from pyspark.sql import functions as fn
    from pyspark.sql.types import ArrayType, StringType, StructField, StructType

    mark = f"deltaward_{secrets.token_hex(8)}"
    inferred = spark.read.options(**{**_INFER_OPTIONS, **source.options}, columnNameOfCorruptRecord=mark)
    found = StructType([field for field in inferred.json(list(paths)).schema if field.name != mark])
    _require_free(found, source.corrupt_column)
    _require_one_spelling(found)
    wanted = source.schema or types
    if wanted is not None:
        # Fields beside a contract's columns are the contract's question; inside an object they would be lost.
        _require_known(found, wanted, path="", only_nested=source.schema is None)
    fields = [StructField(f.name, _shape(f.dataType, _type_of(wanted, f.name))) for f in found]
    # Whatever follows a line's one value would close the array early or make it longer.
    shape = ArrayType(StructType([*fields, StructField(mark, StringType())]))
    numbers = MarkedNumbers()
    wrapped = fn.concat(fn.lit("["), numbers.marked(fn.col("value")), fn.lit(f',{{"{mark}":1}}]'))
    lines = spark.read.options(ignoreMissingFiles="false", ignoreCorruptFiles="false").text(list(paths))
    parsed = lines.where(fn.trim("value") != "").select(
        fn.col("value").alias("line"), fn.from_json(wrapped, shape, {"mode": "PERMISSIVE"}).alias("parts")
    )
    last = fn.get("parts", fn.lit(1)).getField(mark)
    whole = (fn.coalesce(fn.size("parts"), fn.lit(0)) == 2) & last.isNotNull() & fn.is_valid_utf8("line")
    rows = parsed.select(
        "line",
        fn.when(whole, fn.get("parts", fn.lit(0))).alias("object"),
        fn.col("line").rlike(_other_capitals(found)).alias("otherwise"),
    )
    columns: list[tuple[str, Column, Column | None]] = []
    for f in fields:
        text = numbers.unmarked(fn.col("object").getField(f.name), f.dataType)
        columns.append((f.name, *_typed(text, f.dataType, _type_of(wanted, f.name), exact=exact)))
    columns += [
        (f.name, fn.lit(None).cast(to_spark_type(f.data_type)), None)
        for f in source.schema or ()
        if found_name(found, f.name) is None
    ]
    if source.corrupt_column is not None:
        return _keeping(rows, columns, source.corrupt_column)
    return _failing(rows, columns, token)


def _keeping(
    rows: DataFrame, columns: Sequence[tuple[str, Column, Column | None]], corrupt_column: str
) -> DataFrame:
    """Lines that do not fit are rows with their text; what of them could be read is there, too.

    A column is its name, its value, and when the value is not of its type.
    """
    from pyspark.sql import functions as fn

    bad = fn.col("object").isNull() | fn.col("otherwise")
    for _, _, wrong in columns:
        bad = bad if wrong is None else bad | wrong
    kept = fn.when(bad, fn.col("line")).alias(corrupt_column)
    return rows.select(*[value.alias(name) for name, value, _ in columns], kept)


def _failing(
    rows: DataFrame, columns: Sequence[tuple[str, Column, Column | None]], token: ViolationToken
) -> DataFrame:
    """The first line that is met and does not fit fails the job."""
    from pyspark.sql import functions as fn

    shown = fn.to_json(fn.struct(fn.substring("line", 1, _SHOWN_CHARACTERS).alias("line")))

    def error(number: int) -> Column:
        return fn.raise_error(fn.concat(fn.lit(token.mark(number)), shown))

    selected = []
    for position, (name, value, wrong) in enumerate(columns):
        checked = value if wrong is None else fn.when(wrong, error(position)).otherwise(value)
        broken = fn.col("object").isNull()
        selected.append(
            fn.when(broken, error(NOT_AN_OBJECT))
            .when(fn.col("otherwise"), error(SPELLED_OTHERWISE))
            .otherwise(checked)
            .alias(name)
        )
    if not selected:
        raise SchemaMismatchError(
            "The source's JSON lines have no field.",
            cause="None of them is an object with fields",
            fix="Check the files, or keep such lines with source.corrupt_column",
        )
    return rows.select(*selected)


def _shape(found: Any, wanted: delta.DataType | None) -> Any:
    """What to parse: the inferred shape, but an object whose column is a string stays JSON text."""
    from pyspark.sql.types import ArrayType, StringType, StructField, StructType

    if wanted == delta.STRING:
        return StringType()
    if isinstance(found, StructType) and isinstance(wanted, delta.StructType):
        return StructType(
            [StructField(f.name, _shape(f.dataType, _type_of(wanted, f.name))) for f in found.fields]
        )
    if isinstance(found, ArrayType) and isinstance(wanted, delta.ArrayType):
        return ArrayType(_shape(found.elementType, wanted.element_type))
    return found


def _typed(
    column: Column, found: Any, wanted: delta.DataType | None, *, exact: bool
) -> tuple[Column, Column | None]:
    """`column` with the wanted type, and when it is not of that type (None: it always is)."""
    from pyspark.sql import functions as fn
    from pyspark.sql import types as spark_types

    if wanted is None or (wanted == delta.STRING and isinstance(found, spark_types.StringType)):
        return column, None
    if isinstance(wanted, delta.StructType) and isinstance(found, spark_types.StructType):
        return _typed_struct(column, found, wanted, exact=exact)
    if isinstance(wanted, delta.ArrayType) and isinstance(found, spark_types.ArrayType):
        element, inner = wanted.element_type, found.elementType
        value = fn.transform(column, lambda item: _typed(item, inner, element, exact=exact)[0])
        wrong = fn.exists(column, lambda item: _or_false(_typed(item, inner, element, exact=exact)[1]))
        return value, fn.coalesce(wrong, fn.lit(False))
    nested = (delta.StructType, delta.ArrayType, delta.MapType)
    if isinstance(wanted, nested) or not isinstance(found, spark_types.StringType):
        return fn.lit(None).cast(to_spark_type(wanted)), column.isNotNull()
    return cast_string(column, wanted, exact=exact)


def _typed_struct(
    column: Column, found: Any, wanted: delta.StructType, *, exact: bool
) -> tuple[Column, Column | None]:
    from pyspark.sql import functions as fn

    parts, wrongs = [], []
    for field in wanted:
        name = found_name(found, field.name)
        if name is None:
            parts.append(fn.lit(None).cast(to_spark_type(field.data_type)).alias(field.name))
            continue
        value, wrong = _typed(column.getField(name), found[name].dataType, field.data_type, exact=exact)
        parts.append(value.alias(field.name))
        wrongs += [] if wrong is None else [wrong]
    total = None
    for wrong in wrongs:
        total = wrong if total is None else total | wrong
    return fn.when(column.isNotNull(), fn.struct(*parts)), total


def found_name(found: Any, name: str) -> str | None:
    """The field of an inferred schema that a name means, as the files spell it."""
    folded = name.casefold()
    return next((field.name for field in found.fields if field.name.casefold() == folded), None)


def _type_of(wanted: delta.StructType | None, name: str) -> delta.DataType | None:
    field = None if wanted is None else wanted.find(name)
    return None if field is None else field.data_type


def _or_false(wrong: Column | None) -> Column:
    from pyspark.sql import functions as fn

    return fn.lit(False) if wrong is None else wrong


def _require_known(found: Any, schema: delta.StructType, *, path: str, only_nested: bool = False) -> None:
    """Refuse fields that the schema does not name, at any depth: they would be dropped."""
    from pyspark.sql.types import ArrayType, StructType

    for field in found.fields:
        known = schema.find(field.name)
        if known is None and only_nested:
            continue
        if known is None:
            raise SchemaMismatchError(
                f"The source files have a field that the source's schema does not name: {path}{field.name}.",
                cause=f"The schema has {', '.join(path + name for name in schema.names)}",
                fix="Add it to source.schema, or leave the schema out to take every field as text",
            )
        inner, wanted = field.dataType, known.data_type
        while isinstance(inner, ArrayType) and isinstance(wanted, delta.ArrayType):
            inner, wanted = inner.elementType, wanted.element_type
        if isinstance(inner, StructType) and isinstance(wanted, delta.StructType):
            _require_known(inner, wanted, path=f"{path}{field.name}.")
        elif isinstance(wanted, delta.MapType):
            raise InvalidJobSpecError(
                f"source.schema has a map, {path}{field.name}, and JSON has only objects",
                fix="Name the object's fields as a struct, or take it as text with the type string",
            )


def _other_capitals(found: Any) -> str:
    """A pattern of lines with a key that is one of the fields' at any depth but for its capitals.

    Spark takes such fields for one while it looks for names, and for two when it reads values.
    """
    names = sorted({re.sub(r"\\E", r"\\E\\\\E\\Q", name) for name in _names(found)})
    if not names:
        return "(?!)"
    known = "|".join(f"\\Q{name}\\E" for name in names)
    return f'"(?!(?:{known})"\\s*:)(?iu:{known})"\\s*:'


def _names(found: Any) -> Iterator[str]:
    from pyspark.sql.types import ArrayType, StructType

    for field in found.fields:
        yield field.name
        inner = field.dataType
        while isinstance(inner, ArrayType):
            inner = inner.elementType
        if isinstance(inner, StructType):
            yield from _names(inner)


def _require_one_spelling(found: Any, path: str = "") -> None:
    """Refuse fields of one object that differ in case alone: a column can have the values of one of them."""
    from pyspark.sql.types import ArrayType, StructType

    spelled: dict[str, str] = {}
    for field in found.fields:
        other = spelled.setdefault(field.name.casefold(), field.name)
        if other != field.name:
            raise SchemaMismatchError(
                f"The source files have fields that differ in case alone: {path}{other}, {path}{field.name}.",
                fix="Spell the field in one way",
            )
        inner = field.dataType
        while isinstance(inner, ArrayType):
            inner = inner.elementType
        if isinstance(inner, StructType):
            _require_one_spelling(inner, f"{path}{field.name}.")


def _require_free(found: Any, corrupt_column: str | None) -> None:
    if corrupt_column is not None and found_name(found, corrupt_column) is not None:
        raise SchemaMismatchError(
            f"The source files have a field with the name of the corrupt column: {corrupt_column}.",
            fix="Give source.corrupt_column a name that no field has",
        )
