"""The schema files, and what can be read off them."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from replifed.config.reading import read_file
from replifed.config.wording import dotted, hint, shown, unknown_key
from replifed.errors import ConfigError

_MAIN_SCHEMA = "config.schema.yaml"
_ABSENT = object()
_TYPES = {
    "integer": "an integer",
    "number": "a number",
    "string": "a text",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}
_LIMITS = {
    "minimum": " of at least {}",
    "exclusiveMinimum": " above {}",
    "maximum": " of at most {}",
    "minLength": " of at least {} letters",
    "minItems": ", at least {} long",
    "maxItems": ", at most {} long",
    "minProperties": " with at least {} key",
}


class Schema:
    """The schema files, and what can be read off them about any place in a configuration."""

    def __init__(self, folder: Path) -> None:
        import jsonschema
        import referencing

        schemas = {file.name: read_file(file) for file in sorted(folder.glob("*.schema.yaml"))}
        if _MAIN_SCHEMA not in schemas:
            raise ConfigError(
                f"{folder / _MAIN_SCHEMA} does not exist; run from the folder that holds config/"
            )
        registry = referencing.Registry().with_resources(
            (name, referencing.Resource.from_contents(schema)) for name, schema in schemas.items()
        )
        self._root = schemas[_MAIN_SCHEMA]
        self._resolver = registry.resolver(_MAIN_SCHEMA)
        self._validator = jsonschema.Draft202012Validator(self._root, registry=registry)

    def sections(self) -> list[str]:
        """Return the top-level keys that are papers."""
        return [key for key, below in self._root["properties"].items() if "$ref" in below]

    def faults(self, config: Mapping[str, Any]) -> list[tuple[tuple, str]]:
        """Return the path and the line of every fault, in the order of the paths."""
        found: list[tuple[tuple, str]] = []
        for error in self._validator.iter_errors(config):
            found.extend(self._explain(error, config))
        return sorted(found, key=lambda fault: [str(part) for part in fault[0]])

    def fill(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of `config` with the schema's defaults where a key is absent."""
        return self._filled(copy.deepcopy(dict(config)), [(self._root, self._resolver)])

    # A place in the schema is a list of (subschema, resolver) pairs that all apply there.

    def _expand(self, schema: Any, resolver: Any, value: Any) -> Iterator[tuple[dict, Any]]:
        if not isinstance(schema, dict):
            return
        yield schema, resolver
        if "$ref" in schema:
            target = resolver.lookup(schema["$ref"])
            yield from self._expand(target.contents, target.resolver, value)
        for branch in schema.get("allOf", ()):
            if "if" not in branch:
                yield from self._expand(branch, resolver, value)
            elif self._validator.evolve(schema=branch["if"]).is_valid(value):
                yield from self._expand(branch.get("then"), resolver, value)

    def _below(self, places: list[tuple[dict, Any]], value: Any, key: Any) -> list[tuple[dict, Any]]:
        found = []
        for start, start_resolver in places:
            for schema, resolver in self._expand(start, start_resolver, value):
                if isinstance(key, int):
                    below = schema.get("items")
                else:
                    below = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
                if isinstance(below, dict):
                    found.append((below, resolver))
        return found

    def _entry(self, entry: Any, places: list[tuple[dict, Any]], value: Any, key: Any) -> Any:
        # There is nothing to fill in here, and looking for it takes half a second on lists of repetitions.
        if entry is None or isinstance(entry, int | str):
            return entry
        return self._filled(entry, self._below(places, value, key))

    def _filled(self, value: Any, places: list[tuple[dict, Any]]) -> Any:
        if isinstance(value, dict):
            expanded = [schema for start in places for schema, _ in self._expand(*start, value)]
            for key in dict.fromkeys(key for schema in expanded for key in schema.get("properties", {})):
                below = self._below(places, value, key)
                if (
                    key not in value
                    and (default := self._first(below, None, "default", _ABSENT)) is not _ABSENT
                ):
                    value[key] = copy.deepcopy(default)
            return {key: self._entry(entry, places, value, key) for key, entry in value.items()}
        if isinstance(value, list):
            return [self._entry(entry, places, value, index) for index, entry in enumerate(value)]
        if (
            isinstance(value, float)
            and value.is_integer()
            and self._first(places, value, "type") == "integer"
        ):
            return int(value)  # JSON Schema takes 5.0 for an integer; Python's range() does not
        return value

    def _first(self, places: list[tuple[dict, Any]], value: Any, keyword: str, default: Any = None) -> Any:
        for start in places:
            for schema, _ in self._expand(*start, value):
                if keyword in schema:
                    return schema[keyword]
        return default

    def _explain(self, error: Any, config: Any) -> Iterator[tuple[tuple, str]]:
        path, value = tuple(error.absolute_path), error.instance
        if error.validator == "additionalProperties" and isinstance(value, dict):
            known = error.schema.get("properties", {})
            for key in value:
                if key not in known:
                    yield (*path, key), f"{dotted((*path, key))}: {unknown_key(key, value[key], known)}"
        elif error.validator == "required":
            for key in error.validator_value:
                if key not in value:
                    places = self._at((*path, key), config)
                    yield (
                        (*path, key),
                        f"{dotted((*path, key))}: missing; expected {self._allowed(places, None)}",
                    )
        elif error.validator == "anyOf":
            keys = [key for branch in error.validator_value for key in branch.get("required", ())]
            if keys:
                text = f"{shown(value)} lacks its source; expected at least one of the keys {', '.join(keys)}"
            else:
                text = f"{shown(value)} is not allowed"
            yield path, f"{dotted(path)}: {text}"
        elif error.parent is not None or "propertyNames" in error.absolute_schema_path:
            pattern = error.schema.get("description", "another name")
            yield (
                (*path, value),
                f"{dotted((*path, value))}: {shown(value)} is not a valid name; expected {pattern}",
            )
        else:
            places = self._at(path, config)
            text = f"{shown(value)} is not allowed; expected {self._allowed(places, value)}"
            yield path, f"{dotted(path)}: {text}{hint(error, value)}"

    def _at(self, path: tuple, config: Any) -> list[tuple[dict, Any]]:
        places, value = [(self._root, self._resolver)], config
        for key in path:
            places = self._below(places, value, key)
            try:
                value = value[key]
            except (KeyError, IndexError, TypeError):
                value = None
        return places

    def _allowed(self, places: list[tuple[dict, Any]], value: Any) -> str:
        """Say in words what the schema allows at a place."""
        rules: dict[str, Any] = {}
        for start in places:
            for schema, _ in self._expand(*start, value):
                rules = {**schema, **rules}
        if "enum" in rules:
            text = f"one of {', '.join(map(str, rules['enum']))}"
        else:
            types = rules.get("type", [])
            text = (
                " or ".join(_TYPES[name] for name in ([types] if isinstance(types, str) else types))
                or "a value"
            )
        for keyword, words in _LIMITS.items():
            if keyword in rules and not (keyword == "minLength" and rules[keyword] == 1):
                text += words.format(rules[keyword])
        if rules.get("uniqueItems"):
            text += ", without repeats"
        return f"{text} ({rules['description']})" if "description" in rules else text


@cache
def schema_in(folder: Path) -> Schema:
    """The schema files of a folder, read once."""
    return Schema(folder)
