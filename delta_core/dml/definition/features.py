"""Adds table features by name (PROTOCOL.md, "Supported Features")."""

from __future__ import annotations

from delta_core.dml.definition.change import commit_change
from delta_core.errors import ConfigurationError
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.enablement import FEATURE_PREFIX, ProtocolRequest
from delta_core.transaction.commit_result import Committed


def add_feature(snapshot: Snapshot, name: str, *, run: Run = DEFAULT_RUN) -> Committed:
    """Add a feature, and the features that it requires, to the protocol without enabling anything.

    When the table already supports the feature, nothing is committed. The result is then the current version
    with no attempt. Otherwise one request.

    Args:
        snapshot: the version of the table.
        name: the feature's name, in any case.
        run: the surroundings, such as the clock and the commit properties.

    Raises:
        ConfigurationError: the name is not a string.
        UnsupportedTableFeatureError: the feature is not known, or this library does not write it.
    """
    if not isinstance(name, str):
        raise ConfigurationError(
            f"{name!r} is not a table feature.",
            cause=f"It is of type {type(name).__name__}.",
            fix="Pass one feature name from the protocol, such as 'appendOnly'.",
        )
    applied = run.already_applied(snapshot)
    if applied is not None:
        return applied
    request = ProtocolRequest.of({FEATURE_PREFIX + name: "supported"})
    if request.is_satisfied_by(snapshot.protocol):
        return Committed(version=snapshot.version, attempts=0, snapshot=snapshot)
    return commit_change(
        snapshot,
        operation="ADD FEATURE",
        parameters={"feature": next(iter(request.features))},
        request=request,
        run=run,
    )
