"""CREATE, DROP and ALTER TABLE, and clones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from delta_core import After, DeltaTable, First, IdentityGenerator, clone_table, define_column
from delta_core.boundary import typed_errors
from delta_core.dml.definition.replace import replace_table
from delta_core.errors import (
    ConfigurationError,
    SchemaMismatchError,
    TableExistsError,
    TableNotFoundError,
)
from delta_core.run import Run
from delta_core.schema.types import StructField, StructType
from delta_core.snapshot.table_definition import clustering_of
from delta_core.table.alterer import TableAlterer
from delta_core.transaction import CommitProperties
from spark_jobs import names
from spark_jobs.names import TableAddress
from spark_jobs.schema import from_spark
from spark_jobs.sql_statements.execution.queries import query_frame
from spark_jobs.sql_statements.execution.results import frame_of, no_rows
from spark_jobs.sql_statements.execution.surroundings import Surroundings, quoted, require_name
from spark_jobs.sql_statements.statements import (
    AddColumns,
    AddConstraint,
    AddedColumn,
    AlterColumn,
    AlterTable,
    CloneTable,
    ClusterBy,
    ColumnDefinition,
    CommentOnTable,
    CreateMode,
    CreateTable,
    DropColumns,
    DropConstraint,
    DropFeature,
    DropTable,
    Position,
    RenameColumn,
    RenameTable,
    SetLocation,
    SetProperties,
    TableReference,
    UnsetProperties,
)
from spark_jobs.writer.write import write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_REPLACING = (CreateMode.CREATE_OR_REPLACE, CreateMode.REPLACE)


def field_of(column: ColumnDefinition) -> StructField:
    """A column as `DeltaTable.create` and `alter.add_columns` take it."""
    identity = column.identity
    series = None if identity is None else IdentityGenerator(start=identity.start, step=identity.step)
    always = identity is not None and identity.always
    return define_column(
        column.name,
        column.data_type,
        nullable=column.nullable,
        comment=column.comment,
        default=column.default,
        generated_always_as=column.generated if not always else series,
        generated_by_default_as=None if always else series,
    )


def create(statement: CreateTable, around: Surroundings) -> DataFrame:
    """Create or replace a table, with columns, with the rows of a query, or like another table."""
    existing = _existing(statement.table, statement.location, around)
    if existing is not None and statement.mode is CreateMode.IF_NOT_EXISTS:
        return no_rows(around.spark)
    if existing is not None and statement.mode is CreateMode.CREATE:
        raise _exists(statement.table)
    if existing is None and statement.mode is CreateMode.REPLACE:
        raise TableNotFoundError(
            f"The table {statement.table.name} cannot be replaced.",
            cause="It does not exist.",
            fix="Use CREATE OR REPLACE TABLE.",
        )
    if statement.query is not None:
        _create_from_query(statement, existing, around)
    else:
        _create_empty(_with_definition(statement, around), existing, around)
    return no_rows(around.spark)


def _existing(table: TableReference, location: str | None, around: Surroundings) -> TableAddress | None:
    """The table with this name; for a path, the table at the path."""
    if table.path is None:
        return around.find(table)
    if location is not None and around.canonical(location) != around.canonical(table.path):
        raise ConfigurationError(
            "The table has two locations.",
            cause=f"Its name is the path {table.path}, and LOCATION is {location}.",
            fix="Leave out LOCATION.",
        )
    address = around.address(table)
    return address if around.exists(address.uri) else None


def _with_definition(statement: CreateTable, around: Surroundings) -> CreateTable:
    """The statement with the columns, the partitioning and the properties of the table after LIKE."""
    if statement.like is None:
        return statement
    source = around.core(around.uri(statement.like))
    snapshot = source.snapshot
    return replace(
        statement,
        like=None,
        fields=tuple(snapshot.schema),
        partition_by=tuple(snapshot.partition_columns),
        properties={**_copied(snapshot.metadata.configuration), **statement.properties},
        comment=statement.comment or snapshot.metadata.description,
    )


_NOT_COPIED = ("delta.columnMapping.maxColumnId", "delta.inCommitTimestampEnablement", "delta.rowTracking.")


def _copied(configuration: object) -> dict[str, str]:
    items = dict(configuration)  # type: ignore[call-overload]
    return {key: value for key, value in items.items() if not key.startswith(_NOT_COPIED)}


def _create_empty(statement: CreateTable, existing: TableAddress | None, around: Surroundings) -> None:
    fields = _fields(statement)
    if existing is not None:
        _replace(statement, existing.uri, fields, around)
        return
    uri = statement.table.path or statement.location
    if uri is not None and around.exists(around.require_allowed(uri)):
        # The name of a table that exists: the columns, if there are any, must be those of the table.
        _require_same(fields, around.core(uri).snapshot.schema, uri)
        if statement.mode in _REPLACING and fields:
            _replace(statement, uri, fields, around)
    elif not fields:
        raise SchemaMismatchError(
            f"The table {statement.table.name} has no columns.",
            cause="There is no table at its location that has columns.",
            fix="List the columns, add AS SELECT, or give the LOCATION of a table.",
        )
    else:
        _at_location(
            statement, StructType(fields), around, lambda uri: _create_at(statement, uri, fields, around)
        )
        return
    if statement.table.path is None:
        names.register(around.spark, quoted(statement.table), uri, storage_options=around.storage_options)


def _fields(statement: CreateTable) -> tuple[StructField, ...]:
    return statement.fields or tuple(field_of(column) for column in statement.columns or ())


def _create_at(
    statement: CreateTable, uri: str, fields: tuple[StructField, ...], around: Surroundings
) -> None:
    DeltaTable.create(
        uri,
        StructType(fields),
        partition_by=statement.partition_by,
        cluster_by=_clustering(statement),
        configuration=_configuration(statement),
        description=statement.comment,
        commit_properties=around.commit,
        storage_options=around.storage_options,
        clock=around.clock,
    )


def _replace(statement: CreateTable, uri: str, fields: tuple[StructField, ...], around: Surroundings) -> None:
    with typed_errors("replacing the table"):
        replace_table(
            around.core(uri).snapshot,
            schema=StructType(fields),
            partition_by=statement.partition_by,
            cluster_by=_clustering(statement),
            configuration=_configuration(statement),
            description=statement.comment,
            or_create=statement.mode is CreateMode.CREATE_OR_REPLACE,
            run=Run(clock=around.clock, commit=around.commit),
        )


def _clustering(statement: CreateTable) -> list[list[str]] | None:
    return None if statement.cluster_by is None else [list(path) for path in statement.cluster_by]


def _configuration(statement: CreateTable) -> dict[str, str]:
    constraints = {f"delta.constraints.{name.lower()}": sql for name, sql in statement.constraints}
    return {**statement.properties, **constraints}


def _create_from_query(statement: CreateTable, existing: TableAddress | None, around: Surroundings) -> None:
    assert statement.query is not None
    frame = query_frame(statement.query, around)

    def fill(uri: str) -> None:
        replaces = statement.mode in _REPLACING
        clusters = existing is None or _prepared(statement, uri, around)
        write(
            frame,
            uri,
            mode="overwrite" if replaces else "error",
            overwrite_schema=replaces,
            partition_by=list(statement.partition_by) or ([] if replaces else None),
            cluster_by=_clustering(statement) if existing is None else None,
            configuration=_configuration(statement) or None if existing is None else None,
            storage_options=around.storage_options,
            engine_io=around.engine_io,
            user_metadata=around.commit.user_metadata,
            txn=around.commit.txn,
            clock=around.clock,
        )
        if existing is not None and clusters and statement.cluster_by is not None:
            around.core(uri).alter.cluster_by(_clustering(statement))
        if statement.comment is not None:
            around.core(uri).alter.set_description(statement.comment)

    if existing is not None:
        fill(existing.uri)
        return
    _at_location(statement, from_spark(frame.schema), around, fill)


def _prepared(statement: CreateTable, uri: str, around: Surroundings) -> bool:
    """Set the properties of a table to be replaced, and end its clustering. True if it needs a new one."""
    table = around.core(uri)
    present = dict(table.metadata().configuration)
    wanted = _configuration(statement)
    if any(present.get(key) != value for key, value in wanted.items()):
        table.alter.set_properties(wanted)
    clustering = clustering_of(table.snapshot)
    columns = [] if clustering is None else list(clustering.names(table.snapshot.schema))
    if columns == [".".join(path) for path in statement.cluster_by or ()]:
        return False
    if columns:
        table.alter.cluster_by(None)
    return True


def _at_location(
    statement: CreateTable | CloneTable,
    schema: StructType,
    around: Surroundings,
    make: Callable[[str], None],
) -> None:
    """Create a table at its location, or at the one that Spark chooses, and give it its name."""
    table = statement.table
    uri = table.path or statement.location
    if uri is not None:
        make(around.require_allowed(uri))
        if table.path is None:
            names.register(around.spark, quoted(table), uri, storage_options=around.storage_options)
        return
    comment = statement.comment if isinstance(statement, CreateTable) else None
    claimed = names.claim(around.spark, quoted(table), schema, description=comment)
    try:
        make(around.require_allowed(claimed.uri))
    except BaseException:
        names.unregister(around.spark, quoted(table))
        raise


def _require_same(fields: tuple[StructField, ...], schema: StructType, uri: str) -> None:
    if not fields:
        return
    given = [(field.name.casefold(), str(field.data_type)) for field in fields]
    found = [(field.name.casefold(), str(field.data_type)) for field in schema]
    if given != found:
        raise SchemaMismatchError(
            f"There is a table at {uri} already, and its columns are others.",
            cause=f"Its columns are {', '.join(f'{field.name} {field.data_type}' for field in schema)}.",
            fix="Leave out the columns to use the table, or choose another location.",
        )


def _exists(table: TableReference) -> TableExistsError:
    return TableExistsError(
        f"The table {table.name} already exists.",
        fix="Use CREATE TABLE IF NOT EXISTS or CREATE OR REPLACE TABLE, or choose another name.",
    )


def clone(statement: CloneTable, around: Surroundings) -> DataFrame:
    """Clone a table. Properties are set in a commit of their own."""
    existing = _existing(statement.table, statement.location, around)
    if existing is not None and statement.mode is CreateMode.IF_NOT_EXISTS:
        return no_rows(around.spark)
    if existing is not None and statement.mode is CreateMode.CREATE:
        raise _exists(statement.table)
    reference = around.at_version(statement.source)
    source_uri = around.uri(reference)
    source = around.snapshot(source_uri, reference)
    copied: list[tuple[int, ...]] = []

    def make(uri: str) -> None:
        result = clone_table(
            source_uri,
            uri,
            shallow=statement.shallow,
            version=source.version,
            storage_options=around.storage_options,
            target_storage_options=around.storage_options,
            allowed_roots=around.allowed_roots,
            commit_properties=around.commit,
            executor=around.executor,
        )
        copied.append(
            (
                source.files.total_bytes,
                source.files.num_files,
                result.files_removed,
                result.files_copied,
                0,
                result.bytes_copied,
            )
        )
        if statement.properties:
            around.core(uri).alter.set_properties(statement.properties)

    if existing is not None:
        make(existing.uri)
    else:
        _at_location(statement, source.schema, around, make)
    schema = (
        "source_table_size bigint, source_num_of_files bigint, num_removed_files bigint, "
        "num_copied_files bigint, removed_files_size bigint, copied_files_size bigint"
    )
    return frame_of(around.spark, schema, copied)


def drop(statement: DropTable, around: Surroundings) -> DataFrame:
    """Remove the name of a table. Only Spark's own (managed) directories are deleted."""
    require_name(statement.table, "DROP TABLE")
    if around.find(statement.table) is None:
        around.require_all_allowed(f"{statement.table.name}, which is not a table of this library")
        return around.spark.sql(statement.sql)
    names.unregister(around.spark, quoted(statement.table))
    return no_rows(around.spark)


