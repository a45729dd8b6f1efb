# SPDX-License-Identifier: BSD-3-Clause
"""The JSON Schemas of docs/schemas: they validate documents, and docs/json.md is made of them.

usage: schemas.py validate FILE...   documents, also several in a file; fails at the first key that no schema has
       schemas.py write | check      makes docs/json.md; fails if it is not current"""

import functools
import json
import re
import sys
from pathlib import Path

import jsonschema

REPO = Path(__file__).resolve().parents[1]
FOLDER, PAGE = REPO / "docs" / "schemas", REPO / "docs" / "json.md"
COMMON = "common"

HEAD = """<!-- SPDX-License-Identifier: BSD-3-Clause -->
# JSON

The keys of every JSON document that ringtap prints or writes. This page is made of the
[JSON Schemas](schemas/) by `devtools/schemas.py`; [interface.md](interface.md#json) has the rules.
A key is in its document unless "may be missing" stands here; what is unknown is null. Keys may be
added in later versions.
"""


@functools.cache
def schemas():
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}


def lookup(ref):
    """Target of a reference: `common.json#/$defs/NAME`, within common.json without the file, or a whole file."""
    file, _, name = ref.partition("#/$defs/")
    schema = schemas()[file.removesuffix(".json") or COMMON]
    return schema["$defs"][name] if name else schema


def merged(schema):
    """The schema with the keys of all that it refers to as its own."""
    out = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
    own, out["properties"] = out.get("properties", {}), {}
    out["required"] = list(out.get("required", []))
    for part in [*([lookup(schema["$ref"])] if "$ref" in schema else []), *schema.get("allOf", [])]:
        found = merged(part)
        out["properties"] |= found.pop("properties")
        out["required"] += found.pop("required")
        out = found | out
    out["properties"] |= own
    return out


