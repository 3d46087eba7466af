"""Scaffnew (Mishchenko, Malinovsky, Stich and Richtarik 2022, Algorithm 2), from one average to the next."""

import numpy as np

from replifed.wire.forms.common import descend, local_steps, mean
from replifed.wire.messages import Dense


def client(method, message, own, data, turn):
    (x,) = message
    p, gamma = 1 / method.solver.steps, method.step
    h = own.get("h", np.zeros_like(x))
    if "x_hat" in own:  # the model is the average of what was sent: h <- h + p / gamma (x - x_hat)
        h = h + p / gamma * (x - own["x_hat"])
    # x_hat <- x_hat - gamma (grad f_i(x_hat) - h), L ~ Geom(p) times
    L = local_steps(turn, method.solver.steps)
    x_hat = descend(method.solver, x, data, turn, linear=-h, step=gamma, steps=L)
    return [Dense(x_hat)], {"h": h, "x_hat": x_hat}


def server(method, state, turn):
    replies = yield [Dense(state["x"])]
    return {"x": mean(replies)}
