"""Serve the page on the loopback address: only to a browser that knows the token.

The server accepts three files and one JSON request per action, all below an address with a random
token. Every other request gets an empty answer. A page of another host cannot call it:

- Another host cannot know the token, and answers may not be read across origins.
- The header Host must name the loopback address: a name that is rebound to it is refused.
- The header Origin of an action must be the page's own.

Whoever opens many connections and says nothing keeps nobody out: where all places are taken, the
connection that has waited longest for a request with the token is closed.
"""

from __future__ import annotations

import hmac
import inspect
import json
import secrets
import socket
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any

from jinja2 import ChoiceLoader, PackageLoader, Template

from commod._data.tables import check_same_rows
from commod._explore.edits import PeopleOfFit
from commod._explore.session import Session, VersionConflictError
from commod._io.untrusted import read_object
from commod._reporting.render.page import environment
from commod._reporting.render.texts import ShortNames
from commod._text import shown
from commod.exceptions import CommodError, InputError, InputTypeError
from commod.updates import ControlledDebiaser

HOST = "127.0.0.1"
MAX_REQUEST = 64 * 1024  # bytes of one action
MAX_CONNECTIONS = 64
DROP_SECONDS = 1.0  # that a dropped connection may take to free its place
IDLE_SECONDS = 30  # after which a silent connection is closed
FILES = {
    "": ("explore.html", "text/html; charset=utf-8"),
    "explore.js": ("explore.js", "text/javascript; charset=utf-8"),
    "explore.css": ("explore.css", "text/css; charset=utf-8"),
}
ACTIONS = {  # methods of the session, with what each takes
    name: inspect.signature(getattr(Session, name))
    for name in (
        *("state", "preview", "edit", "go", "fit", "refit", "keep", "save", "python"),
        *("terms", "segments", "differences", "trade_off", "wishes", "person"),
    )
}
VIEWS = (  # of an answer; the page gets them as HTML
    *("bar", "screen", "card", "request", "history", "compared"),
    *("segments", "differences", "trade_off", "wishes", "person"),
)
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors "
)
NOTEBOOKS = "'self' http://127.0.0.1:* http://localhost:* vscode-webview:"


