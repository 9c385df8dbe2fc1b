"""The contract suite over the local file system."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_core.conformance.log_store_contract import LogStoreContract
from delta_core.storage.local import LocalLogStore
from tests.support.directories import check_directories


class TestLocalLogStore(LogStoreContract):
    """The local store keeps the contract."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> LocalLogStore:
        return LocalLogStore(tmp_path / "table")


def test_directories_are_listed(tmp_path: Path) -> None:
    root = tmp_path / "table"
    root.mkdir()
    check_directories(LocalLogStore(root))
    (root / "link").symlink_to(root / "t")
    assert "link" not in LocalLogStore(root).list_directories("")