def alter(statement: AlterTable, around: Surroundings) -> DataFrame:
    """Change the definition of a table."""
    if isinstance(statement, RenameTable | SetLocation):
        return _change_name(statement, around)
    change = around.core(around.uri(statement.table)).alter
    commit = around.commit
    match statement:
        case AddColumns():
            _add_columns(statement, change, around)
        case RenameColumn():
            change.rename_column(list(statement.column), statement.name, commit_properties=commit)
        case DropColumns():
            _drop_columns(statement, change, around)
        case AlterColumn():
            _alter_column(statement, change, around)
        case AddConstraint():
            change.add_constraint({statement.name: statement.condition}, commit_properties=commit)
        case DropConstraint():
            configuration = around.core(around.uri(statement.table)).metadata().configuration
            if not statement.if_exists or f"delta.constraints.{statement.name.lower()}" in {
                key.lower() for key in configuration
            }:
                change.drop_constraint(statement.name, commit_properties=commit)
        case SetProperties():
            change.set_properties(statement.properties, commit_properties=commit)
        case UnsetProperties():
            known = around.core(around.uri(statement.table)).metadata().configuration
            keys = tuple(key for key in statement.keys if key in known)
            if not statement.if_exists and keys != statement.keys:
                missing = next(key for key in statement.keys if key not in known)
                raise ConfigurationError(
                    f"The table {statement.table.name} has no property {missing!r}.",
                    fix="Correct the name, or write UNSET TBLPROPERTIES IF EXISTS.",
                )
            if keys:
                change.unset_properties(keys, commit_properties=commit)
        case ClusterBy():
            columns = None if statement.columns is None else [list(path) for path in statement.columns]
            change.cluster_by(columns, commit_properties=commit)
        case DropFeature():
            change.drop_feature(
                statement.feature,
                truncate_history=statement.truncate_history,
                executor=around.executor,
                commit_properties=commit,
            )
        case CommentOnTable():
            change.set_description(statement.comment or "", commit_properties=commit)
    return no_rows(around.spark)


