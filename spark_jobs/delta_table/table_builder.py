"""`DeltaTableBuilder`: creating and replacing tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import delta_core
from delta_core.boundary import public_class
from delta_core.dml.definition.replace import replace_table
from delta_core.errors import ConfigurationError, SchemaMismatchError
from delta_core.schema.types import StructField, StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage import canonical_table_uri, open_store
from spark_jobs import names
from spark_jobs.delta_table.arguments import Flag, column_list, must_be, refuse
from spark_jobs.delta_table.column_builder import DeltaColumnBuilder, IdentityGenerator, delta_schema
from spark_jobs.spark_errors import ArgumentValueError, NamedTableExistsError, NamedTableNotFoundError
from spark_jobs.writer.commits import record_commit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType
    from pyspark.sql.types import StructField as SparkField
    from pyspark.sql.types import StructType as SparkStructType

    from spark_jobs.delta_table.table import DeltaTable

Opener = Callable[[str, str | None], "DeltaTable"]
"""Opens the table at a URI, which has the name or None."""


class Creation(Enum):
    """The effect of a builder on a table that exists, and on one that does not."""

    CREATE = "create"
    CREATE_IF_NOT_EXISTS = "createIfNotExists"
    REPLACE = "replace"
    CREATE_OR_REPLACE = "createOrReplace"

    @property
    def replaces(self) -> bool:
        """Whether it replaces a table that exists."""
        return self in (Creation.REPLACE, Creation.CREATE_OR_REPLACE)


@public_class
class DeltaTableBuilder:
    """A builder for a table's definition. Each method changes and returns it; `execute` makes the table.

    Give it a name, a location, or both. A wrong type raises ArgumentTypeError, which is a TypeError.
    """

    def __init__(self, spark: SparkSession, creation: Creation, opener: Opener) -> None:
        self._spark = spark
        self._creation = creation
        self._opener = opener
        self._name: str | None = None
        self._location: str | None = None
        self._comment: str | None = None
        self._columns: list[StructField] = []
        self._partition_by: list[str] = []
        self._cluster_by: list[str] | None = None
        self._properties: dict[str, str] = {}

    def tableName(self, identifier: str) -> DeltaTableBuilder:  # noqa: N802 - delta-spark's name
        """Set the name in the session's catalog; `delta.`/path`` sets the location."""
        must_be(identifier, str, message="Identifier must be str.")
        path = names.parse_name(identifier).path
        if path is None:
            self._name = identifier
        else:
            self._location = path
        return self

    def location(self, location: str) -> DeltaTableBuilder:
        """Set the path or URI of the table."""
        must_be(location, str, message="Location must be str.")
        self._location = location
        return self

    def comment(self, comment: str) -> DeltaTableBuilder:
        """Set the description of the table."""
        must_be(comment, str, message="Table comment must be str.")
        self._comment = comment
        return self

    def addColumn(  # noqa: N802
        self,
        colName: str | SparkField | StructField,  # noqa: N803
        dataType: str | DataType | None = None,  # noqa: N803
        nullable: Flag = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,  # noqa: N803
        generatedByDefaultAs: IdentityGenerator | None = None,  # noqa: N803
        comment: str | None = None,
    ) -> DeltaTableBuilder:
        """Add a column.

        Args:
            colName: the name; or the whole column, from `columnBuilder` or as a StructField of pyspark.
            dataType: the SQL name of a type, or a type of pyspark.
            nullable: whether the column may hold nulls.
            generatedAlwaysAs: SQL on other columns, or the series of an identity column.
            generatedByDefaultAs: the series of an identity column that takes given values.
            comment: the comment.

        Raises:
            ArgumentTypeError, ArgumentValueError: an argument has a wrong type or value.
            ColumnTypeError: the type cannot be parsed. It is also a `ParseException`.
            IdentityTypeError: an identity column is not a `bigint`. It is also an
                `UnsupportedOperationException`.
            SchemaError: Delta does not support the type or the expression.
        """
        from pyspark.sql.types import StructField as SparkField

        if isinstance(colName, StructField):
            self._columns.append(colName)
            return self
        if isinstance(colName, SparkField):
            return self.addColumns([colName])
        built = DeltaColumnBuilder(colName).dataType(dataType).nullable(nullable)  # type: ignore[arg-type]
        if generatedAlwaysAs is not None and generatedByDefaultAs is not None:
            raise ArgumentValueError(
                "The arguments generatedByDefaultAs and generatedAlwaysAs cannot both be set.",
                fix="Set one of them.",
            )
        if generatedAlwaysAs is not None:
            built.generatedAlwaysAs(generatedAlwaysAs)
        if generatedByDefaultAs is not None:
            built.generatedByDefaultAs(generatedByDefaultAs)
        if comment is not None:
            built.comment(comment)
        self._columns.append(built.build())
        return self

    def addColumns(self, cols: SparkStructType | Sequence[SparkField]) -> DeltaTableBuilder:  # noqa: N802
        """Add the columns of a schema, with their nullability and comments.

        Raises:
            ArgumentTypeError: it is neither a StructType nor a list of StructFields.
            SchemaError: Delta does not support a type.
        """
        from pyspark.sql.types import StructField as SparkField
        from pyspark.sql.types import StructType as SparkStructType

        if isinstance(cols, list | tuple):
            for col in cols:
                must_be(col, SparkField, message="Column in existing schema must be StructField.")
            cols = SparkStructType(list(cols))
        if not isinstance(cols, SparkStructType):
            refuse("Schema must be StructType or a list of StructField.", cols)
        self._columns.extend(delta_schema(cols))
        return self

    def partitionedBy(self, *cols: str | Sequence[str]) -> DeltaTableBuilder:  # noqa: N802
        """Set the partition columns, one by one or as one list."""
        self._partition_by = column_list(cols, what="Partitioning column")
        return self

    def clusterBy(self, *cols: str | Sequence[str]) -> DeltaTableBuilder:  # noqa: N802
        """Set the clustering columns, one by one or as one list."""
        self._cluster_by = column_list(cols, what="Clustering column")
        return self

    def property(self, key: str, value: str) -> DeltaTableBuilder:
        """Set a table property."""
        if not isinstance(key, str) or not isinstance(value, str):
            refuse("Key and value of property must be string.", key, value)
        self._properties[key] = value
        return self

    def execute(self) -> DeltaTable:
        """Create or replace the table, and open it.

        A table with a name and no location is a managed table: Spark chooses its directory, and Spark's
        DROP TABLE deletes it.

        Raises:
            ArgumentValueError: there is neither a name nor a location.
            NamedTableExistsError: the table exists, and it is to be created. It is also an
                `AnalysisException`.
            NamedTableNotFoundError: the table does not exist, and it is to be replaced. It is also an
                `AnalysisException`.
            SchemaMismatchError: a name is given to a table that exists, with another definition.
            SchemaError, InvalidTablePropertyError: the definition is not valid.
        """
        if self._name is None:
            if self._location is None:
                raise ArgumentValueError(
                    "Table name or location has to be specified.", fix="Call tableName or location."
                )
            return self._at(self._location, None)
        parsed = names.parse_name(self._name)
        address = names.find(self._spark, parsed)
        if address is not None:
            self._require_location(address)
            return self._at(address.uri, self._name)
        if self._creation is Creation.REPLACE:
            raise NamedTableNotFoundError(
                f"The table {parsed} cannot be found.",
                cause="A table that is to be replaced must exist.",
                fix="Use createOrReplace.",
            )
        if self._location is not None:
            return self._named_at(self._name, self._location)
        address = names.claim(self._spark, self._name, self._schema(), description=self._comment)
        try:
            self._create(address.uri)
        except BaseException:
            names.unregister(self._spark, self._name)
            raise
        return self._opener(address.uri, self._name)

    def _at(self, uri: str, name: str | None) -> DeltaTable:
        """Make the table at a URI that no other name will get."""
        shown = name or uri
        if not Snapshot.exists(open_store(uri)):
            if self._creation is Creation.REPLACE:
                raise NamedTableNotFoundError(
                    f"The table {shown} cannot be found.",
                    cause="A table that is to be replaced must exist.",
                    fix="Use createOrReplace.",
                )
            self._create(uri)
        elif self._creation is Creation.CREATE:
            raise NamedTableExistsError(
                f"The table {shown} already exists.", fix="Use createIfNotExists or createOrReplace."
            )
        elif self._creation.replaces:
            self._replace(uri)
        return self._opener(uri, name)

    def _named_at(self, name: str, uri: str) -> DeltaTable:
        """Make the table at a URI, and give it the name."""
        store = open_store(uri)
        if not Snapshot.exists(store):
            self._create(uri)
        elif self._creation.replaces:
            self._replace(uri)
        elif self._columns:
            self._require_same(Snapshot.load(store))
        names.register(self._spark, name, uri)
        return self._opener(uri, name)

    def _create(self, uri: str) -> None:
        table = delta_core.DeltaTable.create(uri, self._schema(), **self._definition())
        record_commit(uri, table.version())

    def _replace(self, uri: str) -> None:
        committed = replace_table(
            Snapshot.load(open_store(uri)),
            schema=self._schema(),
            or_create=self._creation is Creation.CREATE_OR_REPLACE,
            **self._definition(),
        )
        record_commit(uri, committed.version)

    def _definition(self) -> dict[str, Any]:
        return {
            "partition_by": self._partition_by,
            "cluster_by": self._cluster_by,
            "configuration": self._properties,
            "description": self._comment,
        }

    def _schema(self) -> StructType:
        return StructType(tuple(self._columns))

    def _require_location(self, address: names.TableAddress) -> None:
        if self._location is None:
            return
        given, existing = canonical_table_uri(self._location), canonical_table_uri(address.uri)
        if given != existing:
            raise ConfigurationError(
                f"The location of the table {address.name} is {existing}, not {given}.",
                cause="The name belongs to a table already.",
                fix="Leave out the location, or choose another name.",
            )

    def _require_same(self, snapshot: Snapshot) -> None:
        def shape(schema: StructType) -> list[tuple[str, Any]]:
            return [(field.name, field.data_type) for field in schema]

        same_columns = shape(snapshot.schema) == shape(self._schema())
        if same_columns and list(snapshot.partition_columns) == self._partition_by:
            return
        raise SchemaMismatchError(
            f"The specified schema does not match the existing schema at {snapshot.store.uri}.",
            cause=f"The table has the columns {', '.join(snapshot.schema.names)}, and is partitioned by "
            f"({', '.join(snapshot.partition_columns)}).",
            fix="Leave out the columns to give the table a name, or use createOrReplace.",
        )
