"""FedAvg (McMahan et al. 2017, Algorithm 1)."""

from replifed.wire.forms.common import average
from replifed.wire.messages import Dense


def client(method, message, own, data, turn):
    (w,) = message  # w_t
    for b in turn.minibatches(method.local_steps, method.batch):
        w = w - method.step * data.gradient(w, b)  # w <- w - eta grad l(w; b)
    return [Dense(w)], own


def server(method, state, turn):
    replies = yield [Dense(state["x"])]  # w_t to each client k of S_t
    return {"x": average(replies, turn.facts.weights)}  # w_{t+1} = sum_k n_k / n w_{t+1}^k
