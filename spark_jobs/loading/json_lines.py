"""A strict reader for JSON lines.

Spark's JSON reader silently ignores errors: data after the first value of a line, fields that are not in the
schema, and values of a wrong type, which become null. Here each line is read as a string and must be exactly
one JSON object. Every value stays a string until it is cast. A failed cast is an error or, with
`corrupt_column`, the line is kept in that column.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from delta_core.errors import InvalidJobSpecError, SchemaMismatchError
from delta_core.jobs.params.source import Source
from delta_core.schema import types as delta
from spark_jobs.expressions.columns import quoted
from spark_jobs.failures import ViolationToken
from spark_jobs.loading.json_numbers import MarkedNumbers
from spark_jobs.loading.source_files import STRICT, choice_options, read_lines, require_distinct
from spark_jobs.loading.string_casts import cast_string
from spark_jobs.schema import to_spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

NOT_AN_OBJECT: Final = 1_000_000
"""The error mark of a line that is not a JSON object. Other marks are positions of columns."""
DIFFERENT_CASE: Final = 1_000_001
"""The error mark of a line with a field name that other lines write in a different case, so that the value
would be lost."""

_INFER_OPTIONS: Final = {
    "primitivesAsString": "true",
    "mode": "PERMISSIVE",
    **STRICT,
}
_SHOWN_CHARACTERS: Final = 300
_SYNTAX: Final = (
    "allowbackslashescapinganycharacter",
    "allowcomments",
    "allownonnumericnumbers",
    "allownumericleadingzeros",
    "allowsinglequotes",
    "allowunquotedcontrolchars",
    "allowunquotedfieldnames",
)
"""Options of Spark's reader for what a line may contain. All others would have no effect on the rows."""


def read_json_lines(
    spark: SparkSession,
    source: Source,
    *,
    paths: Sequence[str],
    types: delta.StructType | None,
    token: ViolationToken,
    exact: bool = True,
    directories: Sequence[str] = (),
) -> DataFrame:
    """The JSON objects of the lines as rows. Reads the files twice, first to find the field names.

    Blank lines are skipped. Numbers are strings until they are cast. A line that is not UTF-8 is not an
    object.

    Args:
        spark: the session.
        source: its `schema` names all allowed fields. A missing field is null.
        paths: files and directories, escaped for Spark.
        types: types of the fields when the source has no schema. Other fields stay strings.
        token: marks the errors of lines.
        exact: whether to refuse a value that the column's type would round or truncate.
        directories: the columns that directories add. They are last.

    Raises:
        InvalidJobSpecError: an option does not apply to JSON lines.
        SchemaMismatchError: a field is not in the source's schema, two fields differ only in case, or a
            column is in the files and in the names of directories.
    """
    from pyspark.sql import functions as fn
    from pyspark.sql.types import ArrayType, StringType, StructField, StructType

    mark = f"deltaward_{secrets.token_hex(8)}"
    of_files, of_syntax = _divided_options(source.options)
    options = {**_INFER_OPTIONS, **of_files, **of_syntax, "columnNameOfCorruptRecord": mark}
    if directories:
        # Without it, the fields would include the directories' columns.
        options["recursiveFileLookup"] = "true"
    inferred = spark.read.options(**options)
    found = StructType([field for field in inferred.json(list(paths)).schema if field.name != mark])
    require_distinct([field.name for field in found], directories)
    _require_free([*found.names, *directories], source.corrupt_column)
    _require_consistent_case(found)
    target = source.schema or types
    if target is not None:
        # The contract handles additional top-level fields; inside an object they would be lost.
        _require_known(found, target, path="", only_nested=source.schema is None)
    if source.schema is not None:
        of_directories = StructType([StructField(name, StringType()) for name in directories])
        _require_known(of_directories, source.schema, path="")
    fields = [StructField(f.name, _shape(f.dataType, _type_of(target, f.name))) for f in found]
    # Any data after the line's value would close the array early or make it longer.
    shape = ArrayType(StructType([*fields, StructField(mark, StringType())]))
    numbers = MarkedNumbers()
    wrapped = fn.concat(fn.lit("["), numbers.marked(fn.col("value")), fn.lit(f',{{"{mark}":1}}]'))
    lines = read_lines(spark, paths, of_files)
    parsed = lines.where(fn.trim("value") != "").select(
        fn.col("value").alias("line"),
        fn.from_json(wrapped, shape, {**of_syntax, "mode": "PERMISSIVE"}).alias("parts"),
        *[fn.col(quoted(name)).alias(f"{mark}_{index}") for index, name in enumerate(directories)],
    )
    last = fn.get("parts", fn.lit(1)).getField(mark)
    whole = (fn.coalesce(fn.size("parts"), fn.lit(0)) == 2) & last.isNotNull() & fn.is_valid_utf8("line")
    rows = parsed.select(
        "line",
        fn.when(whole, fn.get("parts", fn.lit(0))).alias("object"),
        fn.col("line").rlike(_different_case_pattern(found)).alias("otherwise"),
        *[f"{mark}_{index}" for index in range(len(directories))],
    )
    columns: list[tuple[str, Column, Column | None]] = []
    for f in fields:
        raw = numbers.unmarked(fn.col("object").getField(f.name), f.dataType)
        columns.append((f.name, *_cast(raw, f.dataType, _type_of(target, f.name), exact=exact)))
    columns += [
        (f.name, fn.lit(None).cast(to_spark_type(f.data_type)), None)
        for f in source.schema or ()
        if found_name(found, f.name) is None and f.name.casefold() not in map(str.casefold, directories)
    ]
    for index, name in enumerate(directories):
        string = fn.col(f"{mark}_{index}")
        columns.append((name, *_cast(string, StringType(), _type_of(target, name), exact=exact)))
    if source.corrupt_column is not None:
        return _with_corrupt_lines(rows, columns, source.corrupt_column)
    return _with_failures(rows, columns, token)


