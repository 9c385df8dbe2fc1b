"""Translation of a connection of the type `aws` to storage options."""

from __future__ import annotations

import os

from delta_airflow.hooks.connection_fields import (
    GivenConnection,
    Refusal,
    Translation,
    certificates,
    is_plain_http,
    proxy_of,
)
from delta_core.storage.store_options import FALSE

IDENTITY = frozenset(
    {"access_key_id", "secret_access_key", "session_token", "profile", "skip_signature"}
    | {"role_arn", "role_session_name", "web_identity_token_file"}
    | {"container_credentials_relative_uri", "container_credentials_full_uri"}
)

_HARMLESS = frozenset(
    {"assume_role_kwargs", "assume_role_method", "assume_role_with_saml", "external_id"}
    | {"assume_role_with_web_identity_federation", "assume_role_with_web_identity_federation_audience"}
    | {"assume_role_with_web_identity_token_file", "test_endpoint_url"}
)
"""Names that need no translation. Without a `role_arn`, the fields of a role have no effect."""

_HARMLESS_CONFIG = frozenset(
    {"user_agent", "user_agent_appid", "user_agent_extra", "signature_version", "tcp_keepalive"}
    | {"inject_host_prefix", "parameter_validation", "ignore_configured_endpoint_urls"}
    | {"disable_request_compression", "sigv4a_signing_region_set", "auth_scheme_preference"}
)

_OTHER_ENDPOINTS = ("use_accelerate_endpoint", "use_dualstack_endpoint", "use_fips_endpoint")


def translate(given: GivenConnection) -> Translation:
    """Translate the connection to storage options for S3.

    Raises:
        ConfigurationError: a field has the wrong type, or refers to a missing file.
    """
    translation = Translation()
    config = given.mapping("config_kwargs")
    session = given.mapping("session_kwargs")
    services = given.mapping("service_config")
    of_s3, of_sts = services.mapping("s3"), services.mapping("sts")

    everywhere = given.string("endpoint_url")
    endpoint = of_s3.string("endpoint_url") or everywhere
    translation.give("aws_endpoint_url", endpoint)
    if is_plain_http(endpoint):
        translation.give("aws_allow_http", "true")
    translation.give("endpoint_url_dynamodb", services.mapping("dynamodb").string("endpoint_url"))
    region = given.string("region_name"), session.string("region_name"), config.string("region_name")
    translation.give("aws_region", next(filter(None, region), None))
    translation.give("proxy_url", proxy_of(config, endpoint))
    if given.field_string("host"):
        translation.refusals.append(
            given.refused(
                "host",
                cause="Airflow's own S3 hook does not use the host either.",
                fix='Leave the host empty. Set "endpoint_url" in the extra if the store is not Amazon S3.',
                settled_by={"endpoint"},
            )
        )
    _verify(given, endpoint, translation)
    _addresses(given, config, endpoint, translation)
    _identity(given, session, config, of_sts, translation)
    translation.refusals += given.unused(_HARMLESS)
    translation.refusals += session.unused((), place="session_kwargs.", settled_by=IDENTITY)
    translation.refusals += of_s3.unused(("bucket_name", "transfer_config_args"), place="service_config.s3.")
    translation.refusals += config.unused(_HARMLESS_CONFIG, place="config_kwargs.")
    return translation


