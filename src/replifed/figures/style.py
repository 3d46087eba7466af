"""House style of all figures: sizes, colours, stamps, and files with the same bytes every time.

Nothing here touches pyplot or any other global state. Drawing functions are decorated with `styled`,
so that a user's own matplotlib settings change no figure.
"""

from __future__ import annotations

import io
import os
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D

# Papers from outside may import the look of their curves from here.
from replifed.figures.lines import (  # noqa: F401
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SEQUENCE,
    SKY,
    VERMILLION,
    WINE,
    YELLOW,
    Line,
    sequence_lines,
)
from replifed.store.atomic import replacing

DPI = 150
# Width of a page of text, in inches: no picture is wider, or its text would be printed smaller.
PRINT_WIDTH = 7.0

RC: dict[Any, Any] = {
    **{key: value for key, value in matplotlib.rcParamsDefault.items() if key != "backend"},
    "font.family": "DejaVu Sans",
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.0,
    # Type 42 keeps text in PDF files searchable.
    "pdf.fonttype": 42,
    "svg.hashsalt": "replifed",
}

# Inches kept free above and below the panels, for the title, and for stamp and legend: edges, and a line.
_TITLE, _NO_TITLE, _EDGES, _LINE = 0.36, 0.06, 0.14, 0.17


def styled(draw):
    """Decorate a function that draws, so that it uses this style and ignores the user's configuration."""
    return matplotlib.rc_context(RC)(draw)


@styled
def canvas(
    rows: int, cols: int, *, title: str = "", width: float = 3.0, height: float = 2.2
) -> tuple[Figure, list[list[Axes]]]:
    """Make a figure with a grid of axes and room for a title; `legend` makes room for itself.

    `width` and `height` are inches of each panel, labels included; panels share the width of a page.
    """
    height *= (panel_width(width, cols) / width) ** 0.5
    width = panel_width(width, cols)
    total = (cols * width, rows * height + (_TITLE if title else _NO_TITLE))
    made = Figure(figsize=total, dpi=DPI)
    FigureCanvasAgg(made)
    inside = rows * height / total[1]
    made.set_layout_engine(
        ConstrainedLayoutEngine(
            rect=(0.0, 0.0, 1.0, inside), w_pad=0.06, h_pad=0.05, wspace=0.03, hspace=0.04
        )
    )
    if title:
        # About 9.5 bold characters of 11.5 points to an inch; longer titles shrink, and the longest break.
        size = max(8.5, min(11.5, 109 * (total[0] - 0.16) / len(title)))
        heading = made.text(
            0.08 / total[0],
            1 - 0.06 / total[1],
            textwrap.fill(title, int(109 / size * (total[0] - 0.16)) + 1),
            va="top",
            ha="left",
            fontsize=size,
            fontweight="bold",
            linespacing=1.05,
        )
        heading.set_in_layout(False)
    return made, made.subplots(rows, cols, squeeze=False).tolist()


