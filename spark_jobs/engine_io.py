"""How Spark reaches the data files of a table: with its own readers and writers, or through Arrow.

Native is faster and needs a connector for the store on Spark's class path; pip's pyspark has those for local
files and HDFS. Through Arrow, Python tasks in the executors read and write the files with delta_core's
stores, which needs no jar. The log always goes through delta_core's stores, in the driver.

Credentials: native access uses Spark's own configuration. Through Arrow, executors open the store with the
caller's options *without secrets*, and find credentials in their environment, or in the profile that the
options name. So a secret is in no plan, task, setting or event log. See docs/spark.md.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import ConfigurationError
from delta_core.jobs.params.engine_io import EngineIO
from delta_core.storage import LogStore, local_root, open_store, options_for, uri_scheme
from delta_core.storage.data_access import TABLE_ONLY, DataAccess, open_allowed_roots
from delta_core.storage.option_names import is_option, is_secret
from delta_core.storage.remote_uri import parse_remote_uri
from delta_core.storage.store_options import option_strings
from spark_jobs.scoped_conf import session_identity

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HADOOP = "org.apache.hadoop"
_CONNECTORS: Final[Mapping[str, tuple[str, str]]] = {
    "hdfs": ("hdfs", f"{_HADOOP}.hdfs.DistributedFileSystem"),
    "webhdfs": ("webhdfs", f"{_HADOOP}.hdfs.web.WebHdfsFileSystem"),
    "swebhdfs": ("swebhdfs", f"{_HADOOP}.hdfs.web.SWebHdfsFileSystem"),
    "s3": ("s3a", f"{_HADOOP}.fs.s3a.S3AFileSystem"),
    "abfss": ("abfss", f"{_HADOOP}.fs.azurebfs.SecureAzureBlobFileSystem"),
    "gs": ("gs", "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem"),
}
"""For each scheme of a canonical table URI: the scheme in Spark, and the connector's class.

An `az:` URI does not name its account, so no connector opens it.
"""

_CLASS_IS_PRESENT = "DATATYPE_MISMATCH.UNEXPECTED_STATIC_METHOD"

_present: dict[tuple[str, str], bool] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorReach:
    """How a Python task in an executor opens the files of one table: plain values, without secrets.

    Attributes:
        table_uri: the table's URI.
        allowed_roots: the URIs below which absolute paths in the log may lead.
        options: the storage options.
    """

    table_uri: str
    allowed_roots: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, hash=False)

    def open(self) -> tuple[LogStore, DataAccess]:
        """The table's store, and the access to the objects that its log lists."""
        store, *roots = [
            open_store(uri, storage_options=options_for(uri, self.options))
            for uri in (self.table_uri, *self.allowed_roots)
        ]
        return store, DataAccess(allowed_roots=tuple(roots))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReach:
    """How Spark reaches the data files of one table.

    Attributes:
        engine_io: native or Arrow.
        store: the table's store in the driver.
        access: the access in the driver to the objects that the table's log lists.
        spark_roots: for the URI of the table and of each allowed root, the root as a URI for Spark, not
            percent-encoded; empty with Arrow.
        executor_options: the storage options of tasks in the executors, without secrets.
    """

    engine_io: EngineIO
    store: LogStore
    access: DataAccess = TABLE_ONLY
    spark_roots: Mapping[str, str] = field(default_factory=dict, hash=False)
    executor_options: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def is_native(self) -> bool:
        """Whether Spark reads and writes the files itself."""
        return self.engine_io is EngineIO.NATIVE

    @property
    def in_executors(self) -> ExecutorReach:
        """How tasks in the executors open the table's files."""
        return ExecutorReach(
            table_uri=self.store.uri,
            allowed_roots=tuple(root.uri for root in self.access.allowed_roots),
            options=dict(self.executor_options),
        )

    def root_of(self, store: LogStore) -> str:
        """The root of the table or of an allowed root in the names of files: with Arrow, the store's URI."""
        return self.spark_roots.get(store.uri, store.uri)


