"""How the documentation is built: ``python -m sphinx -W -b html docs docs/_build/html``.

Neither the build (hence no intersphinx) nor a page (hence MathML and not a script) asks anything of the network,
so that both work in a closed room.
"""

import os
import warnings

from docutils import nodes
from latex2mathml.converter import convert

from oversafe import __version__ as oversafe_version
from oversafe.protect.registry import METHODS

# The gallery draws without a screen.
os.environ.setdefault("MPLBACKEND", "agg")

project = "oversafe"
author = "The oversafe maintainers"
copyright = "The oversafe maintainers"
version = release = oversafe_version

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
default_role = "py:obj"

autosummary_generate = True
# Where file names ignore case, the pages of audit and Audit, release and Release would be one file.
autosummary_filename_map = {
    "oversafe.auditing.audit": "oversafe.auditing.audit-function",
    "oversafe.releasing.release": "oversafe.releasing.release-function",
}
autodoc_typehints = "none"  # numpydoc's parameter lists state them in words
numpydoc_show_class_members = False
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence", "substitution"]


def methods_table():
    """Return a line for each protector, in its own words."""
    lines = ["| method | what it does | what it promises |", "|---|---|---|"]
    for name, kind in METHODS.items():
        said, extra = kind.explanation, f" (extra `{kind.extra}`)" if kind.extra else ""
        lines.append(f"| `{name}`{extra} | {said.does} | {said.promises} |")
    return "\n".join(lines)


myst_substitutions = {"methods": methods_table()}
myst_heading_anchors = 3

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,  # that page loads scripts from elsewhere
    # An example that fails must fail the build.
    "abort_on_example_error": True,
}
# Matplotlib's own remark about the backend without a screen.
warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive", category=UserWarning)

html_theme = "pydata_sphinx_theme"
html_title = "oversafe"
html_show_sourcelink = False
html_math_renderer = "mathml"
html_sidebars = {page: [] for page in ("index", "install", "guarantees", "changelog")}
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def skip_foreign_members(app, what, name, obj, skip, options):
    """Leave out what scikit-learn and dataclasses add to our classes; their pages describe it."""
    function = getattr(obj, "fget", obj)
    module = getattr(function, "__module__", None) or "oversafe"
    return skip or not module.startswith("oversafe")


def visit_inline_math(translator, node):
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_display_math(translator, node):
    translator.body.append(f'<p class="formula">{convert(node.astext(), display="block")}</p>')
    raise nodes.SkipNode


def setup(app):
    app.connect("autodoc-skip-member", skip_foreign_members)
    app.add_html_math_renderer("mathml", (visit_inline_math, None), (visit_display_math, None))
