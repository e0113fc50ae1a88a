"""Sphinx configuration."""

import re
import sys
from pathlib import Path

import latex2mathml.converter
from docutils import nodes

import kernelpool

sys.path.insert(0, str(Path(__file__).parents[1]))  # examples draw some rows by papers/

project = "kernelpool"
author = "The kernelpool developers"
copyright = f"2026, {author}"
version = release = kernelpool.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_generated", "_templates", "records", "api/generated/backreferences"]
templates_path = ["_templates"]
default_role = "py:obj"
toc_object_entries_show_parents = "hide"

# -- pages -----------------------------------------------------------------------------------------

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

html_theme = "pydata_sphinx_theme"
html_title = f"kernelpool {release}"
html_static_path = ["_static"]
html_css_files = ["kernelpool.css"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "kernelpool"},
    "navigation_depth": 3,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
html_math_renderer = "mathml"
html_sidebars = {"install": [], "changelog": [], "glossary": [], "architecture": []}

# -- reference -------------------------------------------------------------------------------------

autosummary_generate = True
autosummary_imported_members = True  # what a package exports is what it documents
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # the docstrings say it in words
autoclass_signature = "mixed"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False


def skip_what_scikit_learn_documents(_app, _what, _name, obj, _skip, _options):
    """Methods that are inherited from scikit-learn and mean what they always mean."""
    return True if str(getattr(obj, "__module__", "")).startswith("sklearn") else None


def escape_trailing_underscores(_app, _what, _name, _obj, _options, lines):
    """A shape such as (n_features_in_,) is not a link, whatever reStructuredText thinks of its
    underscore.
    """
    for i, line in enumerate(lines):
        names = re.match(r"(\w+_(, \w+_)* ?:)?", line)[
            0
        ]  # of attributes, which numpydoc reads itself
        if not line.lstrip().startswith((">>>", "...")):
            rest = line.removeprefix(names)
            lines[i] = names + re.sub(r"(?<![`\w])(\w+)_(?=[,.;)\s]|$)", r"\1\\_", rest)


# -- formulas: MathML, which browsers draw by themselves; no script, no network --------------------


def as_mathml(latex, display):
    """An element, and the number that the formula has in its paper."""
    number = re.search(r"\\tag\{([^}]*)\}", latex)
    latex = re.sub(r"\\tag\{[^}]*\}|\\(begin|end)\{(equation|align)\*?\}", "", latex).strip()
    if display == "block" and ("&" in latex or "\\\\" in latex) and "\\begin" not in latex:
        latex = rf"\begin{{aligned}}{latex}\end{{aligned}}"
    return latex2mathml.converter.convert(latex, display=display), number and number[1]


def visit_math(translator, node):
    translator.body.append(as_mathml(node.astext(), "inline")[0])
    raise nodes.SkipNode


def visit_displaymath(translator, node):
    formula, number = as_mathml(node.astext(), "block")
    number = f'<span class="eqno">({number})</span>' if number else ""
    translator.body.append(f'<div class="math">{number}{formula}</div>\n')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    app.connect("autodoc-skip-member", skip_what_scikit_learn_documents)
    app.connect(
        "autodoc-process-docstring", escape_trailing_underscores, priority=100
    )  # before numpydoc


# -- examples --------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "backreferences_dir": "api/generated/backreferences",
    "doc_module": ("kernelpool",),
    "reference_url": {"kernelpool": None},
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "capture_repr": (),  # pictures and what is printed, no objects
    "min_reported_time": 1,
    "plot_gallery": "True",
    "image_srcset": ["2x"],
    "thumbnail_size": (640, 448),  # twice what is shown: sharp on any screen
}
