"""What the workflow's files state, and what its jobs depend on, without a call of Snakemake."""

from __future__ import annotations

import importlib
import re
import tomllib
from collections import Counter

import pytest
import yaml
from packaging.requirements import Requirement

from copies import ROOT
from replifed.algorithms import registry
from replifed.papers.jobs import claims_of
from replifed.parts import part
from replifed.report.artefacts import words_of
from replifed.settings import checks as config
from replifed.store import provenance

RULES = sorted((ROOT / "workflow/rules").glob("*.smk"))


@pytest.mark.parametrize("file", RULES, ids=lambda file: file.stem)
def test_every_rule_that_computes_states_what_it_uses(file):
    for body in re.split(r"^(?:use )?rule ", file.read_text(), flags=re.MULTILINE)[1:]:
        name = body.partition(":")[0]
        assert not re.search(r"^    (run|script|notebook):", body, flags=re.MULTILINE), name
        assert "lambda" not in body, name
        own = ["log:"] if name in ("help", "verify") else ["log:", "benchmark:"]
        whole = ("conda:", "resources:", "message:") if "    shell:" in body else ()
        for directive in (*own, *whole):
            assert f"    {directive}" in body, f"{name} lacks {directive}"
        if whole:
            assert re.search(r"(?s)shell:.*(SHOWN|QUIETLY|python -m replifed )", body), name


@pytest.mark.parametrize("name", ["default", "slurm"])
def test_the_profiles_resume_after_a_kill_and_show_logs(name):
    profile = yaml.safe_load((ROOT / f"profiles/{name}/config.yaml").read_text())
    assert profile["rerun-incomplete"] is True
    assert profile["show-failed-logs"] is True
    assert profile["keep-going"] is False


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
ENVIRONMENT = (ROOT / "environment.yml").read_text()


def faults_of_environment(text):
    """What `environment.yml` lacks, and what it has that pyproject.toml has not, line by line."""
    first, *_, last = (one.rpartition(" ")[2] for one in PROJECT["classifiers"])
    python = f"python>={first},<3.{int(last.partition('.')[2]) + 1}"
    needed = (python, "pip", "pip:", *PROJECT["dependencies"], *EXTRAS["test"])
    lines = (re.sub("(?=[<>=])", " ", one, count=1) for one in needed)
    wanted = Counter(re.sub("^matplotlib ", "matplotlib-base ", line) for line in lines)  # without Qt
    listed = text.partition("\ndependencies:\n")[2]
    found = Counter(line.partition("#")[0].strip(" -") for line in listed.splitlines())
    return [
        *(f"environment.yml lacks the line `- {line}`" for line in wanted - found),
        *(f"environment.yml: `- {line}` is not in pyproject.toml" for line in found - wanted),
    ]


def test_the_environment_of_conda_has_all_to_run_and_test():
    assert faults_of_environment(ENVIRONMENT) == []
    whole = yaml.safe_load(ENVIRONMENT)
    assert whole["channels"] == ["conda-forge", "bioconda", "nodefaults"]
    assert whole["dependencies"][-1] == {"pip": ["k-means-constrained >=0.9.1,<1"]}


@pytest.mark.parametrize("name", ["python", "matplotlib-base", "snakemake", "k-means-constrained"])
def test_an_edited_line_of_the_environment_is_named(name):
    whole, line = re.search(rf"^ +- ({name} .*)\n", ENVIRONMENT, flags=re.MULTILINE).group(0, 1)
    lacks = f"environment.yml lacks the line `- {line}`"
    more = "environment.yml: `- {}` is not in pyproject.toml"
    assert faults_of_environment(ENVIRONMENT.replace(whole, "")) == [lacks]
    edited = ENVIRONMENT.replace(line, f"{name} >=0")
    assert faults_of_environment(edited) == [lacks, more.format(f"{name} >=0")]
    assert faults_of_environment(ENVIRONMENT.replace(whole, 2 * whole)) == [more.format(line)]


@pytest.mark.parametrize(("lock", "extras"), {"": ("test", "dev"), "-flower": ("flower",)}.items())
def test_a_lock_pins_what_is_needed_within_its_bounds(lock, extras):
    text = (ROOT / f"requirements{lock}.lock").read_text()
    needed = [*PROJECT["dependencies"], *(one for extra in extras for one in EXTRAS[extra])]
    for one in map(Requirement, needed):
        pins = re.findall(rf"^{one.name}==(\S+) .*\\$", text, flags=re.MULTILINE)
        assert pins or one.name == "replifed", one
        assert [pin for pin in pins if pin not in one.specifier] == [], one


def test_the_catalogue_of_workflows_finds_what_it_looks_for():
    assert "a Snakemake workflow" in (ROOT / "README.md").read_text()
    assert all((ROOT / name).is_file() for name in ("workflow/Snakefile", "config/README.md"))
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert usage["report"] is True
    assert usage.keys() == {"mandatory-flags", "software-stack-deployment", "report"}


def test_the_lock_of_the_extra_pins_its_plugin_by_hash():
    (name,) = re.findall(r'^slurm = \["([a-z-]+)', (ROOT / "pyproject.toml").read_text(), flags=re.MULTILINE)
    lock = (ROOT / "requirements-slurm.lock").read_text()
    pinned = re.findall(r"^([a-z-]+)==[0-9.]+ \\\n    --hash=sha256:", lock, flags=re.MULTILINE)
    assert pinned == [name, f"{name}-jobstep"]  # all else is in requirements.lock


# --- Dependencies of the real code ---


@pytest.mark.parametrize("paper", ["fedht", "qshed"])
@pytest.mark.parametrize("step", ["run", "tune", "artefact", "measure_claims"])
def test_no_job_depends_on_methods_that_it_does_not_run(step, paper):
    files = {
        file.relative_to(ROOT / "src").with_suffix("").as_posix().replace("/", ".")
        for module in (
            f"replifed.papers.jobs:{step}",
            f"replifed.papers.{paper}.experiments",
            "replifed.engine.simulate",
        )
        for file in provenance.sources(module, ROOT / "src")
    }
    assert not files & {path.partition(":")[0] for path in registry.METHODS.values()}


def test_a_partition_depends_on_no_method_problem_or_drawing():
    folders = {file.parent.name for file in provenance.sources("replifed.partition.build", ROOT / "src")}
    assert "partition" in folders
    assert not folders & {"algorithms", "problems", "operators", "papers", "figures"}


WHOLE = config.load(root=ROOT)
# Artefacts that no claim is about.
UNCLAIMED = {
    "cross": {"accuracy", "fig5", "pairs", "profile", "table1"},
    **{"fedac": {"large"}, "fedgradmp": {"digits_more"}, "fedmm": {"partitions"}, "fedplt": {"searches"}},
}


@pytest.mark.parametrize("paper", WHOLE["papers"])
def test_figures_tables_captions_and_claims_are_those_of_the_configuration(paper):
    artefacts = WHOLE[paper]["artefacts"]
    for kind in ("figure", "table"):
        module = importlib.import_module(part(paper, f"{kind}s"))
        names = {name for name, artefact in artefacts.items() if artefact["kind"] == kind}
        assert set(getattr(module, f"{kind}s".upper())) == names
    assert set(words_of(paper)[1]) == set(artefacts)
    assert {claim.artefact for claim in claims_of(paper)} == set(artefacts) - UNCLAIMED.get(paper, set())
