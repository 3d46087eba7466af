"""FedLin (Mitra, Jaafar, Pappas and Hassani 2021), without sparsification."""

from replifed.wire.forms.common import descend, mean
from replifed.wire.messages import Dense


def client(method, message, own, data, turn):
    if turn.exchange == 0:
        (x,) = message
        g_i = data.gradient(x)
        return [Dense(g_i)], {"x": x, "g_i": g_i}
    (g,) = message
    # w <- w - eta (grad f_i(w) - grad f_i(x) + g)
    w = descend(method.solver, own["x"], data, turn, linear=g - own["g_i"])
    return [Dense(w)], own


def server(method, state, turn):
    g_i = yield [Dense(state["x"])]  # first exchange: x down, g_i up
    w_i = yield [Dense(mean(g_i))]  # second exchange: g down, w_i up
    return {"x": mean(w_i)}
