"""The gallery: each script is a page, a notebook and a picture; `make docs` runs all of them."""

import ast
import json
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))


def title_and_text(path):
    title, line, *text = ast.get_docstring(ast.parse(path.read_text("utf-8"))).splitlines()
    return title, line, " ".join(text)


def notebook_of(path):
    pytest.importorskip("sphinx_gallery")
    from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF
    from sphinx_gallery.notebook import jupyter_notebook
    from sphinx_gallery.py_source_parser import split_code_and_text_blocks

    _, blocks = split_code_and_text_blocks(str(path))
    return jupyter_notebook(blocks, DEFAULT_GALLERY_CONF, str(path.parent))


def test_the_gallery_has_at_least_20_scripts():
    assert len(SCRIPTS) >= 20
    assert [path.name for path in SCRIPTS if not path.name.startswith("plot_")] == []
    titles = [title_and_text(path)[0] for path in SCRIPTS]
    assert len(set(titles)) == len(titles)


def test_a_script_has_a_title_a_text_and_cells():
    for path in SCRIPTS:
        source = path.read_text("utf-8")
        title, line, text = title_and_text(path)
        assert line == "=" * len(title), path.name
        assert 3 <= len(re.findall(r"[.?!:](?=\s|$)", text)) <= 12, path.name
        assert re.search(r"\brows\b|\bpeople\b|\bapplicants\b|\bsamples\b", text), (
            "measured on whom?"
        )
        assert source.count("\n# %%\n") >= 2, path.name
        assert source.endswith("\nplt.show()\n"), path.name


def test_a_script_needs_public_names_only_no_network_and_no_files():
    for path in SCRIPTS:
        tree = ast.parse(path.read_text("utf-8"))
        modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        names = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        parts = {part for name in modules | names for part in name.split(".")}
        assert not [part for part in parts if part.startswith(("_", "fetch_")) or part == "jax"], (
            path.name
        )
        called = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not called & {"savefig", "save", "to_csv", "to_parquet", "write_text"}, path.name


def test_a_notebook_has_every_cell_and_stores_no_output():
    for path in SCRIPTS:
        nbformat = pytest.importorskip("nbformat")
        notebook = notebook_of(path)
        nbformat.validate(nbformat.reads(json.dumps(notebook), as_version=4))
        code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code), (
            path.name
        )
        written = "".join("".join(cell["source"]) for cell in code)
        assert "import matplotlib.pyplot as plt" in written, path.name
        assert written.endswith("plt.show()"), path.name


def test_a_notebook_runs_and_draws_its_picture(monkeypatch):
    """Its cells run in this process; `make docs` runs the scripts themselves."""
    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.extend(plt.get_fignums()))
    names = {"__name__": "__main__"}
    for cell in notebook_of(EXAMPLES / "plot_limits.py")["cells"]:
        if cell["cell_type"] == "code":
            lines = "".join(cell["source"]).splitlines()
            exec("\n".join(line for line in lines if not line.startswith("%")), names)
    assert shown
