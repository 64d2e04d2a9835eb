"""Banks of the TPC (docs/formats/tpc-clusters.md): clusters of an event, and the truth of a simulated event."""

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.errors import BankError, RejectReason
from hltnode.protocol.raw_data.raw_bank import MAX_PAYLOAD_SIZE, RawBank
from hltnode.protocol.raw_data.source_id import number_of, source_id, subdetector_of

TPC_SUBDETECTOR = 1
TPC_VERSION = 1
N_SLICES = 36
"""Slices 0 to 17 are on side A (z > 0), 18 to 35 on side C."""
N_ROWS = 159
"""Rows of a slice."""
CHAMBERS_OF_SLICE = 6
PARTS_OF_CHAMBER = 8
"""A central event has 148 kB a chamber; a bank holds at most 65,527 bytes."""
SOURCES_OF_SLICE = CHAMBERS_OF_SLICE * PARTS_OF_CHAMBER
N_SOURCES = N_SLICES * SOURCES_OF_SLICE
FIRST_ROWS = (0, 31, 63, 91, 117, 140, N_ROWS)
"""First row of each chamber of a slice, and the number of rows. The boundary 63 is that of the inner and outer
chambers (J. Alme et al., "The ALICE TPC, a large 3-dimensional tracking device with fast readout", NIM A 622 (2010)
316); the others follow the six readout partitions of a sector."""

CLUSTER = np.dtype([("row", "<u2"), ("y", "<u2"), ("z", "<u2"), ("charge", "<u2")])
"""A cluster: row of the slice, coordinates on the scales below, charge in ADC counts."""
Y_STEP, Y_OFFSET = 0.0015, 32768
"""y = (number - Y_OFFSET) * Y_STEP, in cm."""
Z_STEP, Z_START = 0.004, -6.0
"""Drift coordinate |z| = number * Z_STEP + Z_START, in cm. Clusters of other collisions may have |z| < 0."""
MAX_CLUSTERS_OF_BANK = MAX_PAYLOAD_SIZE // CLUSTER.itemsize

NO_PARTICLE = 0xFFFF_FFFF
"""Particle of a cluster of noise."""
TRUE_PARTICLE = np.dtype(
    [
        ("pdg", "<i4"),
        ("mother", "<i4"),
        ("vertex", "<f4", 3),
        ("momentum", "<f4", 3),
        ("collision", "<u2"),
        ("origin", "<u2"),
    ]
)
"""A simulated particle, charged or a V0: PDG number, place of its mother in this list (-1 without one), vertex in cm
and momentum in GeV/c in the global frame, collision (0 is the triggered one), Origin."""
TRUE_STATE = np.dtype(
    [
        ("particle", "<u4"),
        ("slice", "<u2"),
        ("row", "<u2"),
        ("y", "<f4"),
        ("z", "<f4"),
        ("sin_phi", "<f4"),
        ("lambda", "<f4"),
        ("kappa", "<f4"),
    ]
)
"""Where a particle crosses its first row of a slice: Y and Z in cm in the frame of the slice (a collision of pile-up
seems shifted in Z), sin phi, lambda = pz/pT, kappa = q/pT in c/GeV. Particles that turn back have none."""


class Origin(IntEnum):
    """Where a simulated particle comes from."""

    PRIMARY = 0
    DECAY = 1
    """Daughter of a K0S or a Lambda."""
    MATERIAL = 2
    """Made in the material."""
    DELTA = 3
    """Delta electron of the gas."""


class TpcBankType(IntEnum):
    """Types that this chain names (docs/formats/bank-types.md)."""

    CLUSTERS = 1
    TRUE_INDICES = 2
    """Particle of each cluster of the source."""
    TRUE_PARTICLES = 3
    TRUE_STATES = 4
    SEVERAL_BANKS = 240
    """Made when a file is read: the source has several banks in the event; the payload is that of the first one."""


TRUTH_TYPES = frozenset({int(TpcBankType.TRUE_INDICES), int(TpcBankType.TRUE_PARTICLES), int(TpcBankType.TRUE_STATES)})
"""Written by the simulation alone."""