@styled
def panels(count: int, across: int, **options: Any) -> tuple[Figure, list[Axes]]:
    """Make a figure with `count` panels, at most `across` side by side; options are those of `canvas`."""
    across = min(across, count)
    made, axes = canvas(-(-count // across), across, **options)
    cells = [ax for row in axes for ax in row]
    for ax in cells[count:]:
        ax.set_axis_off()
    return made, cells[:count]


def panel_width(width: float, cols: int) -> float:
    """Return the inches of each of `cols` panels side by side, at most `width`."""
    return min(width, PRINT_WIDTH / cols)


def of_seeds(frame: Any) -> str:
    """Return the number of repetitions, for a title; "" if the table has none."""
    for column, name in (("seeds", "seed"), ("sets", "data set")):
        # Lines that are no measurement have none.
        counts = [int(count) for count in frame.get(column, ()) if count > 0]
        if counts:
            low, high = min(counts), max(counts)
            text = f"{high}" if low == high else f"{low} to {high}"
            return f"{text} {name}{'s' * (high > 1)}"
    return ""


@styled
def legend(made: Figure, lines: Sequence[Line], *, columns: int = 6, compact: bool = False) -> None:
    """Draw one legend for all panels, below them, in a strip of its own, of at most `columns` columns.

    A `compact` one, of a picture as wide as a column of text, has shorter lines and smaller letters.
    """
    width = made.get_size_inches()[0]
    widths = [len(line.label) / 15 + 0.65 for line in lines]  # 15 characters of 8 points to an inch
    columns = max(1, min(columns, len(lines), int(width / max(widths, default=1.0))))
    look: dict[str, Any] = {"handlelength": 3.4, "columnspacing": 1.8}
    if compact:
        look = {"handlelength": 2.6, "columnspacing": 1.0, "handletextpad": 0.5, "fontsize": 7.0}
        widths = [len(line.label) / 18 + 0.45 for line in lines]
        # Each column is as wide as its own entries.
        fitting = (
            count
            for count in range(len(lines), 1, -1)
            if sum(max(part) for part in np.array_split(widths, count)) < width
        )
        columns = next(fitting, 1)
    _heighten(made, _EDGES + -(-len(lines) // columns) * _LINE, below=True)
    handles = [Line2D([], [], **line.look) for line in lines]
    drawn = made.legend(
        handles,
        [line.label for line in lines],
        loc="lower center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=columns,
        **look,
    )
    drawn.set_in_layout(False)


@styled
def banner(made: Figure, data: str, scale: str, prefix: str = "NOT THE PAPER'S DATA — ") -> None:
    """Add a banner under the title of a figure from `canvas` if its settings or data are not the paper's.

    `data` is a remark on the data, empty if they are the paper's, and `prefix` the text before it; `scale` is
    "paper", or the name of the smaller settings.
    """
    remarks = []
    if data:
        remarks.append(f"{prefix}{data}")
    if scale != "paper":
        remarks.append(f"SCALE: {scale.upper()}, not the paper's settings")
    if not remarks:
        return
    width, height = made.get_size_inches()
    # About 13 bold characters of 7.5 points to an inch.
    lines = textwrap.wrap(" · ".join(remarks), int(13 * (width - 0.3)))
    strip = _EDGES + 0.12 * len(lines)
    _heighten(made, strip)
    height += strip
    drawn = made.text(
        0.12 / width,
        1 - ((_TITLE if made.texts else _NO_TITLE) + strip / 2) / height,
        "\n".join(lines),
        va="center",
        ha="left",
        fontsize=7.5,
        fontweight="bold",
        color="white",
        linespacing=1.05,
        bbox={"facecolor": "#B03A00", "edgecolor": "none", "boxstyle": "round,pad=0.25"},
    )
    drawn.set_in_layout(False)


def _heighten(made: Figure, strip: float, *, below: bool = False) -> None:
    """Add `strip` inches to a figure from `canvas`, under its title or below its panels."""
    width, height = made.get_size_inches()
    share = height / (height + strip)
    made.set_size_inches(width, height + strip)
    for text in made.texts:
        x, y = text.get_position()
        text.set_position((x, 1 - (1 - y) * share))
    layout = made.get_layout_engine()
    if isinstance(layout, ConstrainedLayoutEngine):
        left, bottom, across, inside = layout.get()["rect"]
        # A strip below is a share of the new height.
        bottom = bottom * share + (1 - share) * below
        layout.set(rect=(left, bottom, across, inside * share))


@styled
def save(made: Figure | Sequence[Figure], path: str | os.PathLike[str]) -> None:
    """Write a figure as PDF or PNG, by the suffix of `path`; equal figures give equal bytes.

    Several are the pages of a PDF; a PNG shows the first.
    """
    pages = [made] if isinstance(made, Figure) else list(made)
    for page in pages:
        layout = page.get_layout_engine()
        if layout is not None:
            # Half of the drawing time; done once for all formats.
            layout.execute(page)
            # None, not "none": with a placeholder in its place every format would be drawn twice.
            page.set_layout_engine(None)
    with replacing(path) as temporary:
        if Path(path).suffix == ".png":
            pages[0].savefig(temporary, dpi=DPI, metadata={"Software": None})
            return
        drawn = io.BytesIO()  # on a full disk PdfPages would raise what tells nothing
        with PdfPages(drawn, metadata={"CreationDate": None}) as document:
            for page in pages:
                document.savefig(page, dpi=DPI)
        temporary.write_bytes(drawn.getvalue())
