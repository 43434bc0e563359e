"""The server of the page: a stranger gets nothing, garbage breaks nothing."""

import http.client
import json
import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commod import ControlledDebiaser, ScoreColumn
from commod._explore.edits import PeopleOfFit
from commod._explore.server import (
    ACTIONS,
    MAX_CONNECTIONS,
    MAX_REQUEST,
    Explorer,
    PageServer,
    open_session,
)

HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def page():
    """Return a page without a process for fits: no test here fits."""
    rows = [(i % 10 / 10 + 0.05, i % 7, i % 3) for i in range(210)]
    X = pd.DataFrame(rows, columns=["score", HOSTILE, "town"])
    groups = [f"{HOSTILE}{(i % 7 > 3) & (i % 10 < 6)}" for i in range(210)]
    update = ControlledDebiaser(
        ScoreColumn("score"), target=0.9, target_on="fit_rows", borderline=0
    ).fit(X, sensitive_features=groups)
    session = open_session(update, PeopleOfFit(X, None, groups))
    server = PageServer(session)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with Explorer(session, server) as started:
        yield started


def ask(page, method="POST", path=None, body=b"{}", without=(), **changed):
    """Return status, headers and body of one request; headers that are right unless changed."""
    address = urlsplit(page.url)
    headers = {
        "Host": address.netloc,
        "Origin": f"http://{address.netloc}",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
    }
    headers |= {name.replace("_", "-"): value for name, value in changed.items()}
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    connection.putrequest(method, path or f"{address.path}state", skip_host=True)
    for name, value in headers.items():
        if name not in without:
            connection.putheader(name, value)
    connection.endheaders(body if method == "POST" else None)
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


def is_alive(page):
    return ask(page)[0] == 200


def test_the_page_has_strict_headers_and_names_no_other_host(page):
    address = urlsplit(page.url)
    for name in ("", "explore.js", "explore.css"):
        status, headers, body = ask(page, "GET", address.path + name, without=("Content-Length",))
        assert status == 200
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["Cache-Control"] == "no-store"
        assert b"https://" not in body and body.count(b"http://") <= 1  # the name of SVG
    assert b"innerHTML" not in body and b"eval(" not in body


@pytest.mark.parametrize(
    "change",
    [
        {"path": "/"},
        {"path": "/state"},
        {"path": "/wrong/state"},
        {"path": f"/{'x' * 32}/state"},  # as long as a token
        {"Host": "evil.example"},
        {"Host": "127.0.0.1"},
        {"without": ("Host",)},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"without": ("Origin",)},
        {"Sec_Fetch_Site": "cross-site"},
    ],
)
def test_a_stranger_gets_nothing(page, change):
    status, headers, body = ask(page, **change)
    assert (status, body) == (404, b"")
    assert "Content-Security-Policy" not in headers and "Server" not in headers
    assert is_alive(page)


@pytest.mark.parametrize("change", [{"path": "/"}, {"path": "/x/"}, {"Host": "evil.example"}])
def test_a_stranger_gets_no_file(page, change):
    change = {"path": urlsplit(page.url).path, **change}
    assert ask(page, "GET", without=("Content-Length",), **change)[::2] == (404, b"")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE", "X"])
def test_no_other_method_is_accepted(page, method):
    status, headers, body = ask(page, method, without=("Content-Length",))
    assert status >= 400 and body == b""
    assert not any(name.startswith("Access-Control") for name in headers)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"Content_Type": "text/plain"}, 400),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 400),
        ({"without": ("Content-Length",)}, 400),
        ({"Content_Length": "-1"}, 400),
        ({"Content_Length": "1e9"}, 400),
        ({"Content_Length": str(MAX_REQUEST + 1)}, 413),
        ({"Content_Length": "9" * 50}, 413),
        ({"body": b""}, 400),
        ({"body": b"[]"}, 400),
        ({"body": b"{"}, 400),
        ({"body": b'{"seen": NaN}'}, 400),
        ({"body": b'{"__class__": 1}'}, 400),
        ({"body": b"[" * 5000}, 400),
        ({"body": b"\xff\xfe"}, 400),
    ],
)
def test_garbage_is_refused(page, change, status):
    assert ask(page, **change)[0] == status
    assert is_alive(page)


