"""What the caller of a write may say about its commit."""

from __future__ import annotations

from dataclasses import dataclass

from delta_core.actions.json_codec import action_to_json
from delta_core.actions.set_transaction import SetTransaction
from delta_core.actions.validation import CHECKS, InvalidAction
from delta_core.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitProperties:
    """Provenance, idempotency and limits of one commit.

    Attributes:
        user_metadata: free text stored in `commitInfo.userMetadata`; orchestrated jobs put JSON there.
        user_name: who; the operating system's user when None.
        engine_info: which program; `deltaward/<version>` when None.
        txn: idempotency key. When the table already has this application id at this version or a
            later one, the commit is a no-op that reports `AlreadyApplied`.
        max_attempts: how many times another writer may win before the commit is given up.
        deadline_seconds: how long the commit may take in all.
    """

    user_metadata: str | None = None
    user_name: str | None = None
    engine_info: str | None = None
    txn: SetTransaction | None = None
    max_attempts: int = 50
    deadline_seconds: float = 600.0

    def __post_init__(self) -> None:
        """Refuse a key that no table could hold. Raises ConfigurationError."""
        if self.txn is not None and not isinstance(self.txn, SetTransaction):
            raise ConfigurationError(
                f"{self.txn!r} is no idempotency key.",
                cause=f"It is of type {type(self.txn).__name__}.",
                fix="Pass SetTransaction(app_id='job', version=9) from delta_core.actions.",
            )
        if self.txn is not None:
            try:
                CHECKS["txn"](action_to_json(self.txn)["txn"])
            except InvalidAction as error:
                raise ConfigurationError(
                    f"{self.txn!r} is no idempotency key.",
                    cause=str(error),
                    fix="An app_id is a text, a version a whole number of 64 bits.",
                ) from None


DEFAULT_COMMIT_PROPERTIES = CommitProperties()
