"""What results/README.md must say, word for word, made from the records of the experiments.

Each function yields pieces of the page, in which every number comes from a record or was published.
"""

from functools import cache
from pathlib import Path

from rescore.experiments import find
from rescore.experiments.conclusions import (
    against_chance,
    beside,
    cells,
    gains,
    group_ranks,
    published_for,
    published_gains,
)
from rescore.experiments.pages import all_runs, chosen
from rescore.experiments.published_numbers import published
from rescore.experiments.store import Store

ROOT = Path(__file__).parents[2]


@cache
def records():
    return Store(ROOT / "results" / "records").read()


@cache
def runs(name):
    return chosen(find(name), all_runs(find(name), records()))


def published_gain(mechanism, *methods):
    """By how many per cent the paper's SHD is lower with ReScore, least and most."""
    table = published("synthetic").query(f"metric == 'shd' and mechanism == '{mechanism}'")
    shd = table.pivot(index=["graph", "degree", "nodes"], columns="method", values="mean")
    return span([v for m in methods for v in 100 * (1 - shd[f"{m} + ReScore"] / shd[m])], 0)


@cache
def means(name):
    return cells(runs(name))


@cache
def paired(name):
    return gains(runs(name)).assign(word=lambda found: against_chance(found))


def only(table, **where):
    for column, value in where.items():
        table = table[table[column] == value]
    return table


def mean(name, method, metric="shd", digits=1, **where):
    (found,) = only(means(name), method=method, **where)[metric]
    return f"{found:.{digits}f}"


def arrow(name, method, **where):
    """The learner without and with ReScore."""
    plain, again = (mean(name, m, **where) for m in (method, f"{method} + ReScore"))
    return f"{plain} → {again}"


def gain(name, method, sign="", **where):
    (found,) = only(paired(name), method=method, **where).itertuples()
    return f"{found.gain:{sign}.1f} ± {found.half_interval:.1f}".replace("-", "−")


def paper(name, method, metric="shd", **where):
    experiment = find(name)
    there = published_for(experiment, runs(name).attrs["data"])
    shared = {key: value for key, value in where.items() if key in there}
    (found,) = only(there, method=method, metric=metric, **shared)["mean"]
    return f"{found:.1f}"


def span(values, digits=1):
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low} to {high}"


def percent(found):
    return 100 * found["gain"] / found["before"]


def unchanged(name):
    """How many pairs have the same SHD with and without ReScore, of how many."""
    table = runs(name)
    shd = table.pivot_table("shd", [*table.attrs["data"], "seed"], "method", dropna=True)
    pairs = [(shd[m], shd[f"{m} + ReScore"]) for m in shd if f"{m} + ReScore" in shd]
    same = sum(int((plain == again).sum()) for plain, again in pairs)
    return same, sum(int((plain.notna() & again.notna()).sum()) for plain, again in pairs)


def better_than_published(name, learner):
    """In how many settings the plain learner is below the published one with ReScore, of all."""
    ours = only(means(name), method=learner)
    there = published_for(find(name), runs(name).attrs["data"])
    theirs = beside(ours.assign(method=f"{learner} + ReScore"), there, "shd")["mean"]
    return int((ours["shd"] < theirs).sum()), int(theirs.notna().sum())


STD, VARIANCE = ({"scale_is": kind, "mechanism": "linear"} for kind in ("std", "variance"))
GP_STD, GP_VARIANCE = ({"scale_is": kind, "mechanism": "gp"} for kind in ("std", "variance"))
ER2_20 = {"graph": "ER", "degree": 2, "nodes": 20}


def heterogeneous_linear():
    name = "heterogeneous"
    golem = [paper(name, m, mechanism="linear") for m in ("GOLEM", "GOLEM + ReScore")]
    yield f"(GOLEM {' → '.join(golem)})"
    for method in ("GOLEM", "NOTEARS", "Linear"):
        shown = "`Linear`" if method == "Linear" else method
        yield f"{shown} {arrow(name, method, **STD)}"
    found = only(paired(name), mechanism="linear")
    found = found[~found["method"].str.contains("literal")]
    yield f"gains of {span(percent(found), 0)} %"


