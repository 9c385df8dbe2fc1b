"""What the tests of the commit loop share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.transaction.commit_harness import Harness


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)
