"""The options of the data source `deltaward`, by the names that delta-spark gives them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from delta_core.errors import ConfigurationError
from delta_core.storage.data_access import open_allowed_roots
from delta_core.storage.open import options_for
from spark_jobs.engine_io import ExecutorReach, executor_options
from spark_jobs.streaming.options import STREAM_OPTIONS, flag, folded, whole

READ_OPTIONS: Final = (
    "versionAsOf",
    "timestampAsOf",
    "endingVersion",
    "endingTimestamp",
    "where",
    "allowedRoots",
    *STREAM_OPTIONS,
)
WRITE_OPTIONS: Final = (
    "mergeSchema",
    "overwriteSchema",
    "replaceWhere",
    "partitionBy",
    "partitionOverwriteMode",
    "txnAppId",
    "txnVersion",
    "userMetadata",
    "maxRecordsPerFile",
    "compression",
)


def no_path() -> ConfigurationError:
    """The error for a table whose location the data source does not know."""
    return ConfigurationError(
        "The data source 'deltaward' does not know the location of the table.",
        cause="Spark does not pass the location of a named table to a data source in Python.",
        fix="Read a table by its name with spark_jobs.table(spark, name), or in SQL with "
        "spark_jobs.sql(spark, statement).",
    )


def executor_reach(options: Mapping[str, str]) -> ExecutorReach:
    """How the table at the option `path` is opened, with those of the options that its store has.

    Raises:
        ConfigurationError: there is no path, or the allowed roots are not valid.
        InvalidUriError: an allowed root has a scheme without a store.
    """
    path = options.get("path")
    if path is None:
        raise no_path()
    roots = allowed_roots(folded(options).get("allowedroots"))
    open_allowed_roots(roots)  # refuses wrong ones
    return ExecutorReach(
        table_uri=path,
        allowed_roots=roots,
        options=executor_options(options_for(path, dict(options))),
    )


def allowed_roots(value: str | None) -> tuple[str, ...]:
    """The option `allowedRoots`: one path or URI, or a JSON list of them.

    Raises:
        ConfigurationError: it is a JSON list of something else.
    """
    if value is None:
        return ()
    if not value.lstrip().startswith("["):
        return (value,)
    try:
        found = json.loads(value)
    except ValueError:
        found = [None]
    if not all(isinstance(root, str) for root in found):
        raise ConfigurationError(
            f"The option allowedRoots cannot be {value!r}.",
            fix='Pass a path or URI, or a JSON list such as ["/data/a", "/data/b"].',
        )
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The options of a write.

    Attributes:
        merge_schema, overwrite_schema, replace_where, partition_by, user_metadata, compression: those of
            `spark_jobs.write`.
        max_records_per_file: the most rows of a file.
        dynamic_partitions: replace exactly the partitions of the new rows.
        app_id, app_version: the key by which a repeated write is recognised.
    """

    merge_schema: bool
    overwrite_schema: bool
    replace_where: str | None
    partition_by: tuple[str, ...] | None
    dynamic_partitions: bool
    app_id: str | None
    app_version: int | None
    user_metadata: str | None
    max_records_per_file: int | None
    compression: str

    @classmethod
    def of(cls, options: Mapping[str, str]) -> WriteOptions:
        """Parse the options.

        Raises:
            ConfigurationError: a value is not valid.
        """
        named = folded(options)
        partition_by, most = named.get("partitionby"), named.get("maxrecordsperfile")
        mode = named.get("partitionoverwritemode", "static").lower()
        if mode not in ("static", "dynamic"):
            raise ConfigurationError(
                f"The option partitionOverwriteMode cannot be {mode!r}.", fix="Choose static or dynamic."
            )
        version = named.get("txnversion")
        if version is not None and "txnappid" not in named:
            raise ConfigurationError("The option txnVersion needs txnAppId.", fix="Pass both.")
        return cls(
            merge_schema=flag(named, "mergeSchema"),
            overwrite_schema=flag(named, "overwriteSchema"),
            replace_where=named.get("replacewhere"),
            partition_by=None
            if partition_by is None
            else tuple(name.strip() for name in partition_by.split(",") if name.strip()),
            dynamic_partitions=mode == "dynamic",
            app_id=named.get("txnappid"),
            app_version=None if version is None else whole(version, "txnVersion"),
            user_metadata=named.get("usermetadata"),
            max_records_per_file=None if most is None else whole(most, "maxRecordsPerFile"),
            compression=named.get("compression", "snappy"),
        )
