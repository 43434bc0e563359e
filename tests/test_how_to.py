"""The how-to pages: each answers one question, the index has all, and the Spark lines run."""

import re
from pathlib import Path

import pandas as pd

from commod.datasets import make_biased

FOLDER = Path(__file__).parents[1] / "docs" / "how-to"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "index.md")


def text_of(path):
    return path.read_text("utf-8")


def test_a_page_is_short_and_answers_its_question():
    for page in PAGES:
        lines = text_of(page).splitlines()
        assert re.fullmatch(r"# .*\?", lines[0]), page.name  # the question, as its title
        assert lines[2].startswith("**"), page.name  # the answer, in one or two sentences
        assert 30 <= len(lines) <= 90, page.name
        assert "## Watch out" in lines, page.name
        assert "## More" in lines, page.name
        assert any(line.startswith(">>> ") for line in lines), page.name  # runs as a test


def test_the_index_has_every_page_once_as_a_link_and_in_a_list():
    index = text_of(FOLDER / "index.md")
    names = [path.stem for path in PAGES]
    assert 20 <= len(names) <= 30  # related questions share a page
    assert sorted(re.findall(r"\]\(([a-z-]+)\.md\)", index)) == names
    listed = re.findall(r"```\{toctree\}\n(?::.*\n)*\n((?:[a-z-]+\n)+)```", index)
    assert sorted("".join(listed).split()) == names


def test_links_lead_to_headings_that_exist():
    for page in [*PAGES, FOLDER / "index.md"]:
        for target in re.findall(r"\]\(([^)]+)\)", text_of(page)):
            name, _, anchor = target.partition("#")
            path = (page.parent / name).resolve()
            assert path.exists(), target
            if anchor:
                headings = re.findall(r"(?m)^#+ (.*)$", text_of(path))
                assert anchor in {slug_of(heading) for heading in headings}, target


def slug_of(heading):
    """Return the anchor that code hosts and MyST give to a heading."""
    kept = re.sub(r"[^\w\- ]", "", heading.lower())
    return kept.strip().replace(" ", "-")


def test_the_spark_lines_of_the_page_run(spark, tmp_path, monkeypatch):
    rows = make_biased(3000, random_state=0)
    score = rows.proba_target
    table = rows.data.assign(id=range(3000), region=rows.sensitive_features, score=score)
    (tmp_path / "lake").mkdir()
    table.to_parquet(tmp_path / "lake" / "loans.parquet")
    monkeypatch.chdir(tmp_path)
    page = text_of(FOLDER / "larger-than-memory.md")
    plain = re.search(r"```python\n(from pyspark.*?)```", page, re.S)
    lines = plain.group(1)
    # Spark started in another folder: name the files in full
    lines = lines.replace('"lake/', f'"{tmp_path}/lake/')
    names = {}
    exec(lines, names)
    decided = pd.read_parquet(tmp_path / "lake" / "decided.parquet")
    update = names["update"]
    assert len(decided) == 3000
    assert decided["commod_changed"].sum() == update.n_gains_ + update.n_losses_ > 0
