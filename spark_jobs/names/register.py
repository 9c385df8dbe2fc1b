"""Giving a table a name, and taking it away."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_core.boundary import public
from delta_core.errors import ConfigurationError
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage import local_root, open_store
from spark_jobs.names import catalog
from spark_jobs.names.address import TableAddress
from spark_jobs.names.identifiers import TableName, parse_name
from spark_jobs.names.resolve import registry_of, resolve
from spark_jobs.spark_errors import NamedTableExistsError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@public
def register(
    spark: SparkSession,
    name: str,
    uri: str,
    *,
    registry: str | os.PathLike[str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> TableAddress:
    """Give a table a name: in the registry file if there is one, or else in the session's catalog.

    The catalog stores the provider `deltaward`, the location, and the columns of the newest version. An
    external table's files stay when its name is dropped.

    Args:
        spark: a classic or a Connect session.
        name: `table`, `database.table` or `catalog.database.table`.
        uri: the URI or path of the table, which must exist.
        registry: the path of a registry file; by default that of the setting `spark.deltaward.tables`.
        storage_options: options of the table's store.

    Raises:
        TableNotFoundError: no table exists at the URI.
        NamedTableExistsError: the name is in use. It is also an `AnalysisException`.
        ConfigurationError: the string is not a name, or Spark cannot store it.
    """
    parsed = _plain_name(name)
    snapshot = Snapshot.load(open_store(uri, storage_options=storage_options))
    file = registry_of(spark, registry)
    if file is not None:
        if not file.add(parsed, snapshot.store.uri):
            raise _in_use(parsed)
        return TableAddress(uri=snapshot.store.uri, provider="deltaward", name=str(parsed).lower())
    local = local_root(snapshot.store)
    catalog.add(
        spark,
        parsed,
        snapshot.schema,
        # Spark reads a location with percent-escapes of its own, so a local path is given as it is.
        location=snapshot.store.uri if local is None else str(local),
        description=snapshot.metadata.description,
    )
    return resolve(spark, name)


@public
def claim(
    spark: SparkSession, name: str, schema: StructType, *, description: str | None = None
) -> TableAddress:
    """Reserve a name for a managed table, which is to be created at the address that Spark chooses.

    Spark creates the empty directory, and its DROP TABLE deletes the directory with the table.

    Args:
        spark: a classic or a Connect session.
        name: `table`, `database.table` or `catalog.database.table`.
        schema: the columns that Spark shows.
        description: the comment that Spark shows.

    Raises:
        NamedTableExistsError: the name is in use. It is also an `AnalysisException`.
        ConfigurationError: the string is not a name, or Spark cannot store it.
    """
    parsed = _plain_name(name)
    catalog.add(spark, parsed, schema, location=None, description=description)
    return resolve(spark, name)


@public
def unregister(spark: SparkSession, name: str, *, registry: str | os.PathLike[str] | None = None) -> bool:
    """Take a name away. The files of an external table stay; Spark deletes those of a managed table.

    Args:
        spark: a classic or a Connect session.
        name: the name of a table. A name that no table has changes nothing.
        registry: the path of a registry file; by default that of the setting `spark.deltaward.tables`.

    Returns:
        Whether a table had the name.

    Raises:
        ConfigurationError: the string is not a name, or the registry file is not valid.
    """
    parsed = _plain_name(name)
    file = registry_of(spark, registry)
    if file is not None and file.remove(parsed):
        return True
    return catalog.remove(spark, parsed)


def _plain_name(name: str) -> TableName:
    parsed = parse_name(name)
    if parsed.path is not None:
        raise ConfigurationError(
            f"{name!r} is a path, not a name.", fix="Pass a name such as 'sales.orders'."
        )
    return parsed


def _in_use(name: TableName) -> NamedTableExistsError:
    return NamedTableExistsError(
        f"The table {name} already exists.", fix="Choose another name, or remove this one first."
    )
