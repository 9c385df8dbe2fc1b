"""Ids for the rows of new files, and the version that they came with (PROTOCOL.md, "Row Tracking").

A file's rows are numbered from its `baseRowId` on, above every number that the table has given out. How far
it has come is in the metadata domain `delta.rowTracking`, so two appends that know nothing of each other
would give the same numbers: whoever comes second counts on from where the winner ended.
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

Numbers = tuple[int | None, int | None]
"""A file's `baseRowId` and `defaultRowCommitVersion`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowIds:
    """Numbers the rows of a commit's new files.

    A file that has its numbers keeps them, and so does one that the same commit removes and adds again, with
    another deletion vector for instance. Whoever adds a live file again without a `remove` must pass them on.

    Attributes:
        watermark: the highest id given out; -1 where none is.
        tells_preserved: whether the commit says if rows that moved kept their ids, as it does where row
            tracking is enabled.
        preserved: what the operation says of that; None says True where no row moved, else False.
    """

    watermark: int
    tells_preserved: bool = False
    preserved: bool | None = None

    @property
    def domains(self) -> frozenset[str]:
        """The domain of the watermark."""
        return frozenset({DOMAIN})

    def stamp(self, draft: CommitDraft, version: int) -> CommitDraft:
        """See `RebaseHook`. No request.

        Raises:
            CommitError: a new file does not say how many rows it has, or there are no more ids.
        """
        info, actions = draft.info, draft.actions
        if self.tells_preserved:
            tags = dict(info.extra.get("tags") or {})
            tags[PRESERVED_TAG] = "true" if self._rows_preserved(actions) else "false"
            info = replace(info, extra={**info.extra, "tags": tags})
        if any(isinstance(action, AddFile) or _is_watermark(action) for action in actions):
            actions = self._numbered(actions, version)
        return CommitDraft(info=info, actions=actions)

    def after(self, winner: WinningCommit) -> RowIds:
        """See `RebaseHook`."""
        theirs = [watermark_of(item) for item in winner.domain_metadata if item.domain == DOMAIN]
        return replace(self, watermark=max((self.watermark, *theirs)))

    def _numbered(self, actions: Sequence[Action], version: int) -> list[Action]:
        staged = [a for a in actions if isinstance(a, DomainMetadata) and a.domain == DOMAIN]
        _require_none_removed(staged)
        before = _kept_numbers(actions)
        watermark = floor = max((self.watermark, *map(watermark_of, staged)))
        for action in actions:
            if isinstance(action, AddFile):
                base = _own_numbers(action, before)[0]
                if base is not None:
                    watermark = max(watermark, base + (_num_rows(action) or 0) - 1)
        numbered: list[Action] = []
        for action in actions:
            if _is_watermark(action):
                continue
            if isinstance(action, AddFile):
                base, since = _own_numbers(action, before)
                if base is None:
                    base = watermark + 1
                    watermark += _required_rows(action)
                    since = version
                action = replace(
                    action, base_row_id=base, default_row_commit_version=version if since is None else since
                )
            numbered.append(action)
        if watermark > _MAX_LONG:
            raise CommitError(
                "The table has no ids left for more rows.",
                cause=f"Its watermark is {self.watermark}.",
                fix="Copy the rows into a new table.",
            )
        if watermark > self.watermark or floor > self.watermark:
            numbered.append(watermark_action(watermark))
        return numbered

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
    """The stamper of a commit; None where the table, as the commit leaves it, numbers no rows.

    Reads no file of the checkpoint.

    Raises:
        InvalidTableError: the protocol has the feature, and not the one that it needs; or row tracking is
            enabled and suspended at once, and the commit says so or adds files.
        CorruptLogError: the table's watermark is none.
    """
    if FEATURE not in writer_features(protocol):
        return None
    if _is_true(metadata, SUSPENDED):
        if any(isinstance(action, AddFile | Metadata) for action in actions):
            _require_not_both(metadata)
        return None
    if "domainMetadata" not in writer_features(protocol):
        raise InvalidTableError(
            "The rows of the table cannot be numbered.",
            cause=f"Its protocol lists {FEATURE} and not domainMetadata, which keeps the highest number.",
            fix="Add the feature domainMetadata to the table's protocol.",
        )
    found = None if base is None else base.domain(DOMAIN)
    return RowIds(
        watermark=-1 if found is None else watermark_of(found),
        tells_preserved=_is_true(metadata, ENABLE_ROW_TRACKING.key),
        preserved=preserved,
    )


def watermark_action(watermark: int) -> DomainMetadata:
    """The domain that says that ids up to this one are given out."""
    return DomainMetadata(domain=DOMAIN, configuration=orjson.dumps({_WATERMARK: watermark}).decode())


