"""The class of a whole configuration, put together from the papers' own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, create_model

from replifed.atomic import write_text
from replifed.papers import names as known_papers
from replifed.papers import part
from replifed.settings import fields
from replifed.settings.faults import schema_of


def section_of(paper: str) -> type[fields.Settings]:
    """Return ``Section`` of the paper's module ``settings``, or one whose experiments may hold anything.

    A paper without that module is not imported: every call of Snakemake would wait for it.
    """
    module = part(paper, "settings")
    free = fields.Paper[fields.FreeExperiment, fields.FreeArtefact]
    return getattr(import_module(module), "Section", free) if module.endswith(".settings") else free


def configuration_of(papers: Sequence[str]) -> type[fields.Settings]:
    """Return the class of a configuration that has sections of `papers`."""
    names = known_papers()
    listed = Field(
        default_factory=lambda: names,
        description="papers to replicate; each has a file config/papers/<paper>.yaml",
    )
    sections: dict[str, Any] = {
        paper: (section_of(paper), Field(description=f"experiments and artefacts of {paper}"))
        for paper in papers
    }
    paper: Any = Literal[tuple(names)]
    sections["papers"] = (fields.Several[paper], listed)
    return create_model("Configuration", __base__=fields.Main, **sections)


def write_schema(out: Path) -> None:
    """Write the JSON schema from which editors complete and check the files in ``config/``."""
    schema = schema_of(configuration_of(known_papers()))
    # Every file holds a part: sections have files of their own.
    del schema["required"]
    write_text(out, json.dumps(schema, indent=1) + "\n")
