"""Types of the cuts of line types, with the values that a trigger configuration may give."""

from typing import Annotated

from pydantic import Field

Momentum = Annotated[float, Field(ge=0.0, le=1e8, json_schema_extra={"unit": "MeV"})]
"""MeV: momenta, masses."""
Length = Annotated[float, Field(ge=-1e5, le=1e5, json_schema_extra={"unit": "mm"})]
"""mm."""
Distance = Annotated[float, Field(ge=0.0, le=1e4, json_schema_extra={"unit": "mm"})]
"""mm."""
Plain = Annotated[float, Field(ge=-1e9, le=1e9)]
"""No unit."""
Positive = Annotated[float, Field(ge=0.0, le=1e9)]
"""No unit: chi2."""
Count = Annotated[int, Field(ge=1, le=0xFFFF)]

MIN_PV_Z = -341.0
"""mm: collisions of both beams; the gas target is upstream of it."""
