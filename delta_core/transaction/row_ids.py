"""Assigns row ids and row commit versions to new files (PROTOCOL.md, "Row Tracking").

The rows of a file have consecutive ids from its `baseRowId`, above every id that the table has assigned. The
metadata domain `delta.rowTracking` stores the high-water mark. Two concurrent appends would assign the same
ids, so the second one continues from the high-water mark of the winner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import orjson

from delta_core.actions import (
    Action,
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
)
from delta_core.errors import CommitError, CorruptLogError, InvalidTableError
from delta_core.storage.uri import canonical_log_path
from delta_core.table_features.feature import writer_features
from delta_core.table_features.row_tracking import RowTracking
from delta_core.table_features.table_properties import (
    ENABLE_ROW_TRACKING,
    ROW_TRACKING_SUSPENDED,
    parse_bool,
)
from delta_core.transaction.rebase import CommitDraft
from delta_core.transaction.winning_commit import WinningCommit

if TYPE_CHECKING:
    from delta_core.snapshot.snapshot import Snapshot

FEATURE = "rowTracking"
DOMAIN = "delta.rowTracking"
SUSPENDED = ROW_TRACKING_SUSPENDED.key
PRESERVED_TAG = "delta.rowTracking.preserved"

_WATERMARK = "rowIdHighWaterMark"
_MAX_LONG = 2**63 - 1

FileRowIds = tuple[int | None, int | None]
"""A file's `baseRowId` and `defaultRowCommitVersion`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowIds:
    """The rebase hook that assigns row ids to the new files of a commit.

    A file with row ids keeps them. A file that the same commit removes and adds again, for example with
    another deletion vector, keeps them too. An `add` of a live file without a `remove` must contain them.

    Attributes:
        watermark: the high-water mark of row ids; -1 when no id was assigned.
        records_preserved: whether the commit records if rows that moved kept their ids. It does so when row
            tracking is enabled.
        preserved: whether the operation kept the ids of rows that moved. None means True when no row moved,
            else False.
    """

    watermark: int
    records_preserved: bool = False
    preserved: bool | None = None

    @property
    def domains(self) -> frozenset[str]:
        """The domain of the high-water mark."""
        return frozenset({DOMAIN})

    def apply(self, draft: CommitDraft, version: int) -> CommitDraft:
        """See `RebaseHook`. No request.

        Raises:
            CommitError: a new file has no row count in its statistics, or no row ids are left.
        """
        info, actions = draft.info, draft.actions
        if self.records_preserved:
            tags = dict(info.extra.get("tags") or {})
            tags[PRESERVED_TAG] = "true" if self._rows_preserved(actions) else "false"
            info = replace(info, extra={**info.extra, "tags": tags})
        if any(isinstance(action, AddFile) or _is_watermark(action) for action in actions):
            actions = self._with_row_ids(actions, version)
        return CommitDraft(info=info, actions=actions)

    def after(self, winner: WinningCommit) -> RowIds:
        """See `RebaseHook`."""
        winners = [watermark_of(item) for item in winner.domain_metadata if item.domain == DOMAIN]
        return replace(self, watermark=max((self.watermark, *winners)))

    def _with_row_ids(self, actions: Sequence[Action], version: int) -> list[Action]:
        staged = [a for a in actions if isinstance(a, DomainMetadata) and a.domain == DOMAIN]
        _require_domain_kept(staged)
        removed_ids = _removed_row_ids(actions)
        watermark = floor = max((self.watermark, *map(watermark_of, staged)))
        for action in actions:
            if isinstance(action, AddFile):
                base = _existing_row_ids(action, removed_ids)[0]
                if base is not None:
                    watermark = max(watermark, base + (_num_rows(action) or 0) - 1)
        result: list[Action] = []
        for action in actions:
            if _is_watermark(action):
                continue
            if isinstance(action, AddFile):
                base, commit_version = _existing_row_ids(action, removed_ids)
                if base is None:
                    base = watermark + 1
                    watermark += _required_rows(action)
                    commit_version = version
                action = replace(
                    action,
                    base_row_id=base,
                    default_row_commit_version=version if commit_version is None else commit_version,
                )
            result.append(action)
        if watermark > _MAX_LONG:
            raise CommitError(
                "The table has no row ids left for more rows.",
                cause=f"Its row id high-water mark is {self.watermark}.",
                fix="Copy the rows into a new table.",
            )
        if watermark > self.watermark or floor > self.watermark:
            result.append(watermark_action(watermark))
        return result

    def _rows_preserved(self, actions: Sequence[Action]) -> bool:
        if self.preserved is not None:
            return self.preserved
        added = {canonical_log_path(a.path) for a in actions if isinstance(a, AddFile)}
        removed = {canonical_log_path(a.path) for a in actions if isinstance(a, RemoveFile)}
        return not (added - removed and removed - added)


def row_ids(
    base: Snapshot | None,
    protocol: Protocol,
    metadata: Metadata,
    actions: Sequence[Action],
    *,
    preserved: bool | None = None,
) -> RowIds | None:
    """The rebase hook of a commit; None when the table assigns no row ids after the commit.

    Reads no file of the checkpoint.

    Raises:
        InvalidTableError: the protocol has the feature without `domainMetadata`; or row tracking is both
            enabled and suspended, and the commit sets metadata or adds files.
        CorruptLogError: the table's high-water mark is not valid.
    """
    if FEATURE not in writer_features(protocol):
        return None
    if _is_true(metadata, SUSPENDED):
        if any(isinstance(action, AddFile | Metadata) for action in actions):
            _require_not_enabled_and_suspended(metadata)
        return None
    if "domainMetadata" not in writer_features(protocol):
        raise InvalidTableError(
            "Row ids cannot be assigned to the rows of the table.",
            cause=f"Its protocol lists {FEATURE} without domainMetadata, which stores the high-water mark.",
            fix="Add the feature domainMetadata to the table's protocol.",
        )
    domain = None if base is None else base.domain(DOMAIN)
    return RowIds(
        watermark=-1 if domain is None else watermark_of(domain),
        records_preserved=_is_true(metadata, ENABLE_ROW_TRACKING.key),
        preserved=preserved,
    )


