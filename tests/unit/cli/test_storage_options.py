"""Storage options of commands: from a file or the environment, for every command that opens a table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from delta_core.cli.app import app
from delta_core.cli.option_string import ENVIRONMENT_VARIABLE
from delta_core.clock import Clock
from delta_core.jobs.codec import spec_to_json
from delta_core.jobs.job_spec import JobSpec, TableRef
from delta_core.storage import open as opening
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import LogStore

REMOTE = "s3://bucket/table"
CONTRACT = "columns: [{name: id, type: long}]\n"


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, str]]]:
    """A table that its store's opener finds under any bucket; the options of each opening."""
    root = tmp_path / "table"
    deltalake.write_deltalake(str(root), pa.table({"id": [1]}))
    given: list[dict[str, str]] = []

    def opener(uri: str, options: Mapping[str, str], clock: Clock) -> LogStore:
        given.append(dict(options))
        return LocalLogStore(root, clock=clock)

    monkeypatch.setitem(opening._OPENERS, "s3", opener)
    return given


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[list[list[str]]]:
    """Every command that opens a table."""
    (tmp_path / "contract.yaml").write_text(CONTRACT)
    spec = tmp_path / "spec.json"
    spec.write_text(spec_to_json(JobSpec(kind="describe", table=TableRef(uri=REMOTE))))
    one_table = ["describe", "history", "plan", "optimize", "vacuum", "checkpoint", "repair", "audit"]
    return [
        *([name, REMOTE] for name in one_table),
        ["checkpoint", REMOTE, "--cleanup"],
        ["restore", REMOTE, "--version", "0"],
        ["contract", REMOTE, "--contract", str(tmp_path / "contract.yaml")],
        ["run", str(spec)],
    ]


def call(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def test_every_command_takes_them_from_the_environment(
    asked: list[dict[str, str]], commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "AWS_REGION=eu key='a b'")
    for command in commands:
        asked.clear()
        answer = call(*command)
        assert answer.exit_code in (0, 1), answer.output
        assert asked, command
        assert all(options == {"AWS_REGION": "eu", "key": "a b"} for options in asked), command


def test_every_command_takes_them_from_a_file_first(
    asked: list[dict[str, str]],
    commands: list[list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "AWS_REGION=us")
    path = tmp_path / "options.json"
    path.write_text(json.dumps({"AWS_REGION": "eu"}))
    for command in commands:
        asked.clear()
        call(*command, "--options", str(path))
        assert asked, command
        assert all(options == {"AWS_REGION": "eu"} for options in asked), command


def test_those_of_the_environment_are_not_for_local_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "table"
    deltalake.write_deltalake(str(root), pa.table({"id": [1]}))
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "AWS_REGION=eu")
    assert call("describe", str(root)).exit_code == 0
    assert call("describe", f"file://{root}").exit_code == 0
    path = tmp_path / "options.json"
    path.write_text(json.dumps({"AWS_REGION": "s3cr3t-c4n4ry"}))
    refused = call("describe", str(root), "--options", str(path))
    assert refused.exit_code == 2
    assert "takes no storage options" in refused.stderr
    assert "s3cr3t-c4n4ry" not in refused.stderr


def test_what_cannot_be_read_is_invalid_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "AWS_REGION")
    for command in (["describe", REMOTE], ["history", REMOTE], ["store-conformance", REMOTE]):
        answer = call(*command)
        assert answer.exit_code == 2, answer.output
        assert "storage options cannot be read" in answer.stderr
        assert "Traceback" not in answer.output