def test_raw_garbage_breaks_nothing(page):
    address = urlsplit(page.url)
    for data in (
        b"\x16\x03\x01\x02",
        b"GET\r\n\r\n",
        b"A" * 70_000,
        b"GET / HTTP/9.9\r\n\r\n",
        b"",
    ):
        with socket.create_connection((address.hostname, address.port), timeout=60) as raw:
            raw.sendall(data)
            raw.shutdown(socket.SHUT_WR)
            with suppress(ConnectionResetError):
                assert b"scorecard" not in raw.recv(4096)
    assert is_alive(page)


plain_values = st.recursive(
    st.none()
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
QUICK = sorted(set(ACTIONS) - {"fit", "refit", "save", "segments", "differences", "keep", "person"})


@settings(max_examples=25)
@given(st.data())
def test_any_json_is_answered_or_refused_and_the_server_goes_on(page, data):
    action = data.draw(st.sampled_from(QUICK))
    body = {name: data.draw(plain_values) for name in ACTIONS[action] if data.draw(st.booleans())}
    path = f"{urlsplit(page.url).path}{action}"
    status, _, answer = ask(page, path=path, body=json.dumps(body).encode())
    assert status in (200, 400, 409)
    assert isinstance(json.loads(answer), dict)


def test_the_address_has_a_new_token_each_time_and_nothing_answers_after_stop():
    X = pd.DataFrame({"score": [0.4, 0.6] * 100, "age": range(200)})
    update = ControlledDebiaser(ScoreColumn("score"), target=0.9, target_on="fit_rows")
    groups = ((X["age"] < 100) & (X["score"] < 0.5)).to_numpy()
    update.fit(X, sensitive_features=groups)
    people = PeopleOfFit(X, None, groups)
    servers = [PageServer(open_session(update, people), in_notebook=True) for _ in range(2)]
    assert servers[0].token != servers[1].token
    assert len(servers[0].token) >= 32
    assert servers[0].server_address[0] == "127.0.0.1"
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    page, other = (Explorer(server.session, server) for server in servers)
    assert page.url in repr(page) and "<iframe" in page._repr_html_()
    assert is_alive(page)
    page.stop()
    page.stop()
    with pytest.raises(OSError):
        ask(page)
    assert is_alive(other)
    assert page.update is update
    assert page.url not in repr(page)
    other.stop()


def test_silent_connections_keep_nobody_out(page):
    address = urlsplit(page.url)
    silent = []
    for _ in range(MAX_CONNECTIONS + 6):
        raw = socket.create_connection((address.hostname, address.port), timeout=60)
        raw.sendall(b"POST /x HTTP/1.1\r\nHost: ")
        silent.append(raw)
    try:
        assert is_alive(page)
        assert is_alive(page)
    finally:
        for raw in silent:
            raw.close()


@pytest.mark.parametrize(
    ("action", "body"),
    [
        ("preview", {"edits": {HOSTILE: 10**400}}),
        ("preview", {"edits": {"edit": "round", "step": 1e-320}}),
        ("preview", {"edits": {"edit": "round", "step": 10**400}}),
        ("edit", {"version": 1, "edits": {HOSTILE: "x" * 50_000}}),
        ("edit", {"version": 1, "edits": {HOSTILE: 1}, "by": "x" * 501}),
        ("fit", {"version": 1, "request": {"target": 10**400}}),
        ("fit", {"version": 1, "request": {"max_lines": 1e308}}),
        ("fit", {"version": 1, "request": {"max_lines": 2.5}}),
        ("fit", {"version": 1, "request": {"points": ["integers"]}}),
        ("person", {"id": {}}),
        ("person", {"id": "x" * 501}),
        ("person", {"row": 10**30}),
        ("save", {"path": "../../patch.json"}),
        ("save", {"name": "/etc/passwd"}),
        ("save", {"by": ["Ada"]}),
        ("go", {"version": 1, "place": 10**30}),
    ],
)
def test_values_that_no_page_sends_are_refused_with_words(page, action, body):
    path = f"{urlsplit(page.url).path}{action}"
    status, _, answer = ask(page, path=path, body=json.dumps(body).encode())
    assert status == 400
    assert json.loads(answer)["error"]
    assert is_alive(page)


@pytest.mark.parametrize("path", ["../explore.py", "..%2f..%2fetc/passwd", "page/explore.js", "/"])
def test_no_other_file_is_served(page, path):
    found = ask(page, "GET", urlsplit(page.url).path + path, without=("Content-Length",))
    assert found[::2] == (404, b"")
