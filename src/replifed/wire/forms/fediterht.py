"""FedIterHT (Tong et al. 2022, Algorithm 2)."""

from replifed.wire.forms.common import average, threshold
from replifed.wire.messages import Sparse


def client(method, message, own, data, turn):
    (u,) = message  # line 3: x_{t,1} = x_t
    for B in turn.minibatches(method.local_steps, method.batch_size(turn.t)):  # lines 4-7
        u = threshold(method.sparsity, u - method.step * data.gradient(u, B))
    return [Sparse(u, method.sparsity)], own


def server(method, state, turn):
    replies = yield [Sparse(state["x"], method.sparsity)]  # line 2
    return {"x": threshold(method.sparsity, average(replies, turn.facts.weights))}  # line 10
