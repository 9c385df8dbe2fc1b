from __future__ import annotations

import io
import json
import logging

import pytest

from delta_core.clock import ManualClock
from delta_core.execution.progress import SILENT, NullProgress, ProgressEvent, ProgressReporter
from delta_core.execution.sinks import (
    JsonLinesSink,
    TeeSink,
    event_from_json,
    event_to_json,
)
from tests.support.sinks import CallbackSink, CollectingSink


def an_event(**changes: object) -> ProgressEvent:
    fields: dict[str, object] = {
        "name": "data.writing",
        "job_id": "j1",
        "at_ms": 1_700_000_000_000,
        "done": 1,
        "total": 4,
        "detail": {"bytes": 12},
    }
    return ProgressEvent(**{**fields, **changes})  # type: ignore[arg-type]


def test_an_event_survives_json() -> None:
    assert event_from_json(event_to_json(an_event())) == an_event()
    bare = an_event(done=None, total=None, detail={})
    assert event_from_json(event_to_json(bare)) == bare
    assert "done" not in json.loads(event_to_json(bare))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "3", '{"name": "x"}', '{"name":"x","job_id":"j","at_ms":"z"}']
)
def test_what_is_no_event_is_none(text: str) -> None:
    assert event_from_json(text) is None


def test_json_lines_have_the_prefix_and_stay_one_line() -> None:
    stream = io.StringIO()
    sink = JsonLinesSink(stream, prefix="DELTAWARD_EVENT ")
    sink.emit(an_event(detail={"text": "two\nlines\x1b[31m"}))
    sink.emit(an_event(name="data.written"))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert all(line.startswith("DELTAWARD_EVENT {") for line in lines)
    assert "\x1b" not in stream.getvalue()


def test_a_tee_hands_on_in_order_and_a_callback_is_called() -> None:
    seen: list[str] = []
    tee = TeeSink(
        [CallbackSink(lambda e: seen.append("a")), CallbackSink(lambda e: seen.append("b")), NullProgress()]
    )
    tee.emit(an_event())
    assert seen == ["a", "b"]


def test_the_reporter_stamps_job_and_time() -> None:
    sink = CollectingSink()
    ProgressReporter(sink=sink, job_id="j9", clock=ManualClock(77)).emit("commit.after", version=3)
    assert sink.events == [ProgressEvent(name="commit.after", job_id="j9", at_ms=77, detail={"version": 3})]
    assert sink.names == ["commit.after"]


def test_a_failing_sink_does_not_end_the_job(caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: ProgressEvent) -> None:
        raise RuntimeError("disk full")

    with caplog.at_level(logging.WARNING, logger="delta_core.execution.progress"):
        ProgressReporter(sink=CallbackSink(broken)).emit("job.started")
    assert "The progress sink failed." in caplog.text
    SILENT.emit("job.started")
