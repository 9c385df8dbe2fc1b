"""Lets a test write tables with a feature that the library refuses until all its surfaces are done.

The parts of a feature are built and tested one after the other: this is how a test gets at those that are
there. Nothing outside the tests can do it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from delta_core.table_features.feature import ALL_WRITER_KINDS, FEATURES


def let_write(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Take these features for writable until the test ends."""
    for name in names:
        monkeypatch.setitem(FEATURES, name, replace(FEATURES[name], writable_by=ALL_WRITER_KINDS))  # type: ignore[arg-type]