def heterogeneous_nonlinear():
    name, method = "heterogeneous", "NOTEARS-MLP"
    both = [paper(name, m, mechanism="gp") for m in (method, f"{method} + ReScore")]
    yield f"(NOTEARS-MLP {' → '.join(both)})"
    for where in (GP_VARIANCE, GP_STD):
        yield f"{arrow(name, method, **where)}, {gain(name, f'{method} + ReScore', **where)}"


def ranks_of_the_minority():
    found = group_ranks(only(runs("heterogeneous"), mechanism="linear"), records())
    rank = found.set_index(["method", "group"])["rank"]
    automatic = rank[[(f"{m} + ReScore", "g1") for m in ("GOLEM", "NOTEARS", "Linear")]]
    yield f"average ranks of {span(automatic, 0)} of 1,000, where 50 is the least there can be"
    literal = [rank["NOTEARS + ReScore (literal)", group] for group in ("g1", "g0")]
    yield f"({literal[0]:.0f} against {literal[1]:.0f} on average)"


def rows_alike_linear():
    name = "synthetic-linear"
    yield f"(NOTEARS by {published_gain('linear', 'NOTEARS')} %)"
    same, pairs = unchanged(name)
    yield f"the same SHD in {same} of {pairs} pairs"
    better, of = map(sum, zip(*(better_than_published(name, m) for m in PLAIN_LINEAR), strict=True))
    yield f"better than the published ones with ReScore in {better} of {of} cells"
    found = means(name)
    best = found[found["method"].isin(["GOLEM", "DAGMA", "Linear"])]["shd"]
    yield f"GOLEM, DAGMA and `Linear` end between SHD {best.min():.1f} and {best.max():.1f}"


PLAIN_LINEAR, NETWORKS = ("NOTEARS", "GOLEM"), ("NOTEARS-MLP", "GraN-DAG")


def rows_alike_nonlinear():
    name = "synthetic-nonlinear"
    yield f"(by {published_gain('gp', *NETWORKS)} %)"
    same, pairs = unchanged(name)
    yield f"automatic weights leave the SHD of {same} of {pairs} pairs as it is"
    (mlp, of), (dag, _) = (better_than_published(name, m) for m in NETWORKS)
    yield f"NOTEARS-MLP is better than the published one with ReScore in {mlp} of {of} settings"
    yield f"GraN-DAG in {dag}"
    ours = " and ".join(mean(name, m, **ER2_20) for m in NETWORKS)
    theirs = " and ".join(paper(name, f"{m} + ReScore", **ER2_20) for m in NETWORKS)
    yield f"{ours} against {theirs} on ER2 with 20 nodes"


def dense_graphs():
    name = "synthetic-nonlinear"

    def found(kind, source):
        where = {"graph": kind, "degree": 4, "nodes": 50}
        return [source(m, where) for m in NETWORKS]

    def here(method, where):
        return round(100 * float(mean(name, method, "tpr", 6, **where)))

    def there(method, where):
        experiment = find(name)
        table = published_for(experiment, runs(name).attrs["data"])
        (cell,) = only(table, method=f"{method} + ReScore", metric="tpr", **where)["mean"]
        return round(100 * cell)

    sf, published, er = found("SF", here), found("SF", there), found("ER", here)
    yield f"find {sf[0]} and {sf[1]} % of the edges (published {published[0]} and {published[1]} %)"
    yield f"on ER4 {er[0]} and {er[1]} %"


def effect_of_lambda():
    found = paired("effect-of-lambda")
    low, high = found.loc[found["gain"].idxmin()], found.loc[found["gain"].idxmax()]
    assert not (found["word"] == "gain").any()
    ends = [f"{f['gain']:+.1f} ± {f['half_interval']:.1f}".replace("-", "−") for f in (low, high)]
    yield f"no gain beyond chance at any λ (between {ends[0]} and {ends[1]})"


def chain():
    told = ", ".join(
        f"{arrow('chain', 'NOTEARS', nodes=nodes)} with {word} variables"
        for nodes, word in ((3, "three"), (4, "four"))
    )
    yield f"SHD {told}"
    assert set(paired("chain")["word"]) <= {"within chance", "same"}


