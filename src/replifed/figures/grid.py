"""A grid of panels of curves, declared once: its table and its picture follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import pandas as pd

from replifed.figures.panels import By, Curves, Panel, Reference, X
from replifed.figures.picture import Picture
from replifed.figures.summaries import Band, Centre, on_log_scale, summarise

__all__ = ["By", "Curves", "Grid", "Panel", "Reference", "X"]


@dataclass(frozen=True)
class Grid(Picture):
    """Curves over repetitions, a grid of panels; name, `table` and `show` as in `figures.artefact.Made`.

    Every run of the artefact's settings goes through `prepare`, and `summarise` makes a curve of each
    combination of the columns `by`. On a logarithmic axis a band is computed on the scale of logarithms.
    """

    name: str
    _: KW_ONLY
    caption: str
    # The table: columns that tell curves apart, columns of the histories that are averaged, what maps a
    # history (with a column experiment) and the inputs to the lines that are averaged, and `summarise`'s own.
    by: Sequence[str] = ()
    values: Sequence[str] = ("objective",)
    prepare: Callable[[pd.DataFrame, Any], pd.DataFrame] | None = None
    first: Mapping[str, int] = field(default_factory=dict)  # first round that has a number, by value
    centre: Centre = "mean"
    band: Band = "ci"
    axes: Sequence[str] = ("iterations", "bits")
    finish: Callable[[pd.DataFrame], pd.DataFrame] | None = None  # from the averages to the table
    # From the inputs to the table, where it is no average of histories round by round.
    source: Callable[[Any], pd.DataFrame] | None = None
    stamped: ClassVar[bool] = True  # see `figures.artefact.Made`

    def table(self, inputs: Any) -> pd.DataFrame:
        """Return a line for each curve and round."""
        if self.source is not None:
            return self.source(inputs)
        frame = self._summaries(inputs)
        if self.finish is not None:
            frame = self.finish(frame)
        return self._scaled(frame) if self.centre == "mean" and self.band != "range" else frame

    def _summaries(self, inputs: Any) -> pd.DataFrame:
        frames = []
        for experiment, method in inputs.runs():
            history = inputs.run(experiment, method).assign(experiment=experiment)
            if self.prepare is not None:
                history = self.prepare(history, inputs)
            frames += [self._summary(history, value) for value in self.values if len(history)]
        return pd.concat(frames, ignore_index=True)

    def _summary(self, history: pd.DataFrame, value: str) -> pd.DataFrame:
        history = history[history["round"] >= self.first.get(value, 0)]
        frame = summarise(history, self.by, value, centre=self.centre, band=self.band, axes=self.axes)
        if self.metric is not None:
            frame.insert(0, self.metric, value)
        return frame

    def _scaled(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Compute the bands of logarithmic panels on the scale of logarithms."""
        # Without those that `shown` adds.
        by = [part.column for part in self.dimensions() if isinstance(part, By) and part.column in frame]
        panels = [panel for _, panel in frame.groupby(by, sort=False)] if by else [frame]
        scaled = [on_log_scale(panel) if self.is_logarithmic_y(panel) else panel for panel in panels]
        return pd.concat(scaled).sort_index()
