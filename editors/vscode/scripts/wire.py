"""Write the extension's types of what crosses the language server's wire: ``src/wire.ts`` from the daemon's schemas.

    python scripts/wire.py [--check]

Run by a Python that has laguna_daemon. ``--check`` writes nothing and fails if the file is not what it would be.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from pathlib import Path
from typing import Any, get_args

from pydantic.json_schema import JsonSchemaMode, models_json_schema

from laguna_daemon import schemas

TARGET = Path(__file__).parent.parent / "src" / "wire.ts"
HEAD = """\
// Made from daemon/laguna_daemon/schemas.py by scripts/wire.py; change it there.
"""
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


RESULTS = (
    schemas.ChatResult,
    schemas.ConversationsResult,
    schemas.ContextResult,
    schemas.ContextWhy,
    schemas.EditorStatus,
)


def wire_types() -> str:
    """The text of ``wire.ts``: params, results and events of the language server, and all that they hold."""
    defined = [value for value in vars(schemas).values() if inspect.isclass(value) and issubclass(value, schemas.Wire)]
    params = [model for model in defined if issubclass(model, schemas.LspParams) and model is not schemas.LspParams]
    events = get_args(get_args(schemas.Event)[0])
    modes: list[tuple[Any, JsonSchemaMode]] = [(model, _mode(model)) for model in (*params, *RESULTS, *events)]
    _, whole = models_json_schema(modes, by_alias=True, ref_template="{model}")
    definitions = whole["$defs"]
    parts = [HEAD]
    parts += [_interface(model, definitions[model.__name__]) for model in defined if model.__name__ in definitions]
    parts.append(f"export type Event = {' | '.join(event.__name__ for event in events)};\n")
    return "\n".join(parts)


def _mode(model: type[schemas.Wire]) -> JsonSchemaMode:
    """Params are written by us, so what has a default may be left out; all else is read, and complete."""
    return "validation" if issubclass(model, schemas.LspParams) else "serialization"


def _interface(model: type[schemas.Wire], schema: dict[str, Any]) -> str:
    lines = [f"/** {line}" if first else f" *  {line}".rstrip() for first, line in _paragraph(model)]
    lines[-1] += " */"
    fields = schema.get("properties", {})
    if not fields:
        return "\n".join([*lines, f"export type {model.__name__} = Record<string, never>;\n"])
    lines.append(f"export interface {model.__name__} {{")
    # What the daemon writes it writes in full, defaults included.
    required = schema.get("required", []) if issubclass(model, schemas.LspParams) else fields
    for name, field in fields.items():
        lines.append(f"  {name}{'' if name in required else '?'}: {_type(field)};")
    return "\n".join([*lines, "}\n"])


def _paragraph(model: type[schemas.Wire]) -> list[tuple[bool, str]]:
    text = inspect.cleandoc(model.__doc__ or "").replace("``", "`")
    return [(index == 0, line) for index, line in enumerate(text.splitlines())]


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"])
    if "const" in schema:
        return _literal(schema["const"])
    if "enum" in schema:
        return " | ".join(map(_literal, schema["enum"]))
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return " | ".join(dict.fromkeys(map(_type, schema[word])))
    kind = schema.get("type")
    if kind == "array":
        inner = _type(schema.get("items", {}))
        return f"({inner})[]" if "|" in inner else f"{inner}[]"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"Record<string, {_type(values) if isinstance(values, dict) else 'unknown'}>"
    return PLAIN.get(str(kind), "unknown")


def _literal(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value).lower()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    wanted = wire_types()
    if not parser.parse_args().check:
        TARGET.write_text(wanted, encoding="utf-8")
        return 0
    if TARGET.is_file() and TARGET.read_text(encoding="utf-8") == wanted:
        return 0
    print("src/wire.ts is not what scripts/wire.py makes of the daemon's schemas: run it.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
