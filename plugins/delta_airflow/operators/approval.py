"""Approval by a person before a table is changed."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException

from delta_airflow.operators.rendered import as_bool, as_optional_float
from delta_core.errors import ConfigurationError

if TYPE_CHECKING:
    from airflow.sdk import Context

WAIVER_VARIABLE = "DELTAWARD_ALLOW_WAIVED_APPROVAL"
"""If this environment variable of the workers is `true`, a run may waive the approval. The user who starts a
run cannot set it."""

WAIVED = "no person (approval waived)"
"""The recorded approver when the approval was waived."""


class DeltaApprovalOperator(ApprovalOperator):
    """Airflow's ApprovalOperator with a time limit per run and, if the deployment allows it, a waiver.

    The task approves only if a person approves. Without an answer in time, the answer is Reject. `Reject`
    skips the direct downstream tasks. Every answer, including a rejection, is in XCom under the key `answer`.
    Only an approval is also the task's own result.

    Args:
        response_hours: the time limit for an answer (templated).
        waive: True approves without an answer. This is refused unless the worker's environment allows it,
            because every user who can start a run can choose its parameters (templated).
        kwargs: those of ApprovalOperator. `subject` is the question in one line (templated), and `body` is
            the information that the approver needs, as Markdown (templated). `defaults` is always Reject.
    """

    template_fields: Collection[str] = (*ApprovalOperator.template_fields, "response_hours", "waive")

    def __init__(
        self,
        *,
        response_hours: float | str = 24,
        waive: bool | str = False,
        **kwargs: Any,
    ) -> None:
        if {"defaults", "response_timeout"} & set(kwargs):
            raise ConfigurationError(
                "An approval does not accept the arguments defaults and response_timeout.",
                cause="The default is always Reject, and response_hours sets the limit.",
                fix="Leave both out.",
            )
        super().__init__(defaults=self.REJECT, **kwargs)
        self.response_hours = response_hours
        self.waive = waive

    def execute(self, context: Context) -> Any:
        """Ask for approval, and wait without holding a worker slot.

        Raises:
            AirflowFailException: the run waives the approval although the deployment does not allow it, or an
                argument is not valid.
        """
        try:
            hours = as_optional_float("response_hours", self.response_hours, minimum=0.001)
            waive = as_bool("waive", self.waive)
        except ConfigurationError as error:
            raise AirflowFailException(f"{error.code}: {error}") from error
        if waive:
            return self._waived(context)
        self.response_timeout = timedelta(hours=24 if hours is None else hours)
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Handle the answer. Airflow calls this when there is an answer or the time limit has passed."""
        if "error" not in event:
            # A rejection ends the task with an exception, so the task has no result of its own.
            context["ti"].xcom_push(
                key="answer",
                value={
                    "chosen_options": list(event["chosen_options"]),
                    "responded_by_user": _person(event.get("responded_by_user")),
                },
            )
        return super().execute_complete(context, event)

    def _waived(self, context: Context) -> dict[str, Any]:
        if os.environ.get(WAIVER_VARIABLE, "").strip().lower() != "true":
            raise AirflowFailException(
                "The run waives the approval, which this deployment does not allow. Fix: Start the run "
                f"without the waiver, or set {WAIVER_VARIABLE}=true in the environment of the workers."
            )
        self.log.warning("The run waives the approval, and the deployment allows it. No person was asked.")
        answer = {"chosen_options": [self.APPROVE], "responded_by_user": {"id": "", "name": WAIVED}}
        context["ti"].xcom_push(key="answer", value=answer)
        return {**answer, "params_input": {}}


def _person(user: Any) -> dict[str, str] | None:
    """Id and name of a user. Airflow passes a mapping, or None without a user."""
    return {"id": str(user["id"]), "name": str(user["name"])} if isinstance(user, Mapping) else None


def approver_of(answer: Any) -> str:
    """The approver, from the XCom of an approval.

    Raises:
        AirflowFailException: no person approved, for example because the task was marked as successful by
            hand.
    """
    chosen = answer.get("chosen_options") if isinstance(answer, Mapping) else None
    person = answer.get("responded_by_user") if isinstance(answer, Mapping) else None
    name = (person.get("name") or person.get("id")) if isinstance(person, Mapping) else None
    if chosen != [ApprovalOperator.APPROVE] or not name:
        raise AirflowFailException(
            f"The task has no approval on record (the answer was {chosen}, by {name}). Fix: Start a new run "
            "and have it approved. Marking the approval task as successful does not count as an approval."
        )
    return str(name)
