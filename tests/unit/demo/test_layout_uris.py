"""The file of a URI that a job names, on either store of the demonstration."""

from __future__ import annotations

from pathlib import Path

from demo.layout import BUCKET, Layout


def test_an_object_is_a_file_of_the_server(tmp_path: Path) -> None:
    layout = Layout(home=tmp_path, store="s3")
    found = layout.path_of(f"{layout.table_uri('flights')}/_deltaward/a%20b.json")
    assert found == tmp_path / "buckets" / BUCKET / "tables" / "flights" / "_deltaward" / "a b.json"
    assert layout.path_of((tmp_path / "a b.json").as_uri()) == tmp_path / "a b.json"
