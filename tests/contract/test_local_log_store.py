"""The contract suite over the local file system."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_core.conformance.log_store_contract import LogStoreContract
from delta_core.storage.local import LocalLogStore


class TestLocalLogStore(LogStoreContract):
    """The local store keeps the contract."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> LocalLogStore:
        return LocalLogStore(tmp_path / "table")
