"""Errors in a configuration, as pydantic finds them, in one line each; and the schema for editors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from replifed.errors import meant, shown, unknown_name
from replifed.settings.reading import paper_file, read_file

# The path of keys to a value, and what is wrong with it.
Error = tuple[tuple, str]
# A file that was merged into the configuration, or the content of --config.
Source = Path | Mapping[str, Any]

_TYPES = {
    "integer": "an integer",
    "number": "a number",
    "string": "a text",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}
_RANGE = {
    "minimum": " of at least {}",
    "exclusiveMinimum": " above {}",
    "maximum": " of at most {}",
    "exclusiveMaximum": " below {}",
}
_LENGTH = {
    "minItems": ", at least {} long",
    "maxItems": ", at most {} long",
    "minProperties": " with at least {} key",
}


class _Schema(GenerateJsonSchema):
    """Without titles, which only repeat the keys, and without defaults that say no more than "left out"."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: Any) -> dict[str, Any]:
        if "default" in schema and schema["default"] is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)


def schema_of(configuration: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a class."""
    return configuration.model_json_schema(schema_generator=_Schema)


def errors_in(error: ValidationError, configuration: type[BaseModel], papers: Iterable[str]) -> list[Error]:
    """Return what `configuration` found, in the order of the paths; `papers` are known keys."""
    schema = _Places(schema_of(configuration))
    found: dict[tuple, str] = {}
    for one in error.errors(include_url=False):
        path, text = _error(one, schema, papers)
        found.setdefault(path, text)
    return sorted(found.items(), key=lambda error: [str(key) for key in error[0]])


def _error(found: Any, schema: _Places, papers: Iterable[str]) -> Error:
    kind, loc, value = found["type"], found["loc"], found["input"]
    if loc[-1:] == ("[key]",):
        name = schema.at(loc[:-2])[1].get("propertyNames", {}).get("description", "a text")
        path = schema.at(loc[:-1])[0]
        return path, _not_allowed(value, name).replace("is not allowed", "is not a valid name", 1)
    if kind in ("extra_forbidden", "invalid_key"):
        path, above = schema.at(loc[:-1])
        known = [*above.get("properties", ()), *(() if path else papers)]
        return (*path, loc[-1]), _unknown_key(loc[-1], value, dict.fromkeys(known))
    path, place = schema.at(loc)
    if kind.startswith("union_tag"):
        # The key that names the class.
        key = place["discriminator"]["propertyName"]
        names = place["discriminator"]["mapping"]
        one = schema.at((*loc, next(iter(names)), key))[1]
        path, place, value = (*path, key), {**one, "enum": list(names)}, value.get(key)
    if kind in ("missing", "union_tag_not_found"):
        return path, f"missing; expected {schema.allowed(place)}"
    if kind == "refusal":
        return path, found["ctx"]["text"]
    known = [name for one in place.get("anyOf", [place]) for name in schema.resolved(one).get("enum", ())]
    return path, _not_allowed(value, schema.allowed(place), known)


def _unknown_key(key: Any, value: Any, known: Iterable[str]) -> str:
    """Say which keys are known, and which of them may have been meant."""
    hint = meant(str(key), known)
    if "." in str(key):
        outer, _, inner = str(key).rpartition(".")
        hint = f"; nested keys are written --config '{outer.replace('.', '={')}={{{inner}: ...}}'"
    return f"unknown key with value {shown(value)}{hint} (known: {', '.join(sorted(known))})"


def _not_allowed(value: Any, expected: str, known: Iterable[Any] = ()) -> str:
    """Say which value is expected, and the likely slip if there is one."""
    text = f"{shown(value)} is not allowed; expected {expected}"
    if not isinstance(value, str):
        return text
    if names := [name for name in known if isinstance(name, str)]:
        return text + meant(value, names)
    try:
        float(value)
    except ValueError:
        return text
    return f"{text}; YAML takes it for a text: drop the quotes, and write 1e-3 as 1.0e-3"


class _Places:
    """A JSON schema, looked up by places in a configuration."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root

    def resolved(self, place: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return `place` with what it refers to, and without the alternative null."""
        while True:
            if "$ref" in place:
                outer = {key: value for key, value in place.items() if key != "$ref"}
                place = {**self._named(place["$ref"]), **outer}
            elif len(branches := [one for one in place.get("anyOf", ()) if one.get("type") != "null"]) == 1:
                place = branches[0]
            else:
                return place

    def at(self, loc: Sequence[Any]) -> tuple[tuple, Mapping[str, Any]]:
        """Return the path that an error's `loc` means, without the labels of unions, and the schema there."""
        place, path, rest = self._root, [], list(loc)
        while rest:
            inner = self.resolved(place)
            if "anyOf" in inner:
                break
            key = rest.pop(0)
            if "discriminator" in inner:
                place = self._named(inner["discriminator"]["mapping"][key])
                continue
            path.append(key)
            place = self._below(inner, key)
        return tuple(path), place if "anyOf" in place else self.resolved(place)

    def allowed(self, place: Mapping[str, Any]) -> str:
        """Say in words what the schema allows at a place."""
        if "anyOf" in place:
            text = " or ".join(self.allowed(one) for one in place["anyOf"])
        elif names := place.get("enum", [place["const"]] if "const" in place else []):
            text = f"one of {', '.join(map(str, names))}"
        else:
            place = self.resolved(place)
            text = _TYPES.get(place.get("type", "object"), "a value")
            if place.get("minLength", 1) > 1:
                text += f" of at least {place['minLength']} letters"
            text += " and".join(words.format(place[key]) for key, words in _RANGE.items() if key in place)
            text += "".join(words.format(place[key]) for key, words in _LENGTH.items() if key in place)
            text += ", without repeats" if place.get("uniqueItems") else ""
        return f"{text} ({place['description'].rstrip('.')})" if "description" in place else text

    def _named(self, reference: str) -> Mapping[str, Any]:
        return self._root["$defs"][reference.rpartition("/")[2]]

    @staticmethod
    def _below(place: Mapping[str, Any], key: Any) -> Mapping[str, Any]:
        if key in place.get("properties", {}):
            return place["properties"][key]
        any_key = place.get("patternProperties", {}).values()
        entries = [*any_key, place.get("additionalProperties"), place.get("items")]
        return next((entry for entry in entries if isinstance(entry, Mapping)), {})


def line(path: tuple, text: str, sources: Sequence[Source] = (), origin: str = "") -> str:
    """Return the line that says what is wrong where, and which of `sources` to correct.

    Mappings among these come from what `origin` names.
    """
    edit = f"; {_to_edit(path, sources, origin)}" if sources else ""
    match path:
        case (paper, "experiments", name, "problem") if text.startswith("missing; "):
            # The paper's own file does not have this experiment either: an override misspells it.
            files = (one for one in sources if isinstance(one, Path) and one == paper_file(paper, one.parent))
            known = next((read_file(one).get(paper, {}).get("experiments") for one in files), None)
            if isinstance(known, Mapping) and name not in known:
                path = (paper, "experiments")
                text = unknown_name("experiment", str(name), map(str, known))
    place = ""
    for key in path:
        place += f"[{key}]" if isinstance(key, int) else f".{key}" if place else str(key)
    return f"{place or 'the configuration'}: {text}{edit}"


def _to_edit(path: Sequence[Any], sources: Sequence[Source], origin: str) -> str:
    """Say to edit the one of `sources` that sets a key last; for a missing key, that which lacks it first."""

    def setting(place: Sequence[Any]) -> list[Source]:
        contents = (one if isinstance(one, Mapping) else read_file(one) for one in sources)
        return [one for one, content in zip(sources, contents, strict=True) if _sets(content, place)]

    own = [one for one in sources if isinstance(one, Path) and one.stem in path[:1]]
    above = setting(path[:-1]) if len(path) > 1 else []
    source = [*setting(path)[-1:], *above, *own, sources[0]][0]
    return f"correct {origin}" if isinstance(source, Mapping) else f"edit {source}"


def _sets(content: Any, path: Sequence[Any]) -> bool:
    for key in path:
        if isinstance(content, list):
            return True  # lists are replaced as a whole
        if not isinstance(content, Mapping) or key not in content:
            return False
        content = content[key]
    return True
