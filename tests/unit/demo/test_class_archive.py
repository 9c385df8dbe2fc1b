"""The archive of classes: used where it is there, and made for this Spark and this Java."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo import class_archive
from demo.class_archive import SHORT_LIVED, submit_options


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(class_archive, "_FOLDER", tmp_path / "classes")
    return tmp_path / "classes"


def test_there_is_none_at_first() -> None:
    assert submit_options() == SHORT_LIVED


def test_one_that_is_made_is_used_until_java_is_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java = tmp_path / "java"
    java.mkdir()
    (java / "release").write_text("17")
    monkeypatch.setenv("JAVA_HOME", str(java))
    calls = []

    def record(archive: Path) -> None:
        calls.append(archive)
        archive.write_bytes(b"classes")

    monkeypatch.setattr(class_archive, "_record", record)
    made = class_archive.make()
    assert made is not None
    assert class_archive.make() == made
    assert calls == [made]
    assert f"-XX:SharedArchiveFile={made} " in submit_options()
    (java / "release").write_text("21")
    assert submit_options() == SHORT_LIVED


def test_a_machine_where_it_cannot_be_made_goes_without(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(class_archive, "_record", lambda archive: None)
    assert class_archive.make() is None
    class_archive.main()
    assert "Spark starts without" in capsys.readouterr().err
    assert submit_options() == SHORT_LIVED
