"""A forked process: its clients, locks and caches are its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.repository import ROOT

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
    with table.snapshot._lock, task_stores._lock:
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
        with task_stores._lock:
            code = 0
    finally:
        os._exit(code)
code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
done.set()
thread.join()
sys.exit(code)
"""


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
