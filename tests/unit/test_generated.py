"""Data sets of a comparison that need no file: digits and FedProx's synthetic clients; and images by name."""

import numpy as np
import pytest

from replifed.cli.check import _names
from replifed.data.generated import generate, settings_of
from replifed.data.own import read
from replifed.errors import ConfigError
from replifed.settings import comparison
from replifed.settings.checks import load


def test_digits_are_those_of_scikit_learn():
    table = read("digits", settings_of("digits")[1])
    assert table.X.shape == (1797, 64) and table.X.max() == 1 and table.client is None
    assert table.meta["classes"] == list("0123456789")
    assert np.bincount(table.y)[[0, 9]].tolist() == [178, 180]


def test_synthetic_clients_follow_their_law(monkeypatch):
    X, y, client = generate("synthetic:0,0")
    sizes = np.bincount(client)
    assert len(sizes) == 30 and sizes.min() >= 50 and X.shape[1] == 61 and y.max() <= 9
    assert (X[:, -1] == 1).all()
    # Within a client the variance of feature j is j^-1.2; between clients, with BETA = 0, that of v is 1.
    large = X[client == sizes.argmax(), :-1]
    np.testing.assert_allclose(
        large.var(axis=0) * np.arange(1, 61) ** 1.2, 1, atol=6 * np.sqrt(2 / len(large))
    )
    means = np.array([X[client == k, :-1].mean(axis=0) for k in range(30)])
    assert abs(means[:, 5:].var() - 1) < 0.15
    monkeypatch.setattr("replifed.data.generated._CLIENTS", 400)
    X, _, client = generate("synthetic:0,4")
    v = np.array([X[client == k, 5:-1].mean() for k in range(400)])  # B_k, and the mean of v - B_k
    assert abs(v.var() - 4) < 6 * 4 * np.sqrt(2 / 400)
    halves = [generate(path)[0] for path in ("synthetic:0,0.25", "synthetic:0,0.5,deviation")]
    np.testing.assert_array_equal(*halves)


@pytest.mark.parametrize(
    "path", ["synthetic:1", "synthetic:a,1", "synthetic:-1,1", "synthetic:1,1,sd", "synthetic:"]
)
def test_other_words_are_refused(path):
    with pytest.raises(ConfigError, match="write synthetic:ALPHA,BETA"):
        settings_of(path)


def test_a_comparison_knows_them_by_name():
    data = _names("digits,synthetic:0.5,0.5,a9a,synthetic:1,1,deviation,mnist")
    assert data == ["digits", "synthetic:0.5,0.5", "a9a", "synthetic:1,1,deviation", "mnist"]
    config = load(given={"comparison": {"data": data, "against": ["fedavg"]}})
    made = config["compare"]["experiments"]
    assert [*made] == ["digits", "synthetic_0_5_0_5", "a9a", "synthetic_1_1_deviation", "mnist"]
    assert made["synthetic_0_5_0_5"]["partition"] == {"clusters": "given"}
    assert {made[name]["problem"] for name in made if name != "a9a"} == {"softmax"}
    with pytest.raises(ConfigError, match=r"did you mean 'digits'\?"):
        load(given={"comparison": {"data": ["digit"]}})
    assert not {*comparison.OFFERED} & {*load()["compare"]["experiments"]}
