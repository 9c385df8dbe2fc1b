"""The identity of the task that runs a job: its idempotency key, and the provenance in its commits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from delta_airflow.operators.clearing import FIRST_CLEARING, clearing_number
from delta_core.jobs import Delivery, IdempotencyKey, TableRef

if TYPE_CHECKING:
    from airflow.sdk import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskIdentity:
    """One try of one task instance.

    Attributes:
        clearing: the first try since the task instance was last cleared; 1 if it was never cleared.
        logical_date: ISO 8601; None for runs that have none (manual and asset-triggered ones).
    """

    dag_id: str
    task_id: str
    run_id: str
    map_index: int = -1
    try_number: int = 1
    clearing: int = FIRST_CLEARING
    logical_date: str | None = None

    @classmethod
    def of(cls, context: Context) -> TaskIdentity:
        """The identity of the task instance of a context."""
        instance = context["ti"]
        date = context.get("logical_date")
        map_index = instance.map_index
        return cls(
            dag_id=instance.dag_id,
            task_id=instance.task_id,
            run_id=instance.run_id,
            map_index=-1 if map_index is None else map_index,
            try_number=instance.try_number,
            clearing=clearing_number(
                try_number=instance.try_number,
                max_tries=getattr(instance, "max_tries", None),
                retries=getattr(getattr(instance, "task", None), "retries", None),
            ),
            logical_date=None if date is None else date.isoformat(),
        )


def idempotency_key(
    task: TaskIdentity,
    table: TableRef,
    *,
    name: str | None = None,
    version: int = 0,
    reapplies: bool = False,
) -> IdempotencyKey:
    """The idempotency key of a task's work on a table: a `txn` application id with its version.

    The key omits the try number, so that retries and drivers that outlived their task share one key. A
    cleared task has the same key, too, unless it applies its work again. In that case each clearing is a step
    of the work: a driver of an earlier clearing applies nothing after a later clearing has committed.

    Named work that is applied again has a key for the step in addition to the key for its delivery. It is
    the same delivery, and the table accepts it once more. If the table has recorded a later delivery, this
    one is outdated and is not applied.

    Args:
        task: the task instance.
        table: the table; the same task has a different key for each table.
        name: a name for the work ("flights 2013-01"), which replaces the task instance in the key. The work
            is then applied once, even if a second run (a manual one, a backfill) does the same work.
        version: the number of the delivery of the named work. An earlier delivery is not applied after it.
        reapplies: whether a cleared task applies the work again.
    """
    own = [task.dag_id, task.task_id, task.map_index, task.run_id]
    step = task.clearing - FIRST_CLEARING if reapplies else 0
    if name is None:
        return IdempotencyKey(app_id=_app_id(own, table), version=step)
    delivery = Delivery(app_id=work_app_id(name, table), version=version)
    if not step:
        return IdempotencyKey(app_id=delivery.app_id, version=version)
    return IdempotencyKey(app_id=_app_id(["again", name, *own], table), version=step, delivery=delivery)


def work_app_id(name: str, table: TableRef) -> str:
    """The `txn` application id of named work on a table."""
    return _app_id(["work", name], table)


def _app_id(parts: list[Any], table: TableRef) -> str:
    text = json.dumps([*parts, table.uri, table.id], separators=(",", ":"))
    return "deltaward-" + hashlib.sha256(text.encode()).hexdigest()


def user_metadata(task: TaskIdentity, *, approver: str | None = None) -> Mapping[str, Any]:
    """The content of `commitInfo.userMetadata` for a commit of an Airflow task."""
    return {
        "dag": task.dag_id,
        "task": task.task_id,
        "run": task.run_id,
        "try": task.try_number,
        "map_index": task.map_index,
        "logical_date": task.logical_date,
        "approver": approver,
    }
