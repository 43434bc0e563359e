"""A test of a table fails where a line does, and names every such line."""

import pytest

from tables_of_cases import every_line


def test_every_line_that_fails_is_named(tmp_path):
    @every_line("number, text", [(1, "one"), (2, "two"), (3, "three"), (4, "four")])
    def test(number, text, tmp_path):
        assert tmp_path.exists()
        assert text != "two", "so bad"
        with pytest.raises(ZeroDivisionError):
            1 / (number - 3)

    with pytest.raises(AssertionError) as failed:
        test(tmp_path=tmp_path)
    lines = str(failed.value).split("\n\n")
    named = [line.partition(": ")[0] for line in lines if line.startswith("(")]
    assert named == ["(1, 'one')", "(2, 'two')", "(4, 'four')"]
    assert "DID NOT RAISE" in lines[0] and "so bad" in str(failed.value)


def test_a_table_of_one_column_and_tables_of_tables():
    seen = []

    @every_line("one", "ab")
    @every_line("other", range(2))
    def test(one, other):
        seen.append((one, other))

    test()
    assert seen == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
