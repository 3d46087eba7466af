"""An archive of a run: one zip whose bytes depend on the run alone, described as an RO-Crate."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from replifed import __version__
from replifed.errors import DataError
from replifed.progress import Progress, silent
from replifed.runs.opened import ABOUT, CLOSING, SCHEMA, Run
from replifed.store.atomic import replacing
from replifed.store.histories import read_origin
from replifed.store.manifest import is_sealed
from replifed.store.provenance import canonical_json

METADATA, WORKFLOW = "ro-crate-metadata.json", "workflow/Snakefile"
# Of every file in an archive: the time of writing is no part of a run.
_TIME = (1980, 1, 1, 0, 0, 0)
_CITED = "https://w3id.org/ro/wfrun/process/0.5"
# Parts that the manifest, which lists the others, cannot list.
_UNLISTED = ("manifest.csv", "environment.json", "settings.json")


def whole(run: Run, settings: Mapping[str, Any], settings_for: Callable[..., dict[str, Any]]) -> Run:
    """Return a run with its settings and what it is (`ABOUT`), after a check that it is all of one make.

    `settings_for` is that of `settings.needs`.

    Raises
    ------
    DataError
        It lacks a file of its end, or one that the manifest lists, or a part is not as the manifest lists it,
        or was made with other settings.
    """
    for name in CLOSING:
        if name not in run:
            raise DataError(f"{run.place}: it has no {name}, which `replifed make all` writes at its end")
    if not is_sealed(run.read("manifest.csv")):
        raise DataError(f"{run.place}: manifest.csv was cut short or altered; `replifed make all` writes it")
    if "claims.csv" not in _listed(run, settings):
        raise DataError(
            f"{run.place}: its manifest is that of another folder than {settings['paths']['results']}"
        )
    return _of_one_make(run, settings, settings_for, _UNLISTED)


def of_papers(run: Run, settings: Mapping[str, Any], settings_for: Callable[..., dict[str, Any]]) -> Run:
    """As `whole`, of the papers of a run that were made, and judged, one by one.

    Raises
    ------
    DataError
        None was judged, or one by an older version; or as `whole` does.
    """
    judged = {row["paper"] for row in run.rows("claims.csv")} if "claims.csv" in run else set()
    papers = [paper for paper in settings["papers"] if paper in judged]
    if not papers:
        raise DataError(f"{run.place}: no paper of it was judged; `replifed make PAPER` judges one")
    if old := [paper for paper in papers if f"environment/{paper}.json" not in run]:
        raise DataError(
            f"{run.place}: an older version judged {old[0]}; `replifed make {old[0]}` does so anew"
        )
    parts = {
        name: read
        for name, read in run.parts.items()
        if "/" not in name or Path(name).parts[1].removesuffix(".json") in papers
    }
    joined = ("claims.csv", "statements.csv", *run.of_kind("environment"))
    return _of_one_make(
        Run(run.place, parts), {**settings, "papers": papers}, settings_for, (*_UNLISTED, *joined)
    )


def _of_one_make(
    run: Run,
    settings: Mapping[str, Any],
    settings_for: Callable[..., dict[str, Any]],
    unlisted: Collection[str],
) -> Run:
    digests = _listed(run, settings)
    parts = {}
    for name, read in run.parts.items():
        if name not in digests and name not in unlisted:
            continue  # made on demand, or left by another run
        if name in digests and hashlib.sha256(run.read(name)).hexdigest() != digests[name]:
            raise DataError(
                f"{run.place}: {name} is not as the manifest lists it; `snakemake verify --cores 1` names "
                "what changed"
            )
        parts[name] = read
    if missing := [name for name in digests if name not in parts]:
        raise DataError(f"{run.place}: {missing[0]}, which the manifest lists, is missing")
    _refuse_others(Run(run.place, parts), settings, settings_for)
    entries = {
        "schema": SCHEMA,
        "replifed": __version__,
        "scale": settings["scale"],
        "papers": settings["papers"],
    }
    # Where files lay on this machine is no part of a run.
    stated = {key: value for key, value in settings.items() if key != "paths"}
    stated["data"] = {key: value for key, value in settings["data"].items() if key != "mirror"}
    texts = {"settings.json": canonical_json(stated), ABOUT: canonical_json(entries)}
    more = {name: partial(str.encode, f"{text}\n") for name, text in texts.items()}
    return Run(run.place, {**parts, **more})


def _listed(run: Run, settings: Mapping[str, Any]) -> dict[str, str]:
    return listed(run, settings["paths"]["results"], settings["paths"]["figures"])


def _refuse_others(
    run: Run, settings: Mapping[str, Any], settings_for: Callable[..., dict[str, Any]]
) -> None:
    """Reject histories and searches whose settings are not those stated: a file of them was edited since."""
    for kind, step in (("histories", "run"), ("tuned", "tune")):
        for name in run.of_kind(kind):
            _, paper, experiment, _ = name.split("/")
            section = settings.get(paper, {}).get("experiments", {}).get(experiment)
            if section is None:
                raise DataError(f"{run.place}: {name} is of an experiment that this folder's settings lack")
            meta = read_origin(run.read(name)) if kind == "histories" else run.entries(name)["meta"]
            made = meta["settings"]
            # As JSON, since those of a run have been through a file: there a tuple is a list.
            stated = json.loads(canonical_json(settings_for(step, settings[paper], experiment)))
            if other := sorted(key for key in {**made, **stated} if made.get(key) != stated.get(key)):
                raise DataError(
                    f"{run.place}: {name} was made with another setting of {', '.join(other)} than this "
                    "folder has; `replifed make all` makes it anew"
                )


def listed(run: Run, results: str = "results", figures: str = "figures") -> dict[str, str]:
    """Return the hashes that a run's manifest lists, by the names of parts; folders are the manifest's."""
    found = {}
    for row in run.rows("manifest.csv"):
        made, drawn = (row["file"].partition(f"{folder}/") for folder in (results, figures))
        if drawn[1] and not drawn[0] and drawn[2].endswith(".csv"):
            found[f"tables/{drawn[2]}"] = row["sha256"]
        elif made[0] or not made[1]:
            continue
        elif made[2].endswith(".parquet"):
            found[f"histories/{made[2]}"] = row["sha256"]
        elif made[2].endswith(".tuned.json"):
            found[f"tuned/{made[2].removesuffix('.tuned.json')}.json"] = row["sha256"]
        elif made[2] in CLOSING:
            found[made[2]] = row["sha256"]
    return found


def write(run: Run, out: Path, agent: str, files: Mapping[str, bytes], progress: Progress = silent) -> int:
    """Write a whole run as a zip, with other `files` by name; return the number of its files.

    `agent` is who made the run, as the crate's metadata name it.
    """
    contents = {**files, **{name: run.read(name) for name in sorted(run.parts)}}
    contents[METADATA] = _described(run, contents, agent)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, name in enumerate(sorted(contents)):
            progress("files written", number, len(contents))
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr, entry.create_system = 0o644 << 16, 3  # of Unix, whatever writes it
            archive.writestr(entry, contents[name])
    progress("files written", len(contents), len(contents))
    with replacing(out) as temporary:
        Path(temporary).write_bytes(stream.getvalue())
    return len(contents)


def _described(run: Run, contents: Mapping[str, bytes], agent: str) -> bytes:
    """Return the crate's metadata: what was run, by whom, with what, on which data, to which files."""
    from rocrate.model.contextentity import ContextEntity
    from rocrate.model.person import Person
    from rocrate.rocrate import ROCrate

    entries = run.entries(ABOUT)
    environments = [run.environment(paper) for paper in entries["papers"]]
    crate = ROCrate()
    date = max(str(one.get("date")) for one in environments)
    made = "all" if "environment.json" in run else " ".join(entries["papers"])
    crate.root_dataset["datePublished"] = date
    crate.root_dataset["conformsTo"] = {"@id": _CITED}
    crate.name = f"A run of replifed at scale {entries['scale']}: {', '.join(entries['papers'])}"
    crate.description = (
        "Histories, tuned settings, tables, verdicts, manifest, settings and environment of a run."
    )
    crate.license = "https://spdx.org/licenses/MIT"
    person = crate.add(Person(crate, "#agent", properties={"name": agent}))
    # Papers may have been made one by one, each with its own.
    stated = {
        key: ", ".join(dict.fromkeys(str(one.get(key, "unknown")) for one in environments))
        for key in ("replifed", "commit", "python")
    }
    packages = [*dict.fromkeys(item for one in environments for item in one.get("packages", {}).items())]
    versions = ", ".join(f"{name} {number}" for name, number in packages)
    engine = ContextEntity(
        crate,
        "#replifed",
        properties={
            "@type": ["SoftwareApplication"],
            "name": "replifed",
            "softwareVersion": f"{stated['replifed']}, commit {stated['commit']}",
            "softwareRequirements": f"Python {stated['python']}, {versions}",
        },
    )
    crate.add(engine)
    parts = []
    for name in sorted(contents):
        content = contents[name]
        about: dict[str, Any] = {
            "contentSize": str(len(content)),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        if name == WORKFLOW:
            about["@type"] = ["File", "SoftwareSourceCode", "ComputationalWorkflow"]
            about["programmingLanguage"] = "Snakemake"
        parts.append(
            crate.add_file(dest_path=name, source=io.BytesIO(b""), properties={"name": name, **about})
        )
    data = [
        crate.add(
            ContextEntity(crate, f"#{name}", properties={"@type": "Dataset", "name": name, "sha256": digest})
        )
        for name, digest in sorted(run.raw_files().items())
    ]
    action = crate.add(
        ContextEntity(
            crate,
            "#run",
            properties={"@type": "CreateAction", "name": f"snakemake {made}", "endTime": date},
        )
    )
    action["instrument"], action["agent"] = engine, person
    action["object"], action["result"] = data, [part for part in parts if part.id != WORKFLOW]
    crate.root_dataset["mentions"] = action
    crate.mainEntity = next((part for part in parts if part.id == WORKFLOW), engine)
    metadata = crate.metadata.generate()
    return (json.dumps(metadata, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()
