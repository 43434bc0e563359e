"""Pages whose table is fetched: read it from the data home, or fetch it once, or skip the page."""

from __future__ import annotations

import pytest

from commod.datasets import fetch_german_credit
from commod.datasets._files import DATA_HOME_VARIABLE
from commod.exceptions import DatasetError

FETCHED = {"credit.md": fetch_german_credit}


@pytest.fixture(autouse=True)
def fetched_table(request, monkeypatch):
    """Let a page find its table without writing to the user's folders."""
    fetch = FETCHED.get(request.node.path.name)
    if fetch is None:
        return
    try:
        fetch(download_if_missing=False)
    except DatasetError:
        home = request.config.cache.mkdir("tables")
        try:
            fetch(data_home=home)
        except DatasetError as error:
            pytest.skip(str(error))
        monkeypatch.setenv(DATA_HOME_VARIABLE, str(home))
