"""Which files make up a version, from good, bad, stale and lying logs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from delta_core.checkpoint.classic import write_checkpoint
from delta_core.clock import ManualClock
from delta_core.errors import LogGapError, ObjectNotFoundError, TableNotFoundError, VersionNotFoundError
from delta_core.log.last_checkpoint import read_last_checkpoint
from delta_core.log.listing import commit_files, list_log
from delta_core.log.log_path import commit_path
from delta_core.log.log_segment import build_segment, extend_segment
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import ObjectInfo
from tests.support.log_builder import LogBuilder

PART = b"not opened here"


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    return LogBuilder(tmp_path / "t")


class WeakStore(LocalLogStore):
    """A store whose listings go through a function, as an eventually consistent one's would."""

    listing: Callable[[list[ObjectInfo]], list[ObjectInfo]] = staticmethod(lambda found: found)

    @property
    def consistent_listing(self) -> bool:
        return False

    def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        return self.listing(super().list_directory(path, start_after=start_after))


@dataclass
class Hide:
    """Hides names for some listings."""

    names: tuple[str, ...]
    listings: int
    seen: int = field(default=0)

    def __call__(self, found: list[ObjectInfo]) -> list[ObjectInfo]:
        self.seen += 1
        if self.seen > self.listings:
            return found
        return [info for info in found if not info.path.endswith(self.names)]


def _weak(log: LogBuilder, listing: Callable[[list[ObjectInfo]], list[ObjectInfo]]) -> WeakStore:
    store = WeakStore(log.root)
    store.listing = listing  # type: ignore[method-assign]
    return store


def test_no_table(log: LogBuilder) -> None:
    with pytest.raises(TableNotFoundError):
        build_segment(log.store)
    log.raw("_last_checkpoint", b'{"version":3}')
    log.raw("notes.json", b"{}")
    with pytest.raises(TableNotFoundError):
        build_segment(log.store)


def test_commits_alone(log: LogBuilder) -> None:
    log.create().appends(3)
    segment = build_segment(log.store)
    assert (segment.version, segment.checkpoint_version) == (3, None)
    assert [commit.version for commit in segment.commits] == [0, 1, 2, 3]
    assert build_segment(log.store, version=1).version == 1
    for version in (4, -1):
        with pytest.raises(VersionNotFoundError, match="versions from 0 to 3"):
            build_segment(log.store, version=version)


def test_newest_checkpoint_at_or_before_the_version(log: LogBuilder) -> None:
    log.create().appends(9)
    for version in (3, 6):
        log.raw(f"{version:020d}.checkpoint.parquet", PART)
    assert build_segment(log.store).checkpoint_version == 6
    assert build_segment(log.store, version=6).commits == ()
    assert build_segment(log.store, version=5).checkpoint_version == 3
    assert build_segment(log.store, version=2).checkpoint_version is None


@pytest.mark.parametrize("hint", [b"", b"{", b"[]", b'{"version":"6"}', b'{"version":-1}', b'{"version":99}'])
def test_the_hint_is_only_a_hint(log: LogBuilder, hint: bytes) -> None:
    log.create().appends(9)
    log.raw(f"{6:020d}.checkpoint.parquet", PART)
    log.raw("_last_checkpoint", hint)
    assert build_segment(log.store).version == 9
    assert build_segment(log.store).checkpoint_version == 6


def test_an_old_hint_is_overtaken(log: LogBuilder) -> None:
    log.create().appends(9)
    for version in (3, 6):
        log.raw(f"{version:020d}.checkpoint.parquet", PART)
    log.raw("_last_checkpoint", b'{"version":3}')
    assert build_segment(log.store).checkpoint_version == 6
    log.raw("_last_checkpoint", b'{"version":5}')
    assert build_segment(log.store).checkpoint_version == 6
    assert build_segment(log.store, version=4).checkpoint_version == 3


def test_a_hint_whose_checkpoint_is_gone(log: LogBuilder) -> None:
    """A later checkpoint does not serve an earlier version, and the commits from 0 on do."""
    log.create().appends(9)
    log.raw(f"{6:020d}.checkpoint.parquet", PART)
    log.raw("_last_checkpoint", b'{"version":3}')
    for version in range(3, 6):
        segment = build_segment(log.store, version=version)
        assert [commit.version for commit in segment.commits] == list(range(version + 1))
    assert build_segment(log.store, version=6).checkpoint_version == 6
    assert build_segment(log.store, version=7).checkpoint_version == 6
    assert build_segment(log.store).checkpoint_version == 6
    log.raw(f"{1:020d}.checkpoint.parquet", PART)
    assert build_segment(log.store, version=4).checkpoint_version == 1


