"""Errors name the wrong parameter and survive pickling."""

import copy
import pickle

from commod.exceptions import BaseModelError, InputError, InputTypeError


def test_an_input_error_keeps_its_message_and_its_parameter():
    for kind in [InputError, InputTypeError, BaseModelError]:
        for duplicate in [copy.copy, lambda e: pickle.loads(pickle.dumps(e))]:
            error = duplicate(kind("max_changes=-1 must be 0 or more.", parameter="max_changes"))
            assert type(error) is kind
            assert error.args == ("max_changes=-1 must be 0 or more.",)
            assert error.parameter == "max_changes"


def test_an_input_error_names_no_parameter_by_default():
    assert InputError("Labels differ.").parameter is None
