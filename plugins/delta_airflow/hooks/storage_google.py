"""Translation of a connection of the type `google_cloud_platform` to storage options."""

from __future__ import annotations

import json
from typing import Any

from delta_airflow.hooks.connection_fields import GivenConnection, Refusal, Translation

IDENTITY = frozenset(
    {"service_account", "service_account_key", "application_credentials", "bearer_token", "skip_signature"}
)

_HARMLESS = frozenset(
    {"project", "scope", "scopes", "num_retries", "quota_project_id", "key_secret_project_id"}
    | {"client_id", "client_secret", "idp_extra_params", "idp_extra_parameters"}
)
"""Names that need no translation. The client requests the storage scope itself. The other names only have an
effect together with a key in Secret Manager or with an issuer other than Google, which are refused."""

_WAYS = ("keyfile_dict", "key_path", "credential_config_file", "key_secret_name", "is_anonymous")

_REFUSED = {
    "key_secret_name": "The key is in Google's Secret Manager, but storage options hold keys or their paths",
    "impersonation_chain": "Deltaward uses the key's own account and does not impersonate another account",
    "idp_issuer_url": "Deltaward does not exchange tokens of an issuer other than Google",
}


def translate(given: GivenConnection) -> Translation:
    """Translate the connection to storage options for Google Cloud Storage.

    Raises:
        ConfigurationError: a field has the wrong type.
    """
    translation = Translation()
    taken = {name: given.take(name) for name in dict.fromkeys((*_WAYS, *_REFUSED))}
    anonymous = str(taken["is_anonymous"] or "false").lower() == "true"
    if len([name for name in _WAYS if name != "is_anonymous" and taken[name]]) + anonymous > 1:
        named = ", ".join(name for name in _WAYS if taken[name])
        translation.refusals.append(
            given.refused(
                named, cause="They exclude each other.", fix="Keep only one of them.", settled_by=IDENTITY
            )
        )
        return translation
    for name, cause in _REFUSED.items():
        if taken[name] and not anonymous:
            translation.refusals.append(_refused(given, name, cause))
    if anonymous:
        translation.give("google_skip_signature", "true")
    elif taken["keyfile_dict"]:
        translation.give("google_service_account_key", _key_string(given, taken["keyfile_dict"]))
    elif taken["key_path"]:
        path = str(taken["key_path"])
        if path.endswith(".p12"):
            translation.refusals.append(
                _refused(given, "key_path", "It is a P12 file, but the key must be JSON.")
            )
        translation.give("google_service_account", path)
    elif taken["credential_config_file"]:
        _configuration(given, taken["credential_config_file"], translation)
    translation.refusals += given.unused(_HARMLESS, settled_by=IDENTITY)
    return translation


def _key_string(given: GivenConnection, value: Any) -> str:
    """The key of a service account as a JSON string. It may be given as an object or as a string."""
    document = _document(given, "keyfile_dict", value)
    key = document.get("private_key")
    if isinstance(key, str):
        # Forms and environment variables often contain a backslash and an n instead of a newline.
        document = {**document, "private_key": key.replace("\\n", "\n")}
    return json.dumps(document)


def _configuration(given: GivenConnection, value: Any, translation: Translation) -> None:
    """Set a credential configuration, which is given as a path or as its content."""
    if isinstance(value, str) and not value.lstrip().startswith("{"):
        translation.give("google_application_credentials", value)
        return
    document = _document(given, "credential_config_file", value)
    if document.get("type") == "service_account":
        translation.give("google_service_account_key", json.dumps(document))
        return
    translation.refusals.append(
        _refused(
            given,
            "credential_config_file",
            "Its content is not the key of a service account. Other configurations must be in a file.",
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
        fix='Set "keyfile_dict" to the key or "key_path" to its path, or give the account to the machine.',
        settled_by=IDENTITY,
    )
