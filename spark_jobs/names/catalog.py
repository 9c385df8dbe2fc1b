"""Tables in Spark's session catalog.

`SHOW TABLE EXTENDED` gives the provider and the location of every table, also of tables that delta-spark
put into a Hive metastore, without a jar. Other statements load the table, which needs its data source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from delta_core.errors import ConfigurationError
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage import local_root, open_store
from spark_jobs.names.address import DELTAWARD, PROVIDERS, TableAddress
from spark_jobs.names.identifiers import TableName
from spark_jobs.schema import to_spark
from spark_jobs.spark_errors import NamedTableExistsError, NamedTableNotFoundError, NotADeltaTableError

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

_MISSING = ("SCHEMA_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND", "NO_SUCH_NAMESPACE", "CATALOG_NOT_FOUND")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """A table or view as the catalog describes it.

    Attributes:
        name: the qualified name.
        kind: `MANAGED`, `EXTERNAL`, `VIEW` or another word of Spark; empty when unknown.
        provider: in lower case; empty when unknown.
        location: as Spark prints it; empty when unknown.
    """

    name: TableName
    kind: str
    provider: str
    location: str

    @property
    def is_table(self) -> bool:
        """Whether it is a Delta table."""
        return self.provider in PROVIDERS and bool(self.location)

    def address(self) -> TableAddress:
        """The address of the table.

        Raises:
            NotADeltaTableError: it is a view or a table of another format.
        """
        if not self.is_table:
            what = (
                "a view" if self.kind == "VIEW" else f"a table of the format {self.provider or 'unknown'!r}"
            )
            raise NotADeltaTableError(
                f"{self.name} is not a Delta table.",
                cause=f"It is {what}.",
                fix="Pass the name of a Delta table. Read other tables with spark.table.",
            )
        return TableAddress(
            uri=_uri_of(self.location),
            provider=self.provider,
            name=str(self.name),
            is_managed=self.kind == "MANAGED",
        )


def find(spark: SparkSession, name: TableName) -> CatalogEntry | None:
    """The entry with this name, case-insensitively; None without one. One statement.

    Raises:
        ConfigurationError: the catalog describes the table in a way that is not understood.
    """
    entries = [
        entry
        for entry in _shown(spark, name.namespace, _pattern(name.table))
        if entry.name.table.lower() == name.table.lower()
    ]
    # A temporary view hides the table of its name, as in Spark.
    return entries[0] if entries else None


def entries(spark: SparkSession, namespace: tuple[str, ...] = ()) -> list[CatalogEntry]:
    """Every table and view of a database, the current one by default. One statement."""
    return list(_shown(spark, namespace, "*"))


def add(
    spark: SparkSession,
    name: TableName,
    schema: StructType,
    *,
    location: str | None,
    description: str | None = None,
) -> None:
    """Add a table to the catalog.

    Args:
        spark: the session.
        name: its name.
        schema: the columns that Spark shows. They stay as they are when the table changes.
        location: the directory for Spark; None for a managed table, whose directory Spark chooses.
        description: the comment that Spark shows.

    Raises:
        NamedTableExistsError: the name is in use.
        ConfigurationError: the session does not know the data source, or Spark refuses the name.
    """
    from pyspark.errors import PySparkException

    try:
        spark.catalog.createTable(
            name.sql(), path=location, source=DELTAWARD, schema=to_spark(schema), description=description
        )
    except PySparkException as error:
        # On Connect, Spark also reads the new table, which fails where the server has the data source.
        is_read = str(error.getCondition()).startswith("PYTHON_DATA_SOURCE_ERROR")
        if not (is_read and find(spark, name) is not None):
            raise _add_error(name, error) from error


def remove(spark: SparkSession, name: TableName) -> bool:
    """Remove a table from the catalog; whether it was there. Spark deletes the files of a managed table."""
    if find(spark, name) is None:
        return False
    spark.sql("DROP TABLE IF EXISTS IDENTIFIER(:name)", args={"name": name.sql()}).collect()
    return True


def rename(spark: SparkSession, name: TableName, new_name: TableName) -> None:
    """Rename a managed table. Spark moves its directory.

    Raises:
        NamedTableExistsError: the new name is in use.
        ConfigurationError: Spark refuses the name.
    """
    from pyspark.errors import PySparkException

    try:
        spark.sql(_renaming(name, new_name)).collect()
    except PySparkException as error:
        raise _add_error(new_name, error) from error


def relocate(spark: SparkSession, name: TableName, location: str) -> None:
    """Set the location of a table.

    Raises:
        ConfigurationError: Spark refuses the location.
    """
    from pyspark.errors import PySparkException

    statement = "ALTER TABLE IDENTIFIER(:name) SET LOCATION :location"
    try:
        spark.sql(statement, args={"name": name.sql(), "location": location}).collect()
    except PySparkException as error:
        raise _add_error(name, error) from error


def location_of(uri: str, storage_options: Mapping[str, str] | None) -> str:
    """The location for Spark of the table at a URI: a local path as it is, without percent-escapes.

    Raises:
        TableNotFoundError: no table exists at the URI.
    """
    store = Snapshot.load(open_store(uri, storage_options=storage_options)).store
    local = local_root(store)
    return store.uri if local is None else str(local)


def _renaming(name: TableName, new_name: TableName) -> str:
    """The statement. Both names were parsed, and every part is in backquotes."""
    return f"ALTER TABLE {name.sql()} RENAME TO {new_name.sql()}"


def _shown(spark: SparkSession, namespace: tuple[str, ...], pattern: str) -> Iterator[CatalogEntry]:
    from pyspark.errors import AnalysisException

    try:
        rows = _rows(spark, TableName(parts=namespace).sql() if namespace else None, pattern)
    except AnalysisException as error:
        if str(error.getCondition()).startswith(_MISSING):
            return
        raise
    for row in rows:
        yield _entry(row["namespace"], row["tableName"], row["information"], namespace)


def _rows(spark: SparkSession, database: str | None, pattern: str) -> list[Row]:
    from pyspark.errors import ParseException

    try:
        if database is None:
            return spark.sql("SHOW TABLE EXTENDED LIKE :pattern", args={"pattern": pattern}).collect()
        arguments = {"database": database, "pattern": pattern}
        statement = "SHOW TABLE EXTENDED IN IDENTIFIER(:database) LIKE :pattern"
        return spark.sql(statement, args=arguments).collect()
    except ParseException:
        # Spark before 4.1 takes no parameter as a pattern. The callers compare the names.
        if database is None:
            return spark.sql("SHOW TABLE EXTENDED LIKE '*'").collect()
        statement = "SHOW TABLE EXTENDED IN IDENTIFIER(:database) LIKE '*'"
        return spark.sql(statement, args={"database": database}).collect()


def _entry(database: str, table: str, information: str, asked: tuple[str, ...]) -> CatalogEntry:
    facts = {key: _fact(information, key) for key in ("Type", "Provider", "Location")}
    parts = (*asked[:-1], database, table) if database else (table,)
    return CatalogEntry(
        name=TableName(parts=parts),
        kind=facts["Type"],
        provider=facts["Provider"].lower(),
        location=facts["Location"],
    )


def _fact(information: str, key: str) -> str:
    """The value of a line `key: value`; empty without one.

    Raises:
        ConfigurationError: a comment or a property contains a line that looks the same, so it is not known
            which line is Spark's.
    """
    values = {line[len(key) + 2 :] for line in information.split("\n") if line.startswith(f"{key}: ")}
    if len(values) > 1:
        raise ConfigurationError(
            f"The catalog's description of a table has several lines {key!r}.",
            cause="A comment or a property of the table contains such a line.",
            fix="Remove the line from the comment or property, or open the table by its path.",
        )
    return values.pop() if values else ""


def _uri_of(location: str) -> str:
    """The table's URI of a location, which Spark prints without percent-escapes."""
    if location.startswith("file:"):
        path = location.removeprefix("file:")
        return "/" + path.lstrip("/")
    return location


