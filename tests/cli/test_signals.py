"""Signals: a command ends soon, with the signal's exit code, and leaves nothing half-written."""

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.cli.test_cli import people

from commod import ScoreColumn
from commod.cli import main
from quick_updates import quick_control

pytest.importorskip("duckdb")
pytestmark = pytest.mark.usefixtures("heard_interrupts")

COMMAND = Path(sys.executable).with_name("commod")
GRACE = 60  # seconds after which a busy machine, too, has ended a command that ends
# Both are sent where the ways out differ; otherwise one, because a process takes seconds to start.
SIGNALS = [signal.SIGTERM, signal.SIGINT]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Return a folder with a patch and a table that takes a while to edit."""
    import duckdb

    folder = tmp_path_factory.mktemp("signals")
    table = people(2000, 0)
    update = quick_control(ScoreColumn("f"), target=0.8)
    X = table.drop(columns=["y", "race"])
    update.fit(X, table["y"], sensitive_features=table["race"]).to_patch().save(folder / "p.json")
    duckdb.execute(
        "COPY (SELECT i * 1e-6 AS income, i % 60 AS age, 'Oslo' AS town, random() AS f "
        f"FROM range(1500000) t(i)) TO '{folder / 'many.parquet'}' (FORMAT parquet)"
    )
    (folder / "out.parquet").write_text("earlier")
    return folder


APPLY = ("apply", "p.json", "many.parquet", "out.parquet", "--score", "f", "--force")


@pytest.fixture
def start():
    """Return what starts a process; one that a failed test leaves is killed."""
    children = []

    def start(command, **options):
        children.append(subprocess.Popen(command, **options))
        return children[-1]

    yield start
    for child in children:
        child.kill()
        child.communicate()


@pytest.fixture
def apply(start, home):
    """Return what starts `commod apply` on the large table."""

    def apply(**options):
        environment = {**os.environ, "TMPDIR": str(home / "tmp"), "COLUMNS": "80"}
        (home / "tmp").mkdir(exist_ok=True)
        command = [COMMAND, *APPLY]
        return start(command, cwd=home, env=environment, start_new_session=True, **options)

    return apply


def is_writing(folder):
    return any(p.name.endswith(".part") for p in folder.iterdir())


def hidden_files(folder):
    left = [p.name for p in folder.iterdir() if p.name.startswith(".")]
    return left + [f"tmp/{p.name}" for p in (folder / "tmp").iterdir()]


HUNG = """
import sys, threading, time
from commod._io import queries, tables
from commod.cli import _signals, main
queries.PATIENCE = _signals.GRACE = 0.3
hung = threading.Event()
class Hung:
    '''A connection that no interrupt stops, as DuckDB's sometimes is while it writes Parquet.'''
    def __init__(self, own):
        self.own = own
    def __getattr__(self, name):
        return getattr(self.own, name)
    def execute(self, text, *rest):
        if not text.startswith("COPY"):
            return self.own.execute(text, *rest)
        print("hangs", file=sys.stderr, flush=True)
        hung.wait()
    def interrupt(self):
        hung.wait()
    def close(self):
        hung.wait()
connect = queries.connect
tables.connect = lambda *arguments: Hung(connect(*arguments))
main()
"""


def test_a_query_that_ignores_its_interrupt_does_not_hold_the_command(home, start):
    number = signal.SIGINT
    (home / "tmp").mkdir(exist_ok=True)
    child = start(
        [sys.executable, "-c", HUNG, *APPLY],
        cwd=home,
        env={**os.environ, "TMPDIR": str(home / "tmp")},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stderr.readline() == "hangs\n"
    child.send_signal(number)
    _, err = child.communicate(timeout=GRACE)
    assert child.returncode == 128 + number, err
    assert (home / "out.parquet").read_text() == "earlier" and not hidden_files(home)


BLOCKED = """
import ctypes, sys
from commod import cli
from commod._io.files import private_folder, replacement_file
from commod.cli import _signals
_signals.GRACE = 0.3
def endless(standalone_mode):
    lock, mutex = ctypes.CDLL(None).pthread_mutex_lock, ctypes.create_string_buffer(64)
    with private_folder(), replacement_file("blocked.csv"):
        lock(mutex)
        print("hangs", file=sys.stderr, flush=True)
        lock(mutex)  # for ever
