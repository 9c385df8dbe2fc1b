"""Changes to a table's definition that leave its data alone.

They take `properties`, those of the commit; with an idempotency key a call that is repeated changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow.compute as pc

from delta_core.actions import Action, Metadata
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.dml.known_properties import refuse_unknown_properties
from delta_core.dml.post_commit import commit_and_checkpoint
from delta_core.dml.protocol_choice import (
    CONSTRAINT_PREFIX,
    protocol_for,
    refuse_protocol_properties,
    refuse_unsupported_definition,
)
from delta_core.dml.table_change import TableDefinition, plan_table_change
from delta_core.errors import ConfigurationError, ConstraintViolationError, TableExistsError
from delta_core.expressions.columns import referenced_columns
from delta_core.expressions.evaluate import evaluate
from delta_core.expressions.parse import parse_predicate
from delta_core.expressions.render import to_spark_sql
from delta_core.scan.scan import Scan
from delta_core.schema.evolution import add_columns as with_columns
from delta_core.schema.evolution import drop_not_null as without_not_null
from delta_core.schema.evolution import validate_schema
from delta_core.schema.json import schema_from_json, schema_to_json
from delta_core.schema.types import StructField, StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.table_features.surface import Surface
from delta_core.table_features.table_properties import TableProperties
from delta_core.transaction.commit_properties import (
    DEFAULT_COMMIT_PROPERTIES,
    CommitProperties,
    require_commit_properties,
)
from delta_core.transaction.commit_result import AlreadyApplied, Committed, Conflict, raise_for_result
from delta_core.transaction.idempotency import already_applied
from delta_core.transaction.isolation import IsolationLevel
from delta_core.transaction.transaction import Transaction


def create_table(
    store: LogStore,
    *,
    schema: StructType,
    partition_by: Sequence[str] = (),
    configuration: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
    properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    clock: Clock = SYSTEM_CLOCK,
) -> Committed:
    """Create an empty table. Two requests when nobody interferes: a listing and the commit.

    Returns:
        The commit; `AlreadyApplied` when there is a table that has the idempotency key.

    Raises:
        TableExistsError: there is one already, or another writer creates it at the same time.
        SchemaError: the schema is not valid.
        UnsupportedTableFeatureError: a property asks for an unsupported feature.
    """
    require_commit_properties(properties)
    if Snapshot.exists(store):
        applied = None if properties.txn is None else _applied(Snapshot.load(store), properties=properties)
        if applied is None:
            raise _exists(store)
        return applied
    definition = TableDefinition(
        partition_by=partition_by, configuration=configuration, name=name, description=description
    )
    change = plan_table_change(None, data_schema=schema, definition=definition, now_ms=clock.now_ms())
    transaction = Transaction.create(
        store,
        surface=Surface.COMMIT,
        operation_parameters={
            "partitionBy": list(change.partition_columns),
            "properties": dict(change.configuration),
            "description": description,
        },
        properties=properties,
        clock=clock,
    )
    result = transaction.add(*change.actions).commit()
    if isinstance(result, Conflict):
        raise _exists(store) from result.error
    return raise_for_result(result)


def add_columns(snapshot: Snapshot, columns: Iterable[StructField], **options: Any) -> Committed:
    """Add nullable columns at the end of the schema; existing rows are null in them.

    Raises:
        SchemaEvolutionError: a column exists or is not nullable.
    """
    applied = _applied(snapshot, **options)
    if applied is not None:
        return applied
    added = list(columns)
    schema = with_columns(snapshot.schema, added)
    validate_schema(schema, snapshot.partition_columns)
    parameters = {"columns": [{"column": {"name": f.name, "type": str(f.data_type)}} for f in added]}
    return _change(snapshot, _with_schema(snapshot, schema), "ADD COLUMNS", parameters, **options)


def drop_not_null(snapshot: Snapshot, column: Sequence[str], **options: Any) -> Committed:
    """Let a column, given by its path, hold nulls.

    Raises:
        SchemaEvolutionError: no such column.
    """
    applied = _applied(snapshot, **options)
    if applied is not None:
        return applied
    schema = without_not_null(snapshot.schema, column)
    parameters = {"column": ".".join(column), "nullable": True}
    return _change(snapshot, _with_schema(snapshot, schema), "CHANGE COLUMN", parameters, **options)


def set_properties(snapshot: Snapshot, properties: Mapping[str, str], /, **options: Any) -> Committed:
    """Set table properties.

    Raises:
        InvalidTablePropertyError: an unknown property, a value that it cannot take, or a protocol version.
        ConfigurationError: a CHECK constraint, which existing rows must be checked against first.
        UnsupportedTableFeatureError: a property that turns on an unsupported feature.
    """
    _refuse_constraints(properties)
    refuse_protocol_properties(properties)
    metadata = _configured(snapshot, {**snapshot.metadata.configuration, **properties})
    refuse_unsupported_definition(metadata)
    refuse_unknown_properties(set(properties) - set(snapshot.metadata.configuration))
    return _change(snapshot, metadata, "SET TBLPROPERTIES", {"properties": dict(properties)}, **options)


def unset_properties(snapshot: Snapshot, keys: Sequence[str], **options: Any) -> Committed:
    """Take table properties back to their defaults; a key that is not set is ignored."""
    _refuse_constraints(keys)
    kept = {key: value for key, value in snapshot.metadata.configuration.items() if key not in keys}
    parameters = {"properties": list(keys), "ifExists": True}
    return _change(snapshot, _configured(snapshot, kept), "UNSET TBLPROPERTIES", parameters, **options)


def set_description(
    snapshot: Snapshot, *, name: str | None = None, description: str | None = None, **options: Any
) -> Committed:
    """Set the table's name, its description, or both; None leaves one as it is."""
    metadata = replace(
        snapshot.metadata,
        name=snapshot.metadata.name if name is None else name,
        description=snapshot.metadata.description if description is None else description,
    )
    parameters = {"name": metadata.name, "description": metadata.description}
    return _change(snapshot, metadata, "SET TABLE DESCRIPTION", parameters, **options)


