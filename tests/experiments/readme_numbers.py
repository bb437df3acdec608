"""What README.md must say, word for word, made from the benchmarks' records.

Each function yields pieces of the page, in which every number comes from a record.
"""

from functools import cache
from pathlib import Path

import pandas as pd

from rescore.experiments.published_numbers import published

ROOT = Path(__file__).parents[2]
DATA_SETS = 10
FRACTIONS = {4: "a quarter", 5: "a fifth", 6: "a sixth", 7: "a seventh", 8: "an eighth"}


@cache
def records(name):
    return pd.read_csv(ROOT / "benchmarks" / "results" / f"{name}.csv")


def chosen(name, data_sets=DATA_SETS, **where):
    """The records of one cell, which must be of so many data sets."""
    table = records(name)
    for column, value in where.items():
        table = table[table[column] == value]
    assert len(table) == data_sets, f"{name}, {where}: {len(table)} records"
    return table


def seconds(number):
    """CPU seconds in two digits, whole ones from ten on."""
    return f"{number:#.2g}" if number < 10 else f"{number:.0f}"


def shd_and_seconds(name, digits=1, **where):
    found = chosen(name, **where)[["shd", "cpu_seconds"]].mean()
    return f"{found['shd']:.{digits}f} | {seconds(found['cpu_seconds'])}"


def picture():
    plain, again = pd.read_csv(ROOT / "docs" / "picture.csv")[["plain", "rescore"]].mean()
    yield f"the SHD of ten data sets, {plain:.1f} plainly and {again:.1f} with weights on average"


def linear_peers():
    linear, gcastle = "linear_against_peers", "notears_against_gcastle"
    for nodes in (20, 50):
        where = {"graph": "ER", "degree": 4, "nodes": nodes}
        for shown, learner in {"`rs.Linear()`": "Linear", "DAGMA 1.1.1": "DAGMA 1.1.1"}.items():
            yield f"| {shown} | {shd_and_seconds(linear, learner=learner, **where)} |"
    peer = "gcastle 1.0.4 `Notears`, same λ and threshold"
    for shown, learner in {"`rs.Notears()`": "Notears", peer: "gcastle Notears"}.items():
        yield f"| {shown} | {shd_and_seconds(gcastle, learner=learner)} |"
    for nodes in (10, 20):
        where = {"graph": "ER", "degree": 2, "nodes": nodes}
        peer = "gcastle 1.0.4 `GOLEM`"
        for shown, learner in {"`rs.Golem()`": "Golem", peer: "gcastle GOLEM"}.items():
            yield f"| {shown} | {shd_and_seconds(linear, learner=learner, **where)} |"


def nonlinear_peers():
    name, peer = "nonlinear_against_peers", "gcastle NOTEARS-MLP"
    process = {"`rs.GaussianProcess()`": "GaussianProcess"}
    ours = {
        ("gp", 10, 4): process | {"`rs.GranDAG()`": "GranDAG", "`rs.NotearsMLP()`": "NotearsMLP"},
        ("gp", 20, 2): process
        | {
            "`rs.NotearsMLP()`": "NotearsMLP",
            "`rs.NotearsMLP(n_starts=2)`": "NotearsMLP 2 starts",
        },
        ("gp", 20, 4): process | {"`rs.NotearsMLP()`": "NotearsMLP"},
        ("gp-add", 20, 4): {
            "`rs.Additive()`, also in any other units": "Additive",
            "`rs.NotearsMLP()`": "NotearsMLP",
        },
    }
    for (mechanism, nodes, degree), learners in ours.items():
        where = {"mechanism": mechanism, "graph": "ER", "nodes": nodes, "degree": degree}
        for shown, learner in learners.items():
            yield f"| {shown} | {shd_and_seconds(name, learner=learner, **where)} |"
        theirs = shd_and_seconds(name, digits=0, data_sets=1, learner=peer, **where)
        yield f"| gcastle 1.0.4 NOTEARS-MLP (1 data set) | {theirs} |"
        if mechanism == "gp":
            best = best_published(nodes, degree)
            yield f"| paper's best + ReScore, tuned on the truth | {best:.1f} | |"


def best_published(nodes, degree):
    table = published("synthetic").query(
        "graph == 'ER' and mechanism == 'gp' and metric == 'shd' "
        f"and nodes == {nodes} and degree == {degree}"
    )
    return table["mean"][table["method"].str.contains("ReScore")].min()


def any_units():
    learners = {
        "`rs.ReScore(rs.Linear())`": "ReScore(Linear)",
        "`rs.Linear()`": "Linear",
        "causal-learn's BOSS": "BOSS",
        "the same, penalty of the BIC": "BOSS BIC",
        "lingam's DirectLiNGAM": "DirectLiNGAM",
        "`rs.GES()`": "GES",
    }
    two, three, flipped = (
        {"setting": "groups-2"},
        {"setting": "groups-3"},
        {"setting": "flipped", "data": "standardised units"},
    )
    for shown, learner in learners.items():
        cells = [distances(learner=learner, **where) for where in (two, three, flipped)]
        cpu = chosen("any_units", learner=learner, **two)["cpu_seconds"].mean()
        yield f"| {shown} | {' | '.join(cells)} | {seconds(cpu)} |"


