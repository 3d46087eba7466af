"""Finds the package `replifed`, or says in one line what to install."""

import importlib.util
import os
import shlex
import sys
from pathlib import Path

VERSION = "0.1.0"  # of the package that this file belongs to
# The folder that holds workflow/. For files on a server it is a text that names no folder.
FOLDER = Path(str(workflow.current_basedir)).parent.parent.absolute()


def stop_to_install(reason):
    """Stop with the command that installs the package of these very files."""
    source = workflow.current_basedir
    if hasattr(source, "repo"):
        package = (
            f"git+https://{source.host or 'github.com'}/{source.repo}@{source.ref}"
        )
    elif hasattr(source, "repo_path"):
        package = f"git+file://{os.path.abspath(source.repo_path)}@{source.ref}"
    elif FOLDER.joinpath("pyproject.toml").is_file():
        package = shlex.quote(str(FOLDER))
    else:
        package = "CLONE, with a clone of its repository"
    sys.exit(f"replifed: error: {reason}: pip install {package}")


# A checkout provides the library, whatever else may be installed; where there is none, what is installed does.
LIBRARY = FOLDER / "src"
if LIBRARY.joinpath("replifed").is_dir():
    sys.path.insert(0, str(LIBRARY))
else:
    found = importlib.util.find_spec("replifed")
    # A mere folder of that name has no origin.
    if found is None or found.origin is None:
        stop_to_install(f"the package replifed {VERSION} is not installed")
    LIBRARY = Path(found.origin).parents[1]
if os.pathsep in str(LIBRARY):
    sys.exit(
        f"replifed: error: {LIBRARY}: Python finds no package in a folder with {os.pathsep!r} in its path; rename it"
    )
# The profile may have taken another one.
if (
    LIBRARY
    not in Path(getattr(sys.modules.get("replifed"), "__file__", LIBRARY)).parents
):
    for name in [name for name in sys.modules if name.split(".")[0] == "replifed"]:
        del sys.modules[name]

import replifed

if replifed.__version__ != VERSION:
    stop_to_install(
        f"the package replifed is {replifed.__version__}, and this workflow is of {VERSION}"
    )
# What Snakemake does not bring: for the settings, and for jobs that have no environment of their own.
needed = ["pydantic"]
if not workflow.deployment_settings.deployment_method:
    needed.append("numba")
for name in needed:
    if importlib.util.find_spec(name) is None:
        stop_to_install(f"{name} is not installed, which replifed needs")
