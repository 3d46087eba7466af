"""With tau in each class every threshold of the three methods is by class."""

import numpy as np
import pytest

from replifed.algorithms.distributed_iht import DistributedIHT
from replifed.algorithms.fedht import FedHT
from replifed.algorithms.fediterht import FedIterHT
from replifed.algorithms.local_steps import gradient_steps, loop
from replifed.engine.simulate import simulate
from replifed.problems.by_class import SoftmaxByClass
from replifed.problems.losses import loss_named
from replifed.randomness import Streams

CLASSES, EACH = 3, 2


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1, 4, 12, 7)), rng.integers(CLASSES, size=(1, 4, 12))
    found = SoftmaxByClass(X, y, loss_named("softmax", CLASSES))
    found.kept = CLASSES * EACH
    return found


@pytest.mark.parametrize("method", [FedHT, FedIterHT, DistributedIHT])
@pytest.mark.parametrize("batch", [None, 5])
def test_each_class_keeps_its_own_weights(problem, method, batch):
    seen = []

    def kept(_, points):
        seen.append((points["server"].reshape(-1, 7, CLASSES) != 0).sum(axis=1))
        return np.zeros(1)

    more = {} if method is DistributedIHT else {"local_steps": 3}
    made = method(step=0.3, sparsity=problem.kept, batch=batch, **more)
    simulate(made, problem, Streams(0, (0,)), 4, metrics={"kept": kept})
    assert (seen[-1] == EACH).all()


def test_compiled_steps_threshold_by_class_as_the_loop_does(problem):
    rng = np.random.default_rng(1)
    start = rng.normal(size=(1, 7 * CLASSES))
    batches = [rng.integers(12, size=(1, 4, 5)) for _ in range(3)]
    local = problem.local(start)
    args = (batches, 0.3)
    for tau in (problem.kept, None):
        found = gradient_steps(local, *args, tau=tau)
        np.testing.assert_allclose(found, loop(problem.local(start), *args, 0.0, tau), rtol=1e-9, atol=1e-12)