class PageServer(ThreadingHTTPServer):
    """The server of one session; `url` is the address of its page, with the token."""

    daemon_threads = True
    allow_reuse_address = False
    request_queue_size = 2 * MAX_CONNECTIONS  # others that wait to be accepted

    def __init__(self, session: Session, *, in_notebook: bool = False, port: int = 0) -> None:
        self.session = session
        self.token = secrets.token_urlsafe(24)
        self.policy = POLICY + (NOTEBOOKS if in_notebook else "'none'")
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._waiting: dict[Any, None] = {}  # connections without a request yet, oldest first
        self._guard = threading.Lock()
        super().__init__((HOST, port), PageRequest)
        self.hosts = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}

    @property
    def url(self) -> str:
        """Return the address of the page."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own, and make room where there are too many."""
        if not self._free.acquire(blocking=False):
            self._drop_oldest()
            if not self._free.acquire(timeout=DROP_SECONDS):
                self.shutdown_request(request)
                return
        super().process_request(request, client_address)

    def begin_waiting(self, connection: Any) -> None:
        """Note that a connection waits for a request from now on."""
        with self._guard:
            self._waiting.pop(connection, None)
            self._waiting[connection] = None

    def end_waiting(self, connection: Any) -> None:
        """Note that a connection has sent a request with the token, or has ended."""
        with self._guard:
            self._waiting.pop(connection, None)

    def _drop_oldest(self) -> None:
        """Close the connection that has waited longest; its thread then ends."""
        with self._guard:
            oldest = next(iter(self._waiting), None)
            self._waiting.pop(oldest, None)
        if oldest is not None:
            with suppress(OSError):  # it has just ended
                oldest.shutdown(socket.SHUT_RDWR)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, and free its place afterwards."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.end_waiting(request)
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a browser tab that is closed breaks its connection."""


class PageRequest(BaseHTTPRequestHandler):
    """One request: a file of the page, or an action on the session."""

    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS
    server: PageServer

    def setup(self) -> None:
        """Send small answers at once."""
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)

    def handle_one_request(self) -> None:
        """Wait for a request; until it shows the token, the connection may be dropped."""
        self.server.begin_waiting(self.connection)
        super().handle_one_request()

    def do_GET(self) -> None:
        """Answer with a file of the page."""
        name = self._name()
        if name not in FILES or self.headers.get("Content-Length", "0") != "0":
            self._refuse(404)
            return
        file, kind = FILES[name]
        self._answer(200, page_file(file), kind)

    def do_POST(self) -> None:
        """Answer an action with JSON."""
        name = self._name()
        origins = {f"http://{host}" for host in self.server.hosts}
        if name not in ACTIONS or self.headers.get("Origin") not in origins:
            self._refuse(404)
            return
        kind = self.headers.get_content_type()
        length = self.headers.get("Content-Length", "")
        if kind != "application/json" or not (length.isascii() and length.isdigit()):
            self._refuse(400)
        elif len(length) > 9 or int(length) > MAX_REQUEST:
            self._refuse(413)
        else:
            status, answer = self._act(name, self.rfile.read(int(length)))
            data = json.dumps(answer, separators=(",", ":"), allow_nan=False).encode()
            self._answer(status, data, "application/json")

    def _name(self) -> str | None:
        """Return what is asked for; None for a stranger."""
        start = f"/{self.server.token}/"
        given = self.path[: len(start)].encode("utf-8", "replace")
        if not hmac.compare_digest(given, start.encode()) or not self._is_local():
            return None
        self.server.end_waiting(self.connection)
        return self.path[len(start) :]

    def _is_local(self) -> bool:
        hosts = self.headers.get_all("Host") or []
        site = self.headers.get("Sec-Fetch-Site", "same-origin")
        is_own = self.command == "GET" or site in ("same-origin", "none")
        return len(hosts) == 1 and hosts[0] in self.server.hosts and is_own

    def _act(self, name: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """Return the status and the answer of an action."""
        try:
            given = read_object(body, "a request", MAX_REQUEST)
            try:
                ACTIONS[name].bind(None, **given)
            except TypeError as error:
                return 400, {"error": f"{name}: {str(error)[:100]}."}
            return 200, with_html(getattr(self.server.session, name)(**given))
        except VersionConflictError as error:
            return 409, {"error": str(error)}
        except CommodError as error:
            return 400, {"error": str(error)}
        except Exception as error:  # the page shows it, and the server goes on
            return 500, {"error": f"This failed: {type(error).__name__}: {error}"}

    def _answer(self, status: int, data: bytes, kind: str) -> None:
        self.send_response_only(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(data)),
            "Content-Security-Policy": self.server.policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _refuse(self, status: int) -> None:
        """Answer with nothing, and close the connection: its body may not have been read."""
        self.send_response_only(status)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is no request, without a word about it."""
        self._refuse(code)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: an address holds the token."""


@cache
def page_file(name: str) -> bytes:
    """Return a file of the page; its style begins with that of the report."""
    data = resources.files("commod._explore").joinpath("page", name).read_bytes()
    if name.endswith(".css"):
        report = environment(autoescape=True).get_template("style.css").render()
        data = report.encode() + b"\n" + data
    return data


def with_html(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer of the session with its views as HTML, in the place of their data."""
    parts: Any = fragments().make_module({"names": ShortNames()})
    html = "".join(getattr(parts, name)(answer[name]) for name in VIEWS if name in answer)
    plain = {name: value for name, value in answer.items() if name not in VIEWS}
    return {**plain, "html": html} if html else plain


@cache
def fragments() -> Template:
    """Return the template of the page's parts; what it shows is escaped."""
    report = environment(autoescape=True)
    loaders: Any = [report.loader, PackageLoader("commod._explore", "page")]
    return report.overlay(loader=ChoiceLoader(loaders)).get_template("fragments.html")


# ---------------------------------------------------------------------------------------------
# Open the page of an update: `explore` starts its server and returns a handle on it

FRAME_HEIGHT = 900  # pixels in a notebook


