"""Pages of results/ that are made from the benchmarks' records alone; nothing is run.

    python benchmarks/pages.py [-o FOLDER] [--check]   # --check: which are not what records give

One source for each number: any_units.csv, heterogeneous_rows.csv, nonlinear_against_peers.csv and
nonlinear_limit.csv of results/, which the benchmarks of these names fill.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import any_units_table
import bench
import pandas as pd

PAGES = bench.RESULTS.parents[1] / "results"
PEERS = ("BOSS", "BOSS BIC", "GES", "DirectLiNGAM", "DirectLiNGAM > 0.05")
LINEAR = ("Linear", "ReScore(Linear)", "Linear, labels", *PEERS)
PAPER = tuple(
    f(name) for name in ("Notears", "Golem", "Dagma", "GES") for f in (str, "ReScore({})".format)
)
DISTANCES = ("shd", "cpdag_distance", "sid")
SETTING = ["mechanism", "graph", "nodes", "degree"]
BESIDE = (
    "GaussianProcess", "GaussianProcess standardised", "Additive", "NotearsMLP", "GranDAG",
    "gcastle NOTEARS-MLP", "gcastle GraN-DAG",
)  # fmt: skip


class Section(NamedTuple):
    """A table of the records of one setting: who learns, and what is shown."""

    setting: str
    title: str
    about: str
    learners: tuple[str, ...]
    shown: tuple[str, ...]


UNITS = (
    Section(
        "groups-2", "Two hidden groups by scale, 80/20, random units",
        "Every column multiplied by a random factor between 1/20 and 20; groups of rows differ in "
        "the noise of every variable, and nobody but the yardstick with labels is told.",
        LINEAR, DISTANCES,
    ),
    Section(
        "groups-3", "Three hidden groups by scale, 60/25/15, random units", "", LINEAR, DISTANCES
    ),
    Section(
        "flipped", "The paper's minority: scales 1 and 0.1 flipped in 10 % of 1,000 rows", "",
        LINEAR, DISTANCES,
    ),
    Section(
        "simpson", "Two groups by level: other means, no edge at all",
        "Variables are unrelated in each group, so that every edge is false.",
        LINEAR, ("edges",),
    ),
    Section(
        "targets", "Unknown targets: one mechanism changed in each of three groups",
        "A target is named if the changed variable of a group is told to differ there.",
        LINEAR, ("targets", "false_targets", "shd"),
    ),
    Section(
        "corrupted", "Corrupted rows: a share of them from another model", "", LINEAR,
        ("shd", "cpdag_distance"),
    ),
    Section("shapes", "Noise that is not Gaussian, random units", "", LINEAR, DISTANCES[:2]),
    Section(
        "equal", "Noise of one size, own units: the paper's linear data", "", LINEAR,
        ("shd", "sid"),
    ),
    Section(
        "unequal", "Rows alike, noise of every size, random units",
        "Only the class of graphs can be known.", LINEAR, ("cpdag_distance", "bic"),
    ),
    Section(
        "learners", "The paper's learners with two hidden groups, standardised columns", "", PAPER,
        DISTANCES[:2],
    ),
)  # fmt: skip
WEAK = (
    Section(
        "weak", "Rows alike: effects of 0.1 to 0.5 deviations, 50 and 100 variables",
        "A variance of one for every variable, noise of every size, random units; hubs are causes.",
        LINEAR, ("shd", "cpdag_distance", "edges"),
    ),
    Section(
        "networks", "The same networks with two hidden groups, 80/20",
        "The noise of every variable is up to three times louder or quieter in each group; nobody "
        "is told which row is in which.",
        (*LINEAR, *PAPER[:-2]), ("shd", "cpdag_distance", "edges"),
    ),
)  # fmt: skip
SACHS = (
    Section(
        "sachs", "Nine scales, all rows and those of the first condition",
        "17 edges in the consensus graph; the graph without edges has SHD 17 and SID 53. Columns "
        "standardised after the transform named; no setting was chosen by the truth.",
        ("Linear", "ReScore(Linear)", "Additive", "ReScore(Additive)"), ("shd", "sid", "edges"),
    ),
)  # fmt: skip


def records(name: str) -> pd.DataFrame:
    return pd.read_csv(bench.RESULTS / f"{name}.csv")


def of_sections(sections: tuple[Section, ...]) -> Iterator[str]:
    table = records("any_units")
    for section in sections:
        found = table[table["setting"] == section.setting]
        found = found[found["learner"].isin(section.learners)]
        if len(found):
            lines = any_units_table.lines_of(found, section)
            yield from (f"## {section.title}", section.about, any_units_table.markdown(lines))


def gains(found: pd.DataFrame, keys: list[str], metric: str = "shd") -> tuple[int, int, int]:
    """Kinds of data on which weights are lower beyond chance, higher beyond it, and all of them."""
    halves = []
    for _, here in found.groupby(keys, sort=False):
        difference = (here["plain"] - here["again"]).dropna()
        half = any_units_table.half_interval(difference)
        halves.append((difference.mean(), half))
    lower, higher = (sum(sign * gain > half for gain, half in halves) for sign in (1, -1))
    return lower, higher, len(halves)


def any_units() -> Iterator[str]:
    table = records("any_units")
    wide = table.pivot_table(["shd", "edges"], ["setting", "data", "seed"], "learner")["shd"]
    pairs = pd.DataFrame({"plain": wide["Linear"], "again": wide["ReScore(Linear)"]}).dropna()
    pairs = pairs.reset_index()
    pairs = pairs[~pairs["setting"].isin(["sachs", "cpu", "networks"])]
    lower, higher, kinds = gains(pairs, ["setting", "data"])
    yield "# Any units, hidden groups, other noise"
    yield (
        f"**Verdict.** On {kinds} kinds of linear data `ReScore(Linear())` has a lower SHD than "
        f"`Linear()` beyond chance on {lower}, a higher one on {higher}."
    )
    yield (
        "Ten data sets of each kind unless said, 2,000 rows, 20 nodes and two edges a node unless "
        "said; every learner at its defaults; means with 95 % intervals by Student's t."
    )
    yield from of_sections(UNITS)


def does_it_generalise() -> Iterator[str]:
    yield "# Does it generalise? Networks as they are met with"
    yield (
        "Sparse networks of 50 and 100 variables, weak effects, unequal noise, hubs; 2,000 rows, "
        "random units, every learner at its defaults. Peers stop where a fit takes too long, so "
        "that data sets are counted for each."
    )
    yield from of_sections(WEAK)


def sachs_scales() -> Iterator[str]:
    table = records("any_units")
    found = table[table["setting"] == "sachs"]
    shd = found.pivot(index="data", columns="learner", values="shd")
    yield "# Sachs on nine scales, and its 853 observational rows"
    for rows in ("7,466", "853"):
        here = shd[shd.index.str.endswith(f"{rows} rows")]
        lower = int((here["ReScore(Linear)"] < here["Linear"]).sum())
        span = f"{here['ReScore(Linear)'].min():.0f} to {here['ReScore(Linear)'].max():.0f}"
        yield (
            f"**Verdict, {rows} rows.** `ReScore(Linear())` has SHD {span}, lower than `Linear()` "
            f"on {lower} of {len(here)} scales."
        )
    yield from of_sections(SACHS)


def nonlinear_rows() -> Iterator[str]:
    table = records("heterogeneous_rows")
    table = table[table["data"].str.startswith("gp")]
    wide = table.pivot_table("shd", ["data", "learner", "seed"], "weights").reset_index()
    wide = wide.rename(columns={"auto": "again"}).dropna(subset=["plain", "again"])
    lower, higher, kinds = gains(wide, ["data", "learner"])
    yield "# Nonlinear rows that differ"
    yield (
        f"**Verdict.** Automatic weights have a lower SHD than the plain learner beyond chance on "
        f"{lower} of {kinds} kinds of data and learner, a higher one on {higher}."
    )
    yield (
        "20 nodes, two edges a node, 1,000 rows unless said; relations are Gaussian processes of "
        "all parents jointly (gp) or of each (gp-add). Labelled weights are told the groups."
    )
    yield "## SHD by weights"
    lines = [
        {"data": data, "learner": learner, "weights": weights, "data sets": str(len(here))}
        | {"SHD": any_units_table.interval(here["shd"])}
        | {"CPU s": any_units_table.interval(here["cpu_seconds"])}
        for (data, learner, weights), here in table.groupby(["data", "learner", "weights"])
    ]
    yield any_units_table.markdown(lines)


def nonlinear() -> Iterator[str]:
    table, limit = records("nonlinear_against_peers"), records("nonlinear_limit")
    alike = table[~table["learner"].str.contains("standardised")]
    ours = alike[(alike["mechanism"] == "gp") & ~alike["learner"].str.contains("gcastle")]
    shd = ours.pivot(index=[*SETTING, "seed"], columns="learner", values="shd")
    same = shd[shd["GaussianProcess"].notna()]  # data sets, for all learners
    joint = same.dropna(axis=1, how="all").groupby(SETTING).mean()
    first = int((joint["GaussianProcess"] <= joint.min(axis=1)).sum())
    yield "# Nonlinear learners, and what the rows allow"
    yield (
        f"**Verdict.** Of {len(joint)} settings of joint Gaussian processes where it was fitted, "
        f"`GaussianProcess` has the lowest mean SHD of ours, on the same data sets, in {first}."
    )
    yield (
        "2,000 rows, ER and SF graphs, seeds from 0 on, not used in development; every learner at "
        "its defaults. In brackets how many data sets, where they are fewer than ten (five with 50 "
        "nodes). CPU seconds are those of `GaussianProcess`."
    )
    yield "## SHD"
    shown = [name for name in BESIDE if name in set(table["learner"])]
    yield any_units_table.markdown(
        dict(zip(SETTING, map(str, where), strict=True))
        | {name: _mean(here[here["learner"] == name]["shd"], where[2]) for name in shown}
        | {"CPU s": _mean(here[here["learner"] == "GaussianProcess"]["cpu_seconds"], 0, 0)}
        for where, here in table.groupby(SETTING)
    )
    yield "## The limit on joint Gaussian processes"
    yield (
        "Missed and false: errors of a judge who knows the order, the kernel, the noise and all "
        "parents but the one in question. Sets: the edges into variables whose true parents, told "
        "to a second judge with the kernel and all at once, are worth less beside noise of any "
        "size than the odds against so many: a learner has to find them all at once too."
    )
    keys = ["graph", "nodes", "degree", "noise"]
    yield any_units_table.markdown(
        dict(zip(keys, map(str, where), strict=True))
        | {"data sets": str(len(here)), "edges": f"{here['edges'].mean():.0f}"}
        | {judge: f"{here[judge].mean():.1f}" for judge in ("missed", "false", "sets")}
        for where, here in limit.groupby(keys, sort=False)
    )


def _mean(values: pd.Series, nodes: int, digits: int = 1) -> str:
    """With how many there are, where that is not what was declared."""
    if values.empty:
        return ""
    few = f" ({len(values)})" if nodes and len(values) < (5 if nodes == 50 else 10) else ""
    return f"{values.mean():.{digits}f}{few}"


MADE: dict[str, Callable[[], Iterator[str]]] = {
    "any-units": any_units,
    "networks": does_it_generalise,
    "sachs-scales": sachs_scales,
    "nonlinear-rows": nonlinear_rows,
    "nonlinear": nonlinear,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("-o", "--output", type=Path, default=PAGES)
    asked = parser.parse_args()
    check, stale = asked.check, []
    for name, made in MADE.items():
        path = asked.output / f"{name}.md"
        end = "Made by `python benchmarks/pages.py` from the benchmarks' records."
        text = "\n\n".join(part for part in (*made(), end) if part) + "\n"
        if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            stale.append(path.name)
        elif not check:
            path.write_text(text, encoding="utf-8")
            print(path)
    if stale:
        sys.exit(f"Not what the records give: {', '.join(stale)}. Run python benchmarks/pages.py.")


if __name__ == "__main__":
    main()
