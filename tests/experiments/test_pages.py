"""Every declared experiment runs, and its page is made from its records alone."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rescore.experiments import Case, Experiment, Trial, declared, find
from rescore.experiments.conclusions import (
    against_chance,
    best_setting,
    cells,
    conclusion,
    gains,
    tidy,
)
from rescore.experiments.pages import contents, html, markdown, write_pages
from rescore.experiments.published_numbers import PUBLISHED, published
from rescore.experiments.running import dataset, run_trial
from rescore.experiments.store import Store
from rescore.experiments.sweep import missing
from rescore.text import asset

NAMES = [experiment.name for experiment in declared()]
FAILED = {"failed", "timed out"}


def record(trial, shd, status="ok"):
    scores = {"shd": shd, "sid": 2 * shd, "tpr": 0.5, "fdr": 0.1, "edges": 9, "cpu_seconds": 1.0}
    return {"key": trial.key, "trial": trial.content, "status": status, "result": scores}


def experiment(**changes):
    data = ({"source": "simulate", "mechanism": "linear", "over": {"nodes": [10, 20]}},)
    methods = (
        {"name": "NOTEARS", "learner": "Notears"},
        {"name": "NOTEARS + ReScore", "learner": "Notears", "rescore": {}},
    )
    return Experiment("mine", "Mine <b>", data, methods, seeds=3, **changes)


@pytest.fixture
def filled(tmp_path):
    """A store in which ReScore is better by 1, 2 and 3."""
    store = Store(tmp_path / "records")
    for case in experiment().cases():
        lower = (case.trial.seed + 1) * ("ReScore" in case.method)
        store.write(record(case.trial, 10 + case.trial.data["nodes"] - lower))
    return store


def test_means_gains_and_intervals(filled):
    runs = tidy(experiment().cases(), filled.read())
    assert runs.attrs["data"] == ["nodes"]
    found = cells(runs).set_index(["nodes", "method"])
    assert found.loc[(10, "NOTEARS + ReScore"), "shd"] == 18.0
    assert found.loc[(10, "NOTEARS + ReScore"), "shd_std"] == pytest.approx(1.0)
    gain = gains(runs).set_index("nodes").loc[10]
    assert gain["gain"] == 2.0
    assert gain["half_interval"] == pytest.approx(4.3027 / np.sqrt(3), rel=1e-4)  # t, 2 degrees
    assert gain["before"] == 20.0


def test_only_what_ended_well_is_counted(filled):
    case = experiment().cases()[0]
    filled.write(record(case.trial, 9999, status="not converged"))
    runs = tidy(experiment().cases(), filled.read())
    assert cells(runs)["shd"].max() < 100
    page = contents(experiment(), filled)
    assert page.tables["Not counted"]["status"].tolist() == ["not converged"]
    assert gains(runs)["pairs"].tolist() == [2, 3]


def test_what_was_not_run_is_missing_not_zero(tmp_path):
    page = contents(experiment(), Store(tmp_path))
    assert set(page.tables["Not counted"]["status"]) == {"missing"}
    assert "Mean ± standard deviation over data sets" not in page.tables


def test_the_oracle_picks_the_best_setting_and_only_it():
    trials = [
        Trial({"nodes": 5}, {"learner": "Notears", "parameters": {"lambda1": value}}, seed)
        for value in (0.1, 0.2)
        for seed in (0, 1)
    ]
    cases = [Case("NOTEARS", trial) for trial in trials]
    shds = {0.1: (5, 7), 0.2: (2, 4)}
    records = {t.key: record(t, shds[t.method["parameters"]["lambda1"]][t.seed]) for t in trials}
    best = best_setting(tidy(cases, records))
    assert best["setting"].unique().tolist() == ["lambda1=0.2"]
    assert cells(best)["shd"].tolist() == [3.0]


def test_published_cells_stand_beside_ours(filled):
    page = contents(experiment(published="heterogeneous"), filled)
    means = page.tables["Mean ± standard deviation over data sets"]
    assert "published SHD" not in means  # that table of the paper has no NOTEARS
    data = ({"source": "simulate", "mechanism": "linear", "graph": "ER", "degree": 2,
             "over": {"nodes": [10, 20]}},)  # fmt: skip
    mine = Experiment("mine", "Mine", data, experiment().methods, 1, published="synthetic")
    store = Store(filled.folder / "other")
    for case in mine.cases():
        store.write(record(case.trial, 4 if "ReScore" in case.method else 5))
    page = contents(mine, store)
    means = page.tables["Mean ± standard deviation over data sets"]
    assert means["published SHD"].tolist() == ["5.8 ± 2.2", "4.6 ± 2.3", "9.2 ± 3.8", "8.8 ± 3.5"]
    table = page.tables["Plain − ReScore, SHD on the same data sets"]
    assert table["relative"].tolist() == ["+20 %", "+20 %"]
    assert table["published relative"].tolist() == ["+21 %", "+4 %"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_tables_are_tidy(name):
    table = published(name)
    assert {"method", "metric", "mean"} <= set(table)
    keys = [c for c in table if c not in {"mean", "std"}]
    assert not table.duplicated(keys).any()
    assert np.isfinite(table["mean"]).all()


def test_names_are_escaped_in_html(filled):
    page = contents(experiment(), filled)
    text = html(page, None, "rescore reproduce <script>")
    assert "<b>" not in text
    assert "<script>" not in text
    assert "&lt;b&gt;" in text
    assert "| NOTEARS + ReScore |" in markdown(page, None, "x")
    assert "<" not in markdown(page, None, "x")


def test_the_verdict_comes_first(filled):
    page = contents(experiment(about="What it is about."), filled)
    told = page.tables["Plain − ReScore, SHD on the same data sets"]["verdict"]
    assert told.tolist() == ["within chance"] * 2  # 2 ± 2.5
    assert page.verdict == (
        "ReScore lowers the SHD beyond chance in none of 2 comparisons and changes it within "
        "chance in 2."
    )
    heading, verdict, about, *_ = markdown(page, None, "x").split("\n\n")
    assert heading.startswith("# ")
    assert verdict == f"**Verdict.** {page.verdict}"
    assert about == "What it is about."
    text = html(page, None, "x")
    body = text[text.index("<main>") :]
    places = [body.index(word) for word in ("<h1>", page.verdict, "What it is about.", "<table")]
    assert places == sorted(places)


def test_the_verdict_counts_the_rows_of_the_table():
    shifts = {"a": (2, 2), "b": (-2, -2), "c": (2, 0), "d": (0, 0), "e": (3,)}
    runs = pd.DataFrame(
        [
            {"kind": kind, "method": method, "setting": "", "seed": seed, "status": "ok",
             "shd": 10.0 - (shift if "ReScore" in method else 0)}
            for kind, by in shifts.items()
            for seed, shift in enumerate(by)
            for method in ("A", "A + ReScore")
        ]
    )  # fmt: skip
    runs.attrs["data"] = ["kind"]
    words = against_chance(gains(runs)).tolist()
    assert words == ["gain", "loss", "within chance", "same", "lower"]
    theirs = pd.DataFrame({"kind": ["a", "a", "c", "c"], "method": ["A", "A + ReScore"] * 2,
                           "metric": "shd", "mean": [10.0, 9.0, 10.0, 5.0]})  # fmt: skip
    assert conclusion(runs, theirs, {}) == (
        "ReScore lowers the SHD beyond chance in 1 of 4 comparisons, raises it in 1, changes it "
        "within chance in 1 and leaves it as it is in 1. ReScore lowers the SHD in 1 of 1 "
        "comparison of one data set each, where chance cannot be told. "
        "The paper has numbers for 2 of them, lower in 2, by 10 to 50 %; 1 of those here too."
    )


def test_a_page_of_costs_and_one_of_weights_say_so():
    runs = pd.DataFrame({"method": ["A", "A + ReScore"], "setting": "", "seed": 0, "status": "ok",
                         "shd": 1.0, "cpu_seconds": [2.0, 3.0], "key": "k"})  # fmt: skip
    runs.attrs["data"] = []
    theirs = pd.DataFrame({"method": ["A", "A + ReScore"], "metric": "seconds", "mean": [1.0, 5.0]})
    assert "1.5 times the CPU" in conclusion(runs, theirs, {})
    assert "published: 5.0 times" in conclusion(runs, theirs, {})
    rows = {"group": ["g", "g", "h"], "weight": [0.5, 0.5, 2.0]}
    alone = runs[:1].copy()
    alone.attrs["data"] = []
    told = conclusion(alone, theirs[:0], {"k": {"result": {"rows": rows}}})
    assert told.startswith("A row of the minority weighs 2.0, another 0.5, in 1 fit,")
    assert "nothing to compare" in conclusion(alone, theirs[:0], {"k": {"result": {}}})


def test_every_table_of_the_page_scrolls_in_the_style_of_the_report(filled):
    text = html(contents(experiment(), filled), None, "x")
    assert text.count('<div class="scroll" role="region"') == text.count("<table") > 1
    assert text.count("<section") == text.count('<a href="#table-')
    style = text[text.index("<style>") + 7 : text.index("</style>")]
    assert style == asset("style.css")
    assert re.search(r"\.scroll {[^}]*overflow-x: auto", style)
    assert re.search(r"\.numbers th, \.numbers td {[^}]*nowrap", style)
    assert "unsafe" not in text


def without_numbers(spec):
    """The words of a method alone."""
    if isinstance(spec, dict):
        return {name: without_numbers(value) for name, value in spec.items()}
    return 0 if isinstance(spec, int | float) and not isinstance(spec, bool) else spec


def one_step(trial):
    """The same, ended after the first step: its numbers are read and used as in the whole."""
    method = trial.method | {"parameters": trial.method.get("parameters", {}) | {"max_steps": 1}}
    return replace(trial, method=method)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """All experiments at the smallest size: all data, and each method once on each kind of them.

    Methods that differ in numbers alone share the record of the first, and make one step each.
    The processes that run them in a sweep are tested in test_sweep.py.
    """
    folder = tmp_path_factory.mktemp("results")
    store, made, same = Store(folder / "records"), {}, {}
    cases = [case for one in declared() for case in one.cases("tiny")]
    for trial in missing(cases, store):
        words = {name: value for name, value in trial.data.items() if name != "hold"}
        alike = trial.data["source"], "hold" in trial.data
        alike += (dataset(words, trial.seed).groups is None,)
        kind = json.dumps([without_numbers(trial.method), alike], sort_keys=True)
        exact = json.dumps([trial.method, alike], sort_keys=True)
        if kind not in made:
            same[exact] = made[kind] = run_trial(trial)
        elif exact not in same:
            first = run_trial(one_step(trial))
            same[exact] = first if first["status"] in FAILED else made[kind]
        store.write(same[exact] | {"key": trial.key, "trial": trial.content})
    return folder, store


def test_every_declared_trial_runs(tiny):
    _, store = tiny
    failed = {r["error"] for r in store.read().values() if r["status"] in FAILED}
    assert failed == set()


@pytest.mark.parametrize("name", NAMES)
def test_every_declared_experiment_has_a_page(tiny, name):
    folder, store = tiny
    pages = write_pages([find(name)], store, folder, "tiny")
    assert [path.suffix for path in pages] == [".md", ".html"]
    text = pages[0].read_text()
    assert "| " in text
    assert "nan" not in text
    assert (find(name).figure is None) != (folder / f"{name}.svg").exists()


def test_the_same_records_give_the_same_figure(tiny):
    folder, store = tiny

    def figure():
        write_pages([find("weights-at-tau")], store, folder, "tiny")
        return (folder / "weights-at-tau.svg").read_bytes()

    assert figure() == figure()


def test_a_page_needs_records_alone(filled, tmp_path):
    first = contents(experiment(), filled)
    filled.pack()
    second = contents(experiment(), filled)
    for caption, table in first.tables.items():
        pd.testing.assert_frame_equal(table, second.tables[caption])


def test_cells_worse_than_published_are_listed(filled):
    data = ({"source": "simulate", "mechanism": "linear", "graph": "ER", "degree": 2,
             "over": {"nodes": [10, 20]}},)  # fmt: skip
    mine = Experiment("mine", "Mine", data, experiment().methods, 1, published="synthetic")
    store = Store(filled.folder / "other")
    for case in mine.cases():
        store.write(record(case.trial, 6))  # published with ReScore: 4.6 and 8.8
    page = contents(mine, store)
    behind = page.tables["Worse than the published number with ReScore"]
    assert behind[["nodes", "method", "SHD"]].to_numpy().tolist() == [
        ["10", "NOTEARS + ReScore", "6.0"]
    ]
    best = page.tables["The best of each setting"]
    assert best["ours"].tolist() == ["NOTEARS", "NOTEARS"]
    assert [float(cell.split()[0]) for cell in best["published SHD"]] == [4.6, 8.8]


def test_data_that_were_published_in_one_kind_have_their_best_beside_each_of_ours(tmp_path):
    data = ({"source": "simulate", "mechanism": "linear", "graph": "ER", "degree": 2,
             "over": {"nodes": [10, 20], "samples": [100, 200]}},)  # fmt: skip
    mine = Experiment("mine", "Mine", data, experiment().methods, 1, published="synthetic")
    store = Store(tmp_path)
    for case in mine.cases():
        store.write(record(case.trial, case.trial.data["samples"]))
    best = contents(mine, store).tables["The best of each setting"]
    assert best["SHD"].tolist() == ["100.0", "200.0", "100.0", "200.0"]
    assert [float(cell.split()[0]) for cell in best["published SHD"]] == [4.6, 4.6, 8.8, 8.8]


def test_the_page_of_a_search_counts_the_setting_with_the_least_held_out_loss(tmp_path):
    data = ({"source": "simulate", "hold": 0.2},)
    space = {"parameters.lambda1": [0.1, 0.2]}
    plain = {"name": "NOTEARS", "learner": "Notears", "search": space}
    again = {"name": "NOTEARS + ReScore", "learner": "Notears",
             "search": space | {"rescore.tau": [0.5]}}  # fmt: skip
    mine = Experiment("mine", "Mine", data, (plain, again), seeds=1)
    store = Store(tmp_path)
    for shd, held_out, method in [
        (5, -1.0, {"parameters": {"lambda1": 0.1}}),
        (3, -2.0, {"parameters": {"lambda1": 0.2}}),
        (9, -0.5, {"parameters": {"lambda1": 0.2}, "rescore": {"tau": 0.5}}),
    ]:
        trial = Trial(data[0], {"learner": "Notears", **method}, 0)
        made = record(trial, shd)
        store.write(made | {"result": made["result"] | {"held_out": held_out}})
    table = contents(mine, store).tables["Mean ± standard deviation over data sets"]
    assert table[["method", "setting", "SHD"]].to_numpy().tolist() == [
        ["NOTEARS", "lambda1=0.1", "5.0"],
        ["NOTEARS + ReScore", "lambda1=0.2, tau=0.5", "9.0"],
    ]


def test_ranks_are_counted_from_the_heaviest_row():
    data = {"source": "chain", "nodes": 3, "samples": 300, "groups": [0.8, 0.2], "noise_scale": 0.1}
    weighting = {"weighting": "inverse-propensity"}
    found = run_trial(Trial(data, {"learner": "Linear", "rescore": weighting}, 0))["result"]
    rare, common = sorted(found["group_rank"].values())
    share = round(rare * 2 - 1)  # the rows of the minority are ranks 1 to share
    assert 0 < share < 300 / 2
    assert common == pytest.approx((share + 1 + 300) / 2)


def test_a_block_of_which_nothing_stays_is_left_out_of_a_quick_run():
    data = tuple({"source": "simulate", "over": {"nodes": [nodes]}} for nodes in (10, 50))
    mine = Experiment("mine", "Mine", data, experiment().methods, quick={"over": {"nodes": [10]}})
    assert {case.trial.data["nodes"] for case in mine.cases()} == {10, 50}
    assert {case.trial.data["nodes"] for case in mine.cases("quick")} == {10}


def test_settings_are_paired_with_the_same_setting_of_the_plain_learner():
    plain, again = (
        [
            Case(
                name, Trial({}, {"learner": "Notears", "parameters": {"lambda1": value}, **more}, 0)
            )
            for value in (0.1, 0.2)
        ]
        for name, more in (("NOTEARS", {}), ("NOTEARS + ReScore", {"rescore": {"tau": 0.5}}))
    )
    records = {
        case.trial.key: record(case.trial, shd)
        for case, shd in zip([*plain, *again], (9, 7, 8, 3), strict=True)
    }
    found = gains(tidy([*plain, *again], records))
    assert found["gain"].tolist() == [1.0, 4.0]
    assert found["pairs"].tolist() == [1, 1]
    one = gains(tidy([plain[0], *again], records))  # a single plain setting serves for all
    assert one["gain"].tolist() == [1.0, 6.0]


def test_a_sweep_that_has_only_begun_has_a_page(tmp_path):
    """Of the conditions taken out there is none yet, where the published table has numbers."""
    mine, store = find("sachs-groups"), Store(tmp_path)
    whole = next(case for case in mine.cases() if "without" not in case.trial.data)
    store.write(record(whole.trial, 9))
    assert contents(mine, store).tables["Mean ± standard deviation over data sets"][
        "runs"
    ].tolist() == ["1"]
