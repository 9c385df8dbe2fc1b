"""Everything works unchanged on Spark Connect, against a server that has none of our code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.errors import JobError
from delta_core.jobs.job_result import JobStatus
from delta_core.jobs.job_spec import JobSpec, TableRef
from spark_jobs.connect_server import ConnectServer, answers, main
from tests.support.drivers import REPOSITORY, start_driver
from tests.support.quality import IN_SET, UNIQUE, expect, quality
from tests.support.spark import FEW_PARTITIONS, REMOTE_VARIABLE, rows_of

SUITE = quality(
    expect(IN_SET, column="id", value_set=["1", "2"]),
    expect(UNIQUE, column="id"),
    expect("expect_column_median_to_be_between", column="id", min_value=1.5, max_value=1.5),
    engine="spark",
)

pytestmark = pytest.mark.skipif(bool(os.environ.get(REMOTE_VARIABLE)), reason="runs its own server")


@pytest.mark.slow
@pytest.mark.soak  # tests/contract and tests/airflow read, write, load and merge on Connect servers
def test_reading_writing_and_tasks_on_connect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The server's workers must get our packages from the client.
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with ConnectServer.start(master="local[2]", conf=FEW_PARTITIONS, directory=tmp_path / "server") as server:
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.connect_script", server.url, str(tmp_path)],
            cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=1200,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        found = json.loads(done.stdout.splitlines()[-1])
        source = tmp_path / "source.parquet"
        pq.write_table(pa.table({"id": pa.array([1, 2], pa.int64())}), source)
        spec = JobSpec(
            kind="load",
            table=TableRef(uri=str(tmp_path / "loaded")),
            params={"source": {"format": "parquet", "uris": [str(source)]}, "quality": SUITE},
        )
        driver = start_driver(spec, tmp_path / "job", remote=server.url)
        assert driver.wait() == 0, driver.log()
        result = driver.result()
    assert not answers(server.port)
    assert found["is_connect"]
    values = ["plain", "a b", "x/y=%:", "ü", "[1]", None]
    assert found["rows"] == sorted(([index, value] for index, value in enumerate(values)), key=repr)
    assert found["pruned"] == [1]
    assert found["setting"] == "INT96"
    assert '"id":-' in found["violation"]
    assert found["replaced"] == [1, 2, 3, 4, 5, 77]
    assert found["merged"] == [
        [2, "x/y=%:"], [3, "ü"], [4, "[1]"], [5, None], [77, "moved"], [90, "new"]
    ]  # fmt: skip
    assert found["named"] == [[[0, "a"], [1, "b"], [3, "c"]], 1, [False, True], 5, 1, 0, True]
    assert found["tasks"]
    assert found["task_error"] == "OBJECT_NOT_FOUND"
    assert found["hostile"] == [0, 1, 2, 3, 4, 5, 9]
    assert found["empty"] == 0
    assert found["files"] > 0
    assert result is not None
    assert result.status is JobStatus.SUCCEEDED
    assert rows_of(tmp_path / "loaded") == [{"id": 1}, {"id": 2}]
    assert result.output["quality"]["outcome"] == "passed"
    assert json.loads(Path(result.output["quality"]["report_json"][7:]).read_text())["engine"] == "spark"


@pytest.mark.slow
def test_the_server_command_ends_with_its_group(tmp_path: Path) -> None:
    pid_file = tmp_path / "server.pid"
    process = subprocess.Popen(
        [sys.executable, "-m", "spark_jobs.connect_server", "--pid-file", str(pid_file),
         "--master", "local[1]", "--conf", "spark.sql.shuffle.partitions=3",
         "--directory", str(tmp_path)],
        cwd=REPOSITORY, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, stdout=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        assert "answers at sc://127.0.0.1:" in line
        server_pid, port = map(int, pid_file.read_text().split())
        assert os.getpgid(server_pid) == process.pid
        assert answers(port)
        command = Path(f"/proc/{server_pid}/cmdline").read_bytes()
        assert b"\0--conf\0spark.sql.shuffle.partitions=3\0" in command
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=300)
        assert not answers(port)
        assert not pid_file.exists()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@pytest.mark.parametrize("entry", ["spark.ui.enabled", "=true"])
def test_a_setting_without_a_name_or_a_value_is_refused(
    entry: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--conf", entry])
    assert ended.value.code == 2
    assert f"--conf {entry} is not KEY=VALUE" in capsys.readouterr().err


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="ended with code") as caught:
        ConnectServer.start(master="nonsense[2]", directory=tmp_path)
    assert "connect-server" in caught.value.fix
