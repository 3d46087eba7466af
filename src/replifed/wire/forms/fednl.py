"""FedNL (Safaryan, Islamov, Qian and Richtarik 2022, Algorithms 1 and 3)."""

import numpy as np

from replifed.operators.matrices import leading_eigenpair
from replifed.operators.quantise import draw_dither
from replifed.wire.forms import common
from replifed.wire.forms.common import average, threshold
from replifed.wire.forms.newton_type import budget, follow, move, stopped
from replifed.wire.messages import Dense, Eigenpairs, Quantised, Sparse


def client(method, message, own, data, turn):
    if turn.exchange > 0:
        return follow(method, message, own, data, turn)
    n, width = turn.facts.dim, method.value_bits
    x = own.get("x", turn.facts.start)
    first = [] if "H" in own or method.start == "zero" else [Dense(_packed(data.hessian(x)), width)]
    H_i = _unpacked(turn.received(first[0]), n) if first else own.get("H", np.zeros((n, n)))
    difference = data.hessian(x) - H_i  # line 4
    S = _compressed(method, difference, turn)  # line 5: S_i = C(hess f_i(x) - H_i)
    norm = [Dense(np.array([np.linalg.norm(difference)]))] if method.option == 2 else []  # l_i
    H_i = H_i + method.alpha * _received(method, [turn.received(part) for part in S], turn, turn.client)
    return [Dense(data.gradient(x), width), *norm, *first, *S], own | {"x": x, "H": H_i}  # line 6


def server(method, state, turn):
    x, n, p_i = state["x"], turn.facts.dim, turn.facts.weights
    replies = yield []  # clients know x
    g = average(replies, p_i)
    if stopped(method, g):
        return state
    known = 1 + (method.option == 2)  # parts before the compressed difference
    H = state.get("H", np.zeros((n, n)))
    if turn.t == 0 and method.start == "hessian":
        H, known = _unpacked(average(replies, p_i, part=known), n), known + 1
    S = {i: [_received(method, parts[known:], turn, i)] for i, parts in replies.items()}
    if method.option == 1:  # line 11: p = -[H]_mu^{-1} g
        values, V = np.linalg.eigh(H)
        p = -V @ ((V.T @ g) / np.maximum(values, turn.facts.mu))
    else:  # line 12: p = -(H + l I)^{-1} g
        p = -np.linalg.solve(H + average(replies, p_i, part=1)[0] * np.eye(n), g)
    x = yield from move(method, x, g, p, turn)
    return {"x": x, "H": H + method.alpha * average(S, p_i)}  # line 10


def _compressed(method, difference, turn):
    """C(difference) as parts of a message; none if the client's budget is below the bits of a coordinate."""
    n, bits = len(difference), _bits(method, turn)[turn.client]
    if budget(method, turn)[turn.client] < (1 if method.quantised else _full(method)):
        return []
    if method.compressor == "topk":
        k = min(method.entries or n, n * (n + 1) // 2)
        return [Sparse(threshold(k, _packed(difference)), k, method.value_bits)]
    value, v = leading_eigenpair(difference)
    if not _quantises(method, bits):
        return [Eigenpairs(np.append(value, v)[None], bits)]
    cells = common.cells(v[None], _dither(turn, turn.client), np.array([bits]))
    return [Dense(np.array([value])), Quantised(cells, np.array([bits]))]


def _received(method, S, turn, i):
    """C(...) of client i from the parts of its message, (n, n)."""
    n, bits = turn.facts.dim, _bits(method, turn)[i]
    if not S:
        return np.zeros((n, n))
    if method.compressor == "topk":
        return _unpacked(S[0], n)
    if _quantises(method, bits):
        value, v = S[0][0], common.midpoints(S[1][:, 1:], _dither(turn, i), np.array([bits]))[0]
    else:
        value, v = S[0][0, 0], S[0][0, 1:]
    return value * np.outer(v, v)


def _full(method):
    """Bits of a coordinate of a vector at full quality."""
    return method.value_bits if method.vector_bits is None else method.vector_bits


def _bits(method, turn):
    """Bits of a coordinate of each client's vector, (N,)."""
    B, full = budget(method, turn), _full(method)
    return np.where(full > B, np.minimum(B, method.b_max), full)


def _quantises(method, bits):
    return method.quantised and bits < method.b_max


def _dither(turn, i):
    shape = turn.facts.n_clients, turn.facts.dim
    return turn.draw("dither", lambda rng: draw_dither(rng, shape))[i : i + 1]


def _packed(A):
    """Lower triangle of a symmetric matrix, row by row."""
    return A[np.tril_indices(len(A))]


def _unpacked(triangle, n):
    A = np.zeros((n, n))
    A[np.tril_indices(n)] = triangle
    return A + np.tril(A, -1).T
