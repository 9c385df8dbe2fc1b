"""Forty texts that would drive a terminal, forge a line or turn a word around: all are shown as escapes."""

from __future__ import annotations

import json
import pickle
import unicodedata
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from delta_core import DeltaTable
from delta_core.cli.app import app
from delta_core.errors import DeltaError, UnsupportedTableFeatureError, escape_control_characters

DELETION_VECTORS = (
    *("\x1b[2J", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x1b]8;;http://evil\x1b\\link", "\x1b[1A\x1b[2K"),
    *(
        "\x1bP+q\x1b\\",
        "\x1b[6n",
        "\x1b(0",
        "\x1bc",
        "\x9b31m",
        "\x9d0;t\x9c",
        "\x90q\x9c",
        "\x85next",
        "\x84",
    ),
    *(
        "\x00",
        "\x07",
        "\x08\x08\x08",
        "\x0b",
        "\x0c",
        "\x0e",
        "\x7f",
        "a\rforged",
        "a\nforged",
        "a\r\nforged",
    ),
    *("\u202egnp.exe", "\u202d", "\u202a", "\u202b", "\u202c", "\u2066", "\u2067", "\u2068", "\u2069"),
    *("\u200e", "\u200f", "\u061c", "\u200b", "\u2028forged", "\u2029forged", "\ufeff", "\u2060", "\u00ad"),
    *("\U000e0041", "\ufff9", "\u206a", "\ud800"),
)


def is_harmless(text: str) -> bool:
    """No control, format, surrogate or separator character but blanks and the lines of a table."""
    return not [
        sign
        for sign in text
        if unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") and sign not in "\n"
    ]


def test_there_are_enough_of_them() -> None:
    assert len(set(DELETION_VECTORS)) == len(DELETION_VECTORS) >= 40
    assert not [text for text in DELETION_VECTORS if is_harmless(text.replace("\n", "\r"))]


@pytest.mark.parametrize("text", DELETION_VECTORS, ids=ascii)
def test_an_escape_is_shown_on_one_line(text: str) -> None:
    shown = escape_control_characters(f"before {text} after")
    assert is_harmless(shown)
    assert "\n" not in shown
    assert shown.startswith("before ")
    assert shown.endswith(" after")


@pytest.mark.parametrize("text", DELETION_VECTORS, ids=ascii)
def test_an_error_is_one_line_and_drives_no_terminal(text: str) -> None:
    error = DeltaError(f"a {text}", cause=f"b {text}", fix=f"c {text}")
    shown = str(error)
    assert is_harmless(shown)
    assert "\n" not in shown
    # Messages are put into others, and errors cross process borders: nothing is escaped a second time.
    assert str(DeltaError(error.problem, cause=error.cause, fix=error.fix)) == shown
    assert str(pickle.loads(pickle.dumps(error))) == shown
    assert escape_control_characters(shown) == shown


def test_an_error_shows_letters_of_every_language_as_they_are() -> None:
    text = "Größe 'naïve' €5 日本語 Ελλάδα русский עברית 😀 C:\\new"
    assert DeltaError(text).problem == text


def test_names_of_a_table_reach_no_error_as_they_are(tmp_path: Path) -> None:
    evil = "\x1b[31mred\nERROR forged"
    log = tmp_path / "_delta_log"
    log.mkdir()
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": [evil],
        "writerFeatures": [evil],
    }
    metadata = {
        "id": "a",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": []}),
        "partitionColumns": [],
        "configuration": {},
    }
    lines = [json.dumps({"protocol": protocol}), json.dumps({"metaData": metadata})]
    (log / f"{0:020}.json").write_text("\n".join(lines) + "\n")
    with pytest.raises(UnsupportedTableFeatureError) as refused:
        DeltaTable(str(tmp_path)).to_pyarrow_table()
    assert "[31mred" in str(refused.value)
    assert is_harmless(str(refused.value))
    assert "\n" not in str(refused.value)


def test_no_command_shows_one(tmp_path: Path) -> None:
    evil = "".join(text for text in DELETION_VECTORS if text not in ("\ud800", "\x00"))
    path = tmp_path / "t"
    deltalake.write_deltalake(
        str(path),
        pa.table({"id": [1]}),
        name=evil,
        description=evil,
        commit_properties=deltalake.CommitProperties(
            custom_metadata={"userName": evil, "userMetadata": json.dumps({"dag": evil, "task": evil})}
        ),
    )
    log = path / "_delta_log" / f"{1:020}.json"
    add = {
        "path": f"x{'%1B%5B2J'}.parquet",
        "partitionValues": {},
        "size": 1,
        "modificationTime": 1,
        "dataChange": True,
    }
    info = {"operation": evil, "operationParameters": {evil: evil}, "userName": evil, "engineInfo": evil}
    log.write_text(json.dumps({"commitInfo": info}) + "\n" + json.dumps({"add": add}) + "\n")
    commands = [("describe",), ("history",), ("audit",), ("plan",), ("vacuum",), ("optimize", "--dry-run")]
    for command, *options in commands:
        for more in ([], ["--json"]):
            result = CliRunner().invoke(app, [command, str(path), *options, *more])
            assert is_harmless(result.output), (command, ascii(result.output))
    for missing in ("a\x1b[31mb", "a\u202eb"):
        result = CliRunner().invoke(app, ["describe", str(tmp_path / missing)])
        assert result.exit_code == 1
        assert is_harmless(result.output)
