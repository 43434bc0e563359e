"""JSON that somebody else wrote is read with limits, and in time that grows with its length."""

import json
import sys

import pytest

from commod import Audit
from commod._io.untrusted import MAX_DEPTH, as_object, read_object
from commod.exceptions import InputError
from counted_text import Counted, n_comparisons


def test_a_key_that_occurs_twice_is_found_in_one_pass():
    def refuse(n):
        keys = [Counted(f"key {i}") for i in range(n)]
        with pytest.raises(ValueError, match=f"'key {n - 1}' occurs twice"):
            as_object([(key, 0) for key in [*keys, keys[-1]]])

    assert n_comparisons(lambda: refuse(500)) < 2 * 500


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff", "not text in UTF-8"),
        (b'{"a": "\\ud800"}', "not text in UTF-8"),
        (b'{"a": NaN}', "NaN is not a number"),
        (b'{"a": 1e5, "a": 2}', "the key 'a' occurs twice"),
        (b'{"a": {"b": 1, "b": 1}}', "the key 'b' occurs twice"),
        (b"[1]", "of type list, expected an object"),
        (b'{"a": ' + b"[" * 10**6, "nests too deeply to be a patch"),
        (b'{"a": "' + b'\\"' * 10**5, "not JSON"),
        (b"{}" + b" " * 2**21, "larger than 2 MiB"),
        (b'{"a": ' + b"1" * 10_000 + b"}", "not JSON"),
    ],
)
def test_what_is_no_plain_object_is_refused(data, message):
    with pytest.raises(InputError, match=message):
        read_object(data, "a patch", 2**21)


@pytest.mark.parametrize("text", ['{"a": "[[[{{"}', '{"\\\\": ["\\"[", {"b]": {}}]}', '{"é": []}'])
def test_brackets_in_texts_do_not_nest(text):
    assert read_object(text.encode() + b" " * 9, "a patch", 100) == json.loads(text)


def test_depth_is_limited_whatever_python_allows():
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(100_000)
        for n, is_fine in ((MAX_DEPTH - 1, True), (MAX_DEPTH, False), (50_000, False)):
            text = '{"a": ' + "[" * n + "]" * n + "}"
            if is_fine:
                read_object(text.encode(), "a patch", 2**20)
            else:
                with pytest.raises(InputError, match="nests too deeply"):
                    read_object(text.encode(), "a patch", 2**20)
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": "commod.audit/1", "schema": "commod.audit/1"}', "'schema' occurs twice"),
        ('{"schema": ' + "[" * 100_000, "nests too deeply to be an audit"),
        ("[]", "of type list"),
        (b"{}", "read from text; got bytes"),
        (None, "read from text; got NoneType"),
    ],
)
def test_an_audit_is_read_as_strictly_as_a_patch(text, message):
    with pytest.raises(InputError, match=message):
        Audit.from_json(text)
