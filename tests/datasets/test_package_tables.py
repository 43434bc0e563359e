"""Adult, German credit and bank marketing: fetched, checked, kept."""

import hashlib
import io
import shutil
import zipfile
from dataclasses import replace

import pytest

from commod.datasets import _real, fetch_adult, fetch_bank_marketing, fetch_german_credit
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


@pytest.fixture
def originals(monkeypatch, tmp_path):
    """The folder of small tables, in place of the public addresses."""
    monkeypatch.delenv("COMMOD_DATA_HOME", raising=False)
    folder = tmp_path / "originals"
    folder.mkdir()
    for name in ("ADULT", "GERMAN"):
        table = getattr(_real, name)
        files = [small(file, folder) for file in table.files]
        monkeypatch.setattr(_real, name, replace(table, files=files))
        for file in files:
            (folder / file.name).write_bytes(CONTENTS[file.name])
    return folder


def test_adult_joins_both_files_and_leaves_out_people_with_unknown_values(originals, tmp_path):
    adult = fetch_adult(data_home=tmp_path)
    assert adult.data["workclass"].tolist() == ["Private", "Private"]
    assert adult.target.tolist() == [0, 1]
    assert adult.sensitive_features.tolist() == ["Male", "Female"]
    assert not {"sex", "fnlwgt", "income"} & set(adult.feature_names)
    assert len(adult.feature_names) == 12
    assert list(adult.frame.columns) == [*adult.feature_names, "income", "sex"]


def test_german_label_1_is_good_and_sex_is_no_feature(originals, tmp_path):
    german = fetch_german_credit(data_home=tmp_path)
    assert german.target.tolist() == [1, 0]
    assert german.sensitive_features.tolist() == ["male", "female"]
    assert "A92" not in german.data.to_numpy()
    assert german.data["age"].tolist() == [67, 22]
    assert len(german.feature_names) == 19


@pytest.mark.parametrize("fetch", [fetch_adult, fetch_german_credit])
def test_tables_are_fetched_once_and_then_read_from_the_data_home(originals, tmp_path, fetch):
    home = tmp_path / "new" / "home"
    first = fetch(data_home=home)
    shutil.rmtree(originals)
    second = fetch(data_home=home)
    assert first.frame.equals(second.frame)
    X, y = fetch(data_home=home, as_frame=False, return_X_y=True)
    assert X.tolist() == first.data.to_numpy().tolist()
    assert y.tolist() == first.target.tolist()


def test_only_the_missing_file_is_fetched(originals, tmp_path):
    (tmp_path / "adult.data").write_bytes(CONTENTS["adult.data"])
    before = (tmp_path / "adult.data").stat().st_mtime_ns
    assert fetch_adult(data_home=tmp_path).target.tolist() == [0, 1]
    assert (tmp_path / "adult.data").stat().st_mtime_ns == before
    assert (tmp_path / "adult.test").read_bytes() == CONTENTS["adult.test"]


def test_offline_error_names_the_source_and_the_ways_out(originals, tmp_path):
    shutil.rmtree(originals)
    with pytest.raises(OSError, match=r"adult.data does not exist") as caught:
        fetch_adult(data_home=tmp_path / "home")
    message = str(caught.value)
    assert isinstance(caught.value, CommodError)
    assert "adult.data cannot be fetched" in message
    assert all(way in message for way in ("(1) try again", "(2) get the file", "(3) pass data_h"))
    assert "adult.data and adult.test" in message
    assert not (tmp_path / "home").exists()


def test_a_changed_file_is_refused_and_not_kept(originals, tmp_path):
    (originals / "german.data").write_bytes(b"another table")
    with pytest.raises(OSError, match=r"german.data has SHA-256"):
        fetch_german_credit(data_home=tmp_path / "home")
    assert not (tmp_path / "home").exists()


def test_missing_file_without_download_starts_no_download(originals, tmp_path):
    with pytest.raises(OSError, match=r"adult.data does not exist and download_if_missing=False"):
        fetch_adult(data_home=tmp_path, download_if_missing=False)
    assert not (tmp_path / "adult.data").exists()


@pytest.mark.parametrize(
    ("fetch", "words"),
    [
        (fetch_adult, ["CC BY 4.0", "census", "arbitrary"]),
        (fetch_german_credit, ["CC BY 4.0", "Hofmann", "sex is not reliable", "25 or younger"]),
    ],
)
def test_descriptions_say_where_tables_come_from_and_what_is_wrong_with_them(
    originals, tmp_path, fetch, words
):
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
        (archive(name="other.csv"), "is no ZIP archive with bank-additional/bank-additional-full"),
        (b"<html>moved</html>", "is no ZIP archive with bank-additional/bank-additional-full"),
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
