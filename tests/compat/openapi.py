# SPDX-License-Identifier: MIT
"""Holds JSON values against a vendor's OpenAPI description."""


def load(path):
    import yaml

    with open(path, encoding="utf-8") as f:
        return yaml.load(f, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def checks(spec, schema, value, where="answer"):
    """What is wrong with the value by the schema, or None."""
    if "$ref" in schema:
        node = spec
        for part in schema["$ref"].lstrip("#/").split("/"):
            node = node[part]
        return checks(spec, node, value, where)
    for part in schema.get("allOf", ()):
        wrong = checks(spec, part, value, where)
        if wrong:
            return wrong
    if value is None:
        return None if schema.get("nullable") else where + " is null"
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
    kind = schema.get("type", "object" if "properties" in schema else None)
    if kind == "number":
        return None if isinstance(value, (int, float)) else where + " is no number"
    if kind in kinds and not isinstance(value, kinds[kind]):
        return "%s is no %s" % (where, kind)
    if "enum" in schema and value not in schema["enum"]:
        return "%s is none of %s" % (where, schema["enum"])
    if kind == "array":
        for v in value:
            wrong = checks(spec, schema.get("items", {}), v, where + "[]")
            if wrong:
                return wrong
    if kind == "object":
        for name in schema.get("required", ()):
            if name not in value:
                return "%s lacks %s" % (where, name)
        for name, sub in schema.get("properties", {}).items():
            if name in value:
                wrong = checks(spec, sub, value[name], where + "." + name)
                if wrong:
                    return wrong
    return None
