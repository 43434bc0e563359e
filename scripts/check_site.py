"""Check the built site: links and anchors of every page, and in Chromium what a reader meets.

`make docs` runs ``python scripts/check_site.py docs/_build/html``. Every page is read for links,
anchors and files of other hosts. Representative pages are opened in Chromium: no console errors,
no request to another host, no horizontal overflow. On one page of each kind, axe has no serious
finding, in light and in dark. The search must find `ControlledDebiaser`. Where Chromium or
Playwright is missing, this part is left out with a message; ``COMMOD_BROWSER=required`` makes that
an error.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

WIDTHS = (390, 1280)
NOT_OPENED = {"genindex.html", "py-modindex.html"}  # long lists, made by Sphinx
SEARCHED = "ControlledDebiaser"
FOUND = "reference/generated/commod.ControlledDebiaser.html"
KINDS = ("index", "controlled", "glossary", "reference/index", "how-to/index", "gallery/index")
FOR_AXE = (*(f"{name}.html" for name in KINDS), FOUND)  # one page of each kind: axe takes long
LOADED = {"script": "src", "img": "src", "source": "src", "iframe": "src", "link": "href"}
HARMLESS_LINKS = {"canonical", "next", "prev", "search", "index", "alternate"}
TOO_WIDE = """() => {
  const page = document.documentElement;
  return page.scrollWidth > page.clientWidth ? page.scrollWidth - page.clientWidth : 0;
}"""


# ---------------------------------------------------------------------------------------------
# Links, without a browser


@dataclass
class Page(HTMLParser):
    """What one page links to, what it loads, and its anchors."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Collect the addresses and the anchor of one tag."""
        values = {name: value or "" for name, value in attributes}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag in LOADED and values.get(LOADED[tag]):
            is_only_a_link = values.get("rel") in HARMLESS_LINKS
            (self.links if is_only_a_link else self.loads).append(values[LOADED[tag]])


def read_pages(site: Path) -> dict[str, Page]:
    """Return every page of the site by its path."""
    pages = {}
    for path in sorted(p for p in site.rglob("*.html") if p.parts[len(site.parts)] != "_static"):
        page = Page()
        page.feed(path.read_text("utf-8"))
        pages[path.relative_to(site).as_posix()] = page
    return pages


def broken_links(site: Path, pages: dict[str, Page]) -> Iterator[str]:
    """Yield a sentence for each link, anchor or file that is not there, and for other hosts."""
    for name, page in pages.items():
        for address in page.loads:
            if urlsplit(address).netloc:
                yield f"{name} loads {address} from another host."
        for address in (*page.links, *page.loads):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            if parts.path.startswith("/"):
                yield f"{name} links to {address}, from the root of the host."
                continue
            target = urljoin(name, unquote(parts.path)) if parts.path else name
            if target.endswith("/") or target == "":
                target += "index.html"
            if not (site / target).is_file():
                yield f"{name} links to {address}: there is no file {target}."
            elif not has_anchor(pages.get(target), unquote(parts.fragment)):
                yield f"{name} links to {address}: {target} has no such anchor."


def has_anchor(page: Page | None, anchor: str) -> bool:
    """Return whether a page has this anchor; a file that is no page is taken as it is."""
    return page is None or anchor == "" or anchor in page.anchors


# ---------------------------------------------------------------------------------------------
# In Chromium


def representative(site: Path, names: list[str]) -> list[str]:
    """Return all pages of the first level that we wrote, and three of each folder.

    The three are the largest, the first and the last.
    """
    folders = defaultdict(list)
    for name in names:
        folders[Path(name).parent.as_posix()].append(name)
    chosen = [name for name in folders.pop(".", []) if name not in NOT_OPENED]
    for inside in folders.values():
        by_size = sorted(inside, key=lambda name: (site / name).stat().st_size)
        chosen += dict.fromkeys([by_size[-1], inside[0], inside[-1]])
    return chosen


