"""Types of the arrays that the offline tools exchange."""

import numpy as np
from numpy.typing import NDArray

Float64Array = NDArray[np.float64]
Int64Array = NDArray[np.int64]
Mask = NDArray[np.bool_]
