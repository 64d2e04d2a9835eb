"""Data of an interactive page: JSON in a script element, and rounded numbers for it."""

import json
import math
from typing import Any

import numpy as np
from markupsafe import Markup

from hltnode.processing.offline.arrays import Float64Array


def script_json(content: dict[str, Any]) -> Markup:
    """JSON that can stand in a script element: no "<" in it, so no "</script>" and no "<!--"."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def rounded(values: Float64Array, digits: int) -> list[float | None]:
    """Values with this number of decimals; None for one that is not finite."""
    return [value if math.isfinite(value) else None for value in np.round(values, digits).tolist()]


def five_digits(value: float) -> float | None:
    """The value with five significant digits; None if it is not finite."""
    return float(f"{value:.5g}") if math.isfinite(value) else None
