"""Log records with fields, and counters."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from threading import Thread

import pytest

from delta_core.observability import Metrics, configure_logging


@pytest.fixture(autouse=True)
def restored_loggers() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("delta_core", "spark_jobs", "delta_airflow")]
    before = [(logger, list(logger.handlers), logger.level) for logger in loggers]
    yield
    for logger, handlers, level in before:
        logger.handlers = handlers
        logger.setLevel(level)


def test_fields_follow_the_message() -> None:
    stream = io.StringIO()
    configure_logging(stream=stream)
    logging.getLogger("delta_core.x").warning("lost", extra={"version": 3, "path": "a b"})
    assert stream.getvalue().endswith('WARNING delta_core.x: lost version=3 path="a b"\n')


def test_json_lines() -> None:
    stream = io.StringIO()
    configure_logging(stream=stream, json_lines=True, level="debug")
    try:
        raise RuntimeError("boom")
    except RuntimeError:
        logging.getLogger("delta_core.x").exception("failed", extra={"files": ["a"]})
    record = json.loads(stream.getvalue())
    assert (record["message"], record["files"], record["level"]) == ("failed", ["a"], "ERROR")
    assert "RuntimeError: boom" in record["traceback"]


def test_table_contents_cannot_forge_lines() -> None:
    stream = io.StringIO()
    configure_logging(stream=stream)
    logging.getLogger("delta_core.x").warning("name", extra={"table": "a\nERROR forged\x1b[31m\u202e"})
    text = stream.getvalue()
    assert text.count("\n") == 1
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_configuring_twice_keeps_one_handler() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure_logging(stream=first)
    configure_logging(stream=second)
    logging.getLogger("delta_core.x").error("once")
    assert first.getvalue() == ""
    assert second.getvalue().count("once") == 1


def test_counters_count_across_threads() -> None:
    metrics = Metrics()
    threads = [Thread(target=lambda: [metrics.increment("n") for _ in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    metrics.increment("m", 3)
    assert metrics.snapshot() == {"m": 3, "n": 2000}
    metrics.reset()
    assert metrics.value("n") == 0