def tpc_source(slice_number: int, chamber: int = 0, part: int = 0) -> int:
    """The source id of a part of a chamber. Raises BankError for one that does not exist."""
    places = ((slice_number, N_SLICES), (chamber, CHAMBERS_OF_SLICE), (part, PARTS_OF_CHAMBER))
    if not all(0 <= place < n for place, n in places):
        raise BankError(
            RejectReason.UNKNOWN_SOURCE, f"the TPC has no slice {slice_number}, chamber {chamber}, part {part}"
        )
    return source_id(TPC_SUBDETECTOR, (slice_number * CHAMBERS_OF_SLICE + chamber) * PARTS_OF_CHAMBER + part)


def is_tpc_source(source: int) -> bool:
    """Whether a source sends clusters."""
    return subdetector_of(source) == TPC_SUBDETECTOR and number_of(source) < N_SOURCES


def slice_of_source(source: int) -> int:
    """The slice whose clusters a source sends. Raises BankError for a source of something else."""
    if not is_tpc_source(source):
        raise BankError(RejectReason.UNKNOWN_SOURCE, f"source {source} sends no clusters of the TPC")
    return number_of(source) // SOURCES_OF_SLICE


def numbers_of_places(y: NDArray[np.floating], drift: NDArray[np.floating]) -> tuple[NDArray[np.int64], ...]:
    """The numbers of y and of the drift coordinate, both in cm; out of 0..65535 where the scale ends."""
    return (
        np.rint(np.asarray(y, np.float64) / Y_STEP).astype(np.int64) + Y_OFFSET,
        np.rint((np.asarray(drift, np.float64) - Z_START) / Z_STEP).astype(np.int64),
    )


