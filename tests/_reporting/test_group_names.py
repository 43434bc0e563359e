"""Names for groups: they show everywhere in an audit, and they never merge groups."""

import pandas as pd
import pytest

from commod import audit, audit_frame
from commod.exceptions import InputError

FRAME = pd.DataFrame(
    {
        "old": [0, 0, 1, 1] * 40,
        "new": [0, 1, 1, 1] * 40,
        "sex": [1, 2] * 80,
        "age": [0, 0, 1, 1] * 40,
    }
)


def by_rows(sensitive, **options):
    return audit(FRAME["old"], FRAME["new"], sensitive_features=FRAME[sensitive], **options)


def by_frame(sensitive, **options):
    return audit_frame(FRAME, before="old", after="new", sensitive_features=sensitive, **options)


@pytest.mark.parametrize("make", [by_rows, by_frame])
def test_groups_have_the_names_that_the_user_gives(make):
    result = make("sex", group_names={1: "women", 2: "men"})
    assert [group.name for group in result.groups] == ["women", "men"]
    assert "women" in " ".join(result.answer) + " ".join(c.sentence for c in result.checks)
    unnamed = make("sex")
    assert [g.selected_after for g in result.groups] == [g.selected_after for g in unnamed.groups]


@pytest.mark.parametrize("make", [by_rows, by_frame])
def test_a_group_without_a_name_keeps_its_value(make):
    assert [g.name for g in make("sex", group_names={2: "men"}).groups] == ["1", "men"]


@pytest.mark.parametrize("make", [by_rows, by_frame])
def test_several_columns_are_named_one_by_one(make):
    names = {"sex": {1: "women", 2: "men"}, "age": {0: "young"}}
    result = make(["sex", "age"], group_names=names)
    assert result.groups[0].name == "sex = women, age = young"
    with pytest.raises(InputError, match=r"has 2 columns.*names of each.*columns are sex, age"):
        make(["sex", "age"], group_names={1: "women"})


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({3: "others"}, r"group_names has 3, which no row has; the groups are 1, 2"),
        ({1: "all", 2: "all"}, r"gives two groups the name 'all'.*do not merge"),
        ({1: "2"}, r"gives two groups the name '2'"),
    ],
)
@pytest.mark.parametrize("make", [by_rows, by_frame])
def test_names_that_cannot_be_meant_are_refused(make, names, message):
    with pytest.raises(InputError, match=message):
        make("sex", group_names=names)
