"""CHECK constraints (PROTOCOL.md, "CHECK Constraints")."""

from __future__ import annotations

import pyarrow.compute as pc

from delta_core.dml.definition.change import commit_change, with_configuration
from delta_core.errors import ConfigurationError, ConstraintViolationError
from delta_core.expressions.columns import referenced_columns
from delta_core.expressions.evaluate import matches
from delta_core.expressions.parse import parse_predicate
from delta_core.expressions.render import to_spark_sql
from delta_core.run import DEFAULT_RUN, Run
from delta_core.scan.scan import Scan
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.enablement import CONSTRAINT_PREFIX
from delta_core.transaction.commit_result import Committed


def add_constraint(
    snapshot: Snapshot, name: str, expression: str, *, as_given: bool = False, run: Run = DEFAULT_RUN
) -> Committed:
    """Add a CHECK constraint. The expression must be true for every existing and new row.

    Reads the columns of the expression in the whole table. The table stores the expression with the types
    that its constants have, or `as_given`.

    Raises:
        ConstraintViolationError: an existing row violates the constraint.
        ConfigurationError: the name is blank, or the table has a constraint with this name.
        ExpressionError: the expression does not fit the schema.
    """
    applied = run.already_applied(snapshot)
    if applied is not None:
        return applied
    if not name.strip():
        raise ConfigurationError(
            "The constraint has no name.",
            cause="Error messages and drop_constraint refer to a constraint by its name.",
            fix="Pass a name such as 'positive_price'.",
        )
    key = CONSTRAINT_PREFIX + name
    if any(existing.lower() == key.lower() for existing in snapshot.metadata.configuration):
        raise ConfigurationError(
            f"The table already has a constraint named {name!r}.",
            fix="Drop it first, or choose another name.",
        )
    resolved = parse_predicate(expression, snapshot.schema)
    text = expression if as_given else to_spark_sql(resolved)
    names = sorted({path[0] for path in referenced_columns(resolved)}) or [snapshot.schema.names[0]]
    for batch in Scan(snapshot, columns=names, allowed_roots=run.allowed_roots).to_batches():
        holds = matches(resolved, batch)
        if not pc.all(holds, min_count=0).as_py():
            broken = batch.filter(pc.invert(holds)).slice(0, 1).to_pylist()[0]
            raise ConstraintViolationError(
                f"Existing rows violate the constraint {name!r} ({text}).",
                cause=f"One of these rows is {broken!r}.",
                fix="Correct or delete these rows first.",
            )
    configuration = {**snapshot.metadata.configuration, key: text}
    metadata = with_configuration(snapshot, configuration)
    return commit_change(
        snapshot,
        operation="ADD CONSTRAINT",
        parameters={"name": name, "expr": text},
        metadata=metadata,
        reads_rows=True,
        run=run,
    )


def drop_constraint(snapshot: Snapshot, name: str, *, run: Run = DEFAULT_RUN) -> Committed:
    """Drop a CHECK constraint.

    Raises:
        ConfigurationError: the table has no constraint with this name.
    """
    applied = run.already_applied(snapshot)
    if applied is not None:
        return applied
    property_key = (CONSTRAINT_PREFIX + name).lower()
    remaining = {k: v for k, v in snapshot.metadata.configuration.items() if k.lower() != property_key}
    if len(remaining) == len(snapshot.metadata.configuration):
        names = sorted(
            key[len(CONSTRAINT_PREFIX) :] for key in remaining if key.lower().startswith(CONSTRAINT_PREFIX)
        )
        raise ConfigurationError(
            f"The table has no constraint named {name!r}.",
            cause=f"Its constraints are: {', '.join(names) or 'none'}.",
            fix="Pass the name of one of these constraints.",
        )
    return commit_change(
        snapshot,
        operation="DROP CONSTRAINT",
        parameters={"name": name},
        metadata=with_configuration(snapshot, remaining),
        run=run,
    )
