"""YAML from outside: of a bounded size, also with its aliases filled in, and of a bounded depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml

LARGEST = 1 << 20  # characters of a document
_NODES, _DEPTH, _DIGITS = 100_000, 50, 1000
_TAG = "tag:yaml.org,2002:"


class _Loader(yaml.CSafeLoader):  # the C parser is ten times faster, and every workflow call parses them all
    """Rejects a key that stands twice in a mapping; YAML's own loader would silently drop the first.

    What `<<` merges is the same with each version of PyYAML: 6.0.4 takes of a mapping with a `<<` of its own
    what that has overridden.
    """

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._flat: set[yaml.MappingNode] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Check the keys of a mapping, then put what is merged before its own: once, as it then has both."""
        if node in self._flat:
            return
        self._flat.add(node)
        seen = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if (kind := key.tag.rpartition(":")[2]) in ("timestamp", "binary"):
                raise _error(f"the key {key.value!r} is a {kind}; put it in quotes", key.start_mark)
            if (key.tag, key.value) in seen:
                raise _error(f"the key {key.value!r} stands twice; remove one", key.start_mark)
            seen.add((key.tag, key.value))
        merged, own = [], []
        for key, value in node.value:
            if key.tag != _TAG + "merge":
                own.append((key, value))
                continue
            # The last of a key counts: of several mappings, YAML's merge takes the first that has it.
            for one in reversed(value.value) if isinstance(value, yaml.SequenceNode) else [value]:
                if not isinstance(one, yaml.MappingNode):
                    raise _error("<< merges a mapping, or a list of mappings", one.start_mark)
                self.flatten_mapping(one)
                merged += one.value
        node.value = merged + own


def _guarded(construct: Callable[..., Any]) -> Callable[..., Any]:
    """Return a constructor whose errors have a place: YAML's own lets those of Python's types through."""

    def constructed(loader: Any, node: Any) -> Any:
        try:
            return construct(loader, node)
        except yaml.YAMLError:
            raise
        except Exception as error:
            raise _error(
                f"{str(node.value)[:60]!r} is no {node.tag.rpartition(':')[2]}", node.start_mark
            ) from error

    return constructed


for _kind in ("bool", "int", "float", "timestamp", "binary"):
    _Loader.add_constructor(_TAG + _kind, _guarded(_Loader.yaml_constructors[_TAG + _kind]))


def load(text: str) -> Any:
    """Parse a YAML document.

    Raises
    ------
    yaml.YAMLError
        Also of what is sound, but too large or too deep, refers to itself, or is no value of its type.
    """
    _check(text)
    return yaml.load(text, Loader=_Loader)


def _error(text: str, mark: Any) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, text, mark)


def _check(text: str) -> None:
    """Refuse what would fill memory or the stack, event by event, before anything is built."""
    if len(text) > LARGEST:
        raise yaml.YAMLError(f"it is longer than {LARGEST >> 20} MiB")
    sizes: dict[str, int | None] = {}  # nodes behind each anchor; None while it is open
    around: list[tuple[str | None, int]] = []  # anchors of the nodes around, and the count before each
    count = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            size = sizes.get(event.anchor, 0)  # one that is unknown is the parser's error
            if size is None:
                raise _error(f"*{event.anchor} refers to what it stands in", event.start_mark)
            count += size
        elif isinstance(event, yaml.CollectionStartEvent):
            around.append((event.anchor, count))
            count += 1
            if event.anchor:
                sizes[event.anchor] = None
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = around.pop()
            if anchor:
                sizes[anchor] = count - before
        elif isinstance(event, yaml.ScalarEvent):
            count += 1
            if event.anchor:
                sizes[event.anchor] = 1
            if event.implicit[0] and len(event.value) > _DIGITS and event.value[0] in "+-.0123456789":
                raise _error(f"a number of {len(event.value)} digits", event.start_mark)
        if len(around) > _DEPTH:
            raise _error(f"more than {_DEPTH} lists or mappings in each other", event.start_mark)
        if count > _NODES:
            raise _error(f"more than {_NODES} values, with those that aliases repeat", event.start_mark)
