"""What a path is mounted from decides whether its listings can be relied on."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_core.storage import local, local_system
from delta_core.storage.local import LocalLogStore
from delta_core.storage.local_system import filesystem_of, is_shared

MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /mnt rw - nfs4 server:/export rw,vers=4.2
31 30 0:27 / /mnt/local\\040disk rw,relatime shared:9 master:2 - xfs /dev/vdb rw
32 22 0:28 / /data rw - ext4 /dev/vdc rw
33 22 0:29 / /data rw - fuse.gcsfuse bucket rw
34 22 0:30 / /database rw - cifs //server/share rw
not a line
""".splitlines()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/srv/x", "ext4"),
        ("/mnt", "nfs4"),
        ("/mnt/tables/t", "nfs4"),
        ("/mnt/local disk/t", "xfs"),
        ("/mnt/local diskette", "nfs4"),
        ("/data/t", "fuse.gcsfuse"),
        ("/database/t", "cifs"),
        ("/databases", "ext4"),
    ],
)
def test_the_deepest_mount_counts_and_of_two_the_last(path: str, kind: str) -> None:
    assert filesystem_of(Path(path), MOUNTS) == kind


def test_a_path_on_no_mount_is_of_no_kind() -> None:
    assert filesystem_of(Path("/x"), []) is None


@pytest.mark.parametrize(
    ("kind", "shared"),
    [
        *((kind, True) for kind in ("nfs", "nfs4", "cifs", "fuse", "fuse.sshfs")),
        *((kind, False) for kind in ("xfs", "nfsd", "overlay", "fuse.fuse-overlayfs", "fuseblk", "9p")),
    ],
)
def test_kinds_that_answer_from_a_cache_are_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, shared: bool
) -> None:
    table = tmp_path / "mounts"
    table.write_text(f"1 1 0:1 / / rw - {kind} x rw\n")
    monkeypatch.setattr(local_system, "_MOUNTS", str(table))
    assert is_shared(tmp_path / "t") is shared
    assert LocalLogStore(tmp_path / "t").consistent_listing is not shared


def test_a_system_that_does_not_tell_has_directories_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_system, "_MOUNTS", str(tmp_path / "none"))
    assert not is_shared(tmp_path)


def test_a_store_asks_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(local, "is_shared", lambda path: bool(asked.append(path)))
    store = LocalLogStore(tmp_path)
    assert store.consistent_listing
    assert store.consistent_listing
    assert len(asked) == 1
