"""Builds a commit footprint from the actions of a transaction and its table."""

from __future__ import annotations

from collections.abc import Sequence

from delta_core.actions import Action
from delta_core.schema.column_mapping import ColumnMapping
from delta_core.schema.json import schema_from_json
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.table_properties import TableProperties
from delta_core.transaction.file_matching import file_matcher
from delta_core.transaction.final_actions import definition_after
from delta_core.transaction.isolation import IsolationLevel
from delta_core.transaction.read_set import CommitFootprint, FileMatcher, ReadSet, effective_isolation


def footprint_of(
    actions: Sequence[Action],
    *,
    base: Snapshot | None,
    reads: ReadSet,
    isolation: IsolationLevel | None,
    reuses_files: bool,
    rebased_domains: frozenset[str],
    verified_at_ms: int,
) -> CommitFootprint:
    """The footprint that the conflict rules compare with winning commits.

    Args:
        actions: the actions of the commit, as returned by `final_actions`.
        base: the table before the commit; None for a table that is created.
        reads: the read set that the actions depend on.
        isolation: overrides the table's level (`delta.isolationLevel`).
        reuses_files, rebased_domains, verified_at_ms: see `CommitFootprint`.
    """
    level = isolation
    if level is None:
        properties = TableProperties.of(definition_after(base, actions).metadata.configuration)
        level = IsolationLevel(str(properties.isolation_level))
    return CommitFootprint.of(
        actions,
        reads=reads,
        isolation=effective_isolation(actions, level),
        base_metadata=None if base is None else base.metadata,
        matcher=_matcher(base, actions),
        reuses_files=reuses_files,
        rebased_domains=rebased_domains,
        verified_at_ms=verified_at_ms,
    )


def _matcher(base: Snapshot | None, actions: Sequence[Action]) -> FileMatcher:
    if base is not None:
        return file_matcher(base.schema, base.partition_columns, mapping=base.column_mapping)
    created = definition_after(base, actions).metadata
    return file_matcher(
        schema_from_json(created.schema_string),
        created.partition_columns,
        mapping=ColumnMapping.of(created.configuration),
    )
