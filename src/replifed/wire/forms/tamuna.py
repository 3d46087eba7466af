"""TAMUNA (Condat, Agarsky, Malinovsky and Richtarik 2023, Algorithm 1)."""

import numpy as np

from replifed.errors import ReplifedError
from replifed.wire.forms.common import descend, local_steps, mean
from replifed.wire.messages import Dense


def client(method, message, own, data, turn):
    if turn.exchange == 1:  # the average of the coordinates that it sent
        return [], {"h": own["h"] + _change(method, message[0], own)}
    (x,) = message
    h = own.get("h", np.zeros_like(x))
    if "w" in own:  # all take part: the model has the average of what was sent
        h = h + _change(method, x[own["sent"]], own)
    # x_i <- x_i - gamma grad f_i(x_i) + gamma h_i, L ~ Geom(p) times
    L = local_steps(turn, method.solver.steps)
    gamma = method.solver.step or method.gamma
    w = descend(method.solver, x, data, turn, linear=-h, step=gamma, steps=L)
    sent = _senders(method, turn)[turn.place]
    return [Dense(w[sent])], {"h": h, "w": w, "sent": sent}


def server(method, state, turn):
    replies = yield [Dense(state["x"])]
    if method.sparsity is None:
        x = mean(replies)
    elif len(replies) < len(turn.cohort):
        raise ReplifedError(
            f"TAMUNA.sparsity: a client did not answer in round {turn.t}: none may be missing"
        )
    senders = dict(zip(turn.drawn, _senders(method, turn), strict=True))
    if method.sparsity is not None:
        x = np.zeros(turn.facts.dim)
        for i, (values,) in replies.items():
            x[senders[i]] += values / method.sparsity  # each coordinate comes from s clients
    if not turn.everyone:  # a client may miss the next round
        yield {i: [Dense(x[senders[i]])] for i in replies}
    return {"x": x}


def _change(method, x, own):
    """eta / gamma (x - x_i) where the client sent something, else 0; `x` has these coordinates alone."""
    change = np.zeros_like(own["h"])
    change[own["sent"]] = method.eta / method.gamma * (x - own["w"][own["sent"]])
    return change


def _senders(method, turn):
    """Mask (c, D): which client sends which coordinate."""
    c, D, s = len(turn.drawn), turn.facts.dim, method.sparsity
    if s is None:
        return np.ones((c, D), bool)
    order = turn.draw("mask", lambda rng: rng.permutation(c))
    return (order[:, None] - s * np.arange(D)) % c < s
