"""How the documentation is built: ``python -m sphinx -W -b html docs docs/_build/html``.

Neither the build (hence no intersphinx) nor a page (hence MathML and not a script) asks anything of the network,
so that both work in a closed room.
"""

import inspect
import os
import warnings
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert

from oversafe import __version__ as oversafe_version
from oversafe.attack import ATTACKS
from oversafe.protect.registry import METHODS

# The gallery draws without a screen.
os.environ.setdefault("MPLBACKEND", "agg")

MATERIALS = {
    "release": "the release",
    "real": "the real table",
    "holdout": "a holdout",
    "reconstruction": "what was reconstructed",
    "generator": "the method",
}


def attacks_table():
    """Return the table of all attacks: what each asks, what it needs and how it is called."""
    rows = ["| attack | asks | needs | called as |", "|---|---|---|---|"]
    for kind in ATTACKS:
        variants = kind.variants(0)
        about = variants[0].about
        asks = " ".join(dict.fromkeys(own.about.question for own in variants))
        # Whoever has the real table has the release too.
        needs = [name for name in about.needs if name != "release" or "real" not in about.needs]
        needed = ", ".join(MATERIALS[name] for name in needs)
        if about.helped_by:
            needed += f"; better with {' and '.join(MATERIALS[name] for name in about.helped_by)}"
        parameters = list(inspect.signature(variants[0].run).parameters.values())
        called = inspect.Signature([own.replace(annotation=own.empty) for own in parameters])
        rows.append(f"| {{py:class}}`~oversafe.attack.{kind.__name__}` | {asks} | {needed} | `run{called}` |")
    return "\n".join(rows)


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

# The attacks list themselves, here and in the table of attacks.md.
ATTACKS_PAGE = Path(__file__).parent / "api" / "attacks.rst"
names = "".join(f"   {kind.__name__}\n" for kind in ATTACKS)
summary = (
    ".. currentmodule:: oversafe.attack\n\n.. autosummary::\n   :toctree: generated/\n   :nosignatures:\n\n"
)
ATTACKS_PAGE.write_text(summary + names, encoding="utf-8")
exclude_patterns.append("api/attacks.rst")
autosummary_generate = ["api/index.rst", "api/attacks.rst"]
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


myst_substitutions = {"attacks": attacks_table(), "methods": methods_table()}
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
