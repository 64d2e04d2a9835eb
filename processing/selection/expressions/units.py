"""Units of the values of lines: lengths in mm, momenta, energies and masses in MeV, angles in rad (c = 1).

A value with a unit is written `1.5 * GeV`. Values stay in double precision until an expression uses them; then they are
rounded once to single precision.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Self, Union

Number = int | float


@dataclass(frozen=True, slots=True)
class Unit:
    """Powers of mm, MeV and rad.

    Each operation of a line looks its unit up, and `tune` records lines thousands of times. So the hash is kept, and
    equal products and powers are mostly the same object.
    """

    length: Fraction = Fraction(0)
    energy: Fraction = Fraction(0)
    angle: Fraction = Fraction(0)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.length, self.energy, self.angle)))

    def __hash__(self) -> int:
        return self._hash

    def __mul__(self, other: "Unit") -> "Unit":
        return _product(self, other)

    def __truediv__(self, other: "Unit") -> "Unit":
        return _product(self, other.to_the(-1))

    def to_the(self, power: int | Fraction) -> "Unit":
        """The unit of a power of a value."""
        return _power(self, power)

    def __str__(self) -> str:
        names = ((self.length, "mm"), (self.energy, "MeV"), (self.angle, "rad"))
        factors = [name if power == 1 else f"{name}^{power}" for power, name in names if power]
        return " ".join(factors) or "no unit"


@lru_cache
def _product(left: Unit, right: Unit) -> Unit:
    return Unit(left.length + right.length, left.energy + right.energy, left.angle + right.angle)


@lru_cache
def _power(unit: Unit, power: int | Fraction) -> Unit:
    return Unit(unit.length * power, unit.energy * power, unit.angle * power)


NO_UNIT = Unit()
LENGTH = Unit(length=Fraction(1))
ENERGY = Unit(energy=Fraction(1))
ANGLE = Unit(angle=Fraction(1))


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with a unit: `value` in mm, MeV, rad and their products."""

    value: float
    unit: Unit

    @classmethod
    def of(cls, value: Union["Quantity", Number]) -> "Quantity":
        """A number as a quantity without unit."""
        return value if isinstance(value, Quantity) else cls(float(value), NO_UNIT)

    def __mul__(self, other: Union["Quantity", Number]) -> "Quantity":
        if not isinstance(other, Quantity | int | float):
            return NotImplemented
        other = Quantity.of(other)
        return Quantity(self.value * other.value, self.unit * other.unit)

    __rmul__ = __mul__

    def __truediv__(self, other: Union["Quantity", Number]) -> "Quantity":
        if not isinstance(other, Quantity | int | float):
            return NotImplemented
        other = Quantity.of(other)
        return Quantity(self.value / other.value, self.unit / other.unit)

    def __rtruediv__(self, other: Number) -> "Quantity":
        return Quantity.of(other) / self

    def __add__(self, other: "Quantity") -> "Quantity":
        if not isinstance(other, Quantity):
            return NotImplemented
        if other.unit != self.unit:
            raise ValueError(f"{self.unit} and {other.unit} cannot be added")
        return Quantity(self.value + other.value, self.unit)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return self + -other if isinstance(other, Quantity) else NotImplemented

    def __neg__(self) -> Self:
        return type(self)(-self.value, self.unit)

    def __pow__(self, power: int) -> "Quantity":
        return Quantity(self.value**power, self.unit.to_the(power))


mm = Quantity(1.0, LENGTH)
um = Quantity(1e-3, LENGTH)
m = Quantity(1e3, LENGTH)
MeV = Quantity(1.0, ENERGY)
GeV = Quantity(1e3, ENERGY)
TeV = Quantity(1e6, ENERGY)
rad = Quantity(1.0, ANGLE)
mrad = Quantity(1e-3, ANGLE)