cli.app = endless
cli.main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="uses pthread_mutex_lock")
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_call_that_never_returns_does_not_hold_the_command(tmp_path, start, number):
    child = start(
        [sys.executable, "-c", BLOCKED],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stderr.readline() == "hangs\n"
    child.send_signal(number)
    child.communicate(timeout=GRACE)
    assert child.returncode == 128 + number and not list(tmp_path.iterdir())


def test_the_code_of_sigterm_wins_over_the_commands_own(monkeypatch, capsys):
    from commod import cli

    def stopped(standalone_mode):
        os.kill(os.getpid(), signal.SIGTERM)
        raise RuntimeError("not reached")

    def ending_in_another_way(standalone_mode):
        try:
            stopped(standalone_mode)
        except SystemExit:
            return 0

    before = [signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT)]
    for command in (stopped, ending_in_another_way):
        monkeypatch.setattr(cli, "app", command)
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 143
    assert [signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT)] == before
    assert signal.set_wakeup_fd(-1) == -1
    assert capsys.readouterr().err == ""


def test_handlers_of_others_are_left_alone(monkeypatch):
    from commod import cli

    monkeypatch.setattr(cli, "app", lambda standalone_mode: 0)
    earlier = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with pytest.raises(SystemExit):
            main()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, earlier)
    codes = []
    thread = threading.Thread(target=lambda: codes.append(_code_of_main()))
    thread.start()
    thread.join()
    assert codes == [0]


def _code_of_main():
    try:
        main()
    except SystemExit as stop:
        return stop.code


def test_a_command_that_is_stopped_leaves_the_cursor_and_the_earlier_file(home, apply):
    number = signal.SIGTERM  # SIGINT: below, where a query or a call holds the command
    ours, theirs = pty.openpty()
    child = apply(stderr=theirs, stdout=theirs)
    os.close(theirs)
    shown, is_sent = b"", False
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # Linux says so at the end of a terminal
            break
        if not piece:
            break
        shown += piece
        if not is_sent and b"\x1b[?25l" in shown and is_writing(home):
            assert (home / "out.parquet").read_text() == "earlier", "also where a kill ends it"
            assert hidden_files(home), "files that a kill would leave have hidden names"
            child.send_signal(number)
            is_sent = True
    os.close(ours)
    assert is_sent, "it was writing when it was stopped"
    assert child.wait(GRACE) == 128 + number, shown
    assert not shown[shown.rfind(b"\x1b[?25h") + len(b"\x1b[?25h") :].strip(), "no error is shown"
    assert shown.rfind(b"\x1b[?25h") > shown.rfind(b"\x1b[?25l") >= 0
    assert (home / "out.parquet").read_text() == "earlier" and not hidden_files(home)


ENDLESS = """
from commod.cli import _models, main
run = _models.run_interruptibly
def told(call, stop):
    print("runs", flush=True)
    return run(call, stop)
_models.run_interruptibly = told
main()
"""


def test_an_onnx_model_that_never_ends_can_be_stopped(tmp_path, start):
    number = signal.SIGTERM
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    people(200, 0)[["income", "f", "y", "race"]].to_csv(tmp_path / "train.csv", index=False)
    (tmp_path / "endless.onnx").write_bytes(endless_model(onnx).SerializeToString())
    named = ("--label", "y", "--sensitive", "race", "--features", "income", "--at-least", "0.8")
    child = start(
        [sys.executable, "-c", ENDLESS, "debias", "train.csv", *named, "--model", "endless.onnx"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "runs\n"
    time.sleep(0.3)  # any moment will do
    assert child.poll() is None, child.stderr.read()
    child.send_signal(number)
    _, err = child.communicate(timeout=GRACE)
    assert child.returncode == 128 + number and "Traceback" not in err, err


def endless_model(onnx):
    """Return a classifier of one column that counts to 2⁶² before it answers."""
    helper, kind = onnx.helper, onnx.TensorProto
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["goes_on"]),
            helper.make_node("Identity", ["x"], ["x_after"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", kind.INT64, []),
            helper.make_tensor_value_info("go", kind.BOOL, []),
            helper.make_tensor_value_info("x", kind.FLOAT, [None, 1]),
        ],
        [
            helper.make_tensor_value_info("goes_on", kind.BOOL, []),
            helper.make_tensor_value_info("x_after", kind.FLOAT, [None, 1]),
        ],
    )
    graph = helper.make_graph(
        [
            helper.make_node("Loop", ["n", "always", "income"], ["y"], body=body),
            helper.make_node("Sigmoid", ["y"], ["probability"]),
        ],
        "endless",
        [helper.make_tensor_value_info("income", kind.FLOAT, [None, 1])],
        [helper.make_tensor_value_info("probability", kind.FLOAT, [None, 1])],
        [
            helper.make_tensor("n", kind.INT64, [], [2**62]),
            helper.make_tensor("always", kind.BOOL, [], [True]),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
