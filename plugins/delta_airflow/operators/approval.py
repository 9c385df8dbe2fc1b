"""Asking a person before something is done to a table."""

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
"""Set to `true` where the workers run, it lets runs go on without asking. Who starts a run cannot set it."""

WAIVED = "nobody (approval waived)"
"""The approver on record when nobody was asked."""


class DeltaApprovalOperator(ApprovalOperator):
    """Airflow's ApprovalOperator with a time limit per run and, where the deployment allows it, a waiver.

    Nothing happens unless somebody says yes: without an answer in time the answer is Reject. `Reject` skips
    the direct downstream tasks. The answer, also a rejection, is in XCom under the key `answer`; as the
    task's own result it stands there only when it was approved.

    Args:
        subject: the question in one line (templated).
        body: what there is to know for an answer, as Markdown (templated).
        response_hours: how long to wait for an answer (templated).
        waive: True asks nobody and approves. Refused unless the worker's environment allows it, since
            whoever may start a run may choose its parameters (templated).
        kwargs: those of ApprovalOperator; `defaults` is always Reject.
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
                "An approval has neither defaults nor response_timeout",
                cause="the default is always Reject, and the limit is response_hours",
                fix="leave both out",
            )
        super().__init__(defaults=self.REJECT, **kwargs)
        self.response_hours = response_hours
        self.waive = waive

    def execute(self, context: Context) -> Any:
        """Ask, and wait without holding a worker's slot.

        Raises:
            AirflowFailException: the approval is to be waived and the deployment does not allow it, or an
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
        """Take the answer; called by Airflow when there is one, or when the time for it is over."""
        if "error" not in event:
            # A rejection ends the task by an exception, after which it has no result.
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
                "The run waives the approval, which this deployment does not allow. Fix: start it without "
                f"the waiver, or set {WAIVER_VARIABLE}=true in the environment of the workers"
            )
        self.log.warning("Nobody was asked: the run waives the approval, and the deployment allows that")
        answer = {"chosen_options": [self.APPROVE], "responded_by_user": {"id": "", "name": WAIVED}}
        context["ti"].xcom_push(key="answer", value=answer)
        return {**answer, "params_input": {}}


def _person(user: Any) -> dict[str, str] | None:
    """Airflow gives a mapping or nothing."""
    return {"id": str(user["id"]), "name": str(user["name"])} if isinstance(user, Mapping) else None


def approver_of(answer: Any) -> str:
    """Who approved, from the XCom of an approval.

    Raises:
        AirflowFailException: nobody did; also when the task was marked as successful by hand.
    """
    chosen = answer.get("chosen_options") if isinstance(answer, Mapping) else None
    person = answer.get("responded_by_user") if isinstance(answer, Mapping) else None
    name = (person.get("name") or person.get("id")) if isinstance(person, Mapping) else None
    if chosen != [ApprovalOperator.APPROVE] or not name:
        raise AirflowFailException(
            f"There is no approval on record (the answer was {chosen}, by {name}). Fix: start a new run and "
            "have it approved; an approval cannot be marked as given"
        )
    return str(name)
