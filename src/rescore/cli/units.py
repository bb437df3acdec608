"""``rescore fit --units``: which edges hang on the units, after the fit."""

from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rescore.cli.inputs import Input
    from rescore.units_changed import Units

__all__ = ["UnitsOption", "print_units", "units_as_data", "units_of"]

UnitsOption = Annotated[
    bool | None,
    typer.Option(
        "--units/--no-units",
        help="Fit again in four other units and say which edges hang on them; costly where fits "
        "are slow, as of networks.",
        show_default="with linear learners",
    ),
]
RESCALINGS = 3
MOST_EDGES = 15


def units_of(
    model: Any, table: "Input", wanted: bool | None, seed: int
) -> tuple["Units | None", bool]:
    """What other units would change, if it is wanted, and whether Ctrl-C kept it from being known.

    The fit that was made stays and is worth writing, so the interrupt is handed back as a value.
    """
    learner = getattr(model, "estimator", model)
    if not (learner.linear if wanted is None else wanted):
        return None, False
    try:
        return _refitted(model, table, seed), False
    except KeyboardInterrupt:
        return None, True


def _refitted(model: Any, table: "Input", seed: int) -> "Units":
    from rescore.cli.terminal import console, counter
    from rescore.units_changed import units

    known = {"groups": table.groups} if model.needs_groups else {}
    shown = console(stderr=True).is_terminal  # four refits are not worth lines in a log
    bar = counter("in other units", 1 + RESCALINGS) if shown else nullcontext(lambda: None)
    with bar as advance:
        return units(
            model, table.X, sample_weight=table.sample_weight, rescalings=RESCALINGS,
            random_state=seed, on_fit=lambda done: advance(), **known,
        )  # fmt: skip


def print_units(units: "Units") -> None:
    """The sentence, and the edges that do not survive every change of units."""
    from rescore.cli.printing import print_table
    from rescore.cli.terminal import console
    from rescore.text import printable
    from rescore.units_changed import PROOF

    console().print(f"\nUnits: {units.sentence}")
    odd = units.table[units.table["verdict"] != PROOF]
    lines = [
        (printable(cause, 30), "->", printable(effect, 30), _percent(share), changes or verdict)
        for cause, effect, verdict, share, changes in odd.itertuples(index=False, name=None)
    ]
    if lines:
        title = "Edges that hang on the units"
        more = f" (the first {MOST_EDGES} of {len(lines)})" if len(lines) > MOST_EDGES else ""
        header = ("cause", "", "effect", ">of refits", "changes")
        print_table(title + more, header, lines[:MOST_EDGES])


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def units_as_data(units: "Units") -> dict[str, Any]:
    """The sentence, the table as a list of rows, the factors, and what did not converge."""
    from rescore.report.units import units_as_json

    return {"sentence": units.sentence, **units_as_json(units)}