class Explorer:
    """A page that is being served; made by `explore`.

    Attributes
    ----------
    url : str
        The address of the page, on this machine only. It holds a random token: do not share it.
    update : ControlledDebiaser
        The update as the page shows it now, with all its figures.

    Examples
    --------
    >>> from commod import ControlledDebiaser, ScoreColumn, explore
    >>> X = {"score": [0.4, 0.6] * 100, "age": range(200)}
    >>> groups = ["b" if age < 100 and age % 2 == 0 else "a" for age in X["age"]]
    >>> import pandas as pd
    >>> update = ControlledDebiaser(ScoreColumn("score"), target=0.9, target_on="fit_rows")
    >>> update = update.fit(pd.DataFrame(X), sensitive_features=groups)
    >>> with explore(update, pd.DataFrame(X), sensitive_features=groups) as page:
    ...     page.update is update
    True
    >>> page
    Explorer, stopped
    """

    def __init__(self, session: Session, server: PageServer) -> None:
        self._session = session
        self.url = server.url
        self._end = weakref.finalize(self, _stop, server)

    @property
    def update(self) -> Any:
        """Return the update as the page shows it now."""
        return self._session.update

    def stop(self) -> None:
        """Stop the server; `update` stays as it is."""
        self._end()

    def wait(self) -> None:
        """Wait until the server is stopped; Ctrl-C ends the wait."""
        while self._end.alive:
            threading.Event().wait(0.5)

    def __enter__(self) -> Explorer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Explorer at {self.url}" if self._end.alive else "Explorer, stopped"

    def _repr_html_(self) -> str:
        if not self._end.alive:
            return "<p>Explorer, stopped</p>"
        return (
            f'<iframe src="{escape(self.url)}" title="Explore the update" '
            f'style="width: 100%; height: {FRAME_HEIGHT}px; border: 1px solid"></iframe>'
        )


def explore(
    update: ControlledDebiaser,
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Any,
    label_names: Mapping[Any, str] | None = None,
) -> Explorer:
    """Open a page on which an update can be changed by hand, and return a handle on it.

    The page shows at once who changes, the groups before and after, the limit and what is expected
    on new people. It is served on the loopback address of this machine. Rows stay in this process:
    the page gets figures, and the reasons of one person where the user asks for them.

    Parameters
    ----------
    update : fitted ControlledDebiaser
        Where to begin. It is never changed.
    X : table of shape (n, n_features)
        The rows, as in `fit`: those that the update was fitted on, or others.
    y : array-like of shape (n,), default=None
        True labels.
    sensitive_features : array-like of shape (n,) or (n, n_sensitive)
        The group of each row.
    label_names : mapping of label to str, default=None
        What the labels mean: ``{0: "low risk", 1: "high risk"}``.

    Returns
    -------
    Explorer
        It has `url`, `update` (as the page shows it now) and `stop()`. A notebook shows the page.

    Examples
    --------
    >>> from commod import ControlledDebiaser, ScoreColumn, explore
    >>> from commod.datasets import make_biased
    >>> data = make_biased(400, random_state=0)
    >>> X = data.data.assign(score=data.data["x0"].rank(pct=True).clip(0.01, 0.99))
    >>> update = ControlledDebiaser(ScoreColumn("score"), target=0.8, target_on="fit_rows")
    >>> update = update.fit(X, data.target, sensitive_features=data.sensitive_features)
    >>> page = explore(update, X, data.target, sensitive_features=data.sensitive_features)
    >>> page.url.startswith("http://127.0.0.1:")
    True
    >>> page.update is update
    True
    >>> page.stop()
    """
    people = PeopleOfFit(X, y, sensitive_features)
    return serve(open_session(update, people, label_names), in_notebook=True)


def open_session(
    update: ControlledDebiaser, people: PeopleOfFit, label_names: Mapping[Any, str] | None = None
) -> Session:
    """Return the session of an update; everything is read and counted once, so errors come here."""
    if not isinstance(update, ControlledDebiaser) or not hasattr(update, "scorecard_"):
        raise InputTypeError(
            f"explore needs a fitted ControlledDebiaser; got {shown(update)}. Other methods state "
            "no target that edits could be held to."
        )
    if update._fitted_param("confidence") is not None:
        raise InputError(
            "explore cannot edit an update that was fitted with confidence: its promise was tested "
            "for other points. Fit it with confidence=None.",
            parameter="confidence",
        )
    given = people._asdict()
    check_same_rows({"X": given.pop("X"), **given})
    session = Session(update, people, label_names)
    session.state()
    session.draft.base.has_own_terms  # noqa: B018 - counted here, before a hand waits for it
    return session


def serve(session: Session, *, in_notebook: bool, port: int = 0) -> Explorer:
    """Start the server of a session in a thread of its own."""
    server = PageServer(session, in_notebook=in_notebook, port=port)
    threading.Thread(target=server.serve_forever, name="commod-page", daemon=True).start()
    return Explorer(session, server)


def _stop(server: PageServer) -> None:
    server.shutdown()
    server.server_close()
