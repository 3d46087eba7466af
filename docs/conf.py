"""The pages of this repository as a site: ``sphinx-build -W --keep-going -c docs . site``.

The source folder is the repository itself: every page reads the same there and where the code is hosted.
Nothing of the built site comes from a network: `tools/check_site.py` refuses what does.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "docs/site")]

from replifed import __version__  # noqa: E402

project, author, version, release = "replifed", "the replifed authors", __version__, __version__
root_doc = "docs/index"
include_patterns = [
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", "docs/papers/*.md", "docs/learn/*.rst"),
    *("config/README.md", "data/README.md", "benchmarks/README.md", "tests/golden/README.md"),
    "src/replifed/data/packed/README.md",
]
extensions = [
    *("myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx_design", "sphinx_gallery.gen_gallery"),
    *("pages", "links", "mathematics", "previews"),  # of docs/site
]

myst_heading_anchors = 3  # links to headings, as where the code is hosted
myst_enable_extensions = ["dollarmath", "colon_fence"]
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say what each parameter is
default_role = "py:obj"  # names in backticks are links, as far as the API has them

# Tutorials run as the site is built. `-D plot_gallery=0` leaves them out, and shows their text alone.
sphinx_gallery_conf = {
    "examples_dirs": "docs/tutorials",
    "gallery_dirs": "docs/learn",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"mine\.py$",  # what a tutorial has its reader write
    "within_subsection_order": "tutorials.ReadingOrder",
    "image_scrapers": ("matplotlib", "tutorials.figures"),
    "capture_repr": ("_repr_html_",),
    "first_notebook_cell": "%matplotlib inline",  # figures made without pyplot are shown, too
    "copyfile_regex": r"mine\.py",
    "download_all_examples": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    **{"show_memory": False, "show_signature": False, "min_reported_time": 3600},
    "only_warn_on_example_error": True,
}

html_baseurl = os.environ.get("REPLIFED_SITE", "")  # with a slash at its end, for what names a page elsewhere
html_theme = "pydata_sphinx_theme"
html_title = "replifed"
html_theme_options = {
    "logo": {"text": "replifed"},
    "header_links_before_dropdown": 7,
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    **{"footer_start": ["copyright"], "footer_end": []},
    # Beside a published site lies the report of the reference run (.github/workflows/pages.yml).
    "external_links": [{"name": "Report", "url": f"{html_baseurl}report/index.html"}] if html_baseurl else [],
}
html_sidebars = {"docs/index": [], "docs/glossary": []}
html_context = {"default_mode": "auto"}
toc_object_entries = False  # the contents beside a page name its sections alone
html_extra_path = ["site/index.html"]  # sends to the start page, which lies beside the others
html_static_path = ["site/site.css"]
html_css_files = ["site.css"]
html_show_sourcelink = False