def places_of_clusters(clusters: NDArray[np.void]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """y in the slice frame and drift coordinate |z|, f64[clusters] in cm."""
    y = (clusters["y"].astype(np.float64) - Y_OFFSET) * Y_STEP
    return y, clusters["z"].astype(np.float64) * Z_STEP + Z_START


def encode_clusters(clusters: NDArray[np.void]) -> bytes:
    """The payload of CLUSTER[clusters]. Raises BankError for a row of 159 or more, or for more than 8,190 clusters."""
    if len(clusters) > MAX_CLUSTERS_OF_BANK:
        raise BankError(
            RejectReason.OVERSIZED, f"{len(clusters)} clusters of the TPC, at most {MAX_CLUSTERS_OF_BANK} fit in a bank"
        )
    if (wrong := np.flatnonzero(clusters["row"] >= N_ROWS)).size:
        raise BankError(
            RejectReason.MALFORMED,
            f"cluster {wrong[0]} has row {clusters['row'][wrong[0]]}; a slice has {N_ROWS} rows",
        )
    return np.ascontiguousarray(clusters, CLUSTER).tobytes()


def decode_clusters(payload: bytes | memoryview) -> NDArray[np.void]:
    """CLUSTER[clusters] of a payload. Raises BankError for a part of a cluster, or for a row of 159 or more."""
    if len(payload) % CLUSTER.itemsize:
        raise BankError(
            RejectReason.BAD_SIZE, f"a TPC bank of {len(payload)} bytes; clusters of {CLUSTER.itemsize} bytes expected"
        )
    clusters = np.frombuffer(payload, CLUSTER)
    if (wrong := np.flatnonzero(clusters["row"] >= N_ROWS)).size:
        raise BankError(
            RejectReason.MALFORMED,
            f"cluster {wrong[0]} has row {clusters['row'][wrong[0]]}; a slice has {N_ROWS} rows",
        )
    return clusters


def cluster_bank(source: int, clusters: NDArray[np.void]) -> RawBank:
    """The bank of CLUSTER[clusters]. Raises BankError as encode_clusters, and for a source that is none of the TPC."""
    slice_of_source(source)
    return RawBank(TpcBankType.CLUSTERS, TPC_VERSION, source, memoryview(encode_clusters(clusters)))


def true_index_bank(source: int, particles: NDArray[np.integer]) -> RawBank:
    """The bank with the particle of each cluster of a source, int[clusters]; NO_PARTICLE for noise."""
    payload = memoryview(np.asarray(particles).astype("<u4").tobytes())
    return RawBank(TpcBankType.TRUE_INDICES, TPC_VERSION, source, payload)


def true_list_banks(bank_type: TpcBankType, records: NDArray[np.void]) -> list[RawBank]:
    """The banks of TRUE_PARTICLE[particles] or TRUE_STATE[states], in the order of their sources."""
    per_bank = MAX_PAYLOAD_SIZE // records.dtype.itemsize
    starts = range(0, max(len(records), 1), per_bank)
    return [
        RawBank(
            bank_type,
            TPC_VERSION,
            source_id(TPC_SUBDETECTOR, number),
            memoryview(records[start : start + per_bank].tobytes()),
        )
        for number, start in enumerate(starts)
    ]


def banks_of_clusters(banks: Iterable[RawBank]) -> list[RawBank]:
    """The banks of clusters of an event in the order of their sources, which is that of the chain's output.

    Banks of another version are left out, as by the chain.
    """
    chosen = [
        bank
        for bank in banks
        if bank.type == TpcBankType.CLUSTERS and bank.version == TPC_VERSION and is_tpc_source(bank.source_id)
    ]
    return sorted(chosen, key=lambda bank: bank.source_id)


class TpcTruth(NamedTuple):
    """The truth of an event.

    of_clusters: i64[clusters], particle of each cluster of banks_of_clusters, -1 for noise. particles:
    TRUE_PARTICLE[particles]. states: TRUE_STATE[states].
    """

    of_clusters: NDArray[np.int64]
    particles: NDArray[np.void]
    states: NDArray[np.void]


def truth_of(banks: Sequence[RawBank]) -> TpcTruth | None:
    """The truth of a simulated event; None without particles.

    Raises BankError if the truth of a source is missing, has another number of clusters, or names a particle that does
    not exist, as that of a cluster or a state, or as a mother.
    """
    of_particles = _of_type(banks, TpcBankType.TRUE_PARTICLES)
    if not of_particles:
        return None
    particles = np.concatenate([_records(bank, TRUE_PARTICLE, "simulated particles") for bank in of_particles])
    mothers = particles["mother"]
    if len(particles) and not -1 <= mothers.min() <= mothers.max() < len(particles):
        wrong = int(np.flatnonzero((mothers < -1) | (mothers >= len(particles)))[0])
        raise BankError(
            RejectReason.MALFORMED,
            f"particle {wrong} has mother {mothers[wrong]}, the event has {len(particles)} particles",
        )
    states = [_records(bank, TRUE_STATE, "true states") for bank in _of_type(banks, TpcBankType.TRUE_STATES)]
    of_source = {bank.source_id: bank for bank in banks if bank.type == TpcBankType.TRUE_INDICES}
    indices = [np.empty(0, np.int64), *_indices_of(banks_of_clusters(banks), of_source, len(particles))]
    truth = TpcTruth(np.concatenate(indices), particles, np.concatenate([np.empty(0, TRUE_STATE), *states]))
    if len(truth.states) and truth.states["particle"].max() >= len(particles):
        raise BankError(
            RejectReason.MALFORMED,
            f"a true state of particle {truth.states['particle'].max()}, the event has {len(particles)}",
        )
    return truth


def _of_type(banks: Iterable[RawBank], bank_type: TpcBankType) -> list[RawBank]:
    return sorted((bank for bank in banks if bank.type == bank_type), key=lambda bank: bank.source_id)


def _indices_of(
    banks: Sequence[RawBank], of_source: dict[int, RawBank], n_particles: int
) -> Iterator[NDArray[np.int64]]:
    for bank in banks:
        expected = len(bank.payload) // CLUSTER.itemsize
        truth = of_source.get(bank.source_id)
        read = None if truth is None else _records(truth, np.dtype("<u4"), "particles of clusters")
        if read is None or len(read) != expected:
            raise BankError(
                RejectReason.BAD_SIZE,
                f"source {bank.source_id} has {expected} clusters and the truth of {0 if read is None else len(read)}",
            )
        of_bank = np.where(read == NO_PARTICLE, -1, read.astype(np.int64))
        if of_bank.size and of_bank.max() >= n_particles:
            raise BankError(
                RejectReason.MALFORMED,
                f"source {bank.source_id}: a cluster of particle {of_bank.max()}, the event has {n_particles}",
            )
        yield of_bank


def _records(bank: RawBank, record: np.dtype[np.generic], name: str) -> NDArray[np.generic]:
    if len(bank.payload) % record.itemsize:
        raise BankError(
            RejectReason.BAD_SIZE, f"{len(bank.payload)} bytes of {name}, which have {record.itemsize} each"
        )
    return np.frombuffer(bank.payload, record)
