"""Adding a table feature by its name (PROTOCOL.md, "Supported Features")."""

from __future__ import annotations

from typing import Any

from delta_core.dml.definition.change import applied_before, commit_change
from delta_core.errors import ConfigurationError
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.enablement import FEATURE_PREFIX, ProtocolRequest
from delta_core.transaction.commit_result import Committed


def add_feature(snapshot: Snapshot, name: str, **options: Any) -> Committed:
    """Let the table support a feature, and those that it requires, without turning anything on.

    Nothing is committed where the table supports it: the result is the version that there is, with no
    attempt. One request otherwise.

    Args:
        snapshot: the table.
        name: the feature's name, in any case.
        options: those of the commit.

    Raises:
        ConfigurationError: the name is no text.
        UnsupportedTableFeatureError: a feature that is not known, or not written by this library.
    """
    if not isinstance(name, str):
        raise ConfigurationError(
            f"{name!r} is no table feature.",
            cause=f"It is of type {type(name).__name__}.",
            fix="Pass the feature's name as the protocol has it, such as 'appendOnly'; one in each call.",
        )
    applied = applied_before(snapshot, **options)
    if applied is not None:
        return applied
    request = ProtocolRequest.of({FEATURE_PREFIX + name: "supported"})
    if request.is_met_by(snapshot.protocol):
        return Committed(version=snapshot.version, attempts=0, snapshot=snapshot)
    return commit_change(
        snapshot,
        operation="ADD FEATURE",
        parameters={"feature": next(iter(request.features))},
        request=request,
        **options,
    )
