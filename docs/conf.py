"""How Sphinx makes the pages: `make docs` builds them into build/docs."""

import sys
from pathlib import Path

from sphinx.application import Sphinx

import rescore

sys.path.insert(0, str(Path(__file__).parent))  # for the two beside this file
from command_reference import commands_as_markdown
from learner_reference import learners_as_markdown, table_of_learners

project = "rescore"
author = "the authors of rescore"
version = release = rescore.__version__
html_title = f"rescore {version}"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]

# All that a browser loads is in the folder: no fonts, scripts or counters from elsewhere.
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

myst_heading_anchors = 3
smartquotes_action = "D"  # dashes alone; quotation marks stay as they are written
copybutton_prompt_text = ">>> |... "
copybutton_prompt_is_regexp = False
copybutton_exclude = ".linenos, .gp, .go"

# Docstrings give the types of parameters in words; a signature lists names and defaults.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# What scikit-learn adds to every estimator, and what only the machinery behind it reads.
hidden = ("set_fit_request", "set_score_request", "backbone", "one_step", "linear")
autodoc_default_options = {"exclude-members": ", ".join(hidden)}
autosummary_generate = False
napoleon_google_docstring = False
# Words in the place of a type, such as "table" or "(n, d)", are no links to what is called so.
napoleon_use_param = False
napoleon_custom_sections = [("Attributes", "params_style")]
default_role = "py:obj"
python_maximum_signature_line_length = 80


PLACES = {
    "reference/command-line": {"<!-- commands -->": commands_as_markdown},
    "reference/learners": {
        "<!-- table of learners -->": table_of_learners,
        "<!-- learners -->": learners_as_markdown,
    },
}


def fill_in(app: Sphinx, page: str, source: list[str]) -> None:
    """Commands and learners, read from the program itself, in the places that pages keep."""
    for place, text in PLACES.get(page, {}).items():
        source[0] = source[0].replace(place, text())


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", fill_in)
