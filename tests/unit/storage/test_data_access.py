"""Where the objects of a log may be, links on the way, and stores that show them late."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_core.clock import ManualClock
from delta_core.errors import (
    ConfigurationError,
    DeltaError,
    InvalidUriError,
    MissingDataFileError,
    PathEscapeError,
)
from delta_core.storage.data_access import (
    RETRY_PAUSES_SECONDS,
    TABLE_ONLY,
    DataAccess,
    open_allowed_roots,
)
from delta_core.storage.local import LocalLogStore


@pytest.fixture
def table(tmp_path: Path) -> LocalLogStore:
    for folder in ("table/inner", "source/inner", "outside"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "f").write_bytes(folder.encode())
    return LocalLogStore(tmp_path / "table")


def allowing(*roots: Path) -> DataAccess:
    return DataAccess(allowed_roots=open_allowed_roots(roots))


def content(access: DataAccess, raw: str, store: LocalLogStore) -> str:
    place = access.locate(raw, store=store)
    with access.open(place.store, place.path) as source:
        return bytes(source.read()).decode()


def test_absolute_paths_are_opened_below_allowed_roots_only(table: LocalLogStore, tmp_path: Path) -> None:
    source = f"{tmp_path}/source/inner/f"
    for raw in (f"file://{source}", f"file:{source}", source, source.replace("inner", "%69nner")):
        assert content(allowing(tmp_path / "source"), raw, table) == "source/inner"
        for access in (TABLE_ONLY, allowing(tmp_path / "outside"), allowing(tmp_path / "source" / "inn")):
            with pytest.raises(PathEscapeError):
                access.locate(raw, store=table)
    assert content(allowing(tmp_path / "source"), "inner/f", table) == "table/inner"
    assert content(allowing(tmp_path / "source"), f"{tmp_path}/table/inner/f", table) == "table/inner"


def test_what_a_log_names_is_opened_and_asked_for_by_its_name_there(
    table: LocalLogStore, tmp_path: Path
) -> None:
    raw, access = f"file://{tmp_path}/source/%69nner/f", allowing(tmp_path / "source")
    with access.open_logged(raw, store=table) as source:
        assert source.read() == b"source/inner"
    access.require_allowed_paths([raw, "inner/f", "inner/not-there"], store=table)
    with pytest.raises(PathEscapeError, match="not below the table root"):
        TABLE_ONLY.require_allowed_paths(["inner/f", raw], store=table)
    for folder in ("table", "source"):
        (tmp_path / folder / "link").symlink_to(tmp_path / "outside" / "f")
    for linked in ("link", f"{tmp_path}/source/link"):
        with pytest.raises(PathEscapeError):
            access.require_allowed_paths([raw, linked], store=table)
    allowing(tmp_path / "outside").require_allowed_paths(["link"], store=table)


def test_a_root_around_the_table_leaves_the_tables_own_paths_alone(
    table: LocalLogStore, tmp_path: Path
) -> None:
    place = allowing(tmp_path).locate(f"{tmp_path}/table/inner/f", store=table)
    assert (place.store, place.path) == (table, "inner/f")


@pytest.mark.parametrize(
    "raw",
    [
        "{0}/source/../outside/f",
        "file://{0}/source/%2e%2e/outside/f",
        "file://{0}/source/%252e%252e/outside/f",
        "{0}/source/..\\outside/f",
        "../source/inner/f",
        "file://host{0}/source/inner/f",
        "/{0}/source/inner/f",
        "s3:/{0}/source/inner/f",
        "{0}/source/link/f",
        "{0}/source/f.link",
        "{0}/source/inner/f%00",
        "{0}/source/inner/f%2500",
        "{0}/source",
    ],
)
def test_allowed_roots_are_not_left_either(table: LocalLogStore, tmp_path: Path, raw: str) -> None:
    (tmp_path / "source" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "source" / "f.link").symlink_to(tmp_path / "outside" / "f")
    with pytest.raises(PathEscapeError):
        allowing(tmp_path / "source").locate(raw.format(tmp_path), store=table)


def test_an_allowed_root_may_be_a_link(table: LocalLogStore, tmp_path: Path) -> None:
    (tmp_path / "name").symlink_to(tmp_path / "source")
    assert content(allowing(tmp_path / "name"), f"{tmp_path}/source/inner/f", table) == "source/inner"
    assert content(allowing(tmp_path / "source"), f"{tmp_path}/name/inner/f", table) == "source/inner"


def test_links_out_of_the_table_are_not_followed(table: LocalLogStore, tmp_path: Path) -> None:
    (tmp_path / "table" / "file").symlink_to(tmp_path / "source" / "inner" / "f")
    (tmp_path / "table" / "folder").symlink_to(tmp_path / "source" / "inner")
    (tmp_path / "table" / "within").symlink_to(tmp_path / "table" / "inner")
    (tmp_path / "table" / "circle").symlink_to(tmp_path / "table" / "circle")
    assert content(TABLE_ONLY, "within/f", table) == "table/inner"
    for raw in ("file", "folder/f"):
        with pytest.raises(PathEscapeError, match="link out of the root"):
            content(TABLE_ONLY, raw, table)
        with pytest.raises(PathEscapeError, match="link out of the root"):
            content(allowing(tmp_path / "outside"), raw, table)
        assert content(allowing(tmp_path / "outside", tmp_path / "source"), raw, table) == "source/inner"
    with pytest.raises(DeltaError, match="circle"):
        content(TABLE_ONLY, "circle", table)


def test_a_table_whose_root_is_a_link_is_read(tmp_path: Path, table: LocalLogStore) -> None:
    (tmp_path / "name").symlink_to(tmp_path / "table")
    assert content(TABLE_ONLY, "inner/f", LocalLogStore(tmp_path / "name")) == "table/inner"


def test_what_cannot_be_allowed(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="whole file system"):
        open_allowed_roots(["/"])
    with pytest.raises(ConfigurationError, match="list of URIs"):
        open_allowed_roots(str(tmp_path))
    with pytest.raises(InvalidUriError, match="ftp"):
        open_allowed_roots(["ftp://bucket/table"])


class LateStore(LocalLogStore):
    """Shows an object only when it has been asked for so many times."""

    def __init__(self, root: Path, *, hidden: int, consistent: bool) -> None:
        super().__init__(root)
        self.hidden = hidden
        self.consistent = consistent
        self.asked = 0

    @property
    def consistent_listing(self) -> bool:
        return self.consistent

    def open_input(self, path: str) -> pa.NativeFile:
        self.asked += 1
        return super().open_input(path if self.asked > self.hidden else "not there")


@pytest.mark.parametrize("hidden", [0, 1, 2, 3])
def test_what_a_store_shows_late_is_asked_for_again(table: LocalLogStore, hidden: int) -> None:
    store, clock = LateStore(table.root, hidden=hidden, consistent=False), ManualClock()
    assert content(DataAccess(clock=clock), "inner/f", store) == "table/inner"
    assert store.asked == hidden + 1
    assert clock.monotonic_seconds() == pytest.approx(sum(RETRY_PAUSES_SECONDS[:hidden]))


def test_the_tries_are_bounded(table: LocalLogStore) -> None:
    store, clock = LateStore(table.root, hidden=100, consistent=False), ManualClock()
    with pytest.raises(MissingDataFileError, match=r"deletion vector file inner/f is missing.*copy it back"):
        DataAccess(clock=clock).open(store, "inner/f", kind="deletion vector file", fix="copy it back")
    assert store.asked == 4
    assert clock.monotonic_seconds() == pytest.approx(1.5)


def test_a_store_that_shows_what_it_has_is_asked_once(table: LocalLogStore) -> None:
    store, clock = LateStore(table.root, hidden=1, consistent=True), ManualClock()
    with pytest.raises(MissingDataFileError, match="data file inner/f is missing"):
        DataAccess(clock=clock).open(store, "inner/f")
    assert store.asked == 1
    assert clock.monotonic_seconds() == 0


class RemoteStore(LocalLogStore):
    """A store whose names are no local paths."""

    @property
    def uri(self) -> str:
        return "memory://bucket/table"


def test_links_are_a_matter_of_local_disks(table: LocalLogStore, tmp_path: Path) -> None:
    (tmp_path / "table" / "file").symlink_to(tmp_path / "source" / "inner" / "f")
    with TABLE_ONLY.open(RemoteStore(table.root), "file") as source:
        assert source.read() == b"source/inner"
    (tmp_path / "table" / "out").symlink_to(tmp_path / "outside" / "f")
    mixed = DataAccess(allowed_roots=(RemoteStore(tmp_path / "outside"),))
    with pytest.raises(PathEscapeError, match="link out of the root"):
        mixed.open(table, "out")
    with pytest.raises(PathEscapeError):
        mixed.locate(f"{tmp_path}/outside/f", store=table)
