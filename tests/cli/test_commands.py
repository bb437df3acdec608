import json

import numpy as np
import pandas as pd
import pytest

import rescore as rs
from rescore.cli.demo import verdict
from rescore.graph.io import read_graph, write_adjacency


@pytest.mark.usefixtures("undrawn")
def test_simulate_fit_evaluate(cli_json, tmp_path):
    sim, run = tmp_path / "sim", tmp_path / "run"
    made = cli_json("simulate", "--nodes", 5, "--degree", 1, "--samples", 400, "-o", sim)
    assert (made["n"], made["d"], made["files"]) == (
        400, 5, ["data.csv", "simulation.json", "truth.csv"],
    )  # fmt: skip
    fitted = cli_json("fit", sim / "data.csv", "-o", run, "--truth", sim / "truth.csv")
    scores = cli_json("evaluate", sim / "truth.csv", run / "graph.graphml")
    assert scores.pop("undefined") == {}
    assert scores == fitted["scores"]
    assert scores["shd"] == 0


def test_simulated_files_are_exact_and_repeatable(cli, tmp_path):
    words = (
        "simulate", "--graph", "sf", "--nodes", 5, "--samples", 50, "--groups", "0.8,0.2",
        "--noise-scale", 0.1, "--scale-is", "variance", "--corrupt", 0.1, "--seed", 4,
        "--noise", "exp",
    )  # fmt: skip
    assert cli(*words, "-o", tmp_path / "a").exit_code == 0
    assert cli(*words, "-o", tmp_path / "b").exit_code == 0
    expected = rs.simulate(
        "SF", nodes=5, samples=50, groups=(0.8, 0.2), noise_scale=0.1, scale_is="variance",
        corrupt=0.1, random_state=4, noise="exp",
    )  # fmt: skip
    rows = [line.split(",") for line in (tmp_path / "a/data.csv").read_text().splitlines()[1:]]
    np.testing.assert_array_equal(np.array(rows, dtype=float), expected.X)
    assert (read_graph(tmp_path / "a/truth.csv") == expected.truth).all(axis=None)
    assert pd.read_csv(tmp_path / "a/groups.csv")["group"].tolist() == expected.groups.tolist()
    about = json.loads((tmp_path / "a/simulation.json").read_text())
    assert (about["rescore"], about["seed"], about["groups"]) == (rs.__version__, 4, [0.8, 0.2])
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_old_groups_do_not_survive(cli, tmp_path):
    sizes = ("--nodes", 5, "--samples", 50, "-o", tmp_path)
    assert cli("simulate", *sizes, "--groups", "0.5,0.5", "--noise-scale", 0.5).exit_code == 0
    assert (tmp_path / "groups.csv").exists()
    assert cli("simulate", *sizes).exit_code == 0
    assert not (tmp_path / "groups.csv").exists()


def test_evaluate_goes_by_names_and_directions(cli, cli_json, tmp_path):
    truth = pd.DataFrame([[0, 1, 0], [0, 0, 1], [0, 0, 0]], index=list("abc"), columns=list("abc"))
    write_adjacency(tmp_path / "truth.csv", truth)
    shuffled = truth.loc[list("cab"), list("cab")]
    write_adjacency(tmp_path / "shuffled.tsv", shuffled)
    assert cli_json("evaluate", tmp_path / "truth.csv", tmp_path / "shuffled.tsv")["shd"] == 0
    (tmp_path / "silent.csv").write_text("a,b,c\n0,1,0\n0,0,1\n0,0,0\n")
    pair = ("evaluate", tmp_path / "truth.csv", tmp_path / "silent.csv")
    assert cli(*pair).exit_code == 2
    assert cli_json(*pair, "--estimate-direction", "from row to column")["shd"] == 0
    reversed_chain = cli_json(*pair, "--estimate-direction", "from column to row")
    assert (reversed_chain["shd"], reversed_chain["cpdag_shd"]) == (2, 0)
    back = ("evaluate", tmp_path / "silent.csv", tmp_path / "truth.csv")
    assert cli_json(*back, "--truth-direction", "from column to row")["shd"] == 2
    (tmp_path / "other.csv").write_text("from,to\na,b\nb,d\n")
    result = cli("evaluate", tmp_path / "truth.csv", tmp_path / "other.csv")
    assert result.exit_code == 2
    assert "'c'" in result.stderr
    assert "'d'" in result.stderr


def test_evaluate_in_words(cli, tmp_path):
    (tmp_path / "empty.json").write_text('{"nodes": ["a", "b"], "edges": []}')
    result = cli("evaluate", tmp_path / "empty.json", tmp_path / "empty.json")
    assert result.exit_code == 0
    lines = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert lines["shd"] == lines["cpdag_shd"] == "0"
    assert lines["tpr"].startswith("-  ")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("a>b", "a>b b>c", "helped here"),
        ("a>b b>c", "a>b", "worse here"),
        ("a>b", "b>c", "helped here: SHD 1 -> 1, SID 2 -> 1"),
        ("b>a", "a>c", "helped by one measure and hurt by the other"),
        ("a>b", "a>b", "not its distance"),
    ],
)
def test_the_verdict_follows_the_scores(before, after, words):
    def graph(text):
        frame = pd.DataFrame(0, index=list("abc"), columns=list("abc"))
        for edge in text.split():
            frame.loc[edge[0], edge[2]] = 1
        return frame

    truth = graph("a>b b>c")
    old, new = rs.evaluate(truth, graph(before)), rs.evaluate(truth, graph(after))
    assert words in verdict(old, new, same_graph=False)
    assert "same edges" in verdict(old, old, same_graph=True)


def test_groups_of_a_simulation_go_straight_into_a_fit(cli, tmp_path):
    words = ("--nodes", 5, "--degree", 1, "--samples", 200, "--groups", "0.8,0.2")
    assert cli("simulate", *words, "--noise-scale", 0.1, "-o", tmp_path).exit_code == 0
    where = ("--groups", tmp_path / "groups.csv", "-o", tmp_path / "run")
    shown = cli("fit", tmp_path / "data.csv", "--learner", "linear", *where)
    assert shown.exit_code == 0, shown.output
    assert "g1" in shown.stdout
    assert "groups whose noise or level differs" in shown.stdout
    assert "groups whose noise or level differs" in (tmp_path / "run" / "report.html").read_text()
    (tmp_path / "short.csv").write_text("group\na\nb\n")
    wrong = cli("fit", tmp_path / "data.csv", "--groups", tmp_path / "short.csv")
    assert wrong.exit_code == 2
    assert "2 labels for 200 rows" in wrong.stderr
    two = cli("fit", tmp_path / "data.csv", "--groups", tmp_path / "data.csv")
    assert two.exit_code == 2
    assert "one column" in two.stderr
