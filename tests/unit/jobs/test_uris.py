"""Which of a job's parameters are URIs."""

from __future__ import annotations

from delta_core.jobs.uris import uris_of


def test_uris_are_told_by_their_names_at_any_depth() -> None:
    params = {
        "source": {"format": "delta", "uris": ["/a", "/b"], "options": {"uri": "/c", "security": "/no"}},
        "quality": {"suite": {"name": "uri"}, "quarantine_uri": "/d", "report_uri": None},
        "more": [{"target_uris": ("/e",)}, "/no", ["/no"]],
        "where": "uri = '/no'",
    }
    assert list(uris_of(params)) == [
        ("source.uris", "/a"),
        ("source.uris", "/b"),
        ("source.options.uri", "/c"),
        ("quality.quarantine_uri", "/d"),
        ("more.target_uris", "/e"),
    ]
