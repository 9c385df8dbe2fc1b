"""The contract suite over the local file system."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_core.storage.local import LocalLogStore
from delta_core.testing.log_store_contract import LogStoreContract


class TestLocalLogStore(LogStoreContract):
    """The local store keeps the contract."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> LocalLogStore:
        return LocalLogStore(tmp_path / "table")
