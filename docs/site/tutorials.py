"""How tutorials become pages: their order, and pictures that `Comparison.plot` makes without pyplot."""

from pathlib import Path

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

ORDER = (
    "check_a_claim",
    "my_method",
    "what_a_partition_does",
    "why_scaffold",
    "bits_and_rounds",
    "add_a_paper",
)


class ReadingOrder:
    """Order of the tutorials, as sphinx-gallery asks for it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, file: str) -> int:
        return ORDER.index(Path(file).stem)


def figures(block, variables: dict, settings: dict) -> str:
    """Save the figures that a block has left in a variable, each once, and return what shows them."""
    saved = []
    for value in variables["example_globals"].values():
        of_pyplot = getattr(value, "number", None) is not None
        if isinstance(value, Figure) and not of_pyplot and not hasattr(value, "_shown"):
            value._shown = True
            saved.append(next(variables["image_path_iterator"]))
            value.savefig(saved[-1], dpi=110)
    return figure_rst(saved, settings["src_dir"])