def corrupted_rows():
    name, tiny = "corrupted-rows", "NOTEARS-MLP + ReScore (τ → 0)"
    others = paired(name)[paired(name)["method"] != tiny]
    assert set(others["word"]) <= {"within chance", "same"}
    some = only(paired(name), method=tiny)
    some = some[some["corrupt"].astype(float) <= 0.2]
    yield f"τ = 0.01 costs {span(-some['gain'], 0)} up to 20 % of noise"
    plain = only(means(name), method="NOTEARS-MLP")
    few = plain["corrupt"].astype(float) <= 0.1
    theirs = published_for(find(name), runs(name).attrs["data"])
    theirs = theirs[theirs["method"] == "NOTEARS-MLP + ReScore"]
    theirs = theirs[theirs["corrupt"] <= 0.1]["mean"]
    yield f"ends at {span(plain['shd'][few])} up to 10 % of noise"
    yield f"the published ones with ReScore at {span(theirs)}"


def effect_of_tau():
    found = paired("effect-of-tau").set_index("setting")
    assert found.index[found["word"] == "loss"].tolist() == ["tau=0.1"]
    assert not (found["word"] == "gain").any()
    worst, usual = found.loc["tau=0.1"], found.loc["tau=0.9"]
    yield f"τ = 0.1 costs {-worst['gain']:.1f} ± {worst['half_interval']:.1f}"
    yield f"The gain at 0.9, {usual['gain']:.1f} ± {usual['half_interval']:.1f}, is within chance"


def network_size():
    found = means("effect-of-network-size")
    found = found[found["method"].str.contains("ReScore")]
    few, many = (only(found, samples=n)["shd"] for n in (600, 2000))
    yield f"the SHD is {span(few)} at 600 rows, {span(many)} at 2,000"


def sachs():
    words = paired("sachs")["word"].value_counts()
    counts = [words.get(word, 0) for word in ("lower", "higher", "same")]
    names = ("gain", "lose", "stay")
    pairs = ", ".join(f"{count} {name}" for count, name in zip(counts, names, strict=True))
    yield f"Of {len(paired('sachs'))} pairs {pairs}"
    ges = [paper("sachs", m) for m in ("GES", "GES + ReScore")]
    ours = [mean("sachs", m, scale="raw") for m in ("GES", "GES + ReScore")]
    assert ges == ours
    yield f"GES gives the published {float(ges[0]):.0f} → {float(ges[1]):.0f} exactly"
    best = means("sachs").sort_values("shd", kind="stable").iloc[0]
    yield f"The least of this page is {best['method']} at {best['shd']:.0f}"
    yield f"the graph without edges has {float(mean('sachs', 'Empty', scale='raw')):.0f}"


def sachs_groups():
    ranks = group_ranks(only(runs("sachs-groups"), method="NOTEARS-MLP + ReScore"), records())
    order = [group.removeprefix("cd3cd28 + ") for group in ranks["group"]]
    yield f"({order[0]} first, then {order[1]}; {order[-1]} last)"
    assert set(paired("sachs-groups")["word"]) <= {"within chance", "same"}


def cost():
    table = means("cost").set_index("method")["cpu_seconds"]
    theirs = published_for(find("cost"), [])
    theirs = theirs[theirs["metric"] == "seconds"].set_index("method")["mean"]
    told = ", ".join(
        f"{method} {table[f'{method} + ReScore'] / table[method]:.1f} (published "
        f"{theirs[f'{method} + ReScore'] / theirs[method]:.1f})"
        for method in ("NOTEARS", "GOLEM", "NOTEARS-MLP", "GraN-DAG")
    )
    yield f"times the CPU seconds of the plain fit: {told}"


