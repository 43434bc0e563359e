"""Bank marketing: read out of the archive of its origin, checked, kept."""

import hashlib
import io
import zipfile
from dataclasses import replace

import pytest

from commod.datasets import _real, fetch_bank_marketing
from commod.exceptions import DatasetError

HEADINGS = (
    "age;job;marital;education;default;housing;loan;contact;month;day_of_week;duration;campaign;"
    "pdays;previous;poutcome;emp.var.rate;cons.price.idx;cons.conf.idx;euribor3m;nr.employed;y"
)
PERSON = (
    '{age};"admin.";"married";"unknown";"no";"no";"no";"telephone";"may";"mon";261;1;999;0;'
    '"nonexistent";1.1;93.994;-36.4;4.857;5191;"{y}"'
)
CONTENT = "\n".join(
    [
        '"' + HEADINGS.replace(";", '";"') + '"',
        *(PERSON.format(age=age, y=y) for age, y in ((24, "yes"), (25, "no"), (61, "yes"))),
        "",
    ]
).encode()


def archive(name=_real.BANK.files[0].member, content=CONTENT):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as opened:
        opened.writestr(name, content)
    return packed.getvalue()


@pytest.fixture
def origin(monkeypatch, tmp_path):
    """A folder in place of the UCI repository, with a small archive."""
    monkeypatch.delenv("COMMOD_DATA_HOME", raising=False)
    path = tmp_path / "origin" / "bank-additional.zip"
    path.parent.mkdir()
    path.write_bytes(archive())
    digest = hashlib.sha256(CONTENT).hexdigest()
    file = replace(_real.BANK.files[0], sha256=digest, url=path.as_uri())
    monkeypatch.setattr(_real, "BANK", replace(_real.BANK, files=[file]))
    return path


def test_groups_are_made_from_age_and_the_duration_is_no_feature(origin, tmp_path):
    bank = fetch_bank_marketing(data_home=tmp_path)
    assert bank.target.tolist() == [1, 0, 1]
    assert bank.sensitive_features.tolist() == ["under 25", "25 or older", "25 or older"]
    assert bank.age_years.tolist() == [24, 25, 61]
    assert len(bank.feature_names) == 18
    assert not {"age", "duration", "y"} & set(bank.feature_names)
    assert bank.data["education"].tolist() == ["unknown"] * 3
    assert list(bank.frame.columns) == [*bank.feature_names, "subscribed", "age"]


def test_the_file_is_kept_and_the_archive_is_not(origin, tmp_path):
    home = tmp_path / "home"
    first = fetch_bank_marketing(data_home=home)
    origin.unlink()
    second = fetch_bank_marketing(data_home=home, download_if_missing=False)
    assert first.frame.equals(second.frame)
    assert [path.name for path in home.iterdir()] == ["bank-additional-full.csv"]
    X, y = fetch_bank_marketing(data_home=home, as_frame=False, return_X_y=True)
    assert (X.shape, y.tolist()) == ((3, 18), [1, 0, 1])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (archive(content=CONTENT + b" "), "bank-additional-full.csv of file.* has SHA-256"),
        (archive(name="other.csv"), "is no ZIP archive with bank-additional/bank-additional-full"),
        (b"<html>moved</html>", "is no ZIP archive with bank-additional/bank-additional-full"),
    ],
    ids=["another table", "another archive", "no archive"],
)
def test_anything_else_is_refused_and_not_kept(origin, tmp_path, content, message):
    origin.write_bytes(content)
    with pytest.raises(DatasetError, match=message):
        fetch_bank_marketing(data_home=tmp_path / "home")
    assert not (tmp_path / "home").exists()


def test_the_error_without_a_network_names_the_ways_out(origin, tmp_path):
    origin.unlink()
    with pytest.raises(OSError, match=r"cannot be fetched .* \(2\) get the file by other means"):
        fetch_bank_marketing(data_home=tmp_path / "home")


def test_the_description_says_where_the_table_comes_from_and_what_is_wrong_with_it(
    origin, tmp_path
):
    text = fetch_bank_marketing(data_home=tmp_path).DESCR
    for words in ("CC BY 4.0", "10.24432/C5K306", "known only after the answer", "persuaded"):
        assert words in text


def test_bank_marketing_has_the_known_counts(tmp_path):
    try:
        bank = fetch_bank_marketing(download_if_missing=False)
    except DatasetError:
        try:
            bank = fetch_bank_marketing(data_home=tmp_path)
        except DatasetError as error:
            pytest.skip(str(error))
    assert bank.data.shape == (41188, 18)
    assert bank.target.value_counts().to_dict() == {0: 36548, 1: 4640}
    counts = bank.sensitive_features.value_counts().to_dict()
    assert counts == {"25 or older": 40120, "under 25": 1068}
    assert (bank.data == "unknown").any(axis=1).sum() == 10700
