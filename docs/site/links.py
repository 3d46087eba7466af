"""Names in docstrings as links: short ones are found wherever the API has them."""

import re

from sphinx.util.nodes import make_refnode


def short_name(app, env, node, contnode):
    """Return a link to the one object whose name ends so, or None."""
    if node.get("refdomain") != "py":
        return None
    end = "." + re.sub(r"^replifed\.|\(\)$", "", node["reftarget"])
    known = {
        entry.node_id: entry.docname
        for name, entry in env.get_domain("py").objects.items()
        if name.endswith(end)
    }
    if len(known) != 1:
        return None
    [(anchor, page)] = known.items()
    return make_refnode(app.builder, node["refdoc"], page, anchor, contnode, node["reftarget"])


def bars_of_norms(app, kind: str, name: str, thing, options, lines: list[str]) -> None:
    """Print the bars of norms: they are substitutions otherwise."""
    lines[:] = [line.replace("|", r"\|") for line in lines]


def setup(app) -> dict:
    app.connect("missing-reference", short_name)
    app.connect("autodoc-process-docstring", bars_of_norms, priority=900)  # after numpydoc
    return {"parallel_read_safe": True}
