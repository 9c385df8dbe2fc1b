"""What becomes of the fields of a connection of the type `google_cloud_platform`."""

from __future__ import annotations

import json
from typing import Any

from delta_airflow.hooks.given_connection import GivenConnection, Refusal, Translation

IDENTITY = frozenset(
    {"service_account", "service_account_key", "application_credentials", "bearer_token", "skip_signature"}
)

_HARMLESS = frozenset(
    {"project", "scope", "scopes", "num_retries", "quota_project_id", "key_secret_project_id"}
    | {"client_id", "client_secret", "idp_extra_params", "idp_extra_parameters"}
)
"""The client asks for the scope of storage itself; those of a secret or of an issuer go with these fields."""

_WAYS = ("keyfile_dict", "key_path", "credential_config_file", "key_secret_name", "is_anonymous")

_REFUSED = {
    "key_secret_name": "The key is in Google's Secret Manager, and storage options hold keys or their paths",
    "impersonation_chain": "The store is asked with the key's own account, not with another's",
    "idp_issuer_url": "The tokens of another issuer are not exchanged",
}


def translate(given: GivenConnection) -> Translation:
    """Storage options of Google Cloud Storage.

    Raises:
        ConfigurationError: a field is of the wrong kind.
    """
    found = Translation()
    taken = {name: given.take(name) for name in dict.fromkeys((*_WAYS, *_REFUSED))}
    anonymous = str(taken["is_anonymous"] or "false").lower() == "true"
    if len([name for name in _WAYS if name != "is_anonymous" and taken[name]]) + anonymous > 1:
        named = ", ".join(name for name in _WAYS if taken[name])
        found.refusals.append(
            given.refused(
                named, cause="They exclude each other", fix="Leave one of them", settled_by=IDENTITY
            )
        )
        return found
    for name, cause in _REFUSED.items():
        if taken[name] and not anonymous:
            found.refusals.append(_refused(given, name, cause))
    if anonymous:
        found.give("google_skip_signature", "true")
    elif taken["keyfile_dict"]:
        found.give("google_service_account_key", _key_string(given, taken["keyfile_dict"]))
    elif taken["key_path"]:
        path = str(taken["key_path"])
        if path.endswith(".p12"):
            found.refusals.append(_refused(given, "key_path", "It is a P12 file; keys are in JSON"))
        found.give("google_service_account", path)
    elif taken["credential_config_file"]:
        _configuration(given, taken["credential_config_file"], found)
    found.refusals += given.left_over(_HARMLESS, settled_by=IDENTITY)
    return found


def _key_string(given: GivenConnection, value: Any) -> str:
    """The key of a service account as one JSON string, whether it was given as an object or as a string."""
    document = _document(given, "keyfile_dict", value)
    key = document.get("private_key")
    if isinstance(key, str):
        # Forms and variables of the environment often hold the two characters.
        document = {**document, "private_key": key.replace("\\n", "\n")}
    return json.dumps(document)


def _configuration(given: GivenConnection, value: Any, found: Translation) -> None:
    """A credential configuration, by its path or as its content."""
    if isinstance(value, str) and not value.lstrip().startswith("{"):
        found.give("google_application_credentials", value)
        return
    document = _document(given, "credential_config_file", value)
    if document.get("type") == "service_account":
        found.give("google_service_account_key", json.dumps(document))
        return
    found.refusals.append(
        _refused(
            given,
            "credential_config_file",
            "Its content is not the key of a service account, and the store reads others from a file alone",
        )
    )


def _document(given: GivenConnection, name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise given.not_valid(name, "the JSON of a key file") from None
    if not isinstance(value, dict):
        raise given.not_valid(name, "a JSON object")
    return value


def _refused(given: GivenConnection, name: str, cause: str) -> Refusal:
    return given.refused(
        name,
        cause=cause,
        fix='Give the key as "keyfile_dict" or its path as "key_path", or give the machine the account',
        settled_by=IDENTITY,
    )
