"""The mixture of enriched minimum bias: what the lines of a menu select, and the rest of the crossings."""

from hltnode.processing.lhcb.offline.simulation.generation.decay_table import BEAUTY, CHARM, K_SHORT, LAMBDA
from hltnode.processing.lhcb.offline.simulation.generation.enrichment import PROMPT, Harder, Kind, Mixture

_MUON = 13

ENRICHED = Mixture(
    [
        Kind(share=0.30),
        Kind(share=0.05, busy=1.4),
        Kind(share=0.12, process=BEAUTY, n=1, spectrum=Harder(pt=1.6, flight=1.3)),
        Kind(share=0.05, process=BEAUTY, n=1, spectrum=Harder(pt=3.0, flight=1.3)),
        Kind(share=0.12, process=CHARM, n=1, spectrum=Harder(pt=3.0, flight=2.0)),
        Kind(share=0.06, process=CHARM, n=1, spectrum=Harder(pt=2.5, flight=1.5, alone=True)),
        Kind(share=0.05, process=K_SHORT, n=1, spectrum=Harder(pt=5.0, flight=0.15)),
        Kind(share=0.05, process=K_SHORT, n=2, spectrum=Harder(pt=2.5, flight=0.2)),
        Kind(share=0.05, process=LAMBDA, n=1, spectrum=Harder(pt=4.0, flight=0.07)),
        Kind(share=0.05, process=PROMPT, n=1, spectrum=Harder(pt=6.0, pid=_MUON)),
        Kind(share=0.05, process=PROMPT, n=2, spectrum=Harder(pt=2.5, pid=_MUON)),
        Kind(share=0.05, process=PROMPT, n=1, spectrum=Harder(pt=10.0)),
    ]
)