def test_a_multi_part_checkpoint_needs_all_parts(log: LogBuilder) -> None:
    log.create().appends(5)
    for part in (1, 3):
        log.raw(f"{4:020d}.checkpoint.{part:010d}.{3:010d}.parquet", PART)
    log.raw(f"{4:020d}.checkpoint.{1:010d}.{2:010d}.parquet", PART)
    assert build_segment(log.store).checkpoint_version is None
    log.raw(f"{4:020d}.checkpoint.{2:010d}.{3:010d}.parquet", PART)
    segment = build_segment(log.store)
    assert segment.checkpoint_version == 4
    assert [part.path[-29:-19] for part in segment.checkpoint_parts] == [f"{n:010d}" for n in (1, 2, 3)]
    log.raw(f"{4:020d}.checkpoint.parquet", PART)
    assert len(build_segment(log.store).checkpoint_parts) == 1


def test_a_gap_is_never_a_shorter_table(log: LogBuilder) -> None:
    log.create().appends(5)
    log.remove_commits([3])
    with pytest.raises(LogGapError, match="version 3 is missing"):
        build_segment(log.store)
    with pytest.raises(LogGapError):
        build_segment(log.store, version=4)
    assert build_segment(log.store, version=2).version == 2


def test_a_checkpoint_makes_a_gap_before_it_harmless(log: LogBuilder) -> None:
    log.create().appends(5)
    log.raw(f"{4:020d}.checkpoint.parquet", PART)
    log.remove_commits([0, 1, 3, 4])
    segment = build_segment(log.store)
    assert [commit.version for commit in segment.commits] == [5]
    with pytest.raises(VersionNotFoundError, match="versions from 4 to 5"):
        build_segment(log.store, version=2)
    only = build_segment(log.store, version=4)
    assert (only.commits, only.version_file) == ((), None)


def test_repeated_and_unsorted_listing(log: LogBuilder) -> None:
    log.create().appends(4)
    store = _weak(log, lambda found: [*reversed(found), *found])
    assert [commit.version for commit in build_segment(store).commits] == [0, 1, 2, 3, 4]
    listed = list_log(store)
    assert [commit.version for commit in listed.commits] == [0, 1, 2, 3, 4]
    assert listed.latest_version == 4


