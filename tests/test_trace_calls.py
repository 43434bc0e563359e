"""The script that traces calls counts the package's files, functions and levels."""

from scripts import trace_calls


def test_predict_enters_few_files_of_the_package(capsys):
    trace_calls.main(["predict"])
    name, files, functions, depth = capsys.readouterr().out.splitlines()[-1].split()
    assert name == "predict"
    assert 1 <= int(files) <= int(functions)
    assert 1 <= int(depth) <= int(functions)


def test_other_libraries_do_not_count():
    assert trace_calls.entered(lambda: sorted([2, 1], key=abs)) == (0, 0, 0)
