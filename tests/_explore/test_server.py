"""The server of the page: a stranger gets nothing, garbage breaks nothing."""

import base64
import http.client
import io
import json
import secrets
import socket
import threading
import zipfile
from contextlib import suppress
from html.parser import HTMLParser
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
    with_html,
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


TOKEN = "{token}"  # stands for the token of the page
EARLIER = "{earlier}"  # stands for that of a page that was closed
GET = {"method": "GET", "without": ("Content-Length",)}
ATTACKS = [  # what was tried on pages of earlier versions, and the status that answers it
    *[  # the token is missing, wrong, too late, or in another place of the address
        ({"path": path}, 404)
        for path in (
            *("/", "/state", "/wrong/state", f"/{'x' * 32}/state", f"/{EARLIER}/state"),
            *(f"/state?token={TOKEN}", f"/{TOKEN}", f"/{TOKEN[::-1]}/state"),
            *(f"/{TOKEN}/state?", f"/{TOKEN}/state#", f"/{TOKEN}/state/", f"/{TOKEN}/STATE"),
            f"http://evil.example/{TOKEN}/state",
        )
    ],
    *[  # another site, or a name that was bound to the loopback address
        (change, 404)
        for change in (
            *({"Host": "evil.example"}, {"Host": "127.0.0.1"}, {"without": ("Host",)}),
            *({"Origin": "http://evil.example"}, {"Origin": "null"}, {"without": ("Origin",)}),
            *({"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"}),
        )
    ],
    *[  # what is no action: a view, a method of the session that no page calls, an attribute
        ({"path": f"/{TOKEN}/{name}"}, 404)
        for name in ("screen", "draft", "update", "__init__", "_append", "_drafts", "state.json")
    ],
    *[  # files and folders of the machine
        ({"path": f"/{TOKEN}/{path}", **GET}, 404)
        for path in (
            *(
                "../explore.py",
                "..%2f..%2fetc/passwd",
                "%2e%2e/%2e%2e/etc/passwd",
                "page/explore.js",
            ),
            *("/", "/etc/passwd", "..\\..\\server.py", "explore.js%00", "fragments.html", "./"),
        )
    ],
    *[({"path": path, **GET}, 404) for path in ("/", "/x/", f"/{EARLIER}/")],
    ({"path": f"/{TOKEN}/", **GET, "Host": "evil.example"}, 404),
    *[  # other methods
        ({"method": method, "without": ("Content-Length",)}, 400)
        for method in ("PUT", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE", "CONNECT", "X")
    ],
    *[  # bodies that are too large, not JSON, or of another length
        (change, status)
        for change, status in (
            ({"Content_Type": "text/plain"}, 400),
            ({"Content_Type": "application/x-www-form-urlencoded"}, 400),
            ({"without": ("Content-Length",)}, 400),
            ({"Content_Length": "-1"}, 400),
            ({"Content_Length": "1e9"}, 400),
            ({"Content_Length": "\xb2"}, 400),
            ({"Content_Length": str(MAX_REQUEST + 1)}, 413),
            ({"Content_Length": "9" * 50}, 413),
            ({"Content_Length": "1"}, 400),
            *(
                ({"body": body}, 400)
                for body in (
                    *(b"", b"[]", b"{", b'{"seen": NaN}', b'{"__class__": 1}', b"[" * 5000),
                    *(b"\xff\xfe", b'{"seen": 1, "seen": 2}', b"null"),
                )
            ),
        )
    ],
]


@pytest.fixture(scope="module")
def earlier_token():
    """Return a token that no page has."""
    return secrets.token_urlsafe(24)


@pytest.mark.parametrize(("change", "status"), ATTACKS, ids=lambda value: ascii(value)[:60])
def test_attacks_get_nothing_and_the_server_goes_on(page, earlier_token, change, status):
    token = urlsplit(page.url).path.strip("/")
    change = {"path": f"/{TOKEN}/state", **change}
    given = change["path"].replace(TOKEN[::-1], token[::-1]).replace(EARLIER, earlier_token)
    change["path"] = given.replace(TOKEN, token)
    found, headers, body = ask(page, **change)
    assert found == status or (found >= 400 and change.get("method", "GET") != "GET")
    assert body == b"" or (status == 400 and set(json.loads(body)) == {"error"})
    shown = " ".join(headers).lower()
    assert "server" not in shown and "access-control" not in shown
    assert token.encode() not in body and is_alive(page)


HOSTILE_NAMES = [
    "</script><img src=x onerror=alert(1)>",
    "\" onfocus=alert(1) autofocus x='",
    "'); __import__('os').mkdir('owned'); ('",
    '"""\nimport os; os.mkdir("owned")\n"""',
    "one\nimport os; os.mkdir('owned')",
    "\u2028import os; os.mkdir('owned')\u2029",
    "\r\x0c\x1c\x85import os; os.mkdir('owned')",
    "\\",
    "\u202eevil\u2066 right to left",
    "../../name/with/slashes.json",
    "{{ 7 * 7 }}{% include 'style.css' %}${8 * 8}",
    "# no comment \\\n",
]


class Tags(HTMLParser):
    """The tags of a page, with the names of their attributes."""

    def __init__(self, html):
        super().__init__()
        self.found, self.attributes = set(), set()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_hostile_names_and_reasons_are_no_markup_no_code_and_no_path(tmp_path, monkeypatch):
    """Columns, groups, categories, labels, names and reasons are texts wherever they are shown."""
    n = 60 * len(HOSTILE_NAMES)
    score = [(i * 7919 % 97) / 100 + 0.01 for i in range(n)]
    X = pd.DataFrame(
        {name: [(i + k) % 5 for i in range(n)] for k, name in enumerate(HOSTILE_NAMES)}
    )
    X["score"] = score
    X[HOSTILE_NAMES[0]] = [HOSTILE_NAMES[i % 3 - (score[i] < 0.4)] for i in range(n)]
    groups = [HOSTILE_NAMES[5 + (i % 2 and score[i] < 0.6)] for i in range(n)]
    model = ScoreColumn("score")
    update = ControlledDebiaser(model, target=0.95, target_on="fit_rows", borderline=0)
    update.fit(X, sensitive_features=groups)
    names = dict.fromkeys([0, 1], HOSTILE_NAMES[0])
    session = open_session(update, PeopleOfFit(X, None, groups), names)
    line = f"{HOSTILE_NAMES[0]} = {HOSTILE_NAMES[2]}"
    session.fit(1, {"pins": {line: 0.25}}, by=HOSTILE_NAMES[3], note=HOSTILE_NAMES[4])
    for i, text in enumerate(HOSTILE_NAMES[4:]):
        session.edit(2 + i, {line: i / 10}, by=text, note=text)
    session.keep()
    answers = [session.state(), session.segments(), session.differences(), session.trade_off()]
    answers += [session.wishes(), session.person(7)]
    tags = Tags("".join(with_html(answer)["html"] for answer in answers))
    assert not tags.found & {"script", "img", "iframe", "style", "link", "object", "a", "base"}
    assert not [name for name in tags.attributes if name.startswith("on") or name == "style"]
    saved = session.save(by=HOSTILE_NAMES[2])
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(saved["base64"]))) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    assert sorted(files) == ["history.py", "patch.json", "report.html"]
    monkeypatch.chdir(tmp_path)
    code = files.pop("history.py").decode()
    exec(code, {"model": model, "X": X, "y": None, "groups": groups})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files


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
    taken = [*ACTIONS[action].parameters][1:]
    body = {name: data.draw(plain_values) for name in taken if data.draw(st.booleans())}
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


def test_a_connection_that_sends_a_byte_at_a_time_blocks_nobody(page):
    address = urlsplit(page.url)
    sent = b"POST " + f"{address.path}state HTTP/1.1\r\nHost: {address.netloc}\r\n".encode()
    with socket.create_connection((address.hostname, address.port), timeout=60) as slow:
        for byte in sent[:40]:
            slow.sendall(bytes([byte]))
        assert is_alive(page)
        slow.sendall(sent[40:] + f"Origin: http://{address.netloc}\r\n".encode())
        slow.sendall(b"Content-Type: application/json\r\nContent-Length: 9000\r\n\r\n{")
        assert is_alive(page)  # while a body of 9,000 bytes is waited for


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
