import os
import signal
import subprocess
import sys

import pytest

from rescore.cli.terminal import one_line, uninterrupted
from rescore.exchange.saving import load
from rescore.learners.notears import NotearsBackbone
from rescore.learners.rescore import ReScore
from rescore.protocols import Status
from rescore.reports import folder


def only_line(text):
    (line,) = text.splitlines()
    return line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tau", "2"], "tau must be"),
        (["--tau", "x"], "tau"),
        (["--learner", "notears", "--lambda1", "-1"], "lambda1 must be"),
        (["--lambda1", "1"], "--lambda1 means nothing to the learner linear"),
        (["--max-steps", "many"], "--max-steps takes a whole number, got 'many'"),
        (["--polish"], "--polish"),  # which other learners know
        (["--weighting", "magic"], "weighting must be one of"),
        (["--loss", "magic"], "loss must be one of"),
        (["--learner", "magic"], "--learner must be one of"),
        (["--groups", "nowhere"], "no column 'nowhere' of labels among"),
        (["--weights", "nowhere"], "no column 'nowhere' for --weights"),
        (["--drop", "nowhere"], "no column 'nowhere' to drop"),
        (["--drop", "a", "--weights", "a"], "more than once"),
        (["--drop", '"a'], "not a list of names"),
        (["--forbid", "a"], "--forbid takes a cause and an effect"),
        (["--require", "a,b", "--require", "b,a"], "cycle"),
        (["--truth", "missing.csv"], "missing.csv"),
        (["--nonsense"], "--nonsense"),
        (["--delimiter", ";"], "delimiter"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(cli, data, words, message):
    result = cli("fit", data, *words)
    assert result.exit_code == 2
    assert only_line(result.stderr).startswith("error: ")
    assert message in result.stderr
    assert result.stdout == ""


def test_bad_files_are_exit_code_2(cli, data, tmp_path):
    (tmp_path / "gap.csv").write_text("a,b\n1,2\n,3\n")
    (tmp_path / "other.csv").write_text("from,to\na,z\n")
    (tmp_path / "quote.csv").write_text('a,g\n1,"u\n2,v\n')
    (tmp_path / "blank.csv").write_text("a,g\n1,u\n2,\n")
    (tmp_path / "short.csv").write_text("a,g\n1,u\n2\n")
    (tmp_path / "broken.parquet").write_text("PAR1")
    for words in (
        *(
            ["fit", tmp_path / name, "--groups", "g"]
            for name in ("quote.csv", "blank.csv", "short.csv", "broken.parquet", "table.xlsx")
        ),
        ["fit", data, "--groups", "c", "--delimiter", "too long"],
        ["fit", tmp_path / "missing.csv"],
        ["fit", tmp_path],
        ["fit", tmp_path / "gap.csv"],
        ["fit", data, "--truth", tmp_path / "other.csv"],
        ["fit", data, "-o", data],
        ["fit", data, "-o", data / "below"],
        ["simulate", "-o", data],
        ["simulate", "-o", tmp_path / "sim", "--groups", "a,b"],
        ["simulate", "-o", tmp_path / "sim", "--mechanism", "magic"],
        ["evaluate", tmp_path / "missing.csv", tmp_path / "other.csv"],
        ["demo", "-o", data],
        ["magic"],
    ):
        result = cli(*words)
        assert result.exit_code == 2, words
        assert only_line(result.stderr).startswith("error: ")
    assert not (tmp_path / "sim").exists()


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["fit", "weights.csv"], ["weights.csv", "scores.json", "stability.csv"]),
        (["simulate", "--nodes", 3], ["data.csv", "truth.csv"]),
        (["advise", "data.csv", "--learner", "linear"], ["data.csv", "advice.svg"]),
        (["demo"], ["graph.json", "report.html"]),
        (["reproduce", "sachs", "--tiny"], ["sachs.md", "sachs.html"]),
    ],
)
@pytest.mark.parametrize("where", [".", "", " "])
def test_files_of_others_are_never_written_over(
    cli, data, tmp_path, monkeypatch, words, names, where
):
    content = data.read_text()
    data.unlink()
    monkeypatch.chdir(tmp_path)
    for name in names:
        (tmp_path / name).write_text(content)
    result = cli(*words, "-o", where)
    assert result.exit_code == 2
    line = only_line(result.stderr)
    assert ("Give a new folder" if where == "." else "give a folder") in line
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(
        names, content
    )


