import numpy as np
import pytest

import rescore as rs
from rescore.cli.after_fit import plain_of
from rescore.studies.table_input import Input
from rescore.tables.table import as_table

UNEVEN = rs.simulate(
    nodes=8, degree=2, samples=600, groups=[0.9, 0.1], noise_scale=0.1, random_state=100
).X


@pytest.fixture(scope="module")
def reweighted():
    model = rs.ReScore(rs.Linear()).fit(UNEVEN)
    assert model.diagnostics_["weighting"]["groups"] == 2
    return model


def test_the_plain_graph_is_that_of_the_learner_alone(reweighted):
    plain, stopped = plain_of(reweighted, Input(as_table(UNEVEN)), True)
    assert not stopped
    np.testing.assert_array_equal(plain, rs.Linear().fit(UNEVEN).adjacency_matrix_)
    assert plain_of(reweighted, Input(as_table(UNEVEN)), False) == (None, False)
    assert plain_of(reweighted.estimator, Input(as_table(UNEVEN)), True) == (None, False)


def test_where_no_row_was_reweighted_nothing_is_fitted_again(monkeypatch):
    alike = rs.simulate(nodes=5, degree=1, samples=500, random_state=100).X
    model = rs.ReScore(rs.Linear()).fit(alike)
    monkeypatch.setattr("rescore.cli.after_fit._fitted", lambda *_: pytest.fail("fitted again"))
    np.testing.assert_array_equal(
        plain_of(model, Input(as_table(alike)), True)[0], rs.Linear().fit(alike).adjacency_matrix_
    )


def test_ctrl_c_loses_the_comparison_and_not_the_fit(reweighted, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("rescore.cli.after_fit._fitted", stop)
    assert plain_of(reweighted, Input(as_table(UNEVEN)), True) == (None, True)


def test_the_command_says_what_the_weights_changed(cli, cli_json, tmp_path):
    UNEVEN.to_csv(tmp_path / "uneven.csv", index=False)
    words = ("fit", tmp_path / "uneven.csv", "--learner", "linear", "--no-units")
    shown = cli(*words, "-o", tmp_path / "run")
    assert "only with them:" in shown.stdout
    page = (tmp_path / "run" / "report.html").read_text()
    assert "With and without row weights" in page
    assert "What a check of the table shows" in page
    assert "Rows do not look alike" not in page  # what the weights see to is no finding any more
    assert {"without", "with", "change"} <= set(cli_json(*words)["plain"][0])
    assert "plain" not in cli_json(*words, "--no-plain")
