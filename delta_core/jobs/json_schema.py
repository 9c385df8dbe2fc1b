"""Validation of JSON values against the subset of JSON Schema that the job contract uses.

The codec checks against the schemas of `wire_schema` and of the job kinds. The same schemas are published, so
that the documents and the checks cannot differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from delta_core.errors import InvalidJobSpecError

JsonSchema = Mapping[str, Any]

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def check_params(kind: str, params: Mapping[str, Any], schema: JsonSchema) -> None:
    """Check the parameters of a job of that kind.

    Raises:
        InvalidJobSpecError: a parameter is missing, unknown or of a wrong type. The error names all of them.
    """
    problems = list(violations(dict(params), schema, at="params"))
    if problems:
        raise InvalidJobSpecError(
            f"The parameters of this {kind!r} job are not valid: {'; '.join(problems)}.",
            fix="See docs/job-spec.schema.json.",
        )


def violations(value: Any, schema: JsonSchema, *, at: str = "") -> Iterator[str]:
    """One message for each violation of the schema. `at` is the path of `value` in its document.

    Supports type, const, enum, properties, required, additionalProperties, items, minimum and minLength.
    Annotations are ignored.
    """
    name = at or "the document"
    types = schema.get("type")
    if types is not None:
        allowed = [types] if isinstance(types, str) else list(types)
        if not any(_is_a(value, kind) for kind in allowed):
            yield f"{name} must be {_words(allowed)} but is {_type_name(value)}"
            return
    if "const" in schema and value != schema["const"]:
        yield f"{name} must be {schema['const']!r} but is {value!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{name} must be one of {', '.join(map(str, schema['enum']))} but is {value!r}"
    if "minimum" in schema and _is_a(value, "number") and value < schema["minimum"]:
        yield f"{name} must be at least {schema['minimum']} but is {value}"
    if isinstance(value, str) and len(value) < schema.get("minLength", 0):
        yield f"{name} must not be empty"
    if isinstance(value, dict):
        yield from _object_violations(value, schema, at)
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from violations(item, schema["items"], at=f"{at}[{index}]")


def _object_violations(value: Mapping[str, Any], schema: JsonSchema, at: str) -> Iterator[str]:
    properties: Mapping[str, JsonSchema] = schema.get("properties", {})
    prefix = f"{at}." if at else ""
    for key in schema.get("required", ()):
        if key not in value:
            yield f"{prefix}{key} is missing"
    extra = schema.get("additionalProperties", True)
    for key, item in value.items():
        if key in properties:
            yield from violations(item, properties[key], at=f"{prefix}{key}")
        elif extra is False:
            known = ", ".join(sorted(properties)) or "none"
            yield f"{prefix}{key} is unknown (known: {known})"
        elif isinstance(extra, Mapping):
            yield from violations(item, extra, at=f"{prefix}{key}")


def _is_a(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    for kind, types in _TYPES.items():
        if isinstance(value, types):
            return _words([kind])
    return f"a {type(value).__name__}, which JSON cannot represent"


def _words(kinds: list[str]) -> str:
    return " or ".join(
        kind if kind == "null" else f"{'an' if kind[0] in 'aio' else 'a'} {kind}" for kind in kinds
    )
