"""Input that is refused: one line that names the culprit, before a compiled loop reads it."""

import numpy as np
import pytest
import scipy.sparse as sp

from replifed.errors import ReplifedError
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import loss_named
from replifed.problems.sparse import SparseLinearModel


def model(layout, loss="least_squares", *, X=None, y=None, weights=None, l2=0.0, **more):
    """Two clients with three samples of two features each."""
    X = np.arange(1.0, 13.0).reshape(6, 2) if X is None else X
    y = np.ones(6) if y is None else np.asarray(y, float)
    given = {"weights": None if weights is None else np.array([weights], float), "l2": l2, **more}
    loss = loss_named(loss, 3)
    if layout == "dense":
        return DenseLinearModel(X.reshape(1, 2, 3, 2), y.reshape(1, 2, 3), loss, **given)
    client = given.pop("client", np.repeat([0, 1], 3))
    return SparseLinearModel(sp.csr_array(X), y, loss, np.array(client), **given)


def with_one(value):
    X = np.ones((6, 2))
    X[4, 1] = value
    return X


BOTH = {
    "NaN in X": ({"X": with_one(np.nan)}, "^features hold NaN or infinite"),
    "inf in X": ({"X": with_one(-np.inf)}, "^features hold NaN or infinite"),
    "complex X": ({"X": with_one(1).astype(complex)}, "^features of dtype complex128"),
    "NaN in y": ({"y": [1, 1, np.nan, 1, 1, 1]}, "^targets hold NaN or infinite"),
    "labels 0 and 1": ({"loss": "logistic", "y": [0, 1, 1, 0, 1, 1]}, r"^logistic labels hold 0.0: must"),
    "negative weight": ({"weights": [1.5, -0.5]}, "^weights hold -0.5: must be finite, and above 0"),
    "weight without value": ({"weights": [1.0, np.nan]}, "^weights hold nan"),
    "too many weights": ({"weights": [0.5, 0.25, 0.25]}, r"^weights of shape \(1, 3\): must be \(1, 2\)"),
    "negative ridge": ({"l2": -0.1}, "^l2 = -0.1: must be a number, finite, and at least 0"),
}
DENSE = {
    "sizes above m": ({"sizes": np.array([[3, 4]])}, "^sizes hold 4: X has room for 3 samples a client"),
    "too few sizes": ({"sizes": np.array([[3]])}, r"^sizes of shape \(1, 1\).*whole numbers, \(1, 2\)"),
    "no sample": ({"sizes": np.array([[3, 0]])}, "^client 1 holds no sample"),
    "broken sizes": ({"sizes": np.array([[3, 1.5]])}, "^sizes of shape .* dtype float64: must be whole"),
    "class": ({"loss": "softmax", "y": [0, 1, 3, 0, 1, 2]}, "^softmax labels hold 3.0: .* from 0 to 2"),
    "negative class": ({"loss": "softmax", "y": [0, -1, 2, 0, 1, 2]}, "^softmax labels hold -1.0"),
    "broken class": ({"loss": "softmax", "y": [0, 0.5, 2, 0, 1, 2]}, "^softmax labels hold 0.5"),
}
SPARSE = {
    "ids of too few rows": ({"client": [0, 0, 1, 1]}, r"^client ids of shape \(4,\).*must be 6 whole"),
    "ids beyond the clients": ({"client": [0, 0, 0, 1, 1, 2], "weights": [1, 1]}, "^client ids from 0 to 2"),
    "an id beyond all": ({"client": [0, 0, 0, 1, 1, 2**60]}, "^client ids from 0 to 1152921504606846976"),
    "negative id": ({"client": [0, 0, 0, 1, 1, -1]}, "^client ids from -1 to 1: must be 0 to 5"),
    "broken ids": ({"client": [0, 0, 0, 1, 1, 0.5]}, "^client ids of .* dtype float64: must be 6 whole"),
    "no sample": ({"client": [0, 0, 0, 2, 2, 2]}, "^client 1 holds no sample"),
    "too few targets": ({"y": np.ones(5)}, r"^targets of shape \(5,\): must be \(6,\)"),
}
TABLE = [
    pytest.param(layout, *case, id=f"{layout}, {name}")
    for layout, cases in (("dense", BOTH | DENSE), ("csr", BOTH | SPARSE))
    for name, case in cases.items()
]


@pytest.mark.parametrize("layout, given, message", TABLE)
def test_a_linear_model_refuses(layout, given, message):
    model(layout)
    with pytest.raises(ReplifedError, match=message) as caught:
        model(layout, **given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_whole_numbers_become_doubles(layout):
    X, x = np.arange(1, 13).reshape(6, 2), np.array([[0.5, -1.0]])
    whole, real = model(layout, X=X), model(layout, X=X.astype(float))
    assert whole.dtype == np.float64
    assert whole.loss(x) == real.loss(x) > 0


def test_padding_holds_no_label():
    y = np.array([[[1.0, -1.0, 0.0]]])
    DenseLinearModel(np.ones((1, 1, 3, 2)), y, loss_named("logistic"), sizes=np.array([[2]]))


@pytest.mark.parametrize("rows", [3, 4])
def test_runs_share_data_sets_evenly_or_not_at_all(rows):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((2, 2, 3, 2)), rng.choice([-1.0, 1.0], (2, 2, 3))
    two, u = DenseLinearModel(X, y, loss_named("logistic"), l2=0.1), rng.standard_normal((rows, 2, 2))
    with pytest.raises(ReplifedError, match=rf"^{rows} models of the server and 2 data sets"):
        two.loss(u[:, 0])
    own = [
        two.per_client_gradients,
        two.per_client_hessians,
        lambda u: two.per_client_descent(u, 2, np.full((1, 1, 1), 0.1), linear=np.zeros(u.shape)),
    ]
    for of in own:
        if rows == 3:
            with pytest.raises(ReplifedError, match=r"^3 runs share 2 data sets: each must"):
                of(u)
        else:
            alone = [of(np.repeat(u[[row]], 2, axis=0))[row // 2] for row in range(4)]
            np.testing.assert_allclose(of(u), alone, rtol=1e-12)
