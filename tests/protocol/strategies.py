"""Hypothesis strategies for the values of the formats."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from hltnode.protocol import NO_BANK, Odin, RawBank, encode_mfp
from hltnode.protocol.lhcb.banks.velo import RetinaClusters, SuperPixels
from hltnode.protocol.lhcb.truth import McParticle, McVertex
from hltnode.protocol.transport.messages import MAX_MEP_ID

u8 = st.integers(0, 0xFF)
u16 = st.integers(0, 0xFFFF)
u32 = st.integers(0, 0xFFFF_FFFF)
u64 = st.integers(0, 0xFFFF_FFFF_FFFF_FFFF)
mep_ids = st.integers(0, MAX_MEP_ID)
i32 = st.integers(-(1 << 31), (1 << 31) - 1)
f32 = st.floats(width=32, allow_nan=False)

raw_banks = st.builds(
    RawBank,
    type=u8.filter(lambda bank_type: bank_type != 48),
    version=u8,
    source_id=u16,
    payload=st.binary(max_size=200).map(memoryview),
)

odins = st.builds(
    Odin,
    run=u32,
    event_id=u64,
    event_type=u16,
    step=u16,
    gps_time_us=u64,
    tck=u32,
    partition=u32,
    bunch_id=st.integers(0, 0xFFF),
    crossing_type=st.integers(0, 3),
    non_zero_suppressed=st.booleans(),
    tae_central=st.booleans(),
    tae_half_window=st.integers(0, 0x3F),
    step_run=st.booleans(),
    trigger_type=st.integers(0, 0xF),
    tae_first=st.booleans(),
    calibration_type=st.integers(0, 0xF),
    orbit=u32,
)


@st.composite
def fragment_lists(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """Types and bytes of the fragments of one MFP, absent banks included."""
    fragments = draw(st.lists(st.none() | st.binary(max_size=70), min_size=1, max_size=40))
    types = bytes(NO_BANK if fragment is None else draw(st.integers(0, 254)) for fragment in fragments)
    return types, [fragment or b"" for fragment in fragments]


@st.composite
def mep_inputs(draw: st.DrawFn) -> list[bytes]:
    """Encoded MFPs that can form one MEP, by ascending source id."""
    sources = sorted(draw(st.sets(st.integers(2048, 0xFFFF), max_size=6)))
    n, event_id, align = draw(st.integers(1, 9)), draw(st.integers(0, 1 << 63)), draw(st.integers(2, 8))
    mfps = []
    for source in [draw(st.integers(0, 2047)), *sources]:
        fragments = draw(st.lists(st.binary(max_size=50), min_size=n, max_size=n))
        types = draw(st.lists(st.integers(0, 254), min_size=n, max_size=n))
        mfps.append(
            encode_mfp(
                source_id=source, event_id=event_id, version=draw(u8), types=types, fragments=fragments, align=align
            )
        )
    return mfps


def _columns(rows: list[tuple[int, ...]], width: int) -> list[np.ndarray[tuple[int, ...], np.dtype[np.uint32]]]:
    return list(np.array(rows, np.uint32).reshape(-1, width).T)


@st.composite
def superpixels(draw: st.DrawFn) -> SuperPixels:
    """Super-pixels of all sensors in ascending order of the sensor."""
    row = st.tuples(
        st.integers(0, 207), st.integers(0, 383), st.integers(0, 63), st.integers(0, 255), st.integers(0, 1)
    )
    rows = sorted(draw(st.lists(row, max_size=60)), key=lambda values: values[0])
    return SuperPixels(*_columns(list(rows), 5))


@st.composite
def retina_clusters(draw: st.DrawFn, version: int) -> RetinaClusters:
    """Clusters of all sensors in ascending order of the sensor, in the layout of a bank version."""
    bits = 3 if version == 2 else 2
    fraction = st.integers(0, (1 << bits) - 1)
    flags = st.integers(0, 255) if version == 2 else st.integers(0, 511).map(lambda value: value << 1)
    row = st.tuples(st.integers(0, 207), st.integers(0, 767), st.integers(0, 255), fraction, fraction, flags)
    rows = sorted(draw(st.lists(row, max_size=60)), key=lambda values: values[0])
    sensor, column, pixel_row, fraction_x, fraction_y, upper = _columns(list(rows), 6)
    return RetinaClusters(sensor, column, pixel_row, fraction_x, fraction_y, upper, fraction_bits=bits)


hit_ids = st.lists(u32, max_size=8).map(tuple)

particles = st.builds(
    McParticle,
    key=u32,
    pid=i32,
    p=f32,
    pt=f32,
    eta=f32,
    phi=f32,
    vertex_x=f32,
    vertex_y=f32,
    vertex_z=f32,
    is_long=st.booleans(),
    is_down=st.booleans(),
    has_velo=st.booleans(),
    has_ut=st.booleans(),
    has_scifi=st.booleans(),
    from_b=st.booleans(),
    from_c=st.booleans(),
    from_strange=st.booleans(),
    from_signal=st.booleans(),
    mother_key=i32,
    mother_pid=i32,
    dom_key=i32,
    dom_pid=i32,
    dom_pt=f32,
    dom_tau=f32,
    charge=f32,
    n_pvs=u32,
    velo_ids=hit_ids,
    ut_ids=hit_ids,
    scifi_ids=hit_ids,
)

vertices = st.builds(
    McVertex,
    n_tracks=i32,
    x=st.floats(allow_nan=False),
    y=st.floats(allow_nan=False),
    z=st.floats(allow_nan=False),
)