def _position(position: Position | None) -> First | After | None:
    if position is None:
        return None
    return First() if position.after is None else After(position.after)


def _add_columns(statement: AddColumns, change: TableAlterer, around: Surroundings) -> None:
    """Add columns, with one commit for consecutive columns of one struct that have no position."""
    groups: list[list[AddedColumn]] = []
    for column in statement.columns:
        if statement.if_not_exists and _has_column(column, around.core(around.uri(statement.table))):
            continue
        before = groups[-1][-1] if groups else None
        if before is None or (column.position, column.parent) != (None, before.parent) or before.position:
            groups.append([])
        groups[-1].append(column)
    for number, group in enumerate(groups, 1):
        change.add_columns(
            [field_of(column.definition) for column in group],
            parent=group[0].parent,
            position=_position(group[0].position),
            commit_properties=_step(around.commit, is_last=number == len(groups)),
        )


def _has_column(column: AddedColumn, table: DeltaTable) -> bool:
    fields: StructType | None = table.snapshot.schema
    for name in column.parent:
        found = None if fields is None else fields.find(name)
        is_struct = found is not None and isinstance(found.data_type, StructType)
        fields = found.data_type if is_struct else None  # type: ignore[union-attr,assignment]
    return fields is not None and fields.find(column.definition.name) is not None


