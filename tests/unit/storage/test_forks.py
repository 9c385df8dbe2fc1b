"""A forked process: its clients, locks and caches are its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.support.repository import ROOT, python_files

PROGRAM = """
import os, sys, threading, traceback

from delta_core.errors import ObjectExistsError, ObjectNotFoundError
from delta_core.storage.object_store import Clients, ObjectLogStore
from delta_core.storage.remote_uri import parse_remote_uri


def build():
    import obstore

    client = obstore.store.LocalStore(sys.argv[1])
    return client, client


store = ObjectLogStore(parse_remote_uri("s3://bucket/t"), Clients(build, proved=True, place="a folder"))


def in_child(work):
    process = os.fork()
    if process == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0


def use(name):
    store.put_if_absent(name, b"1")
    assert store.read(name) == b"1"
    try:
        store.put_if_absent(name, b"2")
    except ObjectExistsError:
        pass
    try:
        store.read("missing")
    except ObjectNotFoundError:
        pass
    print(name)


in_child(lambda: use("of a child before its parent"))
use("of the parent")
in_child(lambda: use("of a child"))
in_child(lambda: in_child(lambda: use("of a child's child")))


def in_a_thread():
    thread = threading.Thread(target=use, args=("of a child's thread",))
    thread.start()
    thread.join()


in_child(in_a_thread)
use("of the parent again")
"""

HELD = """
import os, sys, threading

import pyarrow as pa

from delta_core import DeltaTable, write_deltalake
from delta_core.storage import task_stores

write_deltalake(sys.argv[1], pa.table({"x": [1, 2]}))
table = DeltaTable(sys.argv[1])
held, done = threading.Event(), threading.Event()


def hold():
    with table.snapshot._lock, task_stores._lock.held():
        held.set()
        done.wait()


thread = threading.Thread(target=hold)
thread.start()
held.wait()
process = os.fork()
if process == 0:
    code = 1
    try:
        assert table.to_pyarrow_table().num_rows == 2
        table.update_incremental()
        with task_stores._lock.held():
            code = 0
    finally:
        os._exit(code)
code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
done.set()
thread.join()
sys.exit(code)
"""

MODULES = """
import os, signal, sys, threading

import pyarrow as pa

from delta_core import GroupCommit, write_deltalake
from delta_core.errors import ConfigurationError
from delta_core.execution.progress import ProgressEvent
from delta_core.execution.sinks import JsonLinesSink
from delta_core.maintenance.clustering.in_memory import _MemoryBudget
from delta_core.storage import client_library, task_stores
from spark_jobs import packaging, scoped_conf
from spark_jobs.writer import commits


class Session:
    session_id = "of a child"

    class conf:
        get = staticmethod(lambda key, default: default)
        set = staticmethod(lambda key, value: None)
        unset = staticmethod(lambda key: None)


write_deltalake(sys.argv[1], pa.table({"x": [1]}))
commits.record_commit(sys.argv[1], 7)
sink = JsonLinesSink(sys.stdout)
budget = _MemoryBudget(2)
group = GroupCommit(sys.argv[1])
locks = [client_library._lock, task_stores._lock, packaging._LOCK, scoped_conf._LOCK, commits._LOCK]
held, done = threading.Event(), threading.Event()


def hold(index):
    if index < len(locks):
        with locks[index].held():
            hold(index + 1)
    else:
        with sink._lock, budget._lock, group._changed:
            held.set()
            done.wait()


thread = threading.Thread(target=hold, args=(0,))
thread.start()
held.wait()
process = os.fork()
if process == 0:
    signal.alarm(60)
    code = 1
    try:
        assert commits.last_commit(sys.argv[1]) == 7
        with scoped_conf.scoped_conf(Session(), {"a": "b"}):
            commits.record_commit(sys.argv[1], 8)
        for lock in locks:
            with lock.held():
                pass
        assert budget.take(1)
        try:
            group.append(pa.table({"x": [2]}))
        except ConfigurationError as error:
            assert "each process" in str(error)
        else:
            raise AssertionError("no thread commits these rows")
        group.close()
        sink.emit(ProgressEvent(name="of a child", job_id="j", at_ms=1))
        code = 0
    finally:
        os._exit(code)
code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
done.set()
thread.join()
group.close()
sys.exit(code)
"""

AT_THE_FORK = """
import os

from delta_core.forks import ForkSafeLock

lock = ForkSafeLock()
with lock.held():
    process = os.fork()
with lock.held():
    pass
if process == 0:
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
"""

LOCKS = re.compile(r"threading\.(?:R?Lock|Condition|Semaphore|BoundedSemaphore)\(\)")
WITHOUT_LOCKS = {
    "delta_core/forks.py": "it renews them",
    "delta_core/storage/probe.py": "a child forgets all of them",
    "delta_core/dml/group_commit.py": "a child is refused",
}


def run(program: str, place: Path) -> str:
    place.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", program, str(place)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_children_of_a_process_that_has_used_a_store_use_it(tmp_path: Path) -> None:
    said = run(PROGRAM, tmp_path / "bucket").splitlines()
    assert sorted(said) == [
        "of a child",
        "of a child before its parent",
        "of a child's child",
        "of a child's thread",
        "of the parent",
        "of the parent again",
    ]


def test_a_lock_that_a_thread_of_the_parent_holds_is_free_in_a_child(tmp_path: Path) -> None:
    assert run(HELD, tmp_path / "t") == ""


def test_locks_of_modules_and_of_groups_are_free_in_a_child(tmp_path: Path) -> None:
    assert '"of a child"' in run(MODULES, tmp_path / "t")


def test_a_thread_may_fork_while_it_holds_a_lock(tmp_path: Path) -> None:
    assert run(AT_THE_FORK, tmp_path / "t") == ""


def test_every_lock_is_renewed_in_a_child() -> None:
    found = {}
    for file in python_files("delta_core", "spark_jobs"):
        source = (ROOT / file).read_text()
        made, renewed = len(LOCKS.findall(source)), source.count("renew_lock_in_children(self)")
        if made != renewed:
            found[file.as_posix()] = (made, renewed)
    assert set(found) == set(WITHOUT_LOCKS), found