def test_what_is_read_is_never_written_over(cli, data, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text("{}")  # an earlier run
    data.rename(run / "weights.csv")
    before = (run / "weights.csv").read_text()
    result = cli("fit", run / "weights.csv", "-o", run)
    assert result.exit_code == 2
    assert "would be written over" in only_line(result.stderr)
    assert (run / "weights.csv").read_text() == before


def test_debug_shows_the_traceback_too(cli, data):
    result = cli("fit", data, "--tau", 2, "--debug")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("error: tau")


def test_an_unexpected_failure_is_exit_code_1(cli, data, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("two\nlines \x1b[31m")

    monkeypatch.setattr(ReScore, "fit", fail)
    result = cli("fit", data)
    assert result.exit_code == 1
    assert "two lines \\x1b[31m" in only_line(result.stderr)
    assert "--debug" in result.stderr


def test_ctrl_c_is_exit_code_130_and_writes_nothing(cli, data, monkeypatch, tmp_path):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(ReScore, "fit", stop)
    result = cli("fit", data, "-o", tmp_path / "run")
    assert result.exit_code == 130
    assert only_line(result.stderr).startswith("interrupted")
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("undrawn")
def test_ctrl_c_during_a_fit_writes_what_was_reached(cli, data, monkeypatch, tmp_path):
    step = NotearsBackbone.step

    def interrupted_step(self, problem, w, state):
        if state.trace:  # the second step
            raise KeyboardInterrupt
        return step(self, problem, w, state)

    monkeypatch.setattr(NotearsBackbone, "step", interrupted_step)
    result = cli("fit", data, "-o", tmp_path / "run", "--learner", "notears")
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1].startswith("interrupted")
    assert load(tmp_path / "run").status_ is Status.INTERRUPTED


def test_ctrl_c_while_writing_waits_for_the_files(cli, data, monkeypatch, tmp_path):
    write_model = folder.write_model

    def interrupted_save(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        write_model(*arguments)

    monkeypatch.setattr(folder, "write_model", interrupted_save)
    result = cli("fit", data, "-o", tmp_path / "run")
    assert result.exit_code == 130
    assert {"model.json", "report.html"} <= {path.name for path in (tmp_path / "run").iterdir()}


def test_the_signal_handler_is_put_back():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_full_disk_is_reported(cli, data, monkeypatch, tmp_path):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder, "write_model", full)
    result = cli("fit", data, "-o", tmp_path / "run")
    assert result.exit_code == 2
    assert "No space left on device" in only_line(result.stderr)
    assert not (tmp_path / "run").exists()


def test_the_program_itself(program, truth, tmp_path):
    assert program("--version").stdout.startswith("rescore ")
    wrong = program("evaluate", truth, tmp_path / "missing.csv")
    assert wrong.returncode == 2
    assert only_line(wrong.stderr).startswith("error: ")


def test_closed_streams_do_no_harm(truth, tmp_path):
    code = "from rescore.cli import run; run()"
    words = f'evaluate "{truth}" "{truth}"'
    for closed in (">&-", "2>&-", "<&- >&- 2>&-"):
        command = f"'{sys.executable}' -c '{code}' {words} {closed}"
        assert subprocess.run(command, shell=True, stderr=subprocess.PIPE).returncode == 0
    wrong = f"'{sys.executable}' -c '{code}' evaluate a.csv b.csv >&- 2>&-"
    assert subprocess.run(wrong, shell=True).returncode == 2


def test_a_closed_pipe_is_quiet(truth):
    code = "from rescore.cli import run; run()"
    command = [sys.executable, "-c", code, "evaluate", str(truth), str(truth)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_a_terminal_without_unicode_gets_escapes(program, tmp_path):
    result = program("evaluate", "missing-\u03b2.json", "x.json", PYTHONIOENCODING="ascii")
    assert result.returncode == 2
    assert "missing-\\u03b2.json" in only_line(result.stderr)


def test_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from rescore.cli import run\n"
        "for words in (['--help'], ['fit', '--help'], ['--version'], []):\n"
        "    sys.argv = ['rescore', *words]\n"
        "    try: run()\n"
        "    except SystemExit as end: assert not end.code, words\n"
        "heavy = {'jax', 'numpy', 'pandas', 'scipy', 'sklearn', 'matplotlib', 'networkx'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("Usage") == 3  # and a version


def test_one_line_keeps_what_is_visible():
    assert one_line("a \\ β\t\r\nb") == "a \\ β b"
    assert one_line("\u202ex\x00") == "\\u202ex\\x00"