def watermark_of(domain: DomainMetadata) -> int:
    """The highest id that is given out; -1 where the domain was removed.

    Raises:
        CorruptLogError: it does not say.
    """
    if domain.removed:
        return -1
    try:
        found = orjson.loads(domain.configuration)[_WATERMARK]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        found = None
    if isinstance(found, bool) or not isinstance(found, int):
        raise CorruptLogError(
            "How many rows of the table have ids cannot be told.",
            cause=f"The metadata domain {DOMAIN} is {domain.configuration!r}, without {_WATERMARK}.",
            fix="Restore the table to a version before it, with an engine that can.",
        )
    return found


def enables_row_tracking(metadata: Metadata | None) -> bool:
    """Whether metadata says that every row has an id."""
    return metadata is not None and _is_true(metadata, ENABLE_ROW_TRACKING.key)


def require_enablement(
    base: Snapshot | None, protocol: Protocol, metadata: Metadata, actions: Sequence[Action]
) -> None:
    """Check what must hold in the commit that enables row tracking; nothing to do in others.

    Loads the live files' row ids in that commit.

    Raises:
        InvalidTableError: a live file has no ids and gets none, the hidden columns have no names, or row
            tracking is suspended at once.
        RowTrackingDisabledError: the protocol does not have the feature.
    """
    if not enables_row_tracking(metadata) or (base is not None and enables_row_tracking(base.metadata)):
        return
    RowTracking.of(protocol, metadata, operation="enable row tracking")
    _require_not_both(metadata)
    if base is None:
        return
    touched = {canonical_log_path(a.path) for a in actions if isinstance(a, AddFile | RemoveFile)}
    files = base.files.to_table(["path", "base_row_id", "default_row_commit_version"]).to_pydict()
    for path, row_id, since in zip(*files.values(), strict=True):
        if (row_id is None or since is None) and canonical_log_path(path) not in touched:
            raise InvalidTableError(
                "Row tracking cannot be enabled yet.",
                cause=f"The rows of the file {path!r} have no ids.",
                fix="Add the live files again first, so that their rows get ids.",
            )


def _require_not_both(metadata: Metadata) -> None:
    if enables_row_tracking(metadata) and _is_true(metadata, SUSPENDED):
        raise InvalidTableError(
            "Row tracking cannot be enabled and suspended at once.",
            cause=f"{SUSPENDED} is true, so new rows would get no ids, and {ENABLE_ROW_TRACKING.key} "
            "promises every row one.",
            fix=f"Set {ENABLE_ROW_TRACKING.key} to false; DeltaTable.optimize.enable_row_tracking() ends the "
            "suspension and numbers what has no ids.",
        )


def _kept_numbers(actions: Iterable[Action]) -> Mapping[str, Numbers]:
    return {
        canonical_log_path(action.path): (action.base_row_id, action.default_row_commit_version)
        for action in actions
        if isinstance(action, RemoveFile) and action.base_row_id is not None
    }


def _own_numbers(add: AddFile, before: Mapping[str, Numbers]) -> Numbers:
    if add.base_row_id is not None:
        return add.base_row_id, add.default_row_commit_version
    return before.get(canonical_log_path(add.path), (None, None)) if before else (None, None)


def _is_watermark(action: Action) -> bool:
    return isinstance(action, DomainMetadata) and action.domain == DOMAIN


def _require_none_removed(staged: Iterable[DomainMetadata]) -> None:
    if any(domain.removed for domain in staged):
        raise CommitError(
            f"The metadata domain {DOMAIN} cannot be removed.",
            cause="The table still numbers its rows, and would give the same ids again.",
            fix=f"Set {SUSPENDED} to true in the same commit, or drop the feature {FEATURE}.",
        )


def _num_rows(add: AddFile) -> int | None:
    """Rows in the file itself, those that a deletion vector hides included."""
    try:
        count = orjson.loads(add.stats or "{}").get("numRecords")
    except (orjson.JSONDecodeError, AttributeError):
        return None
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


def _required_rows(add: AddFile) -> int:
    count = _num_rows(add)
    if count is None:
        raise CommitError(
            f"The rows of the file {add.path!r} cannot be numbered.",
            cause="Its statistics do not say how many there are, and the table has row tracking.",
            fix="Give the add action's statistics numRecords; a Parquet file's footer has it.",
        )
    return count


def _is_true(metadata: Metadata, key: str) -> bool:
    try:
        return parse_bool(metadata.configuration.get(key, "false"))
    except ValueError:
        return False
