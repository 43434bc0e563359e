"""`commod explore`: the update of debias on a page, until the user ends it."""

import json
import re
import webbrowser
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

import pytest

from commod._explore import Explorer

TOLD = ("train.csv", "--label", "y", "--sensitive", "race", "--score-column", "f")
QUICK = ("--borderline", "0", "--max-lines", "0", "--target-on", "fit_rows", "--at-least", "0.8")


@pytest.fixture
def visited(monkeypatch):
    """Let the command end once the page was visited; return what was seen, and the updates."""
    seen = []

    def visit(page):
        request = Request(
            f"{page.url}state",
            data=b"{}",
            headers={
                "Content-Type": "application/json",
                "Origin": page.url[: page.url.index("/", 8)],
            },
        )
        with urlopen(request, timeout=60) as answer:
            seen.append((page, json.loads(answer.read())))
        raise KeyboardInterrupt

    monkeypatch.setattr(Explorer, "wait", visit)
    return seen


def test_the_page_has_the_update_of_debias_and_ctrl_c_ends_it(folder, call, visited):
    names = (
        "--direction",
        "gains_only",
        "--favorable",
        "1",
        "--label-names",
        "1=approved",
        "--no-browser",
    )
    code, out, err = call("explore", *TOLD, *QUICK, *names)
    assert (code, err) == (0, "")
    ((page, state),) = visited
    assert page.url in out and "P-rule" in out
    lead = re.search(r'id="lead">(.*?)</p>', state["html"])[1]
    locked = re.search(r'id="locked"(.*?)</div>', state["html"], re.DOTALL)[1]
    assert "approved" in lead
    assert '<option value="gains_only" selected>' in state["html"]
    assert 'value="age"' in locked and "race" not in locked
    assert "stopped" in repr(page)
    assert page.update.n_losses_ == 0


def test_the_browser_gets_a_private_file_and_no_token_on_its_command_line(
    folder, call, visited, monkeypatch
):
    opened = []

    def open_(address):
        path = Path(unquote(urlsplit(address).path))
        opened.append((address, path.read_text("utf-8"), path.parent.stat().st_mode & 0o077))
        return True

    monkeypatch.setattr(webbrowser, "open", open_)
    code, out, _ = call("explore", *TOLD, *QUICK, "--json")
    assert code == 0
    ((address, text, mode),) = opened
    url = json.loads(out)["url"]
    assert url in text and url not in address and mode == 0
    assert not Path(unquote(urlsplit(address).path)).exists()


def test_what_cannot_be_explored_is_refused_in_one_sentence(folder, call):
    code, _, err = call("explore", *TOLD, "--at-least", "0.8", "--confidence", "0.9")
    assert code == 2 and "--confidence" in err and err.count("\n") == 1
    code, _, err = call("explore", "train.csv", "--sensitive", "race")
    assert code == 2 and "--score-column" in err
