from __future__ import annotations

from pathlib import Path

import pytest

from delta_core.errors import ConfigurationError
from delta_core.execution.engine import INLINE_LIMIT_BYTES, choose_engine
from delta_core.execution.limits import available_cpus, available_memory_bytes, workers_for
from delta_core.execution.resources import resource_usage


@pytest.mark.parametrize(
    ("requested", "planned", "spark", "expected"),
    [
        ("auto", 0, False, "inline"),
        ("auto", INLINE_LIMIT_BYTES + 1, False, "inline"),
        ("auto", INLINE_LIMIT_BYTES, True, "inline"),
        ("auto", INLINE_LIMIT_BYTES + 1, True, "spark"),
        ("inline", INLINE_LIMIT_BYTES + 1, True, "inline"),
        ("spark", 1, True, "spark"),
    ],
)
def test_the_engine_follows_the_request_then_the_bytes(
    requested: str, planned: int, spark: bool, expected: str
) -> None:
    assert choose_engine(requested, planned, spark_available=spark) == expected


def test_spark_without_a_session_is_an_error_that_says_how_to_get_one() -> None:
    with pytest.raises(ConfigurationError) as caught:
        choose_engine("spark", 1)
    assert "spark_jobs.main" in caught.value.fix


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'flink' does not exist"):
        choose_engine("flink", 1)


def test_a_cpu_quota_cuts_the_count(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("100000 100000\n")
    assert available_cpus(cgroup=tmp_path) == 1
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert available_cpus(cgroup=tmp_path) == 1


def test_memory_is_the_smaller_of_kernel_and_group(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 4096 kB\nMemAvailable: 2048 kB\n")
    assert available_memory_bytes(cgroup=tmp_path, meminfo=meminfo) == 2048 << 10
    (tmp_path / "memory.max").write_text("3000\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert available_memory_bytes(cgroup=tmp_path, meminfo=meminfo) == 2000
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory_bytes(cgroup=tmp_path, meminfo=meminfo) == 2048 << 10


def test_unknown_memory_is_still_a_figure(tmp_path: Path) -> None:
    assert available_memory_bytes(cgroup=tmp_path, meminfo=tmp_path / "none") == 2 << 30


@pytest.mark.parametrize(
    ("tasks", "task_memory", "memory", "cpus", "expected"),
    [
        (10, 100, 1000, 4, 4),
        (2, 100, 1000, 4, 2),
        (10, 400, 1000, 4, 2),
        (10, 5000, 1000, 4, 1),
        (0, 1, 1, 1, 1),
    ],
)
def test_workers_fit_tasks_processors_and_memory(
    tasks: int, task_memory: int, memory: int, cpus: int, expected: int
) -> None:
    assert workers_for(tasks=tasks, task_memory_bytes=task_memory, memory_bytes=memory, cpus=cpus) == expected


def test_usage_only_grows() -> None:
    first = resource_usage()
    sum(range(100_000))
    second = resource_usage()
    assert second.cpu_seconds >= first.cpu_seconds > 0
    assert second.peak_rss_bytes >= first.peak_rss_bytes > 1 << 20
