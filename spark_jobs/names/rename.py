"""Giving a named table another name or another location."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_core.boundary import public
from spark_jobs.names import catalog
from spark_jobs.names.address import TableAddress
from spark_jobs.names.identifiers import parse_name
from spark_jobs.names.register import register, unregister
from spark_jobs.names.resolve import resolve

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@public
def rename(
    spark: SparkSession, name: str, new_name: str, *, storage_options: Mapping[str, str] | None = None
) -> TableAddress:
    """Give a table another name. Spark moves the directory of a managed table along with its name.

    An external table keeps its directory. Its new name is registered first, so an interruption leaves both
    names.

    Args:
        spark: a classic or a Connect session.
        name: the present name.
        new_name: the new name.
        storage_options: options of the table's store.

    Raises:
        NamedTableNotFoundError: no table has the name. It is also an `AnalysisException`.
        NamedTableExistsError: the new name is in use. It is also an `AnalysisException`.
        ConfigurationError: a string is not a name, or Spark cannot store it.
    """
    address = resolve(spark, name)
    if address.is_managed:
        catalog.rename(spark, parse_name(name), parse_name(new_name))
    else:
        register(spark, new_name, address.uri, storage_options=storage_options)
        unregister(spark, name)
    return resolve(spark, new_name)


@public
def relocate(
    spark: SparkSession, name: str, uri: str, *, storage_options: Mapping[str, str] | None = None
) -> TableAddress:
    """Give a name to the table at another URI. The files at the former location stay.

    A managed table stays managed, as in Spark: a later DROP TABLE deletes the directory of the new location.

    Args:
        spark: a classic or a Connect session.
        name: the name of a table.
        uri: the URI or path of the table that gets the name.
        storage_options: options of that table's store.

    Raises:
        NamedTableNotFoundError: no table has the name. It is also an `AnalysisException`.
        TableNotFoundError: no table exists at the URI.
        ConfigurationError: the string is not a name, or Spark cannot store the location.
    """
    address = resolve(spark, name)
    if address.is_managed:
        catalog.relocate(spark, parse_name(name), catalog.location_of(uri, storage_options))
    else:
        location = catalog.location_of(uri, storage_options)
        unregister(spark, name)
        register(spark, name, location, storage_options=storage_options)
    return resolve(spark, name)