def test_a_listing_begins_where_it_is_asked_to(log: LogBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of a thousand names is a request; what comes before is not asked for, nor taken."""
    log.create().appends(12)
    log.raw(f"{9:020d}.checkpoint.parquet", PART)
    log.raw("_last_checkpoint", b'{"version":9}')
    asked = []
    real = LocalLogStore.list_directory

    def listed(self: LocalLogStore, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        asked.append(start_after)
        return real(self, path)

    monkeypatch.setattr(LocalLogStore, "list_directory", listed)
    assert [commit.version for commit in list_log(log.store, from_version=7).commits] == list(range(7, 13))
    segment = build_segment(log.store)
    assert extend_segment(log.store, segment) == segment
    assert [commit.version for commit in list_log(log.store).commits] == list(range(13))
    assert asked == [f"{7:020d}", f"{9:020d}", f"{12:020d}", None]


def test_a_name_that_a_listing_skips_is_looked_up(log: LogBuilder) -> None:
    log.create().appends(4)
    clock = ManualClock()
    hide = Hide(("2.json",), listings=99)
    assert build_segment(_weak(log, hide), clock=clock).version == 4
    assert (hide.seen, clock.now_ms()) == (1, 0)


def test_a_name_that_is_not_found_at_once_is_listed_again(
    log: LogBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.create().appends(4)
    clock = ManualClock()
    hide = Hide(("2.json",), listings=2)
    store = _weak(log, hide)

    def head(path: str) -> ObjectInfo:
        if path.endswith("2.json") or path.endswith("5.json"):
            raise ObjectNotFoundError(path)
        raise AssertionError(path)

    monkeypatch.setattr(store, "head", head)
    assert build_segment(store, clock=clock).version == 4
    assert hide.seen == 3
    assert 0 < clock.now_ms() < 1000


class TornStore(LocalLogStore):
    """A directory in which some names are made while it is read, too early to be met."""

    unmet: tuple[str, ...] = ()
    heads = 0

    def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        found = super().list_directory(path, start_after=start_after)
        return [info for info in found if not info.path.endswith(self.unmet)]

    def head(self, path: str) -> ObjectInfo:
        self.heads += 1
        return super().head(path)


def test_a_directory_that_changes_while_it_is_read_has_no_holes(log: LogBuilder) -> None:
    log.create().appends(3)
    write_checkpoint(Snapshot.load(log.store))
    store = TornStore(log.root)
    segment = build_segment(store)
    log.appends(5)
    store.unmet = ("4.json", "6.json", "7.json")
    assert [commit.version for commit in list_log(store, from_version=5).commits] == [5, 6, 7, 8]
    extended = extend_segment(store, segment)
    assert extended is not None
    assert [commit.version for commit in extended.commits] == [4, 5, 6, 7, 8]
    assert build_segment(store) == extended


@pytest.mark.parametrize("version", [None, 3])
def test_a_checkpoint_that_is_met_without_its_commit_is_of_a_version_with_one(
    log: LogBuilder, version: int | None
) -> None:
    """The commit is older, so it was there; its time is in it alone."""
    log.create().appends(3)
    write_checkpoint(Snapshot.load(log.store))
    store = TornStore(log.root)
    store.unmet = ("3.json", "4.json")
    segment = build_segment(store, version=version)
    assert segment == build_segment(log.store, version=3)
    assert segment.version_file is not None
    log.remove_commits([3])
    assert build_segment(store, version=version).version_file is None


def test_a_long_hole_is_looked_into_once(log: LogBuilder) -> None:
    log.create().appends(30)
    for version in range(1, 20):
        (log.root / commit_path(version)).unlink()
    store = TornStore(log.root)
    assert [commit.version for commit in list_log(store).commits] == [0, *range(20, 31)]
    assert store.heads == 1


def test_listings_beside_a_writer_have_no_holes(log: LogBuilder) -> None:
    """Reading the directory misses some of what lands meanwhile: without a look by name most have holes."""
    log.create()
    store, ended = LocalLogStore(log.root), threading.Event()

    def write() -> None:
        version = 1
        while not ended.is_set():
            store.put_if_absent(commit_path(version), b"{}")
            version += 1

    versions: list[int] = []
    writer = threading.Thread(target=write)
    writer.start()
    try:
        while len(versions) < 300:
            assert writer.is_alive()
            versions = [commit.version for commit in list_log(store).commits]
            assert versions == list(range(len(versions)))
    finally:
        ended.set()
        writer.join()


def test_a_stale_tail_is_found_by_name(log: LogBuilder) -> None:
    log.create().appends(4)
    store = _weak(log, Hide(("3.json", "4.json"), listings=99))
    segment = build_segment(store)
    assert segment.version == 4
    assert extend_segment(store, segment) == segment
    log.appends(1)
    extended = extend_segment(store, segment)
    assert extended is not None
    assert extended.version == 5


def test_a_log_of_which_nothing_is_listed_yet_is_found_by_name(log: LogBuilder) -> None:
    log.create().appends(2)
    segment = build_segment(_weak(log, lambda found: []))
    assert [commit.version for commit in segment.commits] == [0, 1, 2]


class AskedStore(LocalLogStore):
    """A remote store that notes what it is asked, and lists late."""

    late: tuple[str, ...] = ()

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.asked: list[str] = []

    @property
    def remote(self) -> bool:
        return True

    def head(self, path: str) -> ObjectInfo:
        self.asked.append(path[-6:])
        return super().head(path)

    def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        self.asked.append("list")
        found = super().list_directory(path, start_after=start_after)
        return [info for info in found if not info.path.endswith(self.late)]


@pytest.mark.parametrize(
    ("late", "versions", "asked"),
    [
        ((), [1, 2, 3], ["list"]),
        (("3.json",), [1, 2, 3], ["list", "3.json"]),
        ((), [2], ["2.json"]),
        ((), [], []),
    ],
)
def test_commits_that_are_known_to_be_there(
    log: LogBuilder, late: tuple[str, ...], versions: list[int], asked: list[str]
) -> None:
    log.create().appends(3)
    store = AskedStore(log.root)
    store.late = late
    found = commit_files(store, versions)
    assert [commit.version for commit in found] == versions
    assert [commit.info for commit in found] == [
        log.store.head(f"_delta_log/{version:020d}.json") for version in versions
    ]
    assert store.asked == asked


def test_extending(log: LogBuilder) -> None:
    log.create().appends(2)
    segment = build_segment(log.store)
    assert extend_segment(log.store, segment) is segment
    log.appends(2)
    extended = extend_segment(log.store, segment)
    assert extended is not None
    assert extended.commits == build_segment(log.store).commits
    assert extended == build_segment(log.store)
    log.raw(f"{4:020d}.crc", b"{}")
    log.raw(f"{5:020d}.crc", b"{}")
    log.appends(1)
    log.raw(f"{3:020d}.checkpoint.parquet", PART)
    further = extend_segment(log.store, extended)
    assert further is not None, "a checkpoint saves little where few commits are new"
    assert further.version_file == log.store.head(f"_delta_log/{5:020d}.json")
    assert further.checksum == log.store.head(f"_delta_log/{5:020d}.crc")
    (log.log / f"{3:020d}.checkpoint.parquet").unlink()
    log.remove_commits([3])
    assert extend_segment(log.store, segment) is None


def test_a_replaced_table_is_read_anew(log: LogBuilder) -> None:
    log.create().appends(2)
    segment = build_segment(log.store)
    log.commit(version=2, time_ms=5)
    assert extend_segment(log.store, segment) is None


def test_hint_of_a_written_checkpoint(log: LogBuilder) -> None:
    log.create().appends(3)
    info = write_checkpoint(Snapshot.load(log.store, clock=log.clock))
    hint = read_last_checkpoint(log.store)
    assert hint is not None
    assert (hint.version, hint.size, hint.num_add_files) == (3, info.size, 3)
    assert hint.size_bytes == (log.log / f"{3:020d}.checkpoint.parquet").stat().st_size
    assert list_log(log.store).checkpoints[0].version == 3
