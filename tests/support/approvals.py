"""Answers what a DAG's tasks ask while `dag.test` runs it in this process, as Airflow itself would."""

from __future__ import annotations

import datetime as dt
import os
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from demo.inprocess_worker import resume_answered

NOBODY = "nobody"
"""As the option: let the time for an answer run out."""


@contextmanager
def answering(
    dag_id: str, *, option: str, user: str = "ann", before: Callable[[], None] = lambda: None
) -> Iterator[list[dict[str, Any]]]:
    """While the block runs, give every question of the DAG this answer.

    Args:
        option: `Approve`, `Reject` or `nobody`.
        user: who answers.
        before: called before each answer.

    Returns:
        What was asked: subject and body, and the status when an answer was refused.
    """
    _import_all()
    asked: list[dict[str, Any]] = []
    ended = threading.Event()

    def answer() -> None:
        try:
            _answer_all(dag_id, option, user, before, asked, ended)
        except BaseException:
            # `dag.test` would wait for this thread's answer for ever.
            traceback.print_exc()
            os._exit(70)

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield asked
    finally:
        ended.set()
        thread.join()


def _import_all() -> None:
    """What either thread will need, so that no two of them import Airflow's models at the same time."""
    import airflow.api.common.trigger_dag
    import airflow.api_fastapi.app
    import airflow.api_fastapi.core_api.routes.public.hitl
    import airflow.jobs.scheduler_job_runner
    import airflow.models.taskinstance  # noqa: F401
    from sqlalchemy.orm import configure_mappers

    configure_mappers()


def _answer_all(
    dag_id: str,
    option: str,
    user: str,
    before: Callable[[], None],
    asked: list[dict[str, Any]],
    ended: threading.Event,
) -> None:
    from airflow.models.taskinstance import TaskInstance
    from airflow.settings import Session
    from airflow.utils.state import TaskInstanceState
    from sqlalchemy import select
    from sqlalchemy.orm import joinedload

    waiting = (TaskInstance.dag_id == dag_id, TaskInstance.state == TaskInstanceState.AWAITING_INPUT)
    query = select(TaskInstance).where(*waiting).options(joinedload(TaskInstance.hitl_detail))
    while not ended.wait(0.2):
        with Session() as session:
            for task in session.scalars(query).all():
                if resume_answered(task, session):
                    continue
                detail = task.hitl_detail
                question = {"subject": detail.subject, "body": detail.body, "defaults": detail.defaults}
                seconds = (task.trigger_timeout - dt.datetime.now(dt.UTC)).total_seconds()
                asked.append({**question, "hours": round(seconds / 3600)})
                before()
                if option == NOBODY:
                    task.trigger_timeout = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=1)
                    session.commit()
                    _sweep()
                else:
                    asked[-1]["status"] = _respond(task, option, user, session)
            session.commit()


def _respond(task: Any, option: str, user: str, session: Any) -> int:
    """The REST route's function, without the server; a refused answer is then given by `admin`."""
    from airflow.api_fastapi.app import init_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.api_fastapi.core_api.datamodels.hitl import UpdateHITLDetailPayload
    from airflow.api_fastapi.core_api.routes.public.hitl import update_hitl_detail
    from fastapi import HTTPException

    init_auth_manager()
    status = 200
    for name in (user, "admin"):
        try:
            update_hitl_detail(
                dag_id=task.dag_id,
                dag_run_id=task.run_id,
                task_id=task.task_id,
                update_hitl_detail_payload=UpdateHITLDetailPayload(chosen_options=[option]),
                user=SimpleAuthManagerUser(username=name, role="op"),
                session=session,
                map_index=task.map_index,
            )
            break
        except HTTPException as error:
            status = error.status_code
    return status


def _sweep() -> None:
    """What the scheduler does from time to time."""
    from airflow.jobs.job import Job
    from airflow.jobs.scheduler_job_runner import SchedulerJobRunner

    SchedulerJobRunner(job=Job()).check_awaiting_input_timeouts()