def where_gains_come_from():
    found = paired("published-gains")

    def of(ending):
        return found[found["method"].str.endswith(ending)]

    weaker, free = of(", λ 5 times weaker"), of("+ ReScore, no τ")
    grid, literal = of("λ and τ by the truth"), of(" + ReScore")
    sure = int((weaker["word"] == "gain").sum())
    yield (
        f"has a lower SHD in {(weaker['gain'] > 0).sum()} of {len(weaker)} settings, beyond chance "
        f"in {sure}, by {span(percent(weaker), 0)} %"
    )
    there = published_gains(literal, published_for(find("published-gains"), ["mechanism"]))
    yield f"The paper has {span(100 * there['gain'] / there['before'], 0)} % for ReScore there"
    assert not literal["word"].isin(["gain", "loss"]).any()
    assert not (grid["word"] == "gain").any()
    yield f"Without τ the SHD is higher in {(free['gain'] < 0).sum()} of {len(free)}"
    yield "63 settings to choose from instead of 9 gain nothing beyond chance"
    linear = found[found["mechanism"] == "linear"]
    redrawn = linear[linear["method"].str.endswith(", weights redrawn")]
    cut = linear[linear["method"].str.endswith(", cut-off by the truth")]
    every = linear[linear["method"].str.endswith(", all of it")]
    for part in (redrawn, cut, every):
        assert set(part["word"]) <= {"within chance", "same"}
    yield f"changes nothing beyond chance in {len(redrawn)} comparisons of linear learners"
    yield f"cut-offs by the truth gain {span(percent(cut), 0)} % in {len(cut)}, within chance"
    networks = found[found["mechanism"] == "gp"]
    redrawn = networks[networks["method"].str.endswith(", weights redrawn")]
    cut = networks[networks["method"].str.endswith(", cut-off by the truth")]
    every = networks[networks["method"].str.endswith(", all of it")]
    assert set(redrawn["word"]) == {"loss"}
    assert set(cut["word"]) | set(every["word"]) <= {"within chance", "same"}
    lost = span(-percent(redrawn), 0)
    yield f"the SHD of NOTEARS-MLP is higher in all {len(redrawn)} comparisons, by {lost} %"
    yield f"its cut-offs gain {span(percent(cut), 0)} % in {len(cut)}, within chance"


def oracle_linear():
    name = "oracle-linear"
    zero = {m: int((only(means(name), method=m)["shd"] == 0).sum()) for m in means(name)["method"]}
    (settings,) = {len(only(means(name), method=m)) for m in zero}
    plain, again = (zero[m] for m in ("NOTEARS", "NOTEARS + ReScore"))
    assert (plain, again) == (settings, settings)
    yield f"NOTEARS ends at SHD 0.0 in all {settings} settings with and without ReScore"
    where = {"graph": "ER", "degree": 4, "nodes": 10}
    golem = arrow(name, "GOLEM", **where)
    yield f"GOLEM in {zero['GOLEM + ReScore']} with and in {zero['GOLEM']} without"
    wrong = int((only(runs(name), method="GOLEM", **where)["shd"] > 0).sum())
    assert (wrong, find(name).seeds) == (1, 10)
    yield f"(ER4, 10 nodes: {golem}, one data set of ten)"
    assert means(name)["setting"].str.contains("lambda1=0.002").all()


def oracle_nonlinear():
    name, method = "oracle-nonlinear", "NOTEARS-MLP"
    shown = [("ER", 2, 10), ("ER", 2, 20), ("ER", 4, 20), ("SF", 2, 20)]
    cell = [dict(zip(("graph", "degree", "nodes"), where, strict=True)) for where in shown]
    pairs = [f"{mean(name, method, **w)} for {paper(name, method, **w)}" for w in cell]
    yield f"({', '.join(pairs)}, …)"
    worst = {"graph": "ER", "degree": 4, "nodes": 10}
    ours, theirs = mean(name, method, **worst), paper(name, method, **worst)
    yield f"except on ER4 with 10 nodes ({ours} for {theirs})"
    assert not (paired(name)["word"] == "gain").any()
    yield f"the published gains are {published_gain('gp', method)} %"
    dag = [f"{mean(name, 'GraN-DAG', **w)} for {paper(name, 'GraN-DAG', **w)}" for w in cell]
    yield f"{', '.join(dag)}, …"
    ours, theirs = (source(name, "GraN-DAG", **worst) for source in (mean, paper))
    yield f"but on ER4 with 10 nodes {ours} for {theirs}"
    path = mean("synthetic-nonlinear", method, **ER2_20)
    yield f"({path} on ER2 with 20 nodes, against {mean(name, method, **ER2_20)})"


