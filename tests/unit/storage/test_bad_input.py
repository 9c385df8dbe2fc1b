"""What users hand over that is no URI, path, option or name of a file: typed errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from delta_core.cli.app import app
from delta_core.cli.files import require_writable
from delta_core.cli.option_string import options_from_text
from delta_core.conformance.place import Place
from delta_core.errors import ConfigurationError, InvalidUriError
from delta_core.storage.open import open_store
from delta_core.storage.uri import canonical_table_uri

LONG = "a" * 300


@pytest.mark.parametrize(
    "uri",
    ["/tmp/x\udcff", "x\ud800", "file:///x%00", "file:///tmp/\udcff", b"/tmp/x", 5, None, Path("a\udcff")],
)
def test_what_is_no_uri(uri: Any) -> None:
    for call in (canonical_table_uri, open_store):
        with pytest.raises(InvalidUriError):
            call(uri)


def test_a_link_into_a_directory_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "x\udcff").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "x\udcff")
    with pytest.raises(InvalidUriError, match="not UTF-8"):
        open_store(tmp_path / "link")


@pytest.mark.parametrize("text", ['{"a":' + "[" * 200_000, "{}\ud800", '{"a": 1}'])
def test_options_that_are_none(text: str) -> None:
    with pytest.raises(ConfigurationError, match="not a JSON object with string values"):
        options_from_text(text)


def test_options_of_a_file_that_is_too_deep(tmp_path: Path) -> None:
    (tmp_path / "o.json").write_text("[" * 200_000)
    with pytest.raises(ConfigurationError, match="does not contain a JSON object with string values"):
        options_from_text(str(tmp_path / "o.json"))


def test_a_name_that_is_too_long_for_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be written"):
        require_writable(tmp_path / LONG)
    with pytest.raises(ConfigurationError):
        Place(f"{tmp_path}/{LONG}/b", {})


@pytest.mark.parametrize("arguments", [["describe", "x\udcff"], ["store-conformance", f"/tmp/{LONG}/b"]])
def test_the_command_line_says_so(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
