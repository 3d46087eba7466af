"""The reference run as one zip to deposit under a DOI: `python tools/deposit.py reference.zip`.

It is an archive as `replifed archive` writes it, with a report, terms and how to cite it. Its bytes depend on
this checkout, on the versions of `requirements.lock` and, in the last digits of errata, which are checked
anew, on the processor.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import reference_report
import yaml

from replifed import __version__
from replifed.runs import archived, kept, opened

COPIED = (
    *("CITATION.cff", "LICENSE", "requirements.lock"),
    *("docs/columns.md", "src/replifed/data/catalogue.yaml"),
)
README = """\
# The reference run of replifed {version}

Replications of papers on federated optimisation: {papers}.

Made with {made}.

- `report/index.html` shows every figure, table and verdict; it needs no network.
- `claims.csv` has every claim with its numbers and verdict, `statements.csv` the sentences that they are on.
- `tables/` has the numbers of figures and tables, `tuned/` what searches found, `histories/` the runs of the
  comparison. `columns.md` explains every column.
- `run.json`, `settings.json`, `environment.json` and `environment/` say what the run was made with.
- `manifest.csv` has the hash of every file of the run and of its data, `ro-crate-metadata.json` that of every
  file here.

With replifed {version} installed, in the versions of `requirements.lock`:

    unzip {name} -d reference
    replifed claims --reference --main
    replifed show fedplt/fig3 --reference
    replifed diff {name}

The last compares it with `reference` here, else with the run that comes with the package.

Licence: MIT (`LICENSE`) for the run and its report; `CITATION.cff` says how to cite them. Sentences and
numbers of the papers are quoted, and are their authors'. No data set is in it: `catalogue.yaml` has the
source, licence and hashes of each.
"""


def main(out: Path, papers: Sequence[str] = ()) -> None:
    """Write the zip, with a report on some papers or, by default, on all."""
    run = opened.reference(opened.REFERENCE)
    files = {Path(name).name: Path(name).read_bytes() for name in COPIED}
    (agent,) = (author["name"] for author in yaml.safe_load(files["CITATION.cff"])["authors"])
    about = {"version": __version__, "made": kept.in_words(run), "name": out.name}
    files["README.md"] = README.format(
        papers=", ".join(run.entries(opened.ABOUT)["papers"]), **about
    ).encode()
    with tempfile.TemporaryDirectory() as folder:
        reference_report.main(Path(folder), papers)
        drawn = sorted(file for file in Path(folder).rglob("*") if file.is_file())
        files |= {f"report/{file.relative_to(folder).as_posix()}": file.read_bytes() for file in drawn}
    archived.write(run, out, agent, files)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
