"""What every store that discovery can search does with `list_directories`."""

from __future__ import annotations

from delta_core.storage.directories import list_directories
from delta_core.storage.log_store import LogStore


def check_directories(store: LogStore) -> None:
    """Assert that the directories directly in a directory are listed: each once, sorted, without files."""
    assert list_directories(store) == []
    names = ["a b", "t", "x%41", "ä", *(f"d{number:04d}" for number in range(12))]
    for name in names:
        store.put_if_absent(f"{name}/below/file", b"1")
        store.put_if_absent(f"{name}/second", b"1")
    store.put_if_absent("file", b"1")
    store.put_if_absent("t.txt", b"1")
    assert list_directories(store) == sorted(names)
    assert list_directories(store, "a b") == ["below"]
    assert [list_directories(store, path) for path in ("t/below", "file", "missing")] == [[], [], []]