def _pattern(name: str) -> str:
    """A pattern that matches the name: `*` stands for anything, and `|` separates alternatives.

    Spark makes a regular expression of the rest, so other characters match any one character here, and
    `find` compares the names.
    """
    return "".join(c if re.match(r"\w", c) else "." for c in name)


def _add_error(name: TableName, error: Exception) -> Exception:
    condition = str(getattr(error, "getCondition", lambda: None)() or "")
    if condition.startswith(("TABLE_OR_VIEW_ALREADY_EXISTS", "LOCATION_ALREADY_EXISTS")):
        return NamedTableExistsError(
            f"The table {name} already exists.",
            cause="" if condition.startswith("TABLE") else "Its directory exists already.",
            fix="Choose another name, or replace the table.",
        )
    if condition.startswith("SCHEMA_NOT_FOUND"):
        return NamedTableNotFoundError(
            f"The database of the table {name} cannot be found.", fix="Create the database first."
        )
    if condition.startswith("DATA_SOURCE_NOT_FOUND"):
        return ConfigurationError(
            f"Spark cannot store the name {name}.",
            cause="The session does not know the data source 'deltaward': the Python of the driver, or of "
            "the Connect server, does not have the package.",
            fix="Install the package there, or name tables in a registry file (spark.deltaward.tables).",
        )
    return ConfigurationError(
        f"Spark cannot store the name {name}.",
        cause=f"Spark's error is {condition or type(error).__name__}: {error}",
        fix="Choose another name, or name tables in a registry file (spark.deltaward.tables).",
    )


def missing(name: TableName | str) -> NamedTableNotFoundError:
    """The error for a name that no table has."""
    return NamedTableNotFoundError(
        f"The table {name} cannot be found.",
        fix="Check the name and the current database, or register the table with spark_jobs.names.register.",
    )