def _identity(
    given: GivenConnection,
    session: GivenConnection,
    config: GivenConnection,
    of_sts: GivenConnection,
    translation: Translation,
) -> None:
    """Set the first identity that is given: anonymous, a role with a web identity, keys, or a profile."""
    names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token", "profile_name")
    extra = {name: given.string(name) for name in names}
    old = {name: session.string(name) for name in names}
    login, password = given.field_string("login"), given.field_string("password")
    unsigned = (config.string("signature_version") or "").lower() == "unsigned"
    role = given.string("role_arn")
    if given.string("profile") is not None and extra["profile_name"] is None:
        translation.refusals.append(
            given.refused(
                "profile",
                cause="The profile of an aws connection is called profile_name.",
                fix='Use "profile_name" in the extra.',
                settled_by=IDENTITY,
            )
        )
    if unsigned:
        translation.give("aws_skip_signature", "true")
        return
    if role is not None:
        _role(given, role, of_sts, translation)
        return
    key, secret = login, password
    if not (key and secret) and extra["aws_access_key_id"] and extra["aws_secret_access_key"]:
        key, secret = extra["aws_access_key_id"], extra["aws_secret_access_key"]
    elif not (key and secret) and old["aws_access_key_id"] and old["aws_secret_access_key"]:
        key, secret = old["aws_access_key_id"], old["aws_secret_access_key"]
    if key and secret:
        translation.give("aws_access_key_id", key)
        translation.give("aws_secret_access_key", secret)
        translation.give("aws_session_token", extra["aws_session_token"] or old["aws_session_token"])
    elif key or secret or extra["aws_session_token"]:
        translation.refusals.append(
            given.refused(
                "login" if key else "password",
                cause="Only one of the access key and the secret key is set.",
                fix="Give the access key as login and the secret key as password, or neither.",
                settled_by=IDENTITY,
            )
        )
    else:
        translation.give("aws_profile", extra["profile_name"] or old["profile_name"])


def _role(given: GivenConnection, role: str, of_sts: GivenConnection, translation: Translation) -> None:
    method = given.string("assume_role_method") or "assume_role"
    federation = given.string("assume_role_with_web_identity_federation")
    token_file = given.string("assume_role_with_web_identity_token_file")
    more = given.mapping("assume_role_kwargs")
    if method != "assume_role_with_web_identity" or federation not in (None, "file"):
        translation.refusals.append(
            given.refused(
                "role_arn",
                cause=f"The method is {method}. Deltaward supports only a web identity token file.",
                fix="Put the role into a profile of the shared AWS configuration, which boto3 assumes, and "
                'set "profile_name" to it. Or give the role to the machine.',
                settled_by=IDENTITY,
            )
        )
        return
    translation.give("aws_role_arn", role)
    translation.give(
        "aws_web_identity_token_file", token_file or os.environ.get("AWS_WEB_IDENTITY_TOKEN_FILE")
    )
    translation.give("aws_role_session_name", more.string("RoleSessionName"))
    narrowed = sorted({"Policy", "PolicyArns", "ProviderId"} & more.extra.keys())
    if of_sts.string("endpoint_url"):
        narrowed.append("service_config.sts.endpoint_url")
    for name in narrowed:
        translation.refusals.append(
            given.refused(
                name,
                cause="Deltaward assumes the role without this setting.",
                fix="Leave it out, or use a profile that boto3 reads.",
                settled_by=IDENTITY,
            )
        )


def _verify(given: GivenConnection, endpoint: str | None, translation: Translation) -> None:
    verify = given.string("verify")
    if verify is None or verify.lower() in ("true", "1") or is_plain_http(endpoint):
        return
    if verify.lower() in FALSE:
        translation.refusals.append(
            given.refused(
                "verify",
                cause="Deltaward always verifies certificates.",
                fix="Set verify to the file with the trusted certificates, or use an http:// endpoint_url.",
                settled_by={"root_certificate"},
            )
        )
        return
    translation.give("root_certificate", certificates(given, "verify", verify))


def _addresses(
    given: GivenConnection, config: GivenConnection, endpoint: str | None, translation: Translation
) -> None:
    """Refuse the options by which a client derives a different address for a bucket."""
    of_s3 = config.mapping("s3")
    for place, settings in (("config_kwargs.", config), ("config_kwargs.s3.", of_s3)):
        for name in _OTHER_ENDPOINTS:
            if settings.flag(name):
                translation.refusals.append(_no_such_address(given, f"{place}{name}"))
    if of_s3.string("addressing_style") == "virtual" and endpoint:
        translation.refusals.append(_no_such_address(given, "config_kwargs.s3.addressing_style"))


def _no_such_address(given: GivenConnection, name: str) -> Refusal:
    return given.refused(
        name,
        cause="Deltaward does not derive an address from the bucket's name.",
        fix="Leave it out, or set endpoint in storage_options to the complete address. If its host contains "
        "the bucket, also set virtual_hosted_style_request.",
        settled_by={"endpoint"},
    )
