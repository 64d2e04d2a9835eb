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
"""Curvature in 1/cm = this * q/pT in c/GeV * Bz in kG."""
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
