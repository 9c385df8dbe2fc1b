"""delta-spark's names over `spark_jobs`: the package `delta`, `format("delta")` and `spark.sql`.

Only what the tests of delta-spark import and call, on Spark classic and on Spark Connect.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import threading
import unittest
import uuid
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, ClassVar

import spark_jobs
from delta_core.table_features import enablement, feature, removal, removal_rules
from spark_jobs import names

FORMAT = "delta"

_inside = threading.local()


def install(spark: Any) -> None:
    """Put the package `delta` in place, and let the session's classes understand `format("delta")`."""
    _test_features()
    _modules(spark)
    _builder_of_the_jvm()
    _patch_sql(type(spark))
    _patch_reader(type(spark.read))
    _patch_stream(type(spark.readStream))
    _patch_writer(type(spark.range(1).write))


# ---------------------------------------------------------------- the package


def _modules(spark: Any) -> None:
    delta = ModuleType("delta")
    delta.__path__ = []
    tables = ModuleType("delta.tables")
    for name in (
        "DeltaTable",
        "DeltaTableBuilder",
        "DeltaOptimizeBuilder",
        "DeltaMergeBuilder",
        "IdentityGenerator",
    ):
        setattr(tables, name, getattr(spark_jobs, name))
    testing = ModuleType("delta.testing")
    testing.__path__ = []
    utils = ModuleType("delta.testing.utils")
    DeltaTestCase.spark = spark
    utils.DeltaTestCase = DeltaTestCase  # type: ignore[attr-defined]
    sys.modules.update(
        {
            "delta": delta,
            "delta.tables": tables,
            "delta.testing": testing,
            "delta.testing.utils": utils,
        }
    )


class DeltaTestCase(unittest.TestCase):
    """The base of delta-spark's tests: a session, a folder, and tables that are dropped at the end."""

    spark: ClassVar[Any]

    def setUp(self) -> None:
        self.tempPath = tempfile.mkdtemp()
        self.tempFile = os.path.join(self.tempPath, "tempFile")

    def tearDown(self) -> None:
        shutil.rmtree(self.tempPath, ignore_errors=True)

    @contextlib.contextmanager
    def table(self, *tables: str) -> Iterator[None]:
        """Drop these tables at the end."""
        try:
            yield
        finally:
            for table in tables:
                self.spark.sql(f"DROP TABLE IF EXISTS {table}")

    @contextlib.contextmanager
    def tempTable(self) -> Iterator[str]:  # noqa: N802 - the name in delta-spark's tests
        """The name of a table, which is dropped at the end."""
        name = "table_" + uuid.uuid4().hex
        with self.table(name):
            yield name


# ---------------------------------------------------------------- what only delta-spark's test mode has


def _test_features() -> None:
    """The features that delta-spark's tests add to the protocol, and its test mode registers."""
    features = {
        item.name: item
        for item in (
            feature.TableFeature(name="testRemovableWriter", writable_by=feature.ALL_WRITER_KINDS),
            feature.TableFeature(
                name="testRemovableReaderWriter", in_reader=True, writable_by=feature.ALL_WRITER_KINDS
            ),
            feature.TableFeature(
                name="testReaderWriter", in_reader=True, writable_by=feature.ALL_WRITER_KINDS
            ),
        )
    }
    rules = {
        "testRemovableWriter": removal_rules.RemovalRule(),
        "testRemovableReaderWriter": removal_rules.RemovalRule(
            history=removal_rules.HistoryRule.WITHOUT_TRACES
        ),
    }
    feature.FEATURES.update(features)  # type: ignore[attr-defined]
    removal_rules.RULES.update(rules)  # type: ignore[attr-defined]
    for known in (removal._SPELLINGS, enablement._SPELLINGS):
        known.update({name.lower(): name for name in features})


class _JvmBuilder:
    """What a test calls on the builder's object in the JVM."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder

    def partitionedBy(self, columns: Any) -> _JvmBuilder:  # noqa: N802 - the name in the JVM
        self._builder.partitionedBy(*[columns.apply(number) for number in range(columns.size())])
        return self


def _builder_of_the_jvm() -> None:
    spark_jobs.DeltaTableBuilder._jbuilder = property(_JvmBuilder, lambda *_: None)


# ---------------------------------------------------------------- the session


def _patch_sql(session: type[Any]) -> None:
    """`spark.sql` runs statements by `spark_jobs.sql`, which itself uses Spark's."""
    original: Callable[..., Any] = session.sql

    def sql(self: Any, query: str, args: Any = None, **named: Any) -> Any:
        if getattr(_inside, "depth", 0):
            return original(self, query, **({} if args is None else {"args": args}), **named)
        _inside.depth = 1
        try:
            return spark_jobs.sql(self, query, args, **named)
        finally:
            _inside.depth = 0

    session.sql = sql