def _step(commit: CommitProperties, *, is_last: bool) -> CommitProperties:
    """The properties of one commit of several. Only the last has the key, since it ends the work."""
    return commit if is_last else replace(commit, txn=None, delivery=None)


def _drop_columns(statement: DropColumns, change: TableAlterer, around: Surroundings) -> None:
    columns = [list(path) for path in statement.columns]
    if statement.if_exists:
        schema = around.core(around.uri(statement.table)).snapshot.schema
        columns = [path for path in columns if len(path) > 1 or schema.find(path[0]) is not None]
    if columns:
        change.drop_columns(columns, commit_properties=around.commit)


def _alter_column(statement: AlterColumn, change: TableAlterer, around: Surroundings) -> None:
    """Make the changes of a column; Hive's form may have several, each with a commit of its own."""
    column = list(statement.column)
    steps: list[Callable[[CommitProperties], object]] = []

    def add(verb: Callable[..., object], *arguments: object) -> None:
        steps.append(lambda commit: verb(*arguments, commit_properties=commit))

    if statement.data_type is not None and _type_of(statement, around) != str(statement.data_type):
        add(change.change_type, column, statement.data_type)
    if statement.nullable is not None:
        add(change.drop_not_null if statement.nullable else change.set_not_null, column)
    if statement.comment is not None:
        add(change.set_comment, column, statement.comment)
    if statement.default is not None:
        add(change.set_default, column, statement.default)
    if statement.drop_default:
        add(change.drop_default, column)
    if statement.sync_identity:
        add(change.sync_identity, column[-1])
    if statement.position is not None:
        add(change.move_column, column, _position(statement.position))
    if statement.new_name is not None:
        add(change.rename_column, column, statement.new_name)
    for number, step in enumerate(steps, 1):
        step(_step(around.commit, is_last=number == len(steps)))


def _type_of(statement: AlterColumn, around: Surroundings) -> str | None:
    """The present type of a column, so that Hive's form with the same type changes nothing."""
    found: StructField | None = None
    fields = around.core(around.uri(statement.table)).snapshot.schema
    for name in statement.column:
        found = fields.find(name)
        if found is None or not isinstance(found.data_type, StructType):
            break
        fields = found.data_type
    return None if found is None else str(found.data_type)


def _change_name(statement: RenameTable | SetLocation, around: Surroundings) -> DataFrame:
    require_name(
        statement.table, "ALTER TABLE ... RENAME TO" if isinstance(statement, RenameTable) else "SET LOCATION"
    )
    name = quoted(statement.table)
    if isinstance(statement, SetLocation):
        new_uri = around.require_allowed(statement.location)
        if not around.exists(new_uri):
            raise TableNotFoundError(
                f"There is no table at {new_uri}.", fix="Give the location of a Delta table."
            )
        names.relocate(around.spark, name, new_uri, storage_options=around.storage_options)
    else:
        require_name(statement.name, "ALTER TABLE ... RENAME TO")
        names.rename(around.spark, name, quoted(statement.name), storage_options=around.storage_options)
    return no_rows(around.spark)
