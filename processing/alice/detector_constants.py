"""Dimensions of ALICE's TPC of Run 1 and 2, its gas, and the masses of particles.

Dimensions, gas and diffusion: J. Alme et al., "The ALICE TPC, a large 3-dimensional tracking device with fast readout
for ultra-high multiplicity events", NIM A 622 (2010) 316, sections 2 and 4.
"""

import math

SLICES_OF_SIDE = 18
SLICE_ANGLE = math.radians(20.0)
"""A slice covers this angle; slice s of a side begins at s times it."""
ROW_GROUPS = ((85.195, 0.75, 63, 0.4), (135.18, 1.0, 64, 0.6), (199.43, 1.5, 32, 0.6))
"""x of the first row, distance of rows, number of rows, width of a pad, in cm; in the order of the rows."""
HALF_LENGTH = 249.7
"""cm from the central electrode to the pads."""
FIELD_KG = 5.0
"""Bz at the centre: 0.5 T."""
KG_TO_CURVATURE = 0.000299792458
"""d(sin phi)/dx in 1/cm = - this * q/pT in c/GeV * Bz in kG: a positive particle turns clockwise if Bz is positive."""
FIELD_Z2, FIELD_Z4 = -2.0e-7, 0.0
"""Coefficients in 1/cm2 and 1/cm4 of the field that is not uniform (geometry.field). A choice: Bz is 1.25 % lower at
the pads than at the centre, the size of what a solenoid of 12 m with a bore of 5.6 m has there."""
CHARGED_PION_MASS = 0.13957039
CHARGED_KAON_MASS = 0.493677
PROTON_MASS = 0.93827209
ELECTRON_MASS = 0.00051099895
MUON_MASS = 0.1056583755
NEUTRAL_KAON_MASS = 0.497611
LAMBDA_MASS = 1.115683
"""GeV/c2 (Particle Data Group, Review of Particle Physics 2024)."""
NEUTRAL_KAON_LENGTH, LAMBDA_LENGTH = 2.6844, 7.89
"""c tau in cm, from the same source."""

# Gas and pads.
DIFFUSION = 0.022
"""cm for a drift of 1 cm, along and across the drift: 220 um / sqrt(cm) in Ne-CO2-N2."""
ELECTRONS_PER_CM = 36.0
PRIMARY_ELECTRONS_PER_CM = 14.0
"""Electrons of a minimum ionising particle in 1 cm, all and those of its own collisions."""
GAIN_FLUCTUATION = 2.0
"""1 + relative variance of the gain of one electron, whose charges are exponentially distributed."""
INTRINSIC_SIGMA = 0.02
"""cm: resolution without diffusion, for a track along x."""
PAD_RESPONSE = 0.2
"""cm: width of the charge that one electron induces on the pads."""
SHAPING_WIDTH = 0.21
"""cm along the drift: shaping of 190 ns at half height, at a drift velocity of 2.65 cm/us."""
