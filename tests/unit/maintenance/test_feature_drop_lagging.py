"""Dropping a feature on a store whose listings lag: what is not listed is part of the history, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import FeatureRemovalError, LogGapError, StaleListingError, VersionNotFoundError
from delta_core.log.log_path import LogFileKind, LogPath
from delta_core.maintenance.feature_drop import complete_listing
from delta_core.maintenance.feature_drop.apply import drop_feature
from delta_core.maintenance.feature_drop.history import History, oldest_version
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import ObjectInfo
from delta_core.table_features.internal_properties import CHECKPOINT_PROTECTION
from delta_core.table_features.upgrade import supported_features
from tests.support.dropped_tables import by_peer, ids, make, rows, snapshot_of

Hidden = Callable[[int], bool]


class LaggingStore(LocalLogStore):
    """Lists some commits not yet; what is asked for by name is there."""

    def __init__(self, root: Path, hidden: Hidden) -> None:
        super().__init__(root)
        self.hidden = hidden

    @property
    def consistent_listing(self) -> bool:
        return False

    def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        return [
            info for info in super().list_directory(path, start_after=start_after) if not self._hides(info)
        ]

    def _hides(self, info: ObjectInfo) -> bool:
        path = LogPath.parse(info.path)
        return path is not None and path.kind is LogFileKind.COMMIT and self.hidden(path.version)


def lagging(path: Path, hidden: Hidden) -> Snapshot:
    return Snapshot.load(LaggingStore(path, hidden))


def used_once(path: Path) -> int:
    """A table whose vectors came and went; returns its newest version."""
    table = make(path, enableDeletionVectors="true")
    table.alter.unset_properties(["delta.enableDeletionVectors"])
    table.optimize.purge()
    write_deltalake(table, rows(60), mode="append")
    return table.version()


@pytest.mark.parametrize("first", [1, 3, 5])
def test_commits_that_are_not_listed_yet_are_looked_at(tmp_path: Path, first: int) -> None:
    newest = used_once(tmp_path)
    expected = History(feature="deletionVectors").clean_since(snapshot_of(tmp_path))
    seen = lagging(tmp_path, lambda version: version >= first)
    assert seen.version == newest
    assert History(feature="deletionVectors").clean_since(seen) == expected


def test_a_history_whose_beginning_is_not_listed_is_not_taken_for_cleaned_up(tmp_path: Path) -> None:
    newest = used_once(tmp_path)
    DeltaTable(tmp_path).create_checkpoint()
    seen = lagging(tmp_path, lambda version: version < newest)
    assert oldest_version(seen) == 0
    with pytest.raises(VersionNotFoundError):
        drop_feature(seen, "deletionVectors")
    assert "deletionVectors" in supported_features(DeltaTable(tmp_path).protocol())


def test_the_history_is_protected_all_the_same(tmp_path: Path) -> None:
    used_once(tmp_path)
    DeltaTable(tmp_path).create_checkpoint()
    expected = ids(tmp_path)
    dropped = drop_feature(lagging(tmp_path, lambda version: version >= 3), "deletionVectors").version
    assert DeltaTable(tmp_path).metadata().configuration[CHECKPOINT_PROTECTION] == str(dropped)
    assert ids(tmp_path) == by_peer(tmp_path) == expected


def test_a_protected_log_that_is_not_listed_is_there(tmp_path: Path) -> None:
    table = make(tmp_path, enableDeletionVectors="true")
    dropped = table.alter.drop_feature("deletionVectors").version
    with pytest.raises(FeatureRemovalError, match=f"before version {dropped} is protected, and begins at 0"):
        drop_feature(lagging(tmp_path, lambda version: version < dropped), "checkpointProtection")


def test_an_older_checkpoint_may_be_there_and_not_listed(tmp_path: Path) -> None:
    """Then it is not known what the versions between the first commit and the checkpoint need."""
    used_once(tmp_path)
    DeltaTable(tmp_path).create_checkpoint()
    for version in range(3):
        (tmp_path / "_delta_log" / f"{version:020d}.json").unlink()
    newest = DeltaTable(tmp_path).version()
    found = History(feature="deletionVectors").clean_since(lagging(tmp_path, lambda version: False))
    assert (found.oldest_version, found.version) == (3, newest)
    assert History(feature="deletionVectors").clean_since(snapshot_of(tmp_path)).oldest_version == newest


def test_versions_before_a_hole_count_as_if_they_needed_it(tmp_path: Path) -> None:
    for number in range(6):
        write_deltalake(tmp_path, rows(number * 10), mode="append")
    table = DeltaTable(tmp_path)
    table.alter.add_feature("deletionVectors")
    table.create_checkpoint()
    assert History(feature="deletionVectors").clean_since(table.snapshot).version == 0
    (tmp_path / "_delta_log" / f"{3:020d}.json").unlink()
    found = History(feature="deletionVectors").clean_since(snapshot_of(tmp_path))
    assert (found.oldest_version, found.version) == (0, 6)


def test_a_gap_that_no_checkpoint_makes_up_for(tmp_path: Path) -> None:
    newest = used_once(tmp_path)
    seen = snapshot_of(tmp_path)
    (tmp_path / "_delta_log" / f"{newest - 1:020d}.json").unlink()
    with pytest.raises(LogGapError, match=f"has a gap before version {newest}"):
        History(feature="deletionVectors").clean_since(seen)


def test_too_many_commits_that_are_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newest = used_once(tmp_path)
    monkeypatch.setattr(complete_listing, "MAX_LOOKUPS", 3)
    with pytest.raises(StaleListingError, match="does not list 4 or more commits"):
        History(feature="deletionVectors").clean_since(
            lagging(tmp_path, lambda version: version > newest - 4)
        )
