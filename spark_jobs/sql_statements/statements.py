"""The values of parsed statements, one class per statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from delta_core.jobs.params.merge_clauses import ClauseParams
from delta_core.schema.types import DataType, StructField


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A part of the statement, which is passed on as it is written.

    Attributes:
        sql: the SQL; values of parameters are constants in it.
        start, end: the part's place in the SQL.
    """

    sql: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReference:
    """A table in a statement.

    Attributes:
        parts: the parts of its name.
        version: the version after `VERSION AS OF`.
        timestamp: the expression after `TIMESTAMP AS OF`.
        start, end: the place of the name and its time travel.
    """

    parts: tuple[str, ...]
    version: int | None = None
    timestamp: Slice | None = None
    start: int = 0
    end: int = 0

    @property
    def path(self) -> str | None:
        """The path or URI in ``delta.`/path` ``; None for a name."""
        if len(self.parts) != 2 or self.parts[0].lower() not in ("delta", "deltaward"):
            return None
        path = self.parts[1]
        return path if "/" in path or ":" in path else None

    @property
    def name(self) -> str:
        """The name for messages and for Spark's catalog, with quoted parts where they need it."""
        return ".".join(
            part if part.isidentifier() and part.isascii() else "`" + part.replace("`", "``") + "`"
            for part in self.parts
        )

    @property
    def is_time_travel(self) -> bool:
        """Whether an older version is meant."""
        return self.version is not None or self.timestamp is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTable:
    """A table in a query.

    Attributes:
        table: the table and its time travel.
        alias_at: the place where an alias is added; None when the query gives one.
        where: conditions on this table's columns alone that every row of the result satisfies.
        changes: whether it is `table_changes(...)`; then `first` and `last` are versions or timestamps.
    """

    table: TableReference
    alias_at: int | None = None
    where: tuple[str, ...] = ()
    changes: ChangeRange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRange:
    """The versions or times of `table_changes`. Without a last one, the range ends at the newest."""

    first: int | str
    last: int | str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query: `SELECT`, `VALUES`, `WITH ... SELECT`.

    Attributes:
        sql: its SQL, without time travel and parameters replaced.
        start: the place of the SQL.
        tables: the tables that it may read, in the order of their places.
        parameters: the names of the parameters in it.
        positional: the indexes of the `?` in it.
        is_parsed: whether sqlglot has parsed it, so that `tables` has every table that it reads.
    """

    sql: str
    start: int
    tables: tuple[FoundTable, ...] = ()
    parameters: frozenset[str] = frozenset()
    positional: tuple[int, ...] = ()
    is_parsed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """`GENERATED {ALWAYS | BY DEFAULT} AS IDENTITY (START WITH .. INCREMENT BY ..)`."""

    always: bool
    start: int = 1
    step: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDefinition:
    """A column of a new table, or a column to be added."""

    name: str
    data_type: DataType
    nullable: bool = True
    comment: str | None = None
    default: str | None = None
    generated: str | None = None
    identity: Identity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement: its kind in words, for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatement(Statement):
    """A statement about one table."""

    table: TableReference


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectStatement(Statement):
    """A query whose rows are the result; `prefix` is an `EXPLAIN` before it."""

    query: Query
    prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateView(Statement):
    """`CREATE [OR REPLACE] TEMPORARY VIEW name AS query`."""

    name: str
    query: Query
    replace: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkStatement(Statement):
    """A statement of Spark. It may not name a table of this library in `tables`."""

    sql: str
    what: str
    tables: tuple[TableReference, ...] = ()


class CreateMode(Enum):
    """The behaviour when the table exists."""

    CREATE = "CREATE TABLE"
    IF_NOT_EXISTS = "CREATE TABLE IF NOT EXISTS"
    CREATE_OR_REPLACE = "CREATE OR REPLACE TABLE"
    REPLACE = "REPLACE TABLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable(TableStatement):
    """A statement that makes a table: its place, and what happens when the table exists."""

    mode: CreateMode
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    location: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable(NewTable):
    """`CREATE TABLE`, with columns, with a query, or like another table.

    Attributes:
        provider: the name after `USING`; None without it.
        columns: None without a list of columns.
        cluster_by: paths of columns; None without the clause.
        fields: the columns of the table after LIKE, once it is known.
    """

    columns: tuple[ColumnDefinition, ...] | None = None
    provider: str | None = None
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[tuple[str, ...], ...] | None = None
    comment: str | None = None
    query: Query | None = None
    like: TableReference | None = None
    constraints: tuple[tuple[str, str], ...] = ()
    fields: tuple[StructField, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneTable(NewTable):
    """`CREATE TABLE target [SHALLOW | DEEP] CLONE source`."""

    source: TableReference
    shallow: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTable(TableStatement):
    """`DROP TABLE [IF EXISTS] name [PURGE]`."""

    if_exists: bool
    sql: str


class InsertMode(Enum):
    """The effect on the rows of the table that exist."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    REPLACE_WHERE = "replace where"
    REPLACE_USING = "replace using"


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert(TableStatement):
    """`INSERT`.

    Attributes:
        columns: the columns that the query's columns are for; None for all columns in order.
        by_name: whether the query's columns are taken by name.
        partition: partition columns with a constant as SQL, or None where the query has the value.
        if_not_exists: `IF NOT EXISTS` after the partition.
        replace_where: the condition of the rows to be replaced.
        replace_using: the columns whose values in the query select the rows to be replaced.
        sql, start: the SQL of the whole statement, and its place.
    """

    query: Query
    mode: InsertMode
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    partition: tuple[tuple[str, str | None], ...] = ()
    if_not_exists: bool = False
    replace_where: Slice | None = None
    replace_using: tuple[str, ...] = ()
    schema_evolution: bool = False
    sql: str = ""
    start: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange(TableStatement):
    """A statement that changes the rows for which a condition is true; all rows without one."""

    alias: str | None = None
    where: Slice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(RowChange):
    """`DELETE FROM`, or `TRUNCATE TABLE`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Update(RowChange):
    """`UPDATE ... SET`."""

    assignments: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge(TableStatement):
    """`MERGE INTO`. The source is a table or a query; its columns may get names after its alias."""

    source: TableReference | Query
    on: Slice
    clauses: Mapping[str, tuple[ClauseParams, ...]] = field(hash=False)
    alias: str | None = None
    source_alias: str | None = None
    source_columns: tuple[str, ...] = ()
    schema_evolution: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """`FIRST` (no column) or `AFTER column`."""

    after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedColumn:
    """A column to be added: below `parent`, at `position`."""

    definition: ColumnDefinition
    parent: tuple[str, ...] = ()
    position: Position | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTable(TableStatement):
    """`ALTER TABLE name`; each subclass is one change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddColumns(AlterTable):
    """`ADD COLUMNS [IF NOT EXISTS] (...)`."""

    columns: tuple[AddedColumn, ...]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameColumn(AlterTable):
    """`RENAME COLUMN path TO name`."""

    column: tuple[str, ...]
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumns(AlterTable):
    """`DROP COLUMNS (...)`."""

    columns: tuple[tuple[str, ...], ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterColumn(AlterTable):
    """`ALTER COLUMN path` with the changes; None means that there is no such change.

    Attributes:
        default: the new default; `drop_default` removes it.
        nullable: True for `DROP NOT NULL`, False for `SET NOT NULL`.
        sync_identity: `SYNC IDENTITY`.
        new_name: the new name in Hive's form `CHANGE COLUMN a b INT`.
    """

    column: tuple[str, ...]
    data_type: DataType | None = None
    nullable: bool | None = None
    comment: str | None = None
    default: str | None = None
    drop_default: bool = False
    position: Position | None = None
    sync_identity: bool = False
    new_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddConstraint(AlterTable):
    """`ADD CONSTRAINT name CHECK (condition)`."""

    name: str
    condition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropConstraint(AlterTable):
    """`DROP CONSTRAINT [IF EXISTS] name`."""

    name: str
    if_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SetProperties(AlterTable):
    """`SET TBLPROPERTIES (...)`."""

    properties: Mapping[str, str] = field(hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsetProperties(AlterTable):
    """`UNSET TBLPROPERTIES [IF EXISTS] (...)`."""

    keys: tuple[str, ...]
    if_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterBy(AlterTable):
    """`CLUSTER BY (...)`; None for `CLUSTER BY NONE`."""

    columns: tuple[tuple[str, ...], ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropFeature(AlterTable):
    """`DROP FEATURE name [TRUNCATE HISTORY]`."""

    feature: str
    truncate_history: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameTable(AlterTable):
    """`RENAME TO name`; `sql` is the statement."""

    name: TableReference
    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLocation(AlterTable):
    """`SET LOCATION path`."""

    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentOnTable(AlterTable):
    """`COMMENT ON TABLE name IS comment`; None removes it."""

    comment: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeHistory(TableStatement):
    """`DESCRIBE HISTORY name [LIMIT n]`."""

    limit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeDetail(TableStatement):
    """`DESCRIBE DETAIL name`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTable(TableStatement):
    """`DESCRIBE [TABLE] [EXTENDED] name [column]`."""

    extended: bool
    column: tuple[str, ...] | None
    sql: str


class Shown(Enum):
    """A part of a table that `SHOW` shows."""

    PROPERTIES = "SHOW TBLPROPERTIES"
    COLUMNS = "SHOW COLUMNS"
    PARTITIONS = "SHOW PARTITIONS"
    CREATE = "SHOW CREATE TABLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowTable(TableStatement):
    """`SHOW` of a part of a table's definition."""

    what: Shown
    sql: str
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimize(TableStatement):
    """`OPTIMIZE name [FULL] [WHERE condition] [ZORDER BY (columns)]`."""

    full: bool = False
    where: Slice | None = None
    zorder_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Vacuum(TableStatement):
    """`VACUUM name [FULL | LITE] [RETAIN n HOURS] [DRY RUN]`."""

    lite: bool = False
    retention_hours: float | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore(TableStatement):
    """`RESTORE TABLE name TO VERSION | TIMESTAMP AS OF`; the table has the time travel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reorganize(TableStatement):
    """`REORG TABLE name [WHERE condition] APPLY (PURGE)`."""

    where: Slice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertToDelta(Statement):
    """``CONVERT TO DELTA parquet.`path` [NO STATISTICS] [PARTITIONED BY (...)]``."""

    path: str
    partition_by: tuple[ColumnDefinition, ...] | None = None
    statistics: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Generate(TableStatement):
    """`GENERATE symlink_format_manifest FOR TABLE name`."""

    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair(TableStatement):
    """`FSCK REPAIR TABLE name [DRY RUN]`."""

    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyInto(TableStatement):
    """`COPY INTO name FROM location FILEFORMAT = format`, with its options.

    Attributes:
        columns: the columns of the table that the files' columns are for; None for all by name.
        by_position: whether the files' columns are taken by position.
        values: the expressions of `(SELECT ... FROM location)`; none without it.
        files, pattern: the files, relative to the location; none for all.
    """

    location: str
    file_format: str
    columns: tuple[str, ...] | None = None
    by_position: bool = False
    values: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    pattern: str | None = None
    format_options: Mapping[str, str] = field(default_factory=dict, hash=False)
    copy_options: Mapping[str, str] = field(default_factory=dict, hash=False)
