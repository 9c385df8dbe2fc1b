"""What becomes of the fields of a connection of the type `aws`."""

from __future__ import annotations

import os

from delta_airflow.hooks.given_connection import (
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
"""Without a `role_arn` those of a role have no effect."""

_HARMLESS_CONFIG = frozenset(
    {"user_agent", "user_agent_appid", "user_agent_extra", "signature_version", "tcp_keepalive"}
    | {"inject_host_prefix", "parameter_validation", "ignore_configured_endpoint_urls"}
    | {"disable_request_compression", "sigv4a_signing_region_set", "auth_scheme_preference"}
)

_OTHER_ENDPOINTS = ("use_accelerate_endpoint", "use_dualstack_endpoint", "use_fips_endpoint")


def translate(given: GivenConnection) -> Translation:
    """Storage options of S3.

    Raises:
        ConfigurationError: a field is of the wrong kind, or names a file that is not there.
    """
    found = Translation()
    config = given.mapping("config_kwargs")
    session = given.mapping("session_kwargs")
    services = given.mapping("service_config")
    of_s3, of_sts = services.mapping("s3"), services.mapping("sts")

    everywhere = given.string("endpoint_url")
    endpoint = of_s3.string("endpoint_url") or everywhere
    found.give("aws_endpoint_url", endpoint)
    if is_plain_http(endpoint):
        found.give("aws_allow_http", "true")
    found.give("endpoint_url_dynamodb", services.mapping("dynamodb").string("endpoint_url"))
    region = given.string("region_name"), session.string("region_name"), config.string("region_name")
    found.give("aws_region", next(filter(None, region), None))
    found.give("proxy_url", proxy_of(config, endpoint))
    if given.field_string("host"):
        found.refusals.append(
            given.refused(
                "host",
                cause="Airflow's own hook of S3 does not use the host either",
                fix='Leave it empty; an address other than Amazon\'s is "endpoint_url" in the extra',
                settled_by={"endpoint"},
            )
        )
    _verify(given, endpoint, found)
    _addresses(given, config, endpoint, found)
    _identity(given, session, config, of_sts, found)
    found.refusals += given.left_over(_HARMLESS)
    found.refusals += session.left_over((), place="session_kwargs.", settled_by=IDENTITY)
    found.refusals += of_s3.left_over(("bucket_name", "transfer_config_args"), place="service_config.s3.")
    found.refusals += config.left_over(_HARMLESS_CONFIG, place="config_kwargs.")
    return found


def _identity(
    given: GivenConnection,
    session: GivenConnection,
    config: GivenConnection,
    of_sts: GivenConnection,
    found: Translation,
) -> None:
    """The first identity that is given: anonymous, a role by a web identity, keys, or a profile."""
    names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token", "profile_name")
    extra = {name: given.string(name) for name in names}
    old = {name: session.string(name) for name in names}
    login, password = given.field_string("login"), given.field_string("password")
    unsigned = (config.string("signature_version") or "").lower() == "unsigned"
    role = given.string("role_arn")
    if given.string("profile") is not None and extra["profile_name"] is None:
        found.refusals.append(
            given.refused(
                "profile",
                cause="The profile of an aws connection is its profile_name",
                fix='Write "profile_name" in the extra',
                settled_by=IDENTITY,
            )
        )
    if unsigned:
        found.give("aws_skip_signature", "true")
        return
    if role is not None:
        _role(given, role, of_sts, found)
        return
    key, secret = login, password
    if not (key and secret) and extra["aws_access_key_id"] and extra["aws_secret_access_key"]:
        key, secret = extra["aws_access_key_id"], extra["aws_secret_access_key"]
    elif not (key and secret) and old["aws_access_key_id"] and old["aws_secret_access_key"]:
        key, secret = old["aws_access_key_id"], old["aws_secret_access_key"]
    if key and secret:
        found.give("aws_access_key_id", key)
        found.give("aws_secret_access_key", secret)
        found.give("aws_session_token", extra["aws_session_token"] or old["aws_session_token"])
    elif key or secret or extra["aws_session_token"]:
        found.refusals.append(
            given.refused(
                "login" if key else "password",
                cause="Of a key and its secret it has one alone",
                fix="Give the access key as login and the secret key as password, or neither",
                settled_by=IDENTITY,
            )
        )
    else:
        found.give("aws_profile", extra["profile_name"] or old["profile_name"])


def _role(given: GivenConnection, role: str, of_sts: GivenConnection, found: Translation) -> None:
    method = given.string("assume_role_method") or "assume_role"
    federation = given.string("assume_role_with_web_identity_federation")
    token_file = given.string("assume_role_with_web_identity_token_file")
    more = given.mapping("assume_role_kwargs")
    if method != "assume_role_with_web_identity" or federation not in (None, "file"):
        found.refusals.append(
            given.refused(
                "role_arn",
                cause=f"The method is {method}; a role is assumed by a web identity in a file alone",
                fix="Put the role into a profile of the shared AWS configuration, which boto3 assumes, "
                'and name it by "profile_name"; or give the machine the role',
                settled_by=IDENTITY,
            )
        )
        return
    found.give("aws_role_arn", role)
    found.give("aws_web_identity_token_file", token_file or os.environ.get("AWS_WEB_IDENTITY_TOKEN_FILE"))
    found.give("aws_role_session_name", more.string("RoleSessionName"))
    narrowed = sorted({"Policy", "PolicyArns", "ProviderId"} & more.extra.keys())
    if of_sts.string("endpoint_url"):
        narrowed.append("service_config.sts.endpoint_url")
    for name in narrowed:
        found.refusals.append(
            given.refused(
                name,
                cause="The role is assumed without it",
                fix="Leave it out, or use a profile that boto3 reads",
                settled_by=IDENTITY,
            )
        )


def _verify(given: GivenConnection, endpoint: str | None, found: Translation) -> None:
    verify = given.string("verify")
    if verify is None or verify.lower() in ("true", "1") or is_plain_http(endpoint):
        return
    if verify.lower() in FALSE:
        found.refusals.append(
            given.refused(
                "verify",
                cause="Certificates are checked always",
                fix="Name the file with the certificates to trust in its place, or an endpoint_url with http://",
                settled_by={"root_certificate"},
            )
        )
        return
    found.give("root_certificate", certificates(given, "verify", verify))


def _addresses(
    given: GivenConnection, config: GivenConnection, endpoint: str | None, found: Translation
) -> None:
    """Addresses that the client makes from others."""
    of_s3 = config.mapping("s3")
    for place, settings in (("config_kwargs.", config), ("config_kwargs.s3.", of_s3)):
        for name in _OTHER_ENDPOINTS:
            if settings.flag(name):
                found.refusals.append(_no_such_address(given, f"{place}{name}"))
    if of_s3.string("addressing_style") == "virtual" and endpoint:
        found.refusals.append(_no_such_address(given, "config_kwargs.s3.addressing_style"))


def _no_such_address(given: GivenConnection, name: str) -> Refusal:
    return given.refused(
        name,
        cause="The address that it stands for is not made of the bucket's name",
        fix="Leave it out, or put the whole address into storage_options as endpoint, with "
        "virtual_hosted_style_request where its host holds the bucket",
        settled_by={"endpoint"},
    )
