"""Formulas as MathML, which browsers draw without a script or a font from elsewhere."""

from docutils.utils.math.latex2mathml import tex2mathml


def _inline(writer, node) -> None:
    writer.body.append(tex2mathml(node.astext()))


def _displayed(writer, node) -> None:
    writer.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')


def _leave(writer, node) -> None:
    """Add nothing: all has been written on entry."""


def _enter(draw):
    def visit(writer, node) -> None:
        from docutils import nodes

        draw(writer, node)
        raise nodes.SkipNode

    return visit


def setup(app) -> dict:
    app.add_html_math_renderer("mathml", (_enter(_inline), _leave), (_enter(_displayed), _leave))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True}