def watermark_action(watermark: int) -> DomainMetadata:
    """The metadata domain that records that row ids up to `watermark` are assigned."""
    return DomainMetadata(domain=DOMAIN, configuration=orjson.dumps({_WATERMARK: watermark}).decode())


def watermark_of(domain: DomainMetadata) -> int:
    """The row id high-water mark in the domain; -1 when the domain was removed.

    Raises:
        CorruptLogError: the domain has no valid high-water mark.
    """
    if domain.removed:
        return -1
    try:
        watermark = orjson.loads(domain.configuration)[_WATERMARK]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        watermark = None
    if isinstance(watermark, bool) or not isinstance(watermark, int):
        raise CorruptLogError(
            "The row id high-water mark of the table cannot be read.",
            cause=f"The metadata domain {DOMAIN} is {domain.configuration!r}, without a valid {_WATERMARK}.",
            fix="Restore the table to an earlier version, with an engine that can.",
        )
    return watermark


def enables_row_tracking(metadata: Metadata | None) -> bool:
    """Whether the metadata enables row tracking, so that every row has an id."""
    return metadata is not None and _is_true(metadata, ENABLE_ROW_TRACKING.key)


def require_enablement(
    base: Snapshot | None, protocol: Protocol, metadata: Metadata, actions: Sequence[Action]
) -> None:
    """Check the preconditions of a commit that enables row tracking. Other commits are not checked.

    Loads the row ids of the live files for such a commit.

    Raises:
        InvalidTableError: a live file has no row ids and the commit assigns none, the columns for
            materialized row ids have no names, or row tracking is suspended.
        RowTrackingDisabledError: the protocol does not have the feature.
    """
    if not enables_row_tracking(metadata) or (base is not None and enables_row_tracking(base.metadata)):
        return
    RowTracking.of(protocol, metadata, operation="enable row tracking")
    _require_not_enabled_and_suspended(metadata)
    if base is None:
        return
    touched = {canonical_log_path(a.path) for a in actions if isinstance(a, AddFile | RemoveFile)}
    files = base.files.to_table(["path", "base_row_id", "default_row_commit_version"]).to_pydict()
    for path, row_id, commit_version in zip(*files.values(), strict=True):
        if (row_id is None or commit_version is None) and canonical_log_path(path) not in touched:
            raise InvalidTableError(
                "Row tracking cannot be enabled yet.",
                cause=f"The rows of the file {path!r} have no row ids.",
                fix="Assign row ids to the live files first, by adding them again.",
            )


def _require_not_enabled_and_suspended(metadata: Metadata) -> None:
    if enables_row_tracking(metadata) and _is_true(metadata, SUSPENDED):
        raise InvalidTableError(
            "Row tracking cannot be enabled and suspended at the same time.",
            cause=f"{SUSPENDED} is true, so new rows would get no row ids. {ENABLE_ROW_TRACKING.key} "
            "requires an id for every row.",
            fix=f"Set {ENABLE_ROW_TRACKING.key} to false, or call DeltaTable.optimize.enable_row_tracking(). "
            "That ends the suspension and assigns the missing row ids.",
        )


def _removed_row_ids(actions: Iterable[Action]) -> Mapping[str, FileRowIds]:
    return {
        canonical_log_path(action.path): (action.base_row_id, action.default_row_commit_version)
        for action in actions
        if isinstance(action, RemoveFile) and action.base_row_id is not None
    }


def _existing_row_ids(add: AddFile, removed: Mapping[str, FileRowIds]) -> FileRowIds:
    if add.base_row_id is not None:
        return add.base_row_id, add.default_row_commit_version
    return removed.get(canonical_log_path(add.path), (None, None)) if removed else (None, None)


def _is_watermark(action: Action) -> bool:
    return isinstance(action, DomainMetadata) and action.domain == DOMAIN


def _require_domain_kept(staged: Iterable[DomainMetadata]) -> None:
    if any(domain.removed for domain in staged):
        raise CommitError(
            f"The metadata domain {DOMAIN} cannot be removed.",
            cause="The table still assigns row ids, and would assign the same ids again.",
            fix=f"Set {SUSPENDED} to true in the same commit, or drop the feature {FEATURE}.",
        )


def _num_rows(add: AddFile) -> int | None:
    """The number of rows in the file, including deleted rows; None when it is not recorded."""
    try:
        count = orjson.loads(add.stats or "{}").get("numRecords")
    except (orjson.JSONDecodeError, AttributeError):
        return None
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


def _required_rows(add: AddFile) -> int:
    count = _num_rows(add)
    if count is None:
        raise CommitError(
            f"Row ids cannot be assigned to the rows of the file {add.path!r}.",
            cause="The table has row tracking, and the statistics of the file have no valid numRecords.",
            fix="Set numRecords in the statistics of the add action to the row count in the Parquet footer.",
        )
    return count


def _is_true(metadata: Metadata, key: str) -> bool:
    try:
        return parse_bool(metadata.configuration.get(key, "false"))
    except ValueError:
        return False