def _patch_reader(reader: type[Any]) -> None:
    _remember(reader, "option", "options", "format")
    load, table = reader.load, reader.table

    def load_delta(self: Any, path: Any = None, format: str | None = None, **given: Any) -> Any:
        options = _options(self, format, given)
        if options.pop("format", "") != FORMAT:
            return load(self, path, format, **given) if (format or given) else load(self, path)
        return _read(path, options)

    def table_delta(self: Any, name: str) -> Any:
        options = _options(self, None, {})
        if options.pop("format", "") != FORMAT:
            return table(self, name)
        return _read(names.resolve(DeltaTestCase.spark, name).uri, options)

    reader.load, reader.table = load_delta, table_delta


def _read(path: str, options: dict[str, str]) -> Any:
    spark = DeltaTestCase.spark
    if options.get("readchangedata", options.get("readchangefeed", "")).lower() == "true":
        return spark_jobs.read_changes(
            spark,
            path,
            starting_version=_number(options.get("startingversion")),
            ending_version=_number(options.get("endingversion")),
        )
    if "versionasof" not in options and "timestampasof" not in options:
        return spark_jobs.DeltaTable.forPath(spark, path, allowed_roots=[tempfile.gettempdir()]).toDF()
    return spark_jobs.read(
        spark,
        path,
        version=_number(options.get("versionasof")),
        timestamp=options.get("timestampasof"),
    )


def _patch_stream(reader: type[Any]) -> None:
    """`readStream.format("delta")` reads by the data source `deltaward`."""
    choose, table = reader.format, reader.table

    def chosen(self: Any, source: str) -> Any:
        return choose(self, "deltaward" if source == FORMAT else source)

    def of_table(self: Any, name: str) -> Any:
        if names.is_registered(DeltaTestCase.spark, name):
            return self.load(names.resolve(DeltaTestCase.spark, name).uri)
        return table(self, name)

    reader.format, reader.table = chosen, of_table


def _patch_writer(writer: type[Any]) -> None:
    _remember(writer, "option", "options", "format", "mode", "partitionBy")
    save, save_as_table = writer.save, writer.saveAsTable

    def save_delta(
        self: Any,
        path: Any = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803 - the name in Spark
        **given: Any,
    ) -> None:
        options = _options(self, format, given)
        if options.pop("format", "") != FORMAT:
            save(self, path, format, mode, partitionBy, **given)
            return
        _write(_frame(self), path, options, mode, partitionBy)

    def save_as_delta_table(self: Any, name: str, *arguments: Any, **given: Any) -> None:
        options = _options(self, given.get("format"), {})
        if options.pop("format", "") != FORMAT:
            save_as_table(self, name, *arguments, **given)
            return
        spark = DeltaTestCase.spark
        if names.is_registered(spark, name):
            _write(_frame(self), names.resolve(spark, name).uri, options, None, None)
            return
        columns = ", ".join(
            f"`{field.name}` {field.dataType.simpleString()}" for field in _frame(self).schema
        )
        spark.sql(f"CREATE TABLE {name} ({columns}) USING delta")
        _write(_frame(self), names.resolve(spark, name).uri, options | {"mode": "append"}, None, None)

    writer.save, writer.saveAsTable = save_delta, save_as_delta_table


def _frame(writer: Any) -> Any:
    """The DataFrame of a writer; on Connect the writer has only its plan."""
    if hasattr(writer._df, "schema"):
        return writer._df
    from pyspark.sql.connect.dataframe import DataFrame

    return DataFrame(writer._df, writer._spark)


def _write(frame: Any, path: str, options: dict[str, str], mode: str | None, partition_by: Any) -> None:
    chosen = mode or options.get("mode") or "error"
    columns = partition_by or options.get("partitionby")
    spark_jobs.write(
        frame,
        path,
        mode={"errorifexists": "error"}.get(chosen.lower(), chosen.lower()),
        partition_by=[columns] if isinstance(columns, str) else columns,
        replace_where=options.get("replacewhere"),
        overwrite_schema=options.get("overwriteschema", "").lower() == "true",
        merge_schema=options.get("mergeschema", "").lower() == "true",
    )


def _remember(kind: type[Any], *methods: str) -> None:
    """Keep what these methods were called with. Spark never learns of the format `delta`."""
    for method in methods:
        setattr(kind, method, _remembering(getattr(kind, method), method))


def _remembering(original: Callable[..., Any], method: str) -> Callable[..., Any]:
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        known = self.__dict__.setdefault("_of_delta", {})
        if method == "option":
            key, value = arguments
            known[key.lower()] = str(value)
        elif method == "options":
            known.update({key.lower(): str(value) for key, value in named.items()})
        elif method == "partitionBy":
            known["partitionby"] = (
                list(arguments[0]) if isinstance(arguments[0], list | tuple) else list(arguments)
            )
        else:
            known[method] = arguments[0]
            if method == "format" and arguments[0] == FORMAT:
                return self
        return original(self, *arguments, **named)

    return call


def _options(item: Any, format: str | None, given: dict[str, Any]) -> dict[str, Any]:
    known = dict(item.__dict__.get("_of_delta", {}))
    known.update({key.lower(): str(value) for key, value in given.items()})
    if format is not None:
        known["format"] = format
    return known


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
