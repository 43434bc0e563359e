"""Settings of the documentation site: `make docs` builds docs/ into docs/_build/html."""

import inspect
import json
import os
import re
import sys
from pathlib import Path

import commod

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE / "_ext"))

# -- the project ---------------------------------------------------------------------------------

project = "commod"
author = "The commod developers"
copyright = f"{author}, BSD-3-Clause"
version = release = commod.__version__
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
    "local_math",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_ext", "_templates"]
templates_path = ["_templates"]
smartquotes = False  # code and numbers stay as they are written
default_role = "py:obj"  # `name` in a docstring is a link where the name is documented
nitpicky = True  # a cross-link that leads nowhere is a warning, and a warning is an error
nitpick_ignore_regex = [("py:obj", ".*")]  # `name` may be a parameter, which is no target

# -- pages in Markdown ---------------------------------------------------------------------------

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4  # the anchors of the code host: one page, two readers
html_math_renderer = "mathml"  # no script, no font, no other host

# -- the reference -------------------------------------------------------------------------------

autosummary_generate = [f"reference/{page.name}" for page in (HERE / "reference").glob("*.md")]
autosummary_context = {  # types of results, described on the page of what returns them
    "results": {
        "commod.ControlledDebiaser": [
            "commod.updates.ChangedDecisions",
            "commod.edit.EditRecord",
            "commod.edit.EditFigures",
        ],
        "commod.Patch": ["commod.patch.PatchCounts", "commod.patch.Verification"],
        "commod.audit": ["commod.Ledger"],
        "commod.bounds.best_fairness": ["commod.bounds.BestFairness"],
        "commod.bounds.blind_changes": ["commod.bounds.BlindChanges"],
        "commod.bounds.minimal_changes": ["commod.bounds.MinimalChanges"],
        "commod.bounds.minimal_cost": ["commod.bounds.MinimalCost"],
        "commod.bounds.minimal_expected_changes": ["commod.bounds.ExpectedChanges"],
        "commod.compare": ["commod.Comparison"],
        "commod.constraints.parse_constraint": [
            "commod.constraints.FairnessConstraint",
            "commod.constraints.AllOf",
        ],
        "commod.explain": ["commod.Explanation"],
        "commod.explore": ["commod.Explorer"],
        "commod.frontier": ["commod.Frontier"],
        "commod.metrics.compare_roc_curves": [
            "commod.metrics.RocComparison",
            "commod.metrics.RocGap",
        ],
        "commod.metrics.count_changes": ["commod.metrics.ChangeCounts"],
        "commod.metrics.group_rates": ["commod.metrics.GroupRates"],
        "commod.metrics.outscoring_probability": [
            "commod.metrics.OutscoringProbability",
            "commod.metrics.PairShare",
        ],
        "commod.metrics.score_agreement": ["commod.metrics.ScoreAgreement"],
        "commod.rivals.Rival": ["commod.rivals.RivalFitRows", "commod.rivals.DecisionRows"],
        "commod.rivals.lineup": ["commod.rivals.Lineup"],
        "commod.scorecard.Scorecard": ["commod.scorecard.EvidenceRule"],
        "commod.stability": ["commod.Stability"],
        "commod.verify_report": ["commod._reporting.pair.ReportVerification"],
    }
}
autosummary_filename_map = {  # some file systems take `audit` and `Audit` for the same name
    f"commod.{name}": f"commod.{name}-function" for name in ("audit", "frontier", "stability")
}
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # the docstrings say types in words
numpydoc_show_class_members = False  # templates list them
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

# -- the gallery ---------------------------------------------------------------------------------

if any((ROOT / "examples").glob("plot_*.py")):
    extensions.append("sphinx_gallery.gen_gallery")
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"plot_\w+\.py$",
    "image_scrapers": ("matplotlib",),
    "min_reported_time": 1e9,  # times differ from run to run
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "download_all_examples": True,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "parallel": int(os.environ.get("COMMOD_DOCS_JOBS", "2")),
}

# -- the look ------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = f"commod {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_search_scorer = str(HERE / "_static" / "search_order.js")  # how-to before decisions
html_favicon = "_static/commod.svg"
html_context = {"default_mode": "auto"}  # light or dark, as the reader's machine is
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {
        "text": "commod",
        "image_light": "_static/commod.svg",
        "image_dark": "_static/commod.svg",
    },
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_end": ["version-switcher", "theme-switcher"],
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "switcher": {"json_url": "_static/switcher.json", "version_match": release},
    "check_switcher": False,  # written by the build itself
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def setup(app):
    """Connect the functions below to the steps of the build."""
    app.connect("source-read", keep_links_inside)
    app.connect("autodoc-process-docstring", escape_underscores, priority=100)
    app.connect("autodoc-skip-member", skip_members_of_others)
    app.connect("build-finished", write_versions)


def keep_links_inside(app, page, content):
    """Lead links to files of the repository's root to their pages of the site."""
    homes = {"README": "index", "CONTRIBUTING": "contributing", "CHANGELOG": "changelog"}
    pattern = r"\]\(((?:\.\./)*)\.\./(README|CONTRIBUTING|CHANGELOG)\.md(?:#[\w-]+)?\)"
    content[0] = re.sub(pattern, lambda found: f"]({found[1]}{homes[found[2]]}.md)", content[0])


def escape_underscores(app, what, name, member, options, lines):
    """Keep ``default="commod_"`` from being read as a link; numpydoc comes afterwards."""
    lines[:] = [re.sub(r'(default="\w+)_"$', r'\1\\_"', line) for line in lines]


def skip_members_of_others(app, what, name, member, skip, options):
    """Leave out what a class inherits from Python or scikit-learn: their pages describe it."""
    function = getattr(member, "fget", None) or getattr(member, "func", None) or member
    home = getattr(inspect.unwrap(function), "__module__", None)
    return True if home is None or home.split(".")[0] != "commod" else None


def write_versions(app, failed):
    """Write _static/switcher.json: the versions of docs/versions.json below the site's address."""
    if failed or app.builder.format != "html":
        return
    base = os.environ.get("COMMOD_DOCS_BASE", "/")
    versions = [
        entry | {"url": f"{base.rstrip('/')}/{entry['folder']}"}
        for entry in json.loads((HERE / "versions.json").read_text("utf-8"))
    ]
    (Path(app.outdir) / "_static" / "switcher.json").write_text(json.dumps(versions), "utf-8")