class QuietHandler(SimpleHTTPRequestHandler):
    """Serve files without a line for each of them."""

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Serve the site on this machine, and give its address."""
    handler = partial(QuietHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


@contextmanager
def browser() -> Iterator[Any]:
    """Start Chromium; give None where it is missing and nobody requires it."""
    program = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sync_playwright = None
    if program is None or sync_playwright is None:
        if os.environ.get("COMMOD_BROWSER") == "required":
            sys.exit("Chromium or Playwright is missing, and COMMOD_BROWSER=required.")
        yield None
        return
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


def tab_of(started: Any, address: str, colours: str, findings: list[str]) -> Any:
    """Return a tab in light or dark colours that notes console errors and requests elsewhere."""
    context = started.new_context(color_scheme=colours, viewport={"width": 1280, "height": 900})
    tab = context.new_page()

    def note_request(request: Any) -> None:
        if not request.url.startswith((address, "data:", "blob:")):
            findings.append(f"{tab.url} requests {request.url}.")

    def note_answer(answer: Any) -> None:
        if answer.status >= 400:
            findings.append(f"{tab.url} asks for {answer.url}: status {answer.status}.")

    def note_console(message: Any) -> None:
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            findings.append(f"{tab.url} writes an error to the console: {message.text}")

    tab.on("request", note_request)
    tab.on("response", note_answer)
    tab.on("console", note_console)
    tab.on("pageerror", lambda error: findings.append(f"{tab.url} fails: {error}"))
    return tab


def serious(tab: Any) -> Iterator[str]:
    """Yield the serious and critical findings of axe, with the first element of each."""
    from axe_playwright_python.sync_playwright import Axe

    # With `preload`, axe fetches style sheets again, and asks for their imports at wrong addresses.
    results = Axe().run(tab, options={"preload": False})
    for violation in results.response["violations"]:
        if violation["impact"] in ("serious", "critical"):
            nodes = violation["nodes"]
            yield f"{violation['id']} ({len(nodes)}): {nodes[0]['html'][:200]}"


def too_wide(tab: Any, address: str, names: list[str]) -> Iterator[str]:
    """Open each page once, and yield those that are wider than a phone or a laptop."""
    for name in names:
        tab.goto(address + name, wait_until="load")
        for width in WIDTHS:
            tab.set_viewport_size({"width": width, "height": 900})
            if beyond := tab.evaluate(TOO_WIDE):
                yield f"{name} is {beyond} pixels too wide at {width} pixels."


def hard_to_read(tab: Any, address: str, colours: str) -> Iterator[str]:
    """Yield the serious findings of axe on pages in light or dark colours.

    A page that is missing is noted by its tab, as an answer with the status 404.
    """
    for name in FOR_AXE:
        tab.goto(address + name, wait_until="load")
        yield from (f"{name} in {colours}: axe finds {text}" for text in serious(tab))


def search_fails(tab: Any, address: str) -> Iterator[str]:
    """Yield a sentence where the search does not find what it must."""
    tab.goto(f"{address}search.html?q={SEARCHED}")
    try:
        tab.wait_for_selector(f'#search-results a[href*="{FOUND}"]', timeout=30_000)
    except Exception as error:  # the error of Playwright, whose type is there only with it
        yield f"The search for {SEARCHED} does not find {FOUND}: {str(error).splitlines()[0]}"


def browser_findings(started: Any, site: Path, names: list[str]) -> list[str]:
    """Return what is wrong with these pages in Chromium."""
    findings: list[str] = []
    with served(site) as address:
        for colours in ("light", "dark"):
            tab = tab_of(started, address, colours, findings)
            findings += hard_to_read(tab, address, colours)
            if colours == "light":
                findings += search_fails(tab, address)
                findings += too_wide(tab, address, names)
            tab.context.close()
    return findings


def main(site: Path) -> None:
    """Check the site in a folder; end with 1 where something is wrong."""
    pages = read_pages(site)
    if "index.html" not in pages:
        sys.exit(f"{site} has no index.html: run `make docs`.")
    findings = list(broken_links(site, pages))
    opened = representative(site, list(pages))
    with browser() as started:
        if started is None:
            print("Chromium or Playwright is missing: the site was not opened in a browser.")
            opened = []
        else:
            findings += browser_findings(started, site, opened)
    for finding in dict.fromkeys(findings):
        print(finding)
    print(f"{len(pages)} pages read, {len(opened)} opened in Chromium, {len(findings)} findings")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
