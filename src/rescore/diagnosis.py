"""What a fit says about itself, as plain data that can be written to JSON."""

from dataclasses import asdict
from typing import Any

import numpy as np

from rescore.fitting import Fitted
from rescore.protocols import Status
from rescore.tables.spread import condition_number, scale_ratio, spread

HEAVIEST = 10  # rows listed by weight


def diagnose(fitted: Fitted) -> dict[str, Any]:
    """Convergence, scales, edges cut or known, the heaviest rows, all that was warned about."""
    table, result = fitted.table, fitted.result
    width = spread(fitted.described)
    return {
        "status": result.status.value,
        "converged": result.status is Status.CONVERGED,
        "outer_steps": len(result.history),
        "scale_ratio": scale_ratio(fitted.described, width),
        "condition_number": condition_number(fitted.described, width),
        "effective_rows": result.effective_rows,
        "weighting": dict(result.weighting),
        "removed_edges": [
            {"from": table.names[i], "to": table.names[j], "weight": float(weight)}
            for i, j, weight in result.removed
        ],
        "knowledge": list(fitted.receipts),
        "heaviest_rows": _heaviest(fitted),
        "warnings": [asdict(found) | {"message": found.message} for found in fitted.findings],
    }


def _heaviest(fitted: Fitted) -> list[dict[str, Any]]:
    """The rows with the largest weights, the worst-fitting first among equals."""
    w, loss = fitted.result.sample_weight, np.nan_to_num(fitted.row_losses)
    order = np.lexsort((-loss, -w))[:HEAVIEST]
    return [
        {"row": fitted.table.index[i], "weight": float(w[i]), "loss": float(loss[i])} for i in order
    ]
