"""Fixtures that several test files share, and which tests are slow."""

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

from commod.datasets import fetch_law_school, load_compas

sys.path.insert(0, str(Path(__file__).parent))  # benchmarks import their tests another way
import price_list
import properties

properties.register_profiles()  # `pytest --hypothesis-profile` may load the other one


def pytest_configure(config):
    """Measure what tests cost, in every process."""
    config.pluginmanager.register(price_list.PriceList())


SLOW_FIXTURES = {"spark", "postgres", "browser", "demo"}


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Hide all that collection makes from the garbage collector: it is there until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config, items):
    """Mark tests as slow whose stored price is high, and those that start another program."""
    for item in items:
        is_dear = price_list.stored_prices().get(item.nodeid, 0.0) >= price_list.SLOW
        if is_dear or SLOW_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
    if config.getoption("--hypothesis-profile") == "search":
        properties.try_more_examples(items)
    else:
        properties.ignore_constants_of_modules()
    if hasattr(config, "workerinput"):
        from file_schedule import dearest_first

        dearest_first(items, config.rootpath)


@pytest.hookimpl(optionalhook=True)  # where pytest-xdist is not installed, nobody calls it
def pytest_xdist_make_scheduler(config, log):
    """Return the schedule of `--dist loadfile`; the files are in the order of `dearest_first`."""
    if config.getvalue("dist") != "loadfile":
        return None
    from file_schedule import ProgramsTogether

    config.option.loadscopereorder = False
    return ProgramsTogether(config, log)


def folder_of_the_run(tmp_path_factory):
    """Return the temporary folder that all workers share."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session", autouse=True)
def compiled_programs(pytestconfig):
    """Keep compiled programs of the tests apart from the user's.

    All workers share them, and so does the next run: a program is named after its text and after
    everything that the compiler looks at. `pytest --cache-clear` removes them.
    """
    folder = pytestconfig.cache.mkdir("programs")
    folder.chmod(0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMMOD_CACHE_HOME", str(folder))
        yield


@pytest.fixture(autouse=True)
def closed_figures():
    """Leave no figure to the tests that follow."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@pytest.fixture(scope="session")
def heard_interrupts():
    """Let child processes hear SIGINT, also where a shell started pytest in the background.

    Such a shell makes pytest ignore SIGINT, and children inherit that. They do not inherit a
    handler: where pytest has one, a child begins with the default.
    """
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, earlier)


@pytest.fixture(scope="session")
def compas():
    return load_compas()


@pytest.fixture(scope="session")
def law_school():
    home = os.environ.get("COMMOD_DATA_HOME")
    if not home or not (Path(home) / "law_school.csv").exists():
        pytest.skip("law_school.csv not found: set COMMOD_DATA_HOME")
    return fetch_law_school(data_home=home, download_if_missing=False)


@pytest.fixture(scope="module")
def quick_compilation():
    """Compile JAX programs without polishing them: for modules with many that run briefly."""
    import jax

    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """What `commod demo` prints, and the folder of what it writes: one run for all workers."""
    folder = folder_of_the_run(tmp_path_factory) / "demo"
    ended = folder / "ended.json"
    try:
        folder.mkdir()
    except FileExistsError:
        while not ended.exists():  # another worker runs it
            time.sleep(0.1)
    else:
        command = Path(sys.executable).with_name("commod")
        done = subprocess.run(
            [command, "demo"], capture_output=True, text=True, cwd=folder, check=False
        )
        written = folder / "ended.part"
        written.write_text(json.dumps([done.returncode, done.stdout, done.stderr]))
        written.replace(ended)
    code, out, err = json.loads(ended.read_text())
    assert code == 0, err
    return out, folder / "commod-demo"


