"""docs/protocol-support.md says what the code does."""

from __future__ import annotations

from delta_core.table_features.feature import FEATURES, WriterKind
from scripts.docs.feature_support import support_table
from tests.support.repository import ROOT


def test_the_page_is_the_one_that_the_code_gives() -> None:
    page = (ROOT / "docs" / "protocol-support.md").read_text(encoding="utf-8")
    assert page == support_table(), "run: python -m scripts.docs.feature_support"


def test_every_feature_has_its_row() -> None:
    page = support_table()
    for name in FEATURES:
        assert f"| `{name}` |" in page
    assert "| `variantShredding` | reader and writer | | yes | refused | refused |" in page
    assert "refused" not in _row(page, "icebergCompatV2")
    assert "refused" not in _row(page, "checkpointProtection")
    assert "refused" not in _row(page, "v2Checkpoint")
    assert "refused" not in _row(page, "appendOnly")


def test_every_surface_has_its_column_and_its_line() -> None:
    page = support_table()
    headings = next(line for line in page.splitlines() if line.startswith("| feature")).split("|")[6:-1]
    assert [item.strip() for item in headings] == [item.heading for item in WriterKind]
    assert all(f": {item.description}." in page for item in WriterKind)
    for name in FEATURES:
        assert _row(page, name).count("|") == 6 + len(headings)


def _row(page: str, name: str) -> str:
    return next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))


def test_what_two_columns_say() -> None:
    page = support_table()
    assert "| `columnMapping` | reader and writer | reader 2, writer 5 | yes | refused | yes | yes |" in page
