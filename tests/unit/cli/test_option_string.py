"""Storage options from the environment or a file; what is wrong is said without a value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from delta_core.cli.option_string import options_from_file, options_from_text
from delta_core.errors import ConfigurationError

SECRET = "s3cr3t-c4n4ry"


def test_pairs_are_words_of_a_shell() -> None:
    assert options_from_text("") == {}
    assert options_from_text("  AWS_REGION=eu  key='a b=c' ") == {"AWS_REGION": "eu", "key": "a b=c"}


def test_a_file_is_a_json_object(tmp_path: Path) -> None:
    path = tmp_path / "o.json"
    path.write_text(json.dumps({"AWS_REGION": "eu"}))
    assert options_from_text('{"AWS_REGION": "eu", "key": "a=b c"}') == {"AWS_REGION": "eu", "key": "a=b c"}
    assert options_from_file(path) == options_from_text(str(path)) == {"AWS_REGION": "eu"}


@pytest.mark.parametrize("text", [f"a={SECRET} {SECRET}", f"'a={SECRET}", f"={SECRET}", f'{{"a": {SECRET}'])
def test_what_is_no_pair_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        options_from_text(text)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("content", [f'["{SECRET}"]', f'{{"a": ["{SECRET}"]}}', SECRET, ""])
def test_a_file_of_something_else_is_refused_without_being_repeated(tmp_path: Path, content: str) -> None:
    path = tmp_path / "o.json"
    path.write_text(content)
    with pytest.raises(ConfigurationError) as refused:
        options_from_file(path)
    assert SECRET not in str(refused.value)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        options_from_file(tmp_path / "none.json")


def test_a_pair_that_ends_as_a_file_does_is_a_pair(tmp_path: Path) -> None:
    text = "GOOGLE_SERVICE_ACCOUNT=/secrets/key.json"
    assert options_from_text(text) == {"GOOGLE_SERVICE_ACCOUNT": "/secrets/key.json"}
    assert options_from_text(f"AWS_REGION=x {text}")["GOOGLE_SERVICE_ACCOUNT"] == "/secrets/key.json"
    path = tmp_path / "a=b.json"
    path.write_text('{"AWS_REGION": "eu"}')
    assert options_from_text(str(path)) == {"AWS_REGION": "eu"}
