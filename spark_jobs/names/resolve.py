"""Finding the table of a name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from delta_core.boundary import public
from spark_jobs.names import catalog
from spark_jobs.names.address import DELTA, DELTAWARD, TableAddress
from spark_jobs.names.identifiers import TableName, parse_name
from spark_jobs.names.registry import SETTING, Registry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@public
def resolve(
    spark: SparkSession, name: str, *, registry: str | os.PathLike[str] | None = None
) -> TableAddress:
    """The address of a named table. One statement of Spark, which loads no table.

    The registry file is asked first, if there is one, and then the session's catalog. A path may have the
    form of a name: `delta.`/path`` or `deltaward.`/path``.

    Args:
        spark: a classic or a Connect session.
        name: `table`, `database.table` or `catalog.database.table`. Names are compared without case.
        registry: the path of a registry file; by default that of the setting `spark.deltaward.tables`.

    Raises:
        NamedTableNotFoundError: no table has the name. It is also an `AnalysisException`.
        NotADeltaTableError: the name belongs to a view or to a table of another format.
        ConfigurationError: the string is not a name, or the registry file is not valid.
    """
    parsed = parse_name(name)
    found = find(spark, parsed, registry=registry)
    if found is None:
        raise catalog.missing(parsed)
    return found


@public
def is_registered(spark: SparkSession, name: str, *, registry: str | os.PathLike[str] | None = None) -> bool:
    """Whether a table has the name. The arguments and errors are those of `resolve`."""
    return find(spark, parse_name(name), registry=registry) is not None


@public
def registered(
    spark: SparkSession,
    database: str | None = None,
    *,
    registry: str | os.PathLike[str] | None = None,
) -> list[TableAddress]:
    """The Delta tables of a database by name, and with `registry` those of the file. One statement.

    Args:
        spark: a classic or a Connect session.
        database: the name of the database; the current one when None.
        registry: the path of a registry file; by default that of the setting `spark.deltaward.tables`.

    Raises:
        ConfigurationError: the string is not a name, or the registry file is not valid.
    """
    namespace = () if database is None else parse_name(database).parts
    file = registry_of(spark, registry)
    listed = {} if file is None else file.tables()
    if database is not None:
        listed = {name: item for name, item in listed.items() if parse_name(name).namespace == namespace}
    found = [entry.address() for entry in catalog.entries(spark, namespace) if entry.is_table]
    by_name = {str(address.name): address for address in found} | listed
    return [by_name[name] for name in sorted(by_name)]


def find(
    spark: SparkSession, name: TableName, *, registry: str | os.PathLike[str] | None = None
) -> TableAddress | None:
    """The address of a name; None without one. Raises as `resolve`."""
    if name.path is not None:
        provider = DELTA if name.parts[0].lower() == DELTA else DELTAWARD
        return TableAddress(uri=name.path, provider=provider)
    file = registry_of(spark, registry)
    known = None if file is None else file.find(name)
    if known is not None:
        return known
    entry = catalog.find(spark, name)
    return None if entry is None else entry.address()


def registry_of(spark: SparkSession, path: str | os.PathLike[str] | None) -> Registry | None:
    """The registry file of an argument, or of the session's setting; None without one."""
    chosen = spark.conf.get(SETTING, None) if path is None else os.fspath(path)
    return Registry(path=Path(chosen)) if chosen else None
