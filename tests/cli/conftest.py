"""Fixtures of the command line: a folder of tables, and a call of a command."""

import sys
import warnings

import pytest
from command_tables import write

from commod.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with the tables, which is the working folder too."""
    monkeypatch.chdir(write(tmp_path))
    return tmp_path


@pytest.fixture
def call(monkeypatch, capsys):
    """Return what runs the command in this process: exit code, standard output and error."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["commod", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                main()
            except SystemExit as stop:
                code = stop.code or 0
        said = capsys.readouterr()
        return code, said.out, said.err

    return run
