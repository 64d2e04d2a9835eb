"""Numbers of a trigger configuration that become float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from hltnode.processing.selection.errors import TriggerConfigError, shown

_LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


def finite_number(key: str, value: Any) -> int | float:
    """The value, unchanged. Raises TriggerConfigError, which names the key, for anything that float32 cannot hold."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST_FLOAT32:
        return value
    raise TriggerConfigError(f"{key}: a finite number is expected, not {shown(value)}")