def _divided_options(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The options that choose files and end lines, and those for what a line may contain."""
    of_files = choice_options(options)
    of_files |= {name: value for name, value in options.items() if name.casefold() == "linesep"}
    of_syntax = {name: value for name, value in options.items() if name.casefold() in _SYNTAX}
    others = sorted(options.keys() - of_files.keys() - of_syntax.keys())
    if others:
        raise InvalidJobSpecError(
            f"The option {others[0]} does not apply to JSON lines.",
            cause="Each line is one JSON object in UTF-8, all fields of all lines are read, and strings are "
            "cast to the types of source.schema or of the contract.",
            fix="Leave out the option. Options that choose files, lineSep, and options that begin with allow "
            "are possible.",
        )
    return of_files, of_syntax


def _with_corrupt_lines(
    rows: DataFrame, columns: Sequence[tuple[str, Column, Column | None]], corrupt_column: str
) -> DataFrame:
    """The rows, with invalid lines kept in the corrupt column. Readable values of invalid lines are kept too.

    Each of `columns` is a name, a value, and a condition that is true when the value is not of its type.
    """
    from pyspark.sql import functions as fn

    invalid = fn.col("object").isNull() | fn.col("otherwise")
    for _, _, mistyped in columns:
        invalid = invalid if mistyped is None else invalid | mistyped
    corrupt = fn.when(invalid, fn.col("line")).alias(corrupt_column)
    return rows.select(*[value.alias(name) for name, value, _ in columns], corrupt)


def _with_failures(
    rows: DataFrame, columns: Sequence[tuple[str, Column, Column | None]], token: ViolationToken
) -> DataFrame:
    """The rows, with expressions that fail the job at the first invalid line."""
    from pyspark.sql import functions as fn

    shown = fn.to_json(fn.struct(fn.substring("line", 1, _SHOWN_CHARACTERS).alias("line")))

    def error(number: int) -> Column:
        return fn.raise_error(fn.concat(fn.lit(token.mark(number)), shown))

    selected = []
    for position, (name, value, mistyped) in enumerate(columns):
        checked = value if mistyped is None else fn.when(mistyped, error(position)).otherwise(value)
        broken = fn.col("object").isNull()
        selected.append(
            fn.when(broken, error(NOT_AN_OBJECT))
            .when(fn.col("otherwise"), error(DIFFERENT_CASE))
            .otherwise(checked)
            .alias(name)
        )
    if not selected:
        raise SchemaMismatchError(
            "The source's JSON lines have no field.",
            cause="No line is an object with fields.",
            fix="Check the files, or keep such lines with source.corrupt_column.",
        )
    return rows.select(*selected)


def _shape(found: Any, target: delta.DataType | None) -> Any:
    """The type to parse: the inferred type, but an object for a string column stays JSON text."""
    from pyspark.sql.types import ArrayType, StringType, StructField, StructType

    if target == delta.STRING:
        return StringType()
    if isinstance(found, StructType) and isinstance(target, delta.StructType):
        return StructType(
            [StructField(f.name, _shape(f.dataType, _type_of(target, f.name))) for f in found.fields]
        )
    if isinstance(found, ArrayType) and isinstance(target, delta.ArrayType):
        return ArrayType(_shape(found.elementType, target.element_type))
    return found


def _cast(
    column: Column, found: Any, target: delta.DataType | None, *, exact: bool
) -> tuple[Column, Column | None]:
    """`column` cast to the type, and the condition for a value that is not of the type (None: never)."""
    from pyspark.sql import functions as fn
    from pyspark.sql import types as spark_types

    if target is None or (target == delta.STRING and isinstance(found, spark_types.StringType)):
        return column, None
    if isinstance(target, delta.StructType) and isinstance(found, spark_types.StructType):
        return _cast_struct(column, found, target, exact=exact)
    if isinstance(target, delta.ArrayType) and isinstance(found, spark_types.ArrayType):
        element, inner = target.element_type, found.elementType
        value = fn.transform(column, lambda item: _cast(item, inner, element, exact=exact)[0])
        mistyped = fn.exists(column, lambda item: _or_false(_cast(item, inner, element, exact=exact)[1]))
        return value, fn.coalesce(mistyped, fn.lit(False))
    nested = (delta.StructType, delta.ArrayType, delta.MapType)
    if isinstance(target, nested) or not isinstance(found, spark_types.StringType):
        return fn.lit(None).cast(to_spark_type(target)), column.isNotNull()
    return cast_string(column, target, exact=exact)


def _cast_struct(
    column: Column, found: Any, target: delta.StructType, *, exact: bool
) -> tuple[Column, Column | None]:
    from pyspark.sql import functions as fn

    parts, conditions = [], []
    for field in target:
        name = found_name(found, field.name)
        if name is None:
            parts.append(fn.lit(None).cast(to_spark_type(field.data_type)).alias(field.name))
            continue
        value, mistyped = _cast(column.getField(name), found[name].dataType, field.data_type, exact=exact)
        parts.append(value.alias(field.name))
        conditions += [] if mistyped is None else [mistyped]
    total = None
    for mistyped in conditions:
        total = mistyped if total is None else total | mistyped
    return fn.when(column.isNotNull(), fn.struct(*parts)), total


def found_name(found: Any, name: str) -> str | None:
    """The files' spelling of the field `name`, compared without case; None when no file has the field."""
    folded = name.casefold()
    return next((field.name for field in found.fields if field.name.casefold() == folded), None)


def _type_of(target: delta.StructType | None, name: str) -> delta.DataType | None:
    field = None if target is None else target.find(name)
    return None if field is None else field.data_type


def _or_false(mistyped: Column | None) -> Column:
    from pyspark.sql import functions as fn

    return fn.lit(False) if mistyped is None else mistyped


def _require_known(found: Any, schema: delta.StructType, *, path: str, only_nested: bool = False) -> None:
    """Refuse fields that are not in the schema, at any depth, because they would be dropped."""
    from pyspark.sql.types import ArrayType, StructType

    for field in found.fields:
        known = schema.find(field.name)
        if known is None and only_nested:
            continue
        if known is None:
            raise SchemaMismatchError(
                f"The source files have a field that is not in the source's schema: {path}{field.name}.",
                cause=f"The schema has {', '.join(path + name for name in schema.names)}.",
                fix="Add the field to source.schema, or leave the schema out to read every field as a "
                "string.",
            )
        inner, target = field.dataType, known.data_type
        while isinstance(inner, ArrayType) and isinstance(target, delta.ArrayType):
            inner, target = inner.elementType, target.element_type
        if isinstance(inner, StructType) and isinstance(target, delta.StructType):
            _require_known(inner, target, path=f"{path}{field.name}.")
        elif isinstance(target, delta.MapType):
            raise InvalidJobSpecError(
                f"The field {path}{field.name} of source.schema is a map, and JSON has only objects.",
                fix="Declare the field as a struct of the object's fields, or with the type string to get "
                "the object as JSON text.",
            )


def _different_case_pattern(found: Any) -> str:
    """A regular expression for lines in which a key at any depth differs from a field's name only in case.

    Spark treats such keys as one field when it infers the schema, and as two fields when it reads values.
    """
    names = sorted({re.sub(r"\\E", r"\\E\\\\E\\Q", name) for name in _all_field_names(found)})
    if not names:
        return "(?!)"
    known = "|".join(f"\\Q{name}\\E" for name in names)
    return f'"(?!(?:{known})"\\s*:)(?iu:{known})"\\s*:'


def _all_field_names(found: Any) -> Iterator[str]:
    from pyspark.sql.types import ArrayType, StructType

    for field in found.fields:
        yield field.name
        inner = field.dataType
        while isinstance(inner, ArrayType):
            inner = inner.elementType
        if isinstance(inner, StructType):
            yield from _all_field_names(inner)


def _require_consistent_case(found: Any, path: str = "") -> None:
    """Refuse fields of one object that differ only in case, because they belong to the same column."""
    from pyspark.sql.types import ArrayType, StructType

    spelled: dict[str, str] = {}
    for field in found.fields:
        other = spelled.setdefault(field.name.casefold(), field.name)
        if other != field.name:
            raise SchemaMismatchError(
                f"The source files have fields that differ only in case: {path}{other}, {path}{field.name}.",
                fix="Write the field name in the same case everywhere.",
            )
        inner = field.dataType
        while isinstance(inner, ArrayType):
            inner = inner.elementType
        if isinstance(inner, StructType):
            _require_consistent_case(inner, f"{path}{field.name}.")


def _require_free(names: Sequence[str], corrupt_column: str | None) -> None:
    if corrupt_column is not None and corrupt_column.casefold() in map(str.casefold, names):
        raise SchemaMismatchError(
            f"The source files have a field with the name of the corrupt column: {corrupt_column}.",
            fix="Set source.corrupt_column to a name that no field has.",
        )