def closed(schema):
    """The schema without references and without room for keys that it does not name."""
    out = merged(schema)
    out["properties"] = {key: closed(value) for key, value in out["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(out.get(key), dict):
            out[key] = closed(out[key])
    if "anyOf" in out:
        out["anyOf"] = [closed(part) for part in out["anyOf"]]
    elif out["properties"]:
        out.setdefault("additionalProperties", False)
    return out


@functools.cache
def validator(name):
    return jsonschema.Draft202012Validator(closed(schemas()[name]))


KINDS = {"null": type(None), "boolean": bool, "string": str, "array": list, "object": dict, "integer": int}


def is_kind(value, kind):
    return type(value) in (int, float) if kind == "number" else type(value) is KINDS[kind]


def are_members(members, value, schema):
    more = schema.get("additionalProperties", True)
    if not isinstance(value, dict):
        return True
    for key, member in value.items():
        known = members.get(key, more)
        if known is not True and (known is False or not fits(known, member)):
            return False
    return True


def are_items(items, value, schema):
    rest = value[len(schema.get("prefixItems", ())) :] if isinstance(value, list) else ()
    return not rest or (items is not False and (items is True or all(fits(items, item) for item in rest)))


def is_limit(value, compare):
    return type(value) not in (int, float) or compare(value)


# Keyword: whether the value is as this says.
KEYWORDS = {
    "type": lambda kinds, value, _: any(is_kind(value, k) for k in ([kinds] if isinstance(kinds, str) else kinds)),
    "const": lambda const, value, _: type(value) is type(const) and value == const,
    "enum": lambda values, value, _: any(type(value) is type(one) and value == one for one in values),
    "minimum": lambda limit, value, _: is_limit(value, lambda number: number >= limit),
    "maximum": lambda limit, value, _: is_limit(value, lambda number: number <= limit),
    "pattern": lambda pattern, value, _: not isinstance(value, str) or re.search(pattern, value) is not None,
    "anyOf": lambda parts, value, _: any(fits(part, value) for part in parts),
    "properties": are_members,
    "required": lambda keys, value, _: not isinstance(value, dict) or all(key in value for key in keys),
    "propertyNames": lambda names, value, _: not isinstance(value, dict) or all(fits(names, key) for key in value),
    "items": are_items,
    "prefixItems": lambda parts, value, _: not isinstance(value, list) or all(map(fits, parts, value)),
    "minItems": lambda count, value, _: not isinstance(value, list) or len(value) >= count,
    "maxItems": lambda count, value, _: not isinstance(value, list) or len(value) <= count,
    "minProperties": lambda count, value, _: not isinstance(value, dict) or len(value) >= count,
    "dependentRequired": lambda keys, value, _: not isinstance(value, dict)
    or all(key not in value or all(other in value for other in others) for key, others in keys.items()),
    "additionalProperties": lambda _what, _value, schema: "properties" in schema,  # are_members() checks them
    **dict.fromkeys(("description", "title", "$schema", "$id"), lambda *_: True),
}


def fits(schema, value):
    """Whether a value is as in a closed schema, faster than jsonschema. False: jsonschema decides. Debian 12's
    fastjsonschema knows drafts up to 7 only, without prefixItems."""
    return all(key in KEYWORDS and KEYWORDS[key](what, value, schema) for key, what in schema.items())


def is_document(value):
    return isinstance(value, dict) and {"schema", "ringtap", "command"} <= value.keys()


def name_of(document):
    """Its schema's name. The files of an incident have the name of the command that writes them, and so have
    documents that the page draws; web/view.schema.json has their panels."""
    if isinstance(document.get("view"), int):  # a version; a table of `archive top` is one by name
        return "view"
    if document["command"] == "flight":
        return "flight-incident" if "trigger" in document else "flight-metrics"
    return document["command"].replace(" ", "-")


def validate(document):
    """Raises ValueError with the place of the first fault."""
    name = name_of(document)
    if name not in schemas():
        raise ValueError(f"docs/schemas/{name}.json is missing: every command has a schema")
    checker = validator(name)
    if fits(checker.schema, document):
        return
    error = jsonschema.exceptions.best_match(checker.iter_errors(document))
    if error:
        raise ValueError(f"not as in docs/schemas/{name}.json: {error.json_path}: {error.message[:1000]}")


def documents(text):
    """All JSON values of a text."""
    decoder = json.JSONDecoder()
    while text := text.lstrip():
        value, end = decoder.raw_decode(text)
        yield value
        text = text[end:]


# ---- the page


def resolve(schema, seen=()):
    """A schema without its references and alternatives with null: (type, properties, items, names of common parts)."""
    if "anyOf" in schema:
        parts = [part for part in schema["anyOf"] if part != {"type": "null"}]
        null = len(parts) < len(schema["anyOf"])
        schema = {k: v for k, v in schema.items() if k != "anyOf"} | (
            parts[0] if len(parts) == 1 else {"alternatives": parts}
        )
        return schema, null
    return schema, False


def common_name(ref):
    return ref.rsplit("/", 1)[1]


def type_text(schema):
    schema, null = resolve(schema)
    if "$ref" in schema:
        ref = schema["$ref"]
        text = (
            f"[{ref}](#{ref.removesuffix('.json')})" if "#" not in ref else f"[{common_name(ref)}](#{common_name(ref)})"
        )
    elif "const" in schema:
        text = f"`{json.dumps(schema['const'])}`"
    elif "enum" in schema:
        text = ", ".join(f"`{v}`" for v in schema["enum"])
    elif schema.get("type") == "array" and "items" in schema:
        text = "list of " + type_text(schema["items"])
    elif "type" in schema:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        null |= "null" in types
        text = ", ".join(t for t in types if t != "null")
    else:
        text = ", ".join(dict.fromkeys(type_text(part) for part in schema.get("alternatives", []))) or "object"
    return text + (" or null" if null else "")


def rows(schema, path=""):
    """(path, type, description) of all keys below."""
    schema, _ = resolve(schema)
    for part in [*schema.get("allOf", []), *schema.get("alternatives", [])]:
        if "$ref" in part:
            yield f"{path}…", type_text(part), "its keys"
        elif "not" not in part:
            yield from rows(part, path)
    required = schema.get("required", [])
    for key, value in schema.get("properties", {}).items():
        here = f"{path}{key}"
        text = value.get("description", "")
        yield here, type_text(value), text if key in required else f"{text}; may be missing"
        yield from below(value, here)


def below(schema, path):
    schema, _ = resolve(schema)
    if schema.get("type") == "array" and isinstance(schema.get("items"), dict):
        yield from rows(schema["items"], f"{path}[].") if "$ref" not in schema["items"] else ()
    elif isinstance(schema.get("additionalProperties"), dict):
        yield f"{path}.*", type_text(schema["additionalProperties"]), "one value"
        yield from rows(schema["additionalProperties"], f"{path}.*.")
    elif "$ref" not in schema:
        yield from rows(schema, f"{path}.")


def table(schema):
    lines = ["| key | type | meaning |", "|---|---|---|"]
    # Alternatives share keys.
    lines += dict.fromkeys(f"| `{path}` | {kind} | {text} |".replace("*.", "\\*.") for path, kind, text in rows(schema))
    return "\n".join(lines) + "\n"


def page():
    out = [HEAD]
    for name, schema in schemas().items():
        if name != COMMON:
            out.append(f"## {name}\n\n`{schema['title']}`: [schema](schemas/{name}.json)\n\n{table(schema)}")
    out.append("# Common parts\n")
    for name, schema in schemas()[COMMON]["$defs"].items():
        text = f"## {name}\n\n{schema['description']}.\n"
        out.append(text + ("\n" + table(schema) if any(True for _ in rows(schema)) else ""))
    return "\n".join(out)


def main(what, *names):
    if what == "validate":
        for name in names:
            for value in documents(Path(name).read_text(encoding="utf-8")):
                try:
                    validate(value)
                except ValueError as error:
                    sys.exit(f"{name}: {error}")
    elif what == "write":
        PAGE.write_text(page(), encoding="utf-8")
    elif page() != PAGE.read_text(encoding="utf-8"):
        sys.exit("docs/json.md: not made of docs/schemas: run 'python3 devtools/schemas.py write'")


if __name__ == "__main__":
    main(*sys.argv[1:])
