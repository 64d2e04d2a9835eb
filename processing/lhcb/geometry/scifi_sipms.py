"""The SiPM of each link of the SciFi's readout boards, for banks of versions 7 and 8 (docs/formats/scifi-banks.md)."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.ideal_scifi import CHANNELS_PER_SIPM, FIRST_MAT, N_MAT_INDICES
from hltnode.protocol.lhcb.banks.scifi import SciFiHits
from hltnode.protocol.lhcb.banks.scifi_links import LINKS_OF_BANK, SciFiLinkHits
from hltnode.protocol.lhcb.subdetectors import SubDetector
from hltnode.protocol.raw_data.source_id import source_id

MAX_LISTED_BANKS = 512
NO_SIPM = 14_336
"""In the place of a SiPM: the link is off."""

_SIPM_SHIFT = 7
_FIRST_SIPM = FIRST_MAT << 2
_N_SIPM_INDICES = N_MAT_INDICES << 2


@dataclass(frozen=True, slots=True, eq=False)
class SciFiSipms:
    """`source` u32[n]: ids of the banks, each once; `sipm` u32[n, 24]: the channel id of cell 0 of each link, or
    NO_SIPM. A SiPM has one link. `n` is 512 at most.
    """

    source: NDArray[np.uint32]
    sipm: NDArray[np.uint32]

    @classmethod
    def of_first_channels(cls, first_channel: NDArray[np.uint32], exists: NDArray[np.bool_]) -> Self:
        """The links of banks that read consecutive SiPMs from their first channel (u32[n]) on.

        `exists` bool[1536]: by mat index. Bank number i has the source id of a simulated bank: odd numbers are on side
        A, even ones on side C.
        """
        number = np.arange(len(first_channel))
        source = [source_id(SubDetector.SCIFI_A if i % 2 else SubDetector.SCIFI_C, i) for i in number.tolist()]
        sipm = first_channel[:, None] + np.arange(LINKS_OF_BANK, dtype=np.uint32) * np.uint32(CHANNELS_PER_SIPM)
        # A bank ends where the next one begins.
        order = np.sort(first_channel)
        at = np.searchsorted(order, first_channel, side="right")
        end = np.append(order, (FIRST_MAT + N_MAT_INDICES) << 9)[at]
        used = (sipm < end[:, None]) & exists[np.minimum((sipm >> np.uint32(9)) - FIRST_MAT, N_MAT_INDICES - 1)]
        return cls(np.array(source, np.uint32), np.where(used, sipm, np.uint32(NO_SIPM)).astype(np.uint32))

    def fault(self, exists: NDArray[np.bool_]) -> str:
        """What is impossible about the lists; empty if nothing is. `exists` bool[1536]: by mat index."""
        if len(np.unique(self.source)) != len(self.source):
            return "source ids of banks: one is listed twice"
        if self.source.max(initial=0) > 0xFFFF:
            return f"source ids of banks hold {self.source.max()}, at most 65535 is possible"
        on = self.sipm[self.sipm != NO_SIPM]
        mat = (on >> np.uint32(9)).astype(np.int64) - FIRST_MAT
        inside = (on % CHANNELS_PER_SIPM == 0) & (mat >= 0) & (mat < N_MAT_INDICES)
        inside[inside] = exists[mat[inside]]
        if not inside.all():
            return f"SiPMs of links: {int(on[~inside][0])} is no SiPM of a mat"
        if len(np.unique(on)) != len(on):
            return "SiPMs of links: one is listed twice"
        return ""

    def channels(self, hits: SciFiLinkHits) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """The indices of the hits whose link is listed and not off, i64[m], and their channel ids, u32[m]."""
        order = np.argsort(self.source)
        row = order[np.minimum(np.searchsorted(self.source[order], hits.source), len(order) - 1)]
        link = np.minimum(hits.link, LINKS_OF_BANK - 1)
        sipm = self.sipm[row, link]
        known = (self.source[row] == hits.source) & (hits.link < LINKS_OF_BANK) & (sipm != NO_SIPM)
        chosen = np.flatnonzero(known)
        return chosen, (sipm + hits.cell)[chosen].astype(np.uint32)

    def link_hits(self, hits: SciFiHits, first_channel: NDArray[np.uint32]) -> tuple[NDArray[np.int64], SciFiLinkHits]:
        """Hits of banks with these first channels as hits of links: the indices of hits of SiPMs with a link, i64[m],
        and these hits."""
        channel = first_channel[hits.bank].astype(np.int64) + hits.offset
        place = np.full(_N_SIPM_INDICES, -1, np.int64)
        on = np.flatnonzero(self.sipm.ravel() != NO_SIPM)
        place[(self.sipm.ravel()[on] >> _SIPM_SHIFT).astype(np.int64) - _FIRST_SIPM] = on
        of_hit = place[(channel >> _SIPM_SHIFT) - _FIRST_SIPM]
        read = of_hit >= 0
        row, link = np.divmod(of_hit[read], LINKS_OF_BANK)
        return np.flatnonzero(read), SciFiLinkHits(
            source=self.source[row],
            link=link.astype(np.uint32),
            cell=(channel[read] & (CHANNELS_PER_SIPM - 1)).astype(np.uint32),
            fraction=hits.fraction[read],
            pseudo_size=hits.pseudo_size[read],
        )