@pytest.fixture(scope="session")
def spark():
    """A Spark session on two threads of this machine; starting it takes some seconds."""
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        _absent("Spark needs Java", "COMMOD_SPARK")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # it runs briefly
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas newer than it knows, sockets it leaves open
        sql = pytest.importorskip("pyspark.sql", exc_type=ImportError)
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need our packages
        builder = sql.SparkSession.builder.master("local[2]").appName("commod")
        session = builder.config(map=settings).getOrCreate()
        session.sparkContext.setLogLevel("OFF")
    yield session
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session.stop()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """The address of a PostgreSQL server of our own, reached by a socket file, gone afterwards."""
    pytest.importorskip("psycopg")
    programs = _postgres_programs()
    if programs is None:
        _absent("PostgreSQL's initdb and pg_ctl were not found", "COMMOD_POSTGRES")
    # the path of a socket has about 100 letters at most, and pytest's folders are root's alone
    folder = Path(tempfile.mkdtemp(prefix="commod-pg-", dir="/tmp"))
    as_user = {"cwd": folder, "check": True, "capture_output": True}
    if os.geteuid() == 0:  # which PostgreSQL refuses
        user = _ordinary_user()
        os.chown(folder, user.pw_uid, user.pw_gid)
        as_user |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    data, control = folder / "data", [programs / "pg_ctl", "-D", folder / "data", "-w"]
    quick = "-c fsync=off -c full_page_writes=off -c synchronous_commit=off"
    try:
        layout = ["-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]
        subprocess.run([programs / "initdb", "-D", data, "-U", "commod", *layout], **as_user)
        options = f"-k {folder} -c listen_addresses='' {quick}"
        subprocess.run([*control, "-l", folder / "log", "-o", options, "start"], **as_user)
        yield f"host={folder} user=commod dbname=postgres"
    finally:
        if (data / "postmaster.pid").exists():
            subprocess.run([*control, "-m", "immediate", "stop"], **as_user)
        shutil.rmtree(folder)


def _postgres_programs():
    """Return the folder with initdb and pg_ctl: that of the path, or Debian's newest."""
    on_path = [Path(p).parent for p in [shutil.which("initdb")] if p]
    folders = [*on_path, *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    return next((f for f in folders if (f / "initdb").exists() and (f / "pg_ctl").exists()), None)


def _ordinary_user():
    import pwd  # not there on every system

    users = {user.pw_name: user for user in pwd.getpwall()}
    return users.get("postgres") or users["nobody"]


def _absent(what, variable):
    """Skip what needs a program that is not there; fail where it was said to be there."""
    if os.environ.get(variable) == "required":
        pytest.fail(f"{what}, and {variable}=required")
    pytest.skip(what)


# -- the command line ------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def command_folder(tmp_path_factory):
    """Return a folder with the tables of the command line, which no test changes."""
    from command_tables import write  # beside the tests of the command line

    return write(tmp_path_factory.mktemp("tables"))


@pytest.fixture
def folder(command_folder, tmp_path, monkeypatch):
    """Return a folder with copies of the tables, which is the working folder too."""
    shutil.copytree(command_folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session", autouse=True)
def options_read_once():
    """Let typer read the options of all commands once: for every call it takes longer than most."""
    import typer.main

    from commod.cli import app

    made, get_group = typer.main.get_group(app), typer.main.get_group
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_group", lambda one: made if one is app else get_group(one))
        yield


@pytest.fixture(scope="session", autouse=True)
def database_begun_once():
    """Let commod connect to one database in memory: to begin one of its own takes 30 ms."""
    from commod._io import queries

    begun = []

    def connect():
        import duckdb

        if not begun:
            begun.append(duckdb.connect(":memory:commod"))  # it lives as long as this connection
        return duckdb.connect(":memory:commod")

    def import_optional(name, *reasons):
        module = optional(name, *reasons)
        if name != "duckdb":
            return module
        return SimpleNamespace(connect=connect, Error=module.Error)

    optional = queries.import_optional
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queries, "import_optional", import_optional)
        yield


@pytest.fixture
def call(monkeypatch, capsys, pytestconfig):
    """Return what runs the command in this process: exit code, standard output and error."""
    from commod.cli import main

    # `make test-lowest` lets old packages warn about each other
    action = "error" if "error" in pytestconfig.getini("filterwarnings") else "default"

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["commod", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        with warnings.catch_warnings():
            warnings.simplefilter(action)
            try:
                main()
            except SystemExit as stop:
                code = stop.code or 0
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture(scope="session")
def browser():
    """Start Chromium; skip, or fail where CI requires it, if it is missing."""
    chromium = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sync_playwright = None
    if chromium is None or sync_playwright is None:
        lacks = "Chromium" if chromium is None else "Playwright"
        reason = f"{lacks} is missing: apt-get install chromium, pip install playwright"
        if os.environ.get("COMMOD_BROWSER") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()
