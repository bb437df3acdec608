"""The records of `any_units.py` as markdown: a table per setting, means with 95 % intervals."""

import bench
import pandas as pd
from scipy.stats import t

HEADINGS = {
    "shd": "SHD",
    "cpdag_distance": "CPDAG distance",
    "sid": "SID",
    "edges": "edges",
    "bic": "BIC less the truth's",
    "targets": "targets named, of 3",
    "false_targets": "wrongly named",
    "cpu_seconds": "CPU s",
}


def report(name, settings):
    records = pd.read_csv(bench.RESULTS / f"{name}.csv")
    for setting, declared in settings.items():
        found = records[records["setting"] == setting]
        if len(found):
            lines = lines_of(found, declared)
            print(f"\n### {setting}\n\n{markdown(lines)}")


def lines_of(found, declared):
    """One line per data and learner, in the order they are declared in."""
    order = {learner: place for place, learner in enumerate(declared.learners)}
    for data, here in found.groupby("data", sort=False):
        for learner in sorted(here["learner"].unique(), key=order.__getitem__):
            of_learner = here[here["learner"] == learner]
            line = {"data": data, "learner": learner, "data sets": len(of_learner)}
            for metric in (*declared.shown, "cpu_seconds"):
                line[HEADINGS[metric]] = interval(of_learner[metric].dropna())
            line[f"CPU s / {declared.learners[0]}"] = ratio(here, learner, declared.learners[0])
            line["ReScore less plain, SHD"] = gain(here, learner)
            line["failed"] = str(of_learner["error"].notna().sum() or "")
            yield line


def interval(values):
    """``mean ± half the width`` of the 95 % interval of the mean; the mean alone of one value."""
    if len(values) < 2:
        return "".join(f"{value:.4g}" for value in values)
    return f"{rounded(values.mean())} ± {rounded(half_interval(values))}"


def half_interval(values):
    """Half the width of the 95 % interval of the mean, by Student's t."""
    return t.ppf(0.975, len(values) - 1) * values.sem()


def rounded(number):
    return f"{number:.1f}" if abs(number) >= 1 else f"{number:.2g}"


def ratio(here, learner, first):
    """The median over data sets of the CPU seconds, divided by those of the first learner."""
    seconds = here.pivot_table("cpu_seconds", "seed", "learner")
    if learner == first or not {learner, first} <= set(seconds):
        return ""
    return f"{(seconds[learner] / seconds[first]).median():.2f}"


def gain(here, learner):
    """The paired difference in SHD between a learner in ReScore and the same learner plain."""
    shd = here.pivot_table("shd", "seed", "learner")
    plain = learner.removeprefix("ReScore(").removesuffix(")")
    if plain == learner or not {learner, plain} <= set(shd):
        return ""
    return interval((shd[learner] - shd[plain]).dropna())


def markdown(lines):
    """A table of the columns in which some line has something to say."""
    table = pd.DataFrame(lines).astype(str)
    table = table.loc[:, (table != "").any()]
    rows = [table.columns, ["---"] * table.shape[1], *table.to_numpy()]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
