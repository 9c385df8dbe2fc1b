"""The report: JSON values only, and a page that loads nothing and shows every value as text."""

from __future__ import annotations

import datetime
import decimal
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delta_core.jobs.params.quality import ExpectationSpec, Severity
from delta_core.storage.open import open_store
from spark_jobs.quality.outcome import ExpectationOutcome
from spark_jobs.quality.report import build_report, plain, write_report
from spark_jobs.quality.report_html import to_html
from spark_jobs.quality.suite import PlannedExpectation

HOSTILE = "<script>alert('x')</script>\"><img src=http://evil onerror=alert(1)>"
SUMMARY = {
    "outcome": "quarantined",
    "suite": HOSTILE,
    "expectations": 2,
    "failed_expectations": ["a"],
    "rows": 10,
    "bad_rows": 2,
    "published_rows": 8,
    "quarantined_rows": 2,
    "report_json": "file:///r.json",
    "report_html": "file:///r.html",
    "quarantine_uri": HOSTILE,
    "quarantine_version": 3,
}


def outcome(**changes: Any) -> ExpectationOutcome:
    kwargs = {"column": HOSTILE, "value_set": [HOSTILE]}
    spec = ExpectationSpec(type="expect_column_values_to_be_in_set", kwargs=kwargs)
    given = {"success": False, "unexpected_count": 2, "unexpected_percent": 12.345, "samples": (HOSTILE, 7)}
    planned = PlannedExpectation(spec=spec, row_level=True)
    return ExpectationOutcome(**{"planned": planned, **given, **changes})


def document(*outcomes: ExpectationOutcome, samples: int = 5, **changes: Any) -> dict[str, Any]:
    return build_report(
        **{
            "summary": SUMMARY,
            "outcomes": outcomes,
            "samples": samples,
            "table_uri": "file:///t",
            "job_id": HOSTILE,
            "engine": "pandas",
            "policy": {"on_failure": "quarantine", "max_bad_rows": None, "max_bad_fraction": None},
            "why": HOSTILE,
            "rejected_rows": 1,
            "created_ms": 0,
            **changes,
        }
    )


class Page(HTMLParser):
    """The tags of a page and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not {name for name, _ in attrs} & {"src", "href", "onerror", "onload", "style"}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_hostile_values_are_text_on_a_page_that_loads_nothing() -> None:
    broken = outcome(error=HOSTILE, samples=())
    seen = outcome(samples=(), unexpected_count=None, unexpected_percent=None, observed=HOSTILE)
    text = to_html(document(outcome(), broken, seen))
    page = Page(text)
    assert not page.tags & {"script", "img", "link", "iframe", "object", "base", "form", "a"}
    assert page.text.count(HOSTILE) >= 7
    # What is left of the address is the escaped text of the hostile values themselves.
    assert "http" not in re.sub(re.escape("src=http://evil"), "", text).replace("http-equiv", "")
    assert "@import" not in text
    assert "url(" not in text
    assert "prefers-color-scheme:dark" in text
    assert len(text) < 20_000


def test_a_page_of_plain_values_names_no_address() -> None:
    summary = {**SUMMARY, "suite": "orders", "quarantine_uri": None}
    text = to_html(document(summary=summary, job_id="j", why=""))
    assert "http" not in text.replace("http-equiv", "")


def test_the_document_says_what_was_found() -> None:
    entry = document(outcome())["results"][0]
    assert entry["column"] == HOSTILE
    assert (entry["unexpectedCount"], entry["unexpectedPercent"]) == (2, 12.345)
    assert entry["samples"] == [HOSTILE, 7]
    assert entry["severity"] == "critical"
    found = document()
    assert (found["formatVersion"], found["createdAt"]) == (1, "1970-01-01T00:00:00.000+00:00")
    assert found["rejectedRows"] == 1


def test_samples_are_bounded_and_can_be_turned_off() -> None:
    many = outcome(samples=tuple(range(9)))
    assert document(many, samples=2)["results"][0]["samples"] == [0, 1]
    silent = document(outcome(observed="secret", error="secret"), samples=0)["results"][0]
    assert silent["samples"] == []
    assert "secret" not in json.dumps(silent)


def test_a_large_set_of_values_does_not_make_a_large_page() -> None:
    spec = ExpectationSpec(type="expect_x", kwargs={"value_set": list(range(10_000))})
    planned = PlannedExpectation(spec=spec, row_level=True)
    found = document(outcome(planned=planned))
    assert len(to_html(found)) < 10_000
    assert len(found["results"][0]["kwargs"]["value_set"]) == 10_000


def test_a_warning_is_coloured_as_one() -> None:
    spec = ExpectationSpec(type="expect_x", severity=Severity.WARNING)
    planned = PlannedExpectation(spec=spec, row_level=False)
    assert '<td class="warn">fails</td>' in to_html(document(outcome(planned=planned)))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (np.int64(3), 3),
        (np.float64("nan"), "nan"),
        (np.bool_(True), True),
        (decimal.Decimal("1.10"), "1.10"),
        (datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC), "2024-05-01T00:00:00+00:00"),
        (datetime.date(2024, 5, 1), "2024-05-01"),
        (b"\x01\xff", "01ff"),
        ((1, None), [1, None]),
        ({"a": {1}}, {"a": [1]}),
        ("x" * 300, "x" * 200 + "…"),
    ],
)
def test_any_value_becomes_json(value: Any, shown: Any) -> None:
    assert plain(value) == shown
    json.dumps(plain(value), allow_nan=False)


def test_both_forms_are_kept_side_by_side(tmp_path: Path) -> None:
    uris = write_report(open_store(str(tmp_path)), "j", document(outcome(samples=("\ud800",))))
    assert uris.json.endswith("/j.json")
    assert json.loads((tmp_path / "j.json").read_text())["outcome"] == "quarantined"
    assert (tmp_path / "j.html").read_text().startswith("<!DOCTYPE html>")