def search_without_truth():
    chosen = set(means("search-nonlinear")["setting"])
    assert {"lambda1=0.002, scheme=paper", "lambda1=0.002, scheme=paper, tau=0.99"} <= chosen
    yield "the search takes λ = 0.002 too, and of τ the one that changes least (0.99)"


def against(name, method, **where):
    return f"{mean(name, method, **where)} against {paper(name, method, **where)}"


def behind():
    linear, networks = "synthetic-linear", "synthetic-nonlinear"
    er4, sf2 = ({"graph": kind, "degree": k, "nodes": 10} for kind, k in (("ER", 4), ("SF", 2)))
    told = [against(linear, "NOTEARS + ReScore", **where) for where in (er4, sf2)]
    yield f"NOTEARS on ER4, 10 nodes ({told[0]}) and SF2, 10 nodes ({told[1]})."
    best = means(linear)[means(linear)["method"].isin(["GOLEM", "DAGMA", "Linear"])]["shd"]
    yield f"are between {best.min():.1f} and {best.max():.1f} on the same data"
    er = [{"graph": "ER", "degree": k, "nodes": 50} for k in (2, 4)]
    told = ", ".join(against(networks, "GraN-DAG + ReScore", **where) for where in er)
    yield f"GraN-DAG on ER2 and ER4, 50 nodes ({told})."
    few = [float(mean(networks, "GraN-DAG + ReScore", "edges", **where)) for where in er]
    fdr = [mean(networks, "GraN-DAG + ReScore", "fdr", 2, **where) for where in er]
    yield f"Too few edges, {few[0]:.0f} of 100 and {few[1]:.0f} of 200, nearly all right"
    yield f"(FDR {fdr[0]} and {fdr[1]})"
    mlp = " and ".join(mean(networks, "NOTEARS-MLP", **where) for where in er)
    yield f"NOTEARS-MLP has {mlp} there"


def behind_on_corrupted_rows():
    name, method = "corrupted-rows", "NOTEARS-MLP + ReScore"
    yield f"Corrupted rows, 50 % ({against(name, method, corrupt=0.5)})."
    edges = float(mean(name, method, "edges", corrupt=0.5))
    yield f"{edges:.0f} edges at 50 %, where 40 are true"
    found = only(means("effect-of-lambda"), method="NOTEARS-MLP", nodes=20, degree=2)
    (few,) = found[found["setting"].str.contains("lambda1=0.01$")]["edges"]
    yield f"{few:.0f} of 40 at λ = 0.01"


def behind_with_the_truth_in_sight():
    where = {"graph": "ER", "degree": 4, "nodes": 10}
    told = against("oracle-nonlinear", "NOTEARS-MLP + ReScore", **where)
    yield f"oracle, on ER4 ({told})"
    edges = float(mean("sachs", "NOTEARS-MLP", "edges", scale="raw"))
    yield f"NOTEARS-MLP finds {edges:.0f} edges"
    yield f"GES on logarithms: {float(mean('sachs', 'GES + ReScore', scale='log')):.0f} against 28"


SAID = (
    heterogeneous_linear, heterogeneous_nonlinear, ranks_of_the_minority, rows_alike_linear,
    rows_alike_nonlinear, dense_graphs, effect_of_lambda, chain, corrupted_rows, effect_of_tau,
    network_size, sachs, sachs_groups, cost, where_gains_come_from, oracle_linear,
    oracle_nonlinear, search_without_truth, behind, behind_on_corrupted_rows,
    behind_with_the_truth_in_sight,
)  # fmt: skip
# What is no measurement: how data and settings are described.
SETTINGS = (
    r"(ER|SF)\d",
    r"[\d,]+ (nodes|rows|units|settings|proteins)",
    r"N\(0, 0\.1\)|0\.1 is (the|a) \w+|If 0\.1|If it is",
    r"τ (=|around) [\d.]+|λ = [\d.]+|threshold of 0\.3|our 0\.01",
    r"up to 20 % of plain noise|up to 10 %|50 and 100 variables|the 853 observational ones",
)
