"""docs/stores.md lists the options that the stores allow, and its examples open a store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from delta_core.cli.option_reference import SECTIONS, Section, option_tables
from delta_core.storage.open import open_store

PAGE = Path(__file__).parents[3] / "docs" / "stores.md"
BEGIN = "<!-- options: from here on made by `UPDATE=1 pytest tests/unit/cli/test_option_reference.py` -->\n"
END = "<!-- options: to here -->\n"


def test_the_page_lists_what_the_stores_allow() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    page = f"{before}{BEGIN}\n{option_tables()}\n{END}{after}"
    if os.environ.get("UPDATE"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page, "UPDATE=1 writes the tables again"


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.title)
def test_every_option_has_a_meaning_and_no_meaning_is_left_over(section: Section) -> None:
    assert set(section.meanings) == section.names


@pytest.mark.parametrize(
    ("uri", "options"),
    [example for section in SECTIONS for example in section.examples.values()],
    ids=[what for section in SECTIONS for what in section.examples],
)
def test_every_example_opens_a_store(
    uri: str, options: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    if "GOOGLE_SERVICE_ACCOUNT" in options:
        key = tmp_path / "key.json"
        key.write_text('{"client_email": "", "private_key": "", "private_key_id": "", "disable_oauth": true}')
        options = {**options, "GOOGLE_SERVICE_ACCOUNT": str(key)}
    assert open_store(uri, storage_options=options).uri
