"""Source files that a job depends on, and hashes of sources and settings.

Files are parsed, not imported: this takes milliseconds, and finds imports inside functions. The workflow
gives each job a hash of the result, so that an edit reruns exactly the jobs that depend on it.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

from replifed.errors import ReplifedError
from replifed.parts import own_folders
from replifed.store.hashes import file_hash

# Folder that holds the package `replifed`, in a checkout and in an installation.
SOURCE_ROOT = Path(__file__).resolve().parents[2]
# It only finds the module of each method, which is a source by itself.
_REGISTRY = Path("replifed/algorithms/registry.py")


def sources(module: str, root: Path = SOURCE_ROOT) -> list[Path]:
    """Return the files of its package that importing and running `module` may read.

    These are the module, all modules of the same top-level package that it imports directly or through
    others, the ``__init__.py`` of every package on the way, and other files in the folder of a module if its
    text contains their names (a template, say). Imports inside functions count, and so does
    ``import_module("literal.name")``; those under ``if TYPE_CHECKING:`` do not, since they never run. Modules
    named in other strings (the entries of a registry) are not followed. With a function after a colon, as in
    ``replifed.papers.jobs:tune``, imports inside the module's other functions do not count, except those of
    functions that it uses.

    `root` is the folder of the top-level package; each returned path begins with it.
    """
    if module.endswith((".yaml", ".md")):  # a file, by its path
        return [Path(module)]
    module, _, function = module.partition(":")
    if module.endswith(".py"):  # a custom method
        custom = Path(module).resolve()
        imported = _imports(custom.read_bytes(), str(custom), "", "replifed", "")
        known = [name for name in imported if _file_of(name, root) is not None]
        return [custom, *sorted({one for name in known for one in sources(name, root)})]
    if _file_of(module, root) is None:
        path = f"{module.replace('.', '/')}.py"
        raise ReplifedError(f"no module {module} under {root}: neither {path} nor a package")
    package = module.partition(".")[0]
    modules: set[Path] = set()
    others: set[Path] = set()
    waiting = [(module, function)]
    while waiting:
        name, function = waiting.pop()
        file = _file_of(name, root)
        if file is None or file in modules:
            continue
        modules.add(file)
        content = file.read_bytes()
        folder = name if file.name == "__init__.py" else name.rpartition(".")[0]
        imported = _imports(content, str(file), folder, package, function)
        # Importing a.b.c runs a/__init__ and a/b/__init__ first.
        waiting.extend((found, "") for found in (name.rpartition(".")[0], *imported) if found)
        others.update(beside for beside in _other_files(file.parent) if beside.name.encode() in content)
    return sorted(modules | others)


def source_hash(module: str, root: Path = SOURCE_ROOT) -> str:
    """Return the sha256 of the names and contents of `sources(module, root)`."""
    return hashlib.sha256(_listed(sources(module, root), root, file_hash).encode()).hexdigest()


@cache
def source_listing(modules: tuple[str, ...], root: Path) -> str:
    """Return the hashes and names of the `sources` of modules, a line each, without the registry."""
    files = {file for module in modules for file in _sources(module, root)} - {root / _REGISTRY}
    text = _listed(files, root, _sha256)
    # The class of a custom method is not part of its file's content.
    return text + "".join(f"{module}\n" for module in modules if ".py:" in module)


# Sources do not change during a process.
_sources = cache(sources)
_sha256 = cache(file_hash)


def _listed(files: Iterable[Path], root: Path, hash_of: Callable[[Path], str]) -> str:
    custom = sorted(file for file in files if not file.is_relative_to(root))
    names = sorted((file.relative_to(root).as_posix(), file) for file in files if file.is_relative_to(root))
    names += [(file.name, file) for file in custom]
    return "".join(f"{hash_of(file)}  {name}\n" for name, file in names)


def canonical_json(value: Any) -> str:
    """Return the one JSON text of `value`: sorted keys, no spaces, no NaN or infinity.

    >>> canonical_json({"b": [1, 0.5], "a": None})
    '{"a":null,"b":[1,0.5]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def config_hash(value: Any) -> str:
    """Return the sha256 of the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


@cache
def _file_of(module: str, root: Path) -> Path | None:
    words = module.split(".")
    paths = [root.joinpath(*words)]
    if words[:2] == ["replifed", "papers"] and len(words) > 2:
        paths += [folder.joinpath(*words[2:]) for folder in own_folders()]
    files = (file for path in paths for file in (path / "__init__.py", path.with_name(f"{path.name}.py")))
    return next((file for file in files if file.is_file()), None)


@cache
def _other_files(folder: Path) -> list[Path]:
    return [file for file in folder.iterdir() if file.suffix != ".py" and file.is_file()]


# By content, and not by modification time, which a checkout or a copy changes.
@cache
def _imports(content: bytes, file: str, folder: str, package: str, function: str) -> tuple[str, ...]:
    """Return the modules of `package` that may be imported here, in a module of the package `folder`."""
    try:
        tree = ast.parse(content, filename=file)
    except SyntaxError as error:
        raise ReplifedError(f"{file}, line {error.lineno}: {error.msg}") from error
    if function:
        tree = _around(tree, function, file)
    names: list[str] = []
    for node in _statements_run(tree):
        if isinstance(node, ast.Import):
            names.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), folder)
            # `from a import b` may mean the module a.b or a name inside a; both are tried.
            names.append(base)
            names.extend(f"{base}.{alias.name}" for alias in node.names)
    if b"import_module" in content:
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and _name(call.func) == "import_module":
                names.extend(str(word.value) for word in call.args[:1] if isinstance(word, ast.Constant))
    return tuple(sorted({name for name in names if name.partition(".")[0] == package}))


def _around(tree: ast.Module, function: str, file: str) -> ast.Module:
    """Return `tree` without the top-level functions that `function` does not use."""
    functions: dict[str, list[ast.stmt]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.setdefault(node.name, []).append(node)
    if function not in functions:
        raise ReplifedError(f"{file} has no function {function}")
    # What runs at import uses functions too (decorators, tables of functions).
    kept = [node for node in tree.body if getattr(node, "name", None) not in functions]
    used: set[str] = set()
    waiting = [function, *_names(kept)]
    while waiting:
        name = waiting.pop()
        if name in functions and name not in used:
            used.add(name)
            kept.extend(functions[name])
            waiting.extend(_names(functions[name]))
    return ast.Module(body=kept, type_ignores=[])


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {name.id for node in nodes for name in ast.walk(node) if isinstance(name, ast.Name)}


def _statements_run(tree: ast.Module) -> Iterator[ast.stmt]:
    """Walk the statements of `tree` that can run, that is without the bodies of `if TYPE_CHECKING:`."""
    waiting: list[Any] = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and _name(node.test) == "TYPE_CHECKING":
            waiting.extend(node.orelse)
        else:
            # The fields of compound statements that hold other statements, or handlers and cases of them.
            for field in ("body", "orelse", "finalbody", "handlers", "cases"):
                waiting.extend(getattr(node, field, ()))


def _name(node: ast.expr) -> str | None:
    """Return b of the expression b or a.b."""
    return getattr(node, "id", getattr(node, "attr", None))
