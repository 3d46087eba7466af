"""The table of time and memory, from benchmark files as Snakemake writes them."""

import pytest

from replifed.cli.listing import costs
from replifed.errors import DataError

HEAD = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\n"


def test_jobs_are_listed_dearest_first_and_summed(tmp_path):
    for name, line in {
        "fedht/a/fedavg": "77.04\t0:01:17\t839.32\t2184.78\t782.97\t809.63\t0.17\t0.02\t96.00\t74.4",
        "fedht/fig1": "0.2\t0:00:00\tNA\tNA\tNA\tNA\tNA\tNA\tNA\tNA",
        "fedht/fig2": "3.0\t0:00:03\t200.00\t2184.78\t782.97\t809.63\t0.17\t0.02\t96.00\t2.6",
        "report": "1.0\t0:00:01\t90.00\t2184.78\t782.97\t809.63\t0.17\t0.02\t96.00\t0.6",
    }.items():
        file = tmp_path / f"{name}.tsv"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(HEAD + line + "\n")
    text = costs(tmp_path)
    assert [line.split()[0] for line in text.splitlines()[1:4]] == ["fedht/a/fedavg", "fedht/fig2", "report"]
    assert "closing: 1 jobs, 0.0 CPU minutes, largest 90 MiB" in text
    assert "fedht: 3 jobs, 1.3 CPU minutes, largest 839 MiB" in text
    assert "up to 30 s of a job are missing" in text
    assert text.splitlines()[-1] == "all: 4 jobs, 1.3 CPU minutes"


def test_no_benchmarks_is_one_line(tmp_path):
    with pytest.raises(DataError, match="holds no benchmark files"):
        costs(tmp_path)