def distances(**where):
    found = chosen("any_units", **where)[["shd", "cpdag_distance"]].mean()
    return f"{found['shd']:.1f} / {found['cpdag_distance']:.1f}"


def only_groups_help():
    rows = {
        "2 %": ("2%", "SHD / CPDAG distance"),
        "5 %": ("5%", ""),
    }
    for shown, (name, heading) in rows.items():
        where = {"setting": "corrupted", "data": f"{name}, standardised units"}
        plain, again = (distances(learner=learner, **where) for learner in PAIR)
        cells = f"{shown} of the rows from another model, standardised | {heading} |"
        yield f"| {' '.join(cells.split())} {plain} | {again} |"
    plain, again = (
        chosen("any_units", setting="simpson", data="6 nodes", learner=learner)["edges"].mean()
        for learner in PAIR
    )
    yield f"two groups with other means | edges, all false | {plain:.1f} | {again:.1f} |"
    told = {
        "ER2, 20 nodes, noise of groups differs": (
            "three groups with one mechanism changed in each | changes named, of 3"
        ),
        "ER2, 20 nodes": "the same, noise alike in all groups |",
    }
    for data, shown in told.items():
        found = chosen("any_units", setting="targets", data=data)["targets"].mean()
        yield f"| {shown} | | {found:.1f} |"


PAIR = ("Linear", "ReScore(Linear)")


def only_the_class():
    data = [("unequal", f"{kind} nodes") for kind in ("ER1, 50", "ER2, 20", "ER4, 20", "SF4, 20")]
    data += [("weak", f"{kind} nodes") for kind in ("ER1, 50", "ER1.5, 50")]
    data += [("weak", "SF1, hubs as causes, 50 nodes")]
    learners = {"`rs.Linear()`": "Linear", "causal-learn's BOSS": "BOSS", "`rs.GES()`": "GES"}
    for shown, learner in learners.items():
        cells = [
            chosen("any_units", setting=s, data=d, learner=learner)["cpdag_distance"].mean()
            for s, d in data
        ]
        yield f"| {shown} | {' | '.join(f'{cell:.1f}' for cell in cells)} |"


def other_shapes():
    where = [{"setting": "shapes", "data": f"{k}, 20 nodes"} for k in ("exp", "gumbel", "uniform")]
    ours, theirs = (
        [chosen("any_units", learner=learner, **w)[["shd", "cpu_seconds"]].mean() for w in where]
        for learner in ("Linear", "DirectLiNGAM")
    )
    (same,) = {f"{cell['shd']:.1f}" for cell in ours}
    first, second, third = (f"{cell['shd']:.1f}" for cell in theirs)
    ratio = sum(c["cpu_seconds"] for c in theirs) / sum(c["cpu_seconds"] for c in ours)
    yield (
        f"mean SHD {same} in all three, lingam's DirectLiNGAM {first}, {second} and {third}, in "
        f"{FRACTIONS[round(ratio)]} of its time"
    )


def minority():
    def mean(kind, learner, weights):
        data = f"{kind}, 10 % minority, scales 1 / 0.1"
        where = {"data": data, "learner": learner, "weights": weights}
        return f"{chosen('heterogeneous_rows', **where)['shd'].mean():.1f}"

    both = ("plain", "auto")
    added = [mean("gp-add", "Additive", weights) for weights in both]
    joint = [mean("gp", learner, w) for learner in ("Additive", "NotearsMLP") for w in both]
    yield f"| additive | {' | '.join(added)} | | |"
    yield f"| joint | {' | '.join(joint)} |"
    yield f"on the joint ones of these tables at SHD {mean('gp', 'GaussianProcess', 'auto')}"
    paper = published("heterogeneous").query("mechanism == 'gp' and metric == 'shd'")
    best = paper["mean"][paper["method"].str.contains("ReScore")].min()
    yield f"the paper reports {best:.1f} for its best with ReScore"


SAID = (
    picture, linear_peers, nonlinear_peers, any_units, only_groups_help, only_the_class,
    other_shapes, minority,
)  # fmt: skip
# What is no measurement: how data and programs are described.
SETTINGS = (
    r"factor between 1/20 and 20",
    r"\[50 and 200 variables\]",
    r"scales (between )?[\d.]+ and [\d.]+",
    r"effects of 0\.1 to 0\.5 deviations",
    r"a minority of 10 %",
    r"Exit code 2 means bad input, 1 a failure while running, 130 Ctrl-C",
    r"\d[\d,]*(\.\d+)? (rows|variables|nodes|true edges|% of( them| [\d,]+ rows)?)",
    r"(ER|SF)\d(\.\d)?(, \d+)?",
    r"\b\d+/\d+(/\d+)?\b",  # shares of groups
    r"ICLR 2023|\(2005\)|Python ≥ 3\.11|1\.0\.4|1\.1\.1|of 3\b",
)
