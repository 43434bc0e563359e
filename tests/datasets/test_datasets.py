import gzip
import hashlib
import importlib.util
import os
import subprocess
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats
from scipy.special import expit

from commod._io.files import write_whole
from commod.datasets import _real, fetch_law_school, load_compas, make_biased
from commod.exceptions import CommodError, InputError

SCRIPT = Path(__file__).parents[2] / "scripts" / "derive_compas.py"


def test_importing_the_datasets_loads_neither_pandas_nor_sklearn():
    code = "import sys, commod.datasets; print({'pandas', 'sklearn', 'scipy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# ---------------------------------------------------------------------------------------------
# COMPAS


def test_compas_has_the_rows_and_columns_of_the_paper(compas):
    assert compas.data.shape == (6167, 9)
    assert list(compas.data.columns) == compas.feature_names
    assert compas.feature_names == [
        *("sex", "age", "age_cat", "juv_fel_count", "juv_misd_count", "juv_other_count"),
        *("priors_count", "c_charge_degree", "c_charge_desc"),
    ]
    assert not compas.data.isna().any(axis=None)
    assert not (compas.data == "").any(axis=None)
    assert compas.data["c_charge_desc"].nunique() == 389
    assert compas.data["priors_count"].dtype == np.int64


def test_compas_target_and_race_have_the_known_counts(compas):
    assert compas.target.name == "two_year_recid"
    assert compas.target.dtype == np.int64
    assert compas.target.value_counts().to_dict() == {0: 3358, 1: 2809}
    assert compas.sensitive_features.name == "race"
    assert compas.sensitive_features.value_counts().to_dict() == {"not white": 4067, "white": 2100}
    assert compas.race.value_counts().to_dict() == {
        "African-American": 3173,
        "Caucasian": 2100,
        "Hispanic": 509,
        "Other": 343,
        "Asian": 31,
        "Native American": 11,
    }
    assert ((compas.race == "Caucasian") == (compas.sensitive_features == "white")).all()


def test_compas_frame_holds_everything_side_by_side(compas):
    assert list(compas.frame.columns) == [*compas.feature_names, "two_year_recid", "race"]
    assert compas.frame["race"].equals(compas.sensitive_features)
    assert "two_year_recid" not in compas.data


def test_compas_arrays_hold_the_same_values_as_the_frame(compas):
    arrays = load_compas(as_frame=False)
    assert arrays.frame is None
    assert all(isinstance(arrays[name], np.ndarray) for name in ("data", "target", "race"))
    assert arrays.data.tolist() == compas.data.to_numpy().tolist()
    assert arrays.target.tolist() == compas.target.tolist()
    assert arrays.sensitive_features.tolist() == compas.sensitive_features.tolist()


def test_compas_return_x_y_gives_data_and_target(compas):
    X, y = load_compas(return_X_y=True)
    assert X.equals(compas.data)
    assert y.equals(compas.target)


def test_compas_description_says_where_it_comes_from_and_what_is_wrong_with_it(compas):
    for words in ["ProPublica", "Broward", "arrested again", "not a crime"]:
        assert words in compas.DESCR


def test_compas_damaged_package_file_is_refused(monkeypatch, tmp_path):
    content = gzip.decompress((Path(_real.__file__).parent / "data/compas.csv.gz").read_bytes())
    (tmp_path / "data").mkdir()
    packed = tmp_path / "data" / "compas.csv.gz"
    monkeypatch.setattr(_real, "files", lambda package: tmp_path)
    packed.write_bytes(gzip.compress(content))
    assert load_compas().data.shape == (6167, 9)
    packed.write_bytes(gzip.compress(content.replace(b"Male", b"male", 1)))
    with pytest.raises(OSError, match=f"has SHA-256 .*, expected {_real.COMPAS_SHA256}"):
        load_compas()
    packed.write_bytes(gzip.compress(content)[:1000])
    with pytest.raises(OSError, match=r"cannot be unpacked .* install commod-debiasing again"):
        load_compas()