def table_reach(
    spark: SparkSession,
    store: LogStore,
    *,
    engine_io: str | EngineIO = EngineIO.AUTO,
    storage_options: Mapping[str, str] | None = None,
    allowed_roots: Sequence[str | os.PathLike[str]] = (),
    clock: Clock = SYSTEM_CLOCK,
) -> TableReach:
    """Decide how Spark reaches a table. The first call for a kind of remote store asks Spark for a class.

    Args:
        spark: the session.
        store: the table's store in the driver.
        engine_io: `auto`, `native` or `arrow`.
        storage_options: the options with which the driver opened the store.
        allowed_roots: paths or URIs below which absolute paths in the log may lead. Native access needs a
            connector for all of them.
        clock: used for pauses between attempts.

    Raises:
        InvalidUriError: an allowed root has a scheme without a store.
        ConfigurationError: the value does not exist, Spark has no connector and native access is required, or
            the allowed roots are not a list of directories.
    """
    wanted = engine_io_of(engine_io)
    roots = open_allowed_roots(allowed_roots, storage_options=storage_options, clock=clock)
    through_arrow = TableReach(
        engine_io=EngineIO.ARROW,
        store=store,
        access=DataAccess(allowed_roots=roots, clock=clock),
        executor_options=executor_options(options_for(store.uri, storage_options)),
    )
    if wanted is EngineIO.ARROW:
        return through_arrow
    spark_roots = {}
    for place in (store, *roots):
        root = _native_root(spark, place)
        if root is not None:
            spark_roots[place.uri] = root
        elif wanted is EngineIO.AUTO:
            return through_arrow
        else:
            raise _no_connector(place)
    return replace(through_arrow, engine_io=EngineIO.NATIVE, spark_roots=spark_roots)


def open_reach(
    spark: SparkSession,
    uri: str,
    *,
    engine_io: str | EngineIO,
    storage_options: Mapping[str, str] | None,
    allowed_roots: Sequence[str | os.PathLike[str]],
    clock: Clock,
) -> TableReach:
    """Open a table's store in the driver, and decide how Spark reaches the table. See `table_reach`.

    Raises:
        InvalidUriError: the URI or an allowed root has a scheme without a store.
        ConfigurationError: as `table_reach`, or an option is not valid.
    """
    return table_reach(
        spark,
        open_store(uri, storage_options=storage_options, clock=clock),
        engine_io=engine_io,
        storage_options=storage_options,
        allowed_roots=allowed_roots,
        clock=clock,
    )


def executor_options(storage_options: Mapping[str, str] | None) -> dict[str, str]:
    """The storage options that executors may have: those that are known and not secret."""
    options = option_strings(storage_options)
    return {name: value for name, value in options.items() if is_option(name) and not is_secret(name)}


def engine_io_of(value: str | EngineIO) -> EngineIO:
    """The value of an option. Raises ConfigurationError when it does not exist."""
    try:
        return EngineIO(value)
    except ValueError:
        raise ConfigurationError(
            f"The engine_io {value!r} does not exist.", fix="Choose 'auto', 'native' or 'arrow'."
        ) from None


def _no_connector(store: LogStore) -> ConfigurationError:
    return ConfigurationError(
        f"Spark cannot read or write {store.uri} itself.",
        cause="Its class path has no connector for this kind of store."
        if uri_scheme(store.uri) in _CONNECTORS
        else "Spark has no connector for URIs of this kind.",
        fix="Use engine_io='auto', or start Spark with the connector's jar (docs/spark.md).",
    )


def _native_root(spark: SparkSession, store: LogStore) -> str | None:
    """The table's root as a URI for Spark; None when Spark has no connector for it."""
    local = local_root(store)
    if local is not None:
        # The scheme is explicit, because Spark's default file system may not be the local one.
        return f"file://{local}"
    found = _CONNECTORS.get(uri_scheme(store.uri) or "")
    if found is None or not _has_class(spark, found[1]):
        return None
    parsed = parse_remote_uri(store.uri)
    return f"{found[0]}://{parsed.authority}/{parsed.path}".rstrip("/")


def _has_class(spark: SparkSession, name: str) -> bool:
    """Whether Spark's driver can load a class.

    Analysis of a call of a method that does not exist fails with one of two conditions: the class or the
    method is missing. This runs no job. Spark loads the class as it loads a user's jars.
    """
    key = (session_identity(spark), name)
    if key not in _present:
        _present[key] = _condition(spark, f"SELECT java_method('{name}', 'deltaward')") == _CLASS_IS_PRESENT
    return _present[key]


def _condition(spark: SparkSession, statement: str) -> str | None:
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger

    try:
        # Not `logging.getLogger`: a plain logger of this name would make each of Spark's errors a TypeError.
        with _silent(PySparkLogger.getLogger("SQLQueryContextLogger")):
            _ = spark.sql(statement).columns
    except PySparkException as error:
        return error.getCondition()
    return None


@contextmanager
def _silent(logger: logging.Logger) -> Iterator[None]:
    disabled, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = disabled
