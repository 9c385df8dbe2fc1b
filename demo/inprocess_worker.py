"""Runs DAGs with Airflow's `dag.test` in one process: the same DAG files without scheduler and server.

    python -m demo.inprocess_worker --reply-fd N

Reads one JSON request per line from standard input ({"dag_id", "conf", "logical_date", "answer", "user"}) and
answers each with one JSON line on the given descriptor. Airflow's own output goes to standard output.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pendulum


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--reply-fd", type=int, required=True)
    arguments = parser.parse_args()

    # Airflow reads its configuration when it is imported, so only this process imports it.
    from airflow.dag_processing.dagbag import BundleDagBag

    folder = os.environ["AIRFLOW__CORE__DAGS_FOLDER"]

    def parse() -> Any:
        # Parse again for each run, as Airflow does for each task: `dag.test` leaves a run's conf in params.
        return BundleDagBag(dag_folder=folder, bundle_path=folder, bundle_name="dags-folder")

    bag = parse()
    with os.fdopen(arguments.reply_fd, "w", buffering=1) as replies:
        if bag.import_errors:
            replies.write(json.dumps({"error": str(bag.import_errors)}) + "\n")
            return 1
        replies.write(json.dumps({"dag_ids": sorted(bag.dags)}) + "\n")
        for line in sys.stdin:
            try:
                answer = _run(parse(), json.loads(line))
            except Exception:
                answer = {"error": traceback.format_exc()}
            # A task leaves its signal handler installed, which would ignore SIGTERM.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            replies.write(json.dumps(answer) + "\n")
    return 0


def _run(bag: Any, request: dict[str, Any]) -> dict[str, Any]:
    from airflow.models.hitl import HITLDetail
    from airflow.models.taskinstance import TaskInstance
    from airflow.models.xcom import XComModel
    from airflow.settings import Session
    from sqlalchemy import select

    logical_date = request["logical_date"] and pendulum.parse(request["logical_date"])
    dag = bag.dags[request["dag_id"]]
    with _answering(request["dag_id"], option=request["answer"], user=request["user"]):
        run = dag.test(logical_date=logical_date, run_conf=request["conf"])
    with Session() as session:
        questions = (
            select(TaskInstance, HITLDetail)
            .join(HITLDetail, HITLDetail.ti_id == TaskInstance.id)
            .where(TaskInstance.dag_id == run.dag_id, TaskInstance.run_id == run.run_id)
        )
        results = session.scalars(
            select(XComModel).where(
                XComModel.dag_id == run.dag_id,
                XComModel.run_id == run.run_id,
                XComModel.key == "return_value",
            )
        ).all()
        return {
            "run_id": run.run_id,
            "state": str(run.state),
            "tasks": [
                {
                    "task_id": task.task_id,
                    "map_index": task.map_index,
                    "state": task.state and str(task.state),
                    "label": task.rendered_map_index,
                }
                for task in run.get_task_instances(session=session)
            ],
            "answers": [
                {
                    "task_id": task.task_id,
                    "subject": asked.subject,
                    "body": asked.body or "",
                    "chosen": (asked.chosen_options or [None])[0],
                    "by": (asked.responded_by or {}).get("name"),
                }
                for task, asked in session.execute(questions).all()
            ],
            "results": [
                {
                    "task_id": result.task_id,
                    "map_index": result.map_index,
                    "value": XComModel.deserialize_value(result),
                }
                for result in results
            ],
        }


@contextmanager
def _answering(dag_id: str, *, option: str | None, user: str) -> Iterator[None]:
    """During the block, answer the questions of the DAG's tasks as Airflow's REST API does for the user.

    `dag.test` waits for an answer from outside. Without an option, no answer is given.
    """
    ended = threading.Event()

    def answer() -> None:
        try:
            _answer_all(dag_id, str(option), user, ended)
        except BaseException:
            # Otherwise `dag.test` would wait for this thread's answer for ever.
            traceback.print_exc()
            os._exit(70)

    thread = threading.Thread(target=answer, daemon=True)
    if option is not None:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if option is not None:
            thread.join()


def resume_answered(task: Any, session: Any) -> bool:
    """Resume a task that is already answered but still waits; False if it has no answer yet.

    The end of a task writes that the task waits, and `dag.test` writes it again. An answer between the two
    writes is stored with the question, but the task continues to wait.
    """
    from airflow.models.trigger import handle_event_submit
    from airflow.triggers.base import TriggerEvent

    detail = task.hitl_detail
    if not detail.response_received:
        return False
    handle_event_submit(TriggerEvent(detail.as_resume_event_payload()), task_instance=task, session=session)
    return True


def _answer_all(dag_id: str, option: str, user: str, ended: threading.Event) -> None:
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.api_fastapi.core_api.datamodels.hitl import UpdateHITLDetailPayload
    from airflow.api_fastapi.core_api.routes.public.hitl import update_hitl_detail
    from airflow.models.taskinstance import TaskInstance
    from airflow.settings import Session
    from airflow.utils.state import TaskInstanceState
    from sqlalchemy import select
    from sqlalchemy.exc import OperationalError
    from sqlalchemy.orm import joinedload

    person = SimpleAuthManagerUser(username=user, role="admin")
    payload = UpdateHITLDetailPayload(chosen_options=[option], params_input={})
    waiting = (TaskInstance.dag_id == dag_id, TaskInstance.state == TaskInstanceState.AWAITING_INPUT)
    asking = select(TaskInstance).where(*waiting).options(joinedload(TaskInstance.hitl_detail))
    while not ended.wait(0.2):
        # SQLite may refuse a second writer. The next iteration finds the same question.
        with suppress(OperationalError), Session() as session:
            for task in session.scalars(asking).all():
                if resume_answered(task, session):
                    continue
                update_hitl_detail(
                    dag_id=dag_id,
                    dag_run_id=task.run_id,
                    task_id=task.task_id,
                    update_hitl_detail_payload=payload,
                    user=person,
                    session=session,
                    map_index=task.map_index,
                )
            session.commit()


if __name__ == "__main__":
    sys.exit(main())
