"""Dense linear models with a separate model at each client: gradients and descent."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ReplifedError
from replifed.memory import aligned_empty
from replifed.operators.hard_threshold import as_integers, check_levels
from replifed.problems import products
from replifed.problems.gram import stacked
from replifed.problems.linear import check_runs
from replifed.problems.losses import COMPILED, KERNELS, Loss

# Full gradient steps go through the lanes of vectors, eight runs at a time, where a client's matrix has at
# most so many entries, for at least so many steps, and if runs fill such a share of the lanes: data are put
# side by side first.
_MOST_ENTRIES, _FEWEST_STEPS, _FILLED = 512, 3, 0.5


class DenseClientModels:
    """`problems.base.PerClientModels` on dense data; attributes are those of `DenseLinearModel`."""

    y: NDArray
    rows: NDArray
    place: NDArray
    sample_weights: NDArray
    batch_weights: NDArray
    loss_function: Loss
    l2: float
    dtype: np.dtype
    n_clients: int
    n_samples: int
    n_features: int

    @cached_property
    def X(self) -> NDArray:
        """Features (S, N, m, d); a part of the problem copies them at the first access."""
        return self.rows[self.place]

    def per_client_gradients(
        self,
        u: NDArray,
        batch: NDArray | None = None,
        clip: float | None = None,
        *,
        ridge: float | NDArray = 0.0,
        linear: NDArray | None = None,
    ) -> NDArray:
        """See `problems.base.PerClientModels`."""
        check_runs(len(u), len(self.place))
        models = u.reshape(*u.shape[:2], self.n_features, -1)
        if clip is not None and batch is not None:
            raise ReplifedError("clip: for gradients on all samples, not on minibatches")
        few = len(u) < products.FEWEST_COLUMNS * len(self.place)
        if self.loss_function.name in COMPILED and clip is None and (batch is not None or few):
            g = self.shifted_gradients(u, batch, *self._unshifted(len(u)))
        elif batch is not None and self.loss_function.name == "softmax":
            g = self._softmax_gradients(u, batch)
        elif batch is not None:
            raise ReplifedError(
                f"minibatches: not for the loss {self.loss_function.name}, which is not built in"
            )
        else:
            g = self._gradients_in_columns(models, clip)
        g = g.reshape(u.shape)
        weight = self.l2 + ridge
        if np.any(weight):
            g += np.reshape(weight, (-1, 1, 1)).astype(g.dtype) * u
        if linear is not None:
            g += linear
        return g

    def _gradients_in_columns(self, models: NDArray, clip: float | None) -> NDArray:
        """Gradients (R, N, d, C) without the ridge; runs that share a data set are columns of one product."""
        runs, N, d, C = models.shape
        S = len(self.X)
        columns = models.reshape(S, runs // S, N, d, C).transpose(0, 2, 3, 1, 4).reshape(S, N, d, -1)
        z = np.matmul(self.X, columns).reshape(S, N, self.n_samples, -1, C)
        r = self.loss_function.derivative(z, self.y[..., None])
        r *= self.sample_weights[..., None, None]
        if clip is not None:
            # A sample's gradient is its residual, already times its weight, times its features.
            weights, norms = self.sample_weights[..., None], self._norms[..., None]
            lengths = np.linalg.norm(r, axis=-1) * norms
            shorter = clip * weights / np.maximum(lengths, np.finfo(lengths.dtype).tiny)
            r *= np.minimum(1.0, shorter)[..., None]
        if runs * C == S:
            # A single column: a row vector times the matrix is quicker than the transposed matrix times it.
            return np.matmul(r.reshape(S, N, 1, -1), self.X).reshape(models.shape)
        g = np.matmul(self.X.swapaxes(-1, -2), r.reshape(S, N, self.n_samples, -1))
        g = g.reshape(S, N, d, -1, C).transpose(0, 3, 1, 2, 4)
        # A copy: on a view the next operations would read memory in strides.
        return np.ascontiguousarray(g)

    def shifted_gradients(
        self, u: NDArray, batch: NDArray | None, y: NDArray, shifts: NDArray, sets: NDArray
    ) -> NDArray:
        """Gradients (R, N, d) without the ridge; for `y`, `shifts` and `sets` see `problems.shifted`."""
        from replifed.kernels.linear import gradients, minibatch_gradients

        loss, g = COMPILED.index(self.loss_function.name), aligned_empty(u.shape, self.dtype)
        u = np.ascontiguousarray(u, self.dtype)
        if batch is None:
            gradients(self.rows, self.place, y, shifts, sets, self.sample_weights, loss, u, g)
            return g
        batch, scale = np.ascontiguousarray(batch), self.batch_weights / batch.shape[-1]
        minibatch_gradients(self.rows, self.place, y, shifts, sets, scale, batch, loss, u, g)
        return g

    def _unshifted(self, runs: int) -> tuple[NDArray, NDArray, NDArray]:
        """Targets, shifts and sets as in `problems.shifted`, of runs that share the data sets."""
        return self.y, np.empty((0,) * 3, self.dtype), np.arange(runs) * len(self.place) // runs

    def minibatch_steps(
        self,
        w: NDArray,
        batches: list[NDArray],
        eta: NDArray,
        *,
        ridge: float | NDArray = 0.0,
        linear: NDArray | None = None,
        tau: int | NDArray | None = None,
        classes: int = 1,
    ) -> NDArray | None:
        """Each client's model after steps w <- H_tau(w - eta grad) on minibatches; None if not compiled.

        The objective is f_i(w) + <a_i, w> + b |w|^2 / 2 with `ridge` b, (R,), and `linear` a, (R, N, D);
        `eta` is (R or 1, N or 1, 1), each of `batches` (R or 1, N, b), and `tau` is one level or one per run;
        with several `classes` each keeps an equal part of it.
        """
        return self.shifted_steps(w, batches, eta, ridge, linear, tau, *self._unshifted(len(w)), classes)

    def shifted_steps(
        self,
        w: NDArray,
        batches: list[NDArray],
        eta: NDArray,
        ridge: float | NDArray,
        linear: NDArray | None,
        tau: int | NDArray | None,
        y: NDArray,
        shifts: NDArray,
        sets: NDArray,
        classes: int = 1,
    ) -> NDArray | None:
        """As `minibatch_steps`; for `y`, `shifts` and `sets` see `problems.shifted`."""
        check_runs(len(w), len(self.place))
        if self.loss_function.name not in KERNELS:
            return None
        from replifed.kernels.local_steps import linear_steps, softmax_steps

        drawn, ridges = stacked(batches, self.n_clients), np.empty(len(w), self.dtype)
        ridges[...] = np.ravel(self.l2 + ridge)
        models, steps, levels = self._for_kernels(w, eta, tau, classes)
        step = (
            self.batch_weights / drawn.shape[-1],
            drawn,
            steps,
            ridges,
            np.empty((0, 0, w.shape[-1]), self.dtype)
            if linear is None
            else np.ascontiguousarray(linear, self.dtype),
            levels,
            models,
            self._one_model_a_run(w),
        )
        if self.loss_function.name == "softmax":
            softmax_steps(self.rows, self.place, self.y, *step)
        else:
            loss = COMPILED.index(self.loss_function.name)
            linear_steps(self.rows, self.place, y, shifts, sets, loss, *step)
        return models[0]

    def minibatch_pursuit(
        self,
        w: NDArray,
        batches: list[NDArray],
        inner: list[NDArray],
        eta: NDArray,
        tau: int | NDArray,
        *,
        classes: int = 1,
        reuse: bool = False,
        radius: float | None = None,
    ) -> NDArray | None:
        """Each client's model after iterations of `FedGradMP` with its solver "sgd"; None if not compiled.

        `batches` select supports, and `inner` are the sub-problems' own; all else is as in
        `minibatch_steps`.
        """
        check_runs(len(w), len(self.place))
        if self.loss_function.name != "softmax":
            return None
        from replifed.kernels.local_steps import softmax_pursuit

        drawn = stacked(batches, self.n_clients)
        models, steps, levels = self._for_kernels(w, eta, tau, classes)
        softmax_pursuit(
            self.rows,
            self.place,
            self.y,
            self.batch_weights / drawn.shape[-1],
            drawn,
            stacked(inner, self.n_clients) if inner else drawn[:0],
            steps,
            self.dtype.type(self.l2),
            reuse,
            self.dtype.type(np.inf if radius is None else radius),
            levels,
            models,
            self._one_model_a_run(w),
            self._one_model_a_run(w),
        )
        return models[0]

    def _for_kernels(self, w: NDArray, eta: NDArray, tau: int | NDArray | None, classes: int) -> tuple:
        """What kernels take: models with their memory as integers, a copy; steps (R, N); levels."""
        models, steps = aligned_empty(w.shape, self.dtype), np.empty(w.shape[:2], self.dtype)
        models[...], steps[...] = w, eta[..., 0]
        if tau is not None:
            check_levels(tau // classes, w.shape)
        integers, most = as_integers(models)
        given = np.empty(0, np.int64) if tau is None else np.full(len(w), tau, np.int64)
        return (models, integers), steps, (given, classes, most)

    def _one_model_a_run(self, w: NDArray) -> tuple[NDArray, NDArray]:
        """Scratch (R, 1, D), and its memory as integers."""
        scratch = aligned_empty((len(w), 1, w.shape[-1]), self.dtype)
        return scratch, as_integers(scratch)[0]

    def _softmax_gradients(self, u: NDArray, batch: NDArray) -> NDArray:
        """Gradients (R, N, D) on minibatches without the ridge."""
        from replifed.kernels.softmax import minibatch_gradients

        models, batch = np.ascontiguousarray(u, self.dtype), np.ascontiguousarray(batch)
        g, scale = np.empty_like(models), self.batch_weights / batch.shape[-1]
        minibatch_gradients(self.rows, self.place, self.y, scale, batch, models, g)
        return g

    def per_client_descent(
        self,
        u: NDArray,
        steps: int,
        step: NDArray,
        *,
        ridge: float | NDArray = 0.0,
        linear: NDArray,
        momentum: NDArray | None = None,
    ) -> NDArray:
        """See `problems.base.PerClientModels`."""
        check_runs(len(u), len(self.X))
        if self.loss_function.name not in COMPILED:
            step = step.astype(self.dtype)
            beta = None if momentum is None else momentum.astype(self.dtype)
            w = v = u
            for _ in range(steps):
                ahead = w - step * self.per_client_gradients(w, ridge=ridge, linear=linear)
                w, v = ahead if beta is None else ahead + beta * (ahead - v), ahead
            return w
        from replifed.kernels import descent, descent_in_lanes

        w, runs = np.array(u, self.dtype, order="C"), len(u)
        sizes, ridges = np.zeros((2, *w.shape[:2]), self.dtype), np.empty(runs, self.dtype)
        sizes[0], ridges[...] = step[..., 0], np.ravel(self.l2 + ridge)
        if momentum is not None:
            sizes[1] = momentum[..., 0]
        loss, linear = COMPILED.index(self.loss_function.name), np.ascontiguousarray(linear, self.dtype)
        given = (self.X, self.y, self.sample_weights, loss, steps, sizes, ridges, linear, w)
        fits = self.dtype == np.float64 and self.X[0, 0].size <= _MOST_ENTRIES
        if fits and steps >= _FEWEST_STEPS and runs >= _FILLED * descent_in_lanes.lanes_for(runs):
            descent_in_lanes.descend_in_lanes(*given)
        else:
            kernel = descent.descend_grouped if runs > len(self.X) else descent.descend
            kernel(*given, w.copy())
        return w

    @cached_property
    def _norms(self) -> NDArray:
        """Norm of each sample, (S, N, m)."""
        return np.linalg.norm(self.X, axis=-1)