# ---------------------------------------------------------------------------------------------
# The script that derives COMPAS


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("derive_compas", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def raw_path():
    path = os.environ.get("COMMOD_COMPAS_RAW")
    if not path or not Path(path).exists():
        pytest.skip(
            "compas-scores-two-years.csv not found: set COMMOD_COMPAS_RAW to ProPublica's original"
        )
    return Path(path)


PERSON = {
    "name": "nobody",
    "sex": "Male",
    "age": "30",
    "age_cat": "25 - 45",
    "race": "Other",
    "juv_fel_count": "0",
    "juv_misd_count": "0",
    "juv_other_count": "0",
    "priors_count": "2",
    "days_b_screening_arrest": "-1",
    "c_charge_degree": "F",
    "c_charge_desc": 'Poss "3,4 MDMA"',
    "is_recid": "0",
    "score_text": "Low",
    "two_year_recid": "0",
}


def raw_table(*people):
    # priors_count stands twice in the original; the first one counts.
    rows = [[*person.values(), "99"] for person in people]
    frame = pd.DataFrame(rows, columns=[*PERSON, "priors_count"])
    return frame.to_csv(index=False).encode()


def test_script_keeps_the_columns_and_leaves_names_behind(script):
    header, row = script.derive(raw_table(PERSON)).decode().splitlines()
    assert header == ",".join([*script.FEATURES, "race", "two_year_recid"])
    assert row == 'Male,30,25 - 45,0,0,0,2,F,"Poss ""3,4 MDMA""",Other,0'


def test_script_drops_what_the_filters_name(script):
    for column, value in [
        ("days_b_screening_arrest", "-31"),
        ("days_b_screening_arrest", "31"),
        ("days_b_screening_arrest", ""),
        ("is_recid", "-1"),
        ("c_charge_degree", "O"),
        ("score_text", "N/A"),
        ("c_charge_desc", ""),
    ]:
        edge = PERSON | {"days_b_screening_arrest": "30"}
        table = script.derive(raw_table(PERSON, PERSON | {column: value}, edge))
        assert len(table.splitlines()) == 1 + 2


def test_script_refuses_another_table_and_keeps_the_old_output(script, tmp_path, capsys):
    raw, output = tmp_path / "raw.csv", tmp_path / "out" / "compas.csv.gz"
    raw.write_bytes(raw_table(PERSON))
    output.parent.mkdir()
    output.write_bytes(b"old")
    assert script.main([str(raw), "--output", str(output)]) == 1
    assert f"expected {script.RAW_SHA256}" in capsys.readouterr().err
    assert [path.name for path in output.parent.iterdir()] == ["compas.csv.gz"]
    assert output.read_bytes() == b"old"


def test_script_gives_the_same_bytes_every_time(script):
    assert script.compress(b"table") == script.compress(b"table")
    assert script.compress(b"table")[4:8] == bytes(4)  # no time of day in the header


def test_package_file_is_what_the_script_derives(script, raw_path, tmp_path, capsys):
    outputs = [tmp_path / "once.gz", tmp_path / "twice.gz"]
    for output in outputs:
        assert script.main([str(raw_path), "--output", str(output)]) == 0
    assert "6167 rows" in capsys.readouterr().out
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
    derived, bundled = (gzip.decompress(p.read_bytes()) for p in (outputs[0], script.OUTPUT))
    assert derived == bundled


def test_package_file_is_small(script):
    assert script.OUTPUT.stat().st_size < 100_000


# ---------------------------------------------------------------------------------------------
# Law School


def test_law_school_has_the_rows_and_columns_of_the_paper(law_school):
    names = ["cluster", "lsat", "ugpa", "zfygpa", "zgpa", "fulltime", "fam_inc", "age", "gender"]
    assert law_school.data.shape == (1823, 9)
    assert law_school.feature_names == list(law_school.data.columns) == names
    assert law_school.target.name == "bar1"
    assert law_school.target.value_counts().to_dict() == {1: 954, 0: 869}
    assert law_school.sensitive_features.name == "race"
    counts = law_school.sensitive_features.value_counts().to_dict()
    assert counts == {"white": 1363, "not white": 460}
    rates = law_school.target.groupby(law_school.sensitive_features).mean()
    assert rates["white"] == pytest.approx(0.617, abs=5e-4)


SMALL_LAW_SCHOOL = (
    b"cluster,lsat,ugpa,zfygpa,zgpa,bar1,fulltime,fam_inc,age,gender,race1,race7\n"
    b"4.0,32.5,3.2,-0.76,-0.56,1,1.0,4.0,-62.0,1,0,1\n"
    b"5.0,41.0,3.9,1.08,0.88,0,1.0,3.0,-57.0,0,1,0\n"
)


class Origin(BaseHTTPRequestHandler):
    content = SMALL_LAW_SCHOOL

    def do_GET(self):
        self.server.n_requests += 1
        found = self.path != "/missing.csv"
        self.send_response(200 if found else 404)
        lost = 10 if self.path == "/cut.csv" else 0
        self.send_header("Content-Length", str(len(self.content) + lost))
        self.end_headers()
        self.wfile.write(self.content)

    def log_message(self, *args):
        pass


def change_law_file(monkeypatch, **changes):
    file = replace(_real.LAW_SCHOOL.files[0], **changes)
    monkeypatch.setattr(_real, "LAW_SCHOOL", replace(_real.LAW_SCHOOL, files=[file]))


@pytest.fixture
def origin(monkeypatch):
    """A web server on this machine that has a small Law School table, known by its digest."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("COMMOD_DATA_HOME", raising=False)
    with HTTPServer(("127.0.0.1", 0), Origin) as server:
        server.n_requests = 0
        server.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        digest = hashlib.sha256(SMALL_LAW_SCHOOL).hexdigest()
        change_law_file(monkeypatch, url=f"{server.url}/lawschool.csv", sha256=digest)
        yield server
        server.shutdown()
        thread.join()


def test_law_school_is_fetched_once_and_then_read_from_the_data_home(origin, tmp_path):
    home = tmp_path / "new" / "home"
    first = fetch_law_school(data_home=home)
    second = fetch_law_school(data_home=str(home), download_if_missing=False)
    assert origin.n_requests == 1
    assert first.frame.equals(second.frame)
    assert first.sensitive_features.tolist() == ["white", "not white"]
    assert first.target.tolist() == [1, 0]
    assert [path.name for path in home.iterdir()] == ["law_school.csv"]
    assert (home / "law_school.csv").read_bytes() == SMALL_LAW_SCHOOL


def test_law_school_arrays_and_return_x_y(origin, tmp_path):
    X, y = fetch_law_school(data_home=tmp_path, as_frame=False, return_X_y=True)
    assert X.dtype == np.float64
    assert X.shape == (2, 9)
    assert y.tolist() == [1, 0]


def test_law_school_data_home_comes_from_the_environment(origin, tmp_path, monkeypatch):
    monkeypatch.setenv("COMMOD_DATA_HOME", str(tmp_path / "variable"))
    fetch_law_school()
    assert (tmp_path / "variable" / "law_school.csv").exists()
    fetch_law_school(data_home=tmp_path / "argument")
    assert (tmp_path / "argument" / "law_school.csv").exists()


def test_law_school_data_home_is_scikit_learns_by_default(origin, tmp_path, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.setenv("COMMOD_DATA_HOME", "")
    fetch_law_school()
    assert (tmp_path / "commod" / "law_school.csv").exists()


def test_law_school_missing_file_without_download_is_an_os_error(origin, tmp_path):
    with pytest.raises(
        OSError, match=r"law_school.csv does not exist .* COMMOD_DATA_HOME"
    ) as caught:
        fetch_law_school(data_home=tmp_path / "home", download_if_missing=False)
    assert isinstance(caught.value, CommodError)
    assert origin.n_requests == 0
    assert not (tmp_path / "home").exists()


def test_law_school_wrong_download_names_both_digests_and_is_not_kept(
    origin, tmp_path, monkeypatch
):
    found, expected = _real.LAW_SCHOOL.files[0].sha256, "0" * 64
    change_law_file(monkeypatch, sha256=expected)
    with pytest.raises(OSError, match=f"has SHA-256 {found}, expected {expected}"):
        fetch_law_school(data_home=tmp_path / "home")
    assert not (tmp_path / "home").exists()


def test_law_school_wrong_file_names_both_digests_and_is_left_alone(origin, tmp_path):
    path = tmp_path / "law_school.csv"
    path.write_bytes(b"something else")
    found = hashlib.sha256(b"something else").hexdigest()
    with pytest.raises(
        OSError, match=f"has SHA-256 {found}, expected {_real.LAW_SCHOOL.files[0].sha256}"
    ):
        fetch_law_school(data_home=tmp_path)
    assert path.read_bytes() == b"something else"
    assert origin.n_requests == 0


@pytest.mark.parametrize("page", ["missing.csv", "cut.csv"])
def test_law_school_failed_download_leaves_nothing(origin, tmp_path, monkeypatch, page):
    change_law_file(monkeypatch, url=f"{origin.url}/{page}")
    with pytest.raises(OSError, match="cannot be fetched"):
        fetch_law_school(data_home=tmp_path / "home")
    assert not (tmp_path / "home").exists()


def test_law_school_offline_error_names_three_ways_out(tmp_path, monkeypatch):
    change_law_file(monkeypatch, url=(tmp_path / "nowhere.csv").as_uri())
    with pytest.raises(OSError, match="cannot be fetched") as caught:
        fetch_law_school(data_home=tmp_path)
    message = str(caught.value)
    assert all(way in message for way in ("(1) try again", "(2) get the file", "(3) pass data_h"))
    assert str(tmp_path / "law_school.csv") in message


def test_file_that_cannot_be_finished_leaves_no_part(tmp_path, monkeypatch):
    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_whole(tmp_path / "table.csv", b"content")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------------------------
# The synthetic population

# Small groups, correlated columns and a category: every term of Bayes' rule matters.
HARD = {
    "group_shares": (0.6, 0.3, 0.1),
    "bias": 1.5,
    "correlation": 0.4,
    "n_categories": 4,
    "n_features": 5,
    "intercept": -0.4,
}


@pytest.fixture(scope="module")
def biased():
    return make_biased(40_000, random_state=0, **HARD)


def calibration_gap(outcome, proba, strata=0):
    """Largest distance between outcome rate and mean probability, in standard errors.

    Over all rows, over bins of the probability, and over such bins within each stratum.
    """
    order = np.argsort(proba, kind="stable")
    cells = [order, *np.array_split(order, 20)]
    strata = np.broadcast_to(strata, proba.shape)
    for value in np.unique(strata):
        cells.extend(np.array_split(order[strata[order] == value], 10))
    # One more in the variance: with almost no expected cases a single one is no surprise.
    error = [np.sqrt(1 + (proba[rows] * (1 - proba[rows])).sum()) for rows in cells]
    return np.max([abs((outcome[rows] - proba[rows]).sum()) for rows in cells] / np.array(error))


def membership_gap(population, proba):
    """Largest calibration gap of any group's probability, also within each category."""
    return max(
        calibration_gap(
            (population.sensitive_features == name).to_numpy(),
            proba[:, s],
            strata=population.data["category"].to_numpy(dtype=str),
        )
        for s, name in enumerate(population.group_names)
    )


def posterior(population, *, drop=None):
    """P(S=s|x) from the densities themselves, in another way than the library; or a wrong one."""
    numbers = population.data.filter(regex="^x").to_numpy()
    category = population.data["category"].str[1:].astype(int).to_numpy()
    covariance = population.covariance
    if drop == "correlation":
        covariance = np.eye(len(covariance))
    weight = np.column_stack(
        [
            stats.multivariate_normal(mean, covariance).pdf(numbers)
            for mean in population.group_means
        ]
    )
    if drop != "shares":
        weight = weight * population.group_shares
    if drop != "category":
        weight = weight * population.category_shares.T[category]
    return weight / weight.sum(axis=1, keepdims=True)


def test_biased_target_rates_match_the_exact_probability(biased):
    y = biased.target.to_numpy()
    assert calibration_gap(y, biased.proba_target) < 4
    # and the check would see a slightly wrong slope or intercept
    logit = np.log(biased.proba_target / (1 - biased.proba_target))
    assert calibration_gap(y, expit(1.2 * logit)) > 5
    assert calibration_gap(y, expit(logit + 0.2)) > 5


def test_biased_target_depends_on_neither_group_nor_category_given_x(biased):
    y = biased.target.to_numpy()
    for strata in (biased.sensitive_features, biased.data["category"]):
        gap = calibration_gap(y, biased.proba_target, strata=strata.to_numpy(dtype=str))
        assert gap < 4


def test_biased_group_rates_match_the_exact_probability(biased):
    assert membership_gap(biased, biased.proba_sensitive) < 4


def test_biased_check_would_see_a_wrong_bayes_rule(biased):
    for term in ["shares", "category", "correlation"]:
        assert membership_gap(biased, posterior(biased, drop=term)) > 8


def test_biased_group_probability_is_bayes_rule_to_the_last_digits(biased):
    np.testing.assert_allclose(biased.proba_sensitive, posterior(biased), rtol=1e-9)


def test_biased_columns_have_the_stated_population(biased):
    n = len(biased.target)
    shares = biased.sensitive_features.value_counts(normalize=True)[biased.group_names]
    np.testing.assert_allclose(shares, biased.group_shares, atol=4 * 0.5 / np.sqrt(n))
    for s, name in enumerate(biased.group_names):
        rows = biased.data[biased.sensitive_features == name]
        numbers, error = rows.filter(regex="^x"), 1 / np.sqrt(len(rows))
        np.testing.assert_allclose(numbers.mean(), biased.group_means[s], atol=4 * error)
        np.testing.assert_allclose(np.cov(numbers.T), biased.covariance, atol=6 * error)
        categories = rows["category"].value_counts(normalize=True).sort_index()
        np.testing.assert_allclose(categories, biased.category_shares[s], atol=4 * 0.5 * error)


def test_biased_population_rates_follow_from_the_fields(biased):
    spread = np.sqrt(biased.coef @ biased.covariance @ biased.coef)
    for s, name in enumerate(biased.group_names):
        logit = stats.norm(biased.intercept + biased.coef @ biased.group_means[s], spread)
        rate, _ = integrate.quad(lambda z, logit=logit: expit(z) * logit.pdf(z), -30, 30)
        y = biased.target[biased.sensitive_features == name]
        assert y.mean() == pytest.approx(rate, abs=4 * 0.5 / np.sqrt(len(y)))


def test_biased_default_columns_play_four_roles():
    population = make_biased(10, random_state=0)
    is_shifted = (population.group_means[0] != population.group_means[1]).tolist()
    assert is_shifted == [True, False, True, False]
    assert (population.coef != 0).tolist() == [True, True, False, False]
    assert np.linalg.norm(population.coef) == pytest.approx(2.0)
    assert population.group_shares @ population.group_means == pytest.approx(np.zeros(4))
    distance = population.group_means[0] - population.group_means[1]
    assert distance[0] == pytest.approx(1.0)


def test_biased_without_bias_the_columns_say_nothing_about_the_group():
    population = make_biased(50, bias=0, n_categories=3, random_state=0)
    expected = np.tile(population.group_shares, (50, 1))
    np.testing.assert_allclose(population.proba_sensitive, expected)


def test_biased_extreme_bias_stays_finite():
    population = make_biased(50, bias=2000.0, n_categories=3, random_state=0)
    assert np.isfinite(population.proba_sensitive).all()
    assert np.isfinite(population.category_shares).all()


def test_biased_same_seed_same_rows_and_another_seed_others():
    first, again = (make_biased(100, n_categories=3, random_state=7) for _ in range(2))
    assert first.frame.equals(again.frame)
    assert (first.proba_sensitive == again.proba_sensitive).all()
    assert not first.data.equals(make_biased(100, n_categories=3, random_state=8).data)
    state = make_biased(100, n_categories=3, random_state=np.random.RandomState(7))
    assert first.frame.equals(state.frame)


def test_biased_category_changes_nothing_else():
    plain = make_biased(100, random_state=3)
    with_category = make_biased(100, n_categories=3, random_state=3)
    assert "category" not in plain.data
    assert plain.frame.equals(with_category.frame.drop(columns="category"))


def test_biased_arrays_and_return_x_y():
    frame, arrays = (make_biased(30, random_state=1, as_frame=flag) for flag in (True, False))
    assert arrays.frame is None
    assert (arrays.data == frame.data.to_numpy()).all()
    assert arrays.sensitive_features.tolist() == frame.sensitive_features.tolist()
    X, y = make_biased(30, random_state=1, return_X_y=True)
    assert X.equals(frame.data)
    assert y.equals(frame.target)
    assert frame.feature_names == ["x0", "x1", "x2", "x3"]


def test_biased_refuses_bad_arguments_by_name():
    for arguments, message in [
        ({"n_samples": 0}, "n_samples == 0, must be >= 1"),
        ({"n_samples": 10.5}, "n_samples=10.5 must be a whole number"),
        ({"n_features": 0}, "n_features == 0, must"),
        ({"n_informative": 5}, "n_informative == 5, must be <= 4"),
        ({"n_informative": -1}, "n_informative == -1, must"),
        ({"group_shares": (0.7, 0.4)}, "must sum to 1, not to 1.1"),
        ({"group_shares": (1.0,)}, "two or more groups"),
        ({"group_shares": 0.5}, "two or more groups"),
        ({"group_shares": (1.2, -0.2)}, "must be positive"),
        ({"group_shares": (np.nan, 1.0)}, "must be positive"),
        ({"group_shares": ("a", "b")}, "must be numbers"),
        ({"bias": np.inf}, "bias=inf must be a finite number"),
        ({"signal": "strong"}, "signal='strong' must be a finite number"),
        ({"intercept": None}, "intercept=None must be a finite number"),
        ({"correlation": 1.0}, "between -0.333333 and 1, both excluded"),
        ({"correlation": -0.5}, "correlation=-0.5 must"),
        ({"n_categories": 1}, "n_categories=1 must"),
        ({"n_categories": -2}, "n_categories == -2, must"),
        ({"random_state": "seed"}, "random_state='seed' cannot be a seed"),
    ]:
        with pytest.raises(InputError, match=message) as error:
            make_biased(**arguments)
        assert [error.value.parameter] == list(arguments)
