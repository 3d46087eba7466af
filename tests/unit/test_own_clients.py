"""Clients of one's own data: none is lost, made up or renamed, and a table says which is which."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from replifed.data.own import names_clients, parse
from replifed.data.table import load
from replifed.errors import ConfigError, DataError
from replifed.papers.jobs import artefact
from replifed.partition.build import partition
from replifed.settings import comparison, partitions
from replifed.settings.checks import load as configuration
from replifed.settings.checks import validate

ROOT = Path(__file__).parents[2]
SITES = ["007", "07", "7", "70"]


def written(folder, sites=SITES, head="a,b,site,y", text=None):
    rows = text or "".join(f"{i % 7},{i % 5},{sites[i % len(sites)]},{i % 2}\n" for i in range(40))
    (folder / "d.csv").write_text(f"{head}\n{rows}")
    return {"path": str(folder / "d.csv"), "client": "site"}


def read(settings, folder):
    parse("mine", settings, folder / "t.npz")
    return load(folder / "t.npz")


@pytest.mark.parametrize("form", ["csv", "parquet", "npz", "python"])
def test_ids_are_texts(tmp_path, form):
    settings, ids = written(tmp_path), SITES * 10
    if form == "parquet":
        frame = pd.read_csv(settings["path"], dtype={"site": str})
        settings["path"] = str(tmp_path / "d.parquet")
        frame.to_parquet(settings["path"])
    elif form == "npz":
        settings = {"path": str(tmp_path / "d.npz")}
        np.savez(settings["path"], X=np.arange(80.0).reshape(40, 2), y=np.arange(40) % 2, client=ids)
    elif form == "python":
        data = f"[[float(i)] for i in range(40)], [i % 2 for i in range(40)], {ids}"
        (tmp_path / "d.py").write_text(f"def made():\n    return {data}\n")
        settings = {"path": f"{tmp_path / 'd.py'}:made"}
    table = read(settings, tmp_path)
    assert table.meta["clients"] == ["007", "07", "7", "70"]
    assert table.client.tolist() == [0, 1, 2, 3] * 10


def test_numbers_are_in_their_order_and_blanks_around_an_id_are_none_of_it(tmp_path):
    assert read(written(tmp_path, ["10", "9 ", " 9", "b"]), tmp_path).meta["clients"] == ["9", "10", "b"]
    (tmp_path / "x").mkdir()
    np.savez(tmp_path / "d.npz", X=np.eye(6), y=[0, 1] * 3, client=[10.0, 9.0, 2.5] * 2)
    assert read({"path": str(tmp_path / "d.npz")}, tmp_path).meta["clients"] == ["9", "10", "2.5"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("1,2,s,0\n3,4,,1\n1,2,s,1\n", 3),
        ("1,2,s,0\n\n  \n3,4,NA,1\n1,2,s,1\n", 5),
        ('1,2,"a\nb",0\n3,4,"  ",1\n1,2,s,1\n', 4),
        ("1,2,7,0\n3,4,7,1\n1,2,,1\n", 4),  # numbers
        ("1,2,s,0\n3,4,null,1\n", 3),
    ],
)
def test_a_row_without_a_client_is_refused_with_its_line(tmp_path, text, line):
    says = rf"d\.csv, line {line}: site names no client.*; correct it"
    with pytest.raises(DataError, match=says) as refusal:
        read(written(tmp_path, text=text), tmp_path)
    assert "\n" not in str(refusal.value)


# The form of a file, what is said of its clients, and what of that is refused.
DROPPED = "the clients, which k-means would drop; set partition: given"


SAID = [
    ("csv", {"client": "site"}, f"client: site names {DROPPED}"),
    ("npz", {"named": True}, "client: the array client of d.npz names the clients, which k-means would drop"),
    ("libsvm", {"client": "site"}, "client: site is not allowed: data of form libsvm have no columns"),
    ("npz", {"label": "y"}, "label: y is not allowed: data of form npz have no columns"),
    ("csv", {"partition": "given"}, "partition: given is not allowed: nothing says .* set client: COLUMN"),
    ("libsvm", {"partition": "given"}, "partition: given is not allowed: .*; choose another one"),
    ("npz", {"partition": "given"}, "partition: given is not allowed: nothing says which"),
    ("csv", {"client": "y", "label": "y", "partition": "given"}, "client: y is the column of the labels"),
    (
        "python",
        {"partition": "given", "sizes": "equal"},
        "sizes: equal is not allowed with the partition given",
    ),
    ("csv", {"sizes": "lognormal:1"}, "sizes: lognormal:1 is not allowed with the partition kmeans"),
    (
        "csv",
        {"partition": "dirichlet"},
        "partition: 'dirichlet' is not allowed; expected one of kmeans, given",
    ),
    ("csv", {"partition": "dirichlet:-1"}, "partition: '-1' is not allowed; expected a number above 0"),
    ("csv", {"partition": "shards:1.5"}, "partition: '1.5' is not allowed; expected a whole number above 0"),
    ("csv", {"partition": "iid:3"}, "partition: 'iid:3' is not allowed; expected one of"),
    (
        "csv",
        {"partition": "iid", "sizes": "zipf"},
        "sizes: 'zipf' is not allowed; expected equal or lognormal",
    ),
    ("csv", {"client": "site", "partition": "given"}, ""),
    ("csv", {"client": "site", "partition": "dirichlet:0.3", "clients": 4, "sizes": "lognormal:0.5"}, ""),
    ("csv", {"client": "site", "requested": True}, ""),
    ("npz", {"partition": "given", "named": True}, ""),
    ("python", {"partition": "given"}, ""),
    ("python", {"partition": "given", "clients": 5}, ""),
]


@pytest.mark.parametrize("missing", [None, float("nan"), "", b" "])
def test_other_forms_name_the_row(tmp_path, missing):
    (tmp_path / "d.py").write_text(
        "nan = float('nan')\n"
        f"def made():\n    return [[1.0], [2.0], [3.0]], [0, 1, 0], ['a', {missing!r}, 'a']\n"
    )
    with pytest.raises(DataError, match="made, row 2: client names no client"):
        read({"path": f"{tmp_path / 'd.py'}:made"}, tmp_path)


def test_the_column_of_the_clients_is_no_label_by_default(tmp_path):
    settings = written(tmp_path, text="1,2,0,h1\n3,4,1,h2\n1,2,1,h1\n", head="a,b,y,site")
    table = read(settings, tmp_path)
    assert table.y.tolist() == [-1, 1, 1] and table.X.shape == (3, 2)


@pytest.mark.parametrize(("form", "one", "says"), SAID)
def test_what_is_said_of_clients_has_to_fit_together(form, one, says):
    named, requested = "client" in one or "named" in one, "requested" in one
    errors = partitions.dataset_errors({"path": f"d.{form}", **one}, form, named, requested=requested)
    found = [f"{key}: {text}" for key, text in errors]
    assert len(found) == bool(says) and re.match(says, "".join(found))


def test_an_archive_is_seen_to_name_clients_before_it_is_read(tmp_path):
    one = {"path": str(tmp_path / "d.npz")}
    assert not names_clients(one)  # there is no such file
    np.savez(one["path"], X=np.eye(2), y=[0, 1])
    assert not names_clients(one)
    np.savez(one["path"], X=np.eye(2), y=[0, 1], client=["a", "b"])
    assert names_clients(one)


@pytest.fixture(scope="module")
def whole():
    config = configuration(root=ROOT)
    return {
        key: value for key, value in config.items() if key in ("cross", "datasets", "comparison", "scale")
    }


def test_a_built_in_data_set_is_split_anew_under_a_name_of_its_own(whole):
    asked = {"data": ["a9a"], "partition": "dirichlet:0.3", "clients": 50, "sizes": "lognormal:0.5"}
    section = comparison.comparison({**whole, "comparison": asked})
    (name,) = section["experiments"]
    assert name == "a9a_dirichlet_0_3_50_lognormal_0_5"
    assert section["experiments"][name]["partition"] == {
        **{"clusters": "dirichlet", "alpha": 0.3, "clients": 50, "spread": 0.5},
        "samples": whole["cross"]["experiments"]["a9a"]["samples"],  # of which sizes then are the mean
    }
    assert "samples" not in section["experiments"][name]
    assert section["artefacts"]["partition"]["partitions"] == [name]
    # Without a request all stays.
    plain = comparison.comparison({**whole, "comparison": {"data": ["a9a"]}})["experiments"]["a9a"]
    assert plain["partition"] == whole["cross"]["experiments"]["a9a"]["partition"]
    fewer = comparison.comparison({**whole, "comparison": {"data": ["a9a"], "clients": 20}})
    assert fewer["experiments"]["a9a_kmeans_20"]["partition"]["count"] == 20


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"data": ["a9a"], "partition": "given"}, "partition: given is not allowed: a9a does not say which"),
        ({"data": ["a9a"], "clients": 32_562}, "clients: 32562 is not allowed; expected at most 32561"),
        ({"data": ["planted"], "clients": 5}, "data: planted has no samples to split"),
        ({"sizes": "lognormal:1"}, "sizes: a9a: lognormal:1 is not allowed with the partition kmeans"),
        ({"partition": "iid:1"}, "partition: 'iid:1' is not allowed"),
    ],
)
def test_a_split_that_cannot_be_is_refused_before_any_job(whole, asked, says):
    path, text = next(comparison.errors({**whole, "comparison": asked}))
    assert f"{path[-1]}: {text}".startswith(says)


def test_a_configuration_with_clients_and_no_partition_is_refused(tmp_path):
    base = configuration(root=ROOT)
    base = {key: base[key] for key in ("cross", "scale", "paths", "data")} | {"papers": ["cross"]}
    base["datasets"] = {"mine": written(tmp_path)}
    with pytest.raises(ConfigError, match=r"^datasets\.mine\.client: site names the clients, .*given"):
        validate(base)
    with pytest.raises(DataError, match=r"names clients, which k-means would drop; set partition: given"):
        read({**base["datasets"]["mine"], "partition_stated": False}, tmp_path)


def test_a_table_says_which_client_is_which(tmp_path):
    """From the file to the page: ids that look like numbers stay as they are."""
    read(written(tmp_path), tmp_path)
    split = {"dataset": "mine", "partition": {"clusters": "given"}, "replicates": [1, 2], "seed": 1}
    files = [tmp_path / "partition.npz", tmp_path / "partition.csv"]
    partition("compare", "mine", split, tmp_path / "t.npz", *files)
    assert "\n1,0,007,10," in files[1].read_text()
    inputs = {"partition:mine": files, "data:mine": [tmp_path / "t.npz"]}
    for name, suffix in {"client_names": "md", "heterogeneity": "md", "partition": "png"}.items():
        kind = "figure" if suffix == "png" else "table"
        suffixes = ("csv", "pdf", "png") if kind == "figure" else ("csv", "md", "tex")
        outputs = {one: tmp_path / f"{name}.{one}" for one in suffixes}
        artefact("compare", name, {"artefact": {"kind": kind}}, "small", inputs, outputs)
    lines = (tmp_path / "client_names.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("|")]
    assert [row[:3] for row in rows[2:]] == [[str(k), site, "10"] for k, site in enumerate(SITES)]
    assert "given" in (tmp_path / "heterogeneity.md").read_text()