def add_constraint(snapshot: Snapshot, name: str, expression: str, **options: Any) -> Committed:
    """Add a CHECK constraint; every row, now and later, must make the expression true.

    Reads the columns that the expression names, of the whole table.

    Raises:
        ConstraintViolationError: an existing row breaks it.
        ConfigurationError: there is a constraint of that name.
        ExpressionError: the expression does not fit the schema.
    """
    applied = _applied(snapshot, **options)
    if applied is not None:
        return applied
    key = CONSTRAINT_PREFIX + name
    if any(existing.lower() == key.lower() for existing in snapshot.metadata.configuration):
        raise ConfigurationError(
            f"The table has a constraint named {name!r}.", fix="Drop it first, or choose another name."
        )
    resolved = parse_predicate(expression, snapshot.schema)
    text = to_spark_sql(resolved)
    names = sorted({path[0] for path in referenced_columns(resolved)}) or [snapshot.schema.names[0]]
    for batch in Scan(snapshot, columns=names).to_batches():
        holds = pc.fill_null(evaluate(resolved, batch), False)
        if not pc.all(holds, min_count=0).as_py():
            broken = batch.filter(pc.invert(holds)).slice(0, 1).to_pylist()[0]
            raise ConstraintViolationError(
                f"The constraint {name!r} ({text}) does not hold for the rows that the table has.",
                cause=f"One of them is {broken!r}.",
                fix="Correct or delete these rows first.",
            )
    configuration = {**snapshot.metadata.configuration, key: text}
    metadata = _configured(snapshot, configuration)
    parameters = {"name": name, "expr": text}
    return _change(snapshot, metadata, "ADD CONSTRAINT", parameters, reads_rows=True, **options)


def drop_constraint(snapshot: Snapshot, name: str, **options: Any) -> Committed:
    """Drop a CHECK constraint.

    Raises:
        ConfigurationError: there is none of that name.
    """
    applied = _applied(snapshot, **options)
    if applied is not None:
        return applied
    wanted = (CONSTRAINT_PREFIX + name).lower()
    kept = {k: v for k, v in snapshot.metadata.configuration.items() if k.lower() != wanted}
    if len(kept) == len(snapshot.metadata.configuration):
        raise ConfigurationError(
            f"The table has no constraint named {name!r}.", fix="See the table's configuration."
        )
    return _change(snapshot, _configured(snapshot, kept), "DROP CONSTRAINT", {"name": name}, **options)


def _applied(
    snapshot: Snapshot, *, properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES, **ignored: Any
) -> AlreadyApplied | None:
    """What a repeated call comes to: what it would be refused for is its own earlier change."""
    require_commit_properties(properties)
    found = already_applied(snapshot, properties.txn)
    if found is None:
        return None
    return AlreadyApplied(version=snapshot.version, attempts=0, snapshot=snapshot, transaction=found)


def _change(
    snapshot: Snapshot,
    metadata: Metadata,
    operation: str,
    parameters: Mapping[str, Any],
    *,
    reads_rows: bool = False,
    properties: CommitProperties = DEFAULT_COMMIT_PROPERTIES,
    clock: Clock = SYSTEM_CLOCK,
) -> Committed:
    require_commit_properties(properties)
    refuse_unsupported_definition(metadata)
    schema = schema_from_json(metadata.schema_string)
    protocol = protocol_for(schema, metadata.configuration, current=snapshot.protocol)
    actions: list[Action] = [metadata]
    if protocol != snapshot.protocol:
        actions.insert(0, protocol)
    transaction = Transaction.begin(
        snapshot,
        operation=operation,
        surface=Surface.COMMIT,
        operation_parameters=parameters,
        properties=properties,
        # A row that is added meanwhile has not been looked at, whatever the table asks of reads.
        isolation=IsolationLevel.SERIALIZABLE if reads_rows else None,
        clock=clock,
    )
    if reads_rows:
        transaction.read_predicate(None)
    return raise_for_result(commit_and_checkpoint(transaction.add(*actions)))


def _with_schema(snapshot: Snapshot, schema: StructType) -> Metadata:
    return replace(snapshot.metadata, schema_string=schema_to_json(schema))


def _configured(snapshot: Snapshot, configuration: Mapping[str, str]) -> Metadata:
    TableProperties.of(configuration).validate()
    return replace(snapshot.metadata, configuration=dict(configuration))


def _refuse_constraints(keys: Iterable[str]) -> None:
    if any(key.lower().startswith(CONSTRAINT_PREFIX) for key in keys):
        raise ConfigurationError(
            "CHECK constraints are not set as table properties.",
            cause="The rows that the table has must be checked first.",
            fix="Use add_constraint and drop_constraint.",
        )


def _exists(store: LogStore) -> TableExistsError:
    return TableExistsError(
        f"There is already a Delta table at {store.uri}.",
        fix="Open it with DeltaTable, or choose another location.",
    )
