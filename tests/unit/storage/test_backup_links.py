"""A backup made of hard links, while two writers race, makes nobody the winner who is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from delta_core.errors import ObjectExistsError
from delta_core.storage.local import LocalLogStore


def test_a_link_to_the_temporary_file_is_not_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalLogStore(tmp_path / "t")
    real = os.link

    def link(source: os.PathLike[str], target: os.PathLike[str]) -> None:
        real(source, tmp_path / "backup")
        Path(target).write_bytes(b"another's")
        real(source, target)

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(ObjectExistsError):
        store.put_if_absent("_delta_log/1.json", b"ours")
    assert store.read("_delta_log/1.json") == b"another's"


def test_an_answer_lost_after_the_link_was_made_is_the_winners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalLogStore(tmp_path / "t")
    real = os.link

    def link(source: os.PathLike[str], target: os.PathLike[str]) -> None:
        real(source, target)
        raise FileExistsError(17, "the server heard it twice")

    monkeypatch.setattr(os, "link", link)
    store.put_if_absent("_delta_log/1.json", b"ours")
    assert store.read("_delta_log/1.json") == b"ours"
