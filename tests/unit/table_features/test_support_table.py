"""docs/protocol-support.md says what the code does."""

from __future__ import annotations

from delta_core.table_features.feature import FEATURES
from delta_core.table_features.support_table import support_table
from tests.support.repository import ROOT


def test_the_page_is_the_one_that_the_code_gives() -> None:
    page = (ROOT / "docs" / "protocol-support.md").read_text(encoding="utf-8")
    assert page == support_table(), "run: python -m delta_core.table_features.support_table"


def test_every_feature_has_its_row() -> None:
    page = support_table()
    for name in FEATURES:
        assert f"| `{name}` |" in page
    assert "| `variantShredding` | reader and writer | | yes | refused | refused |" in page
    assert "| `columnMapping` | reader and writer | reader 2, writer 5 | yes | refused | refused |" in page
