"""Computes the parametrisation from geometry, field and material."""

from dataclasses import replace
from hashlib import sha256
from importlib.metadata import version
from typing import Any

import numpy as np

from hltnode.processing.lhcb.geometry.magnet import UP, Magnet
from hltnode.processing.lhcb.geometry.material import slabs
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.parametrisation import accuracy
from hltnode.processing.lhcb.parametrisation.energy_loss import median_energy_loss
from hltnode.processing.lhcb.parametrisation.filter_noise import fit_noise
from hltnode.processing.lhcb.parametrisation.flights import STEP, Origins
from hltnode.processing.lhcb.parametrisation.forms import FloatArray
from hltnode.processing.lhcb.parametrisation.functions import BeforeUt, BehindMagnet, InUt, Seeds
from hltnode.processing.lhcb.parametrisation.magnet_fits import fit_before_ut, fit_behind_magnet, fit_in_ut
from hltnode.processing.lhcb.parametrisation.parameters import LongTrackParameters
from hltnode.processing.lhcb.parametrisation.scattering import fit_expected_errors
from hltnode.processing.lhcb.parametrisation.seeding import fit_seeds
from hltnode.processing.lhcb.parametrisation.tracks import Tracks

N_FLIGHTS = 3000
N_UNSEEN_FLIGHTS = 1500


def parametrise(scifi: SciFiGeometry, magnet: Magnet) -> LongTrackParameters:
    """The parametrisation of a detector, with its accuracy for flights outside the fits."""
    field = replace(magnet, polarity=UP).field
    layer_z = scifi.layer_z()
    tracks = Tracks.fly(field, layer_z, N_FLIGHTS)
    unseen = Tracks.fly(field, layer_z, N_UNSEEN_FLIGHTS, skip=N_FLIGHTS)
    seeds, seed_spreads = fit_seeds(tracks)
    found = LongTrackParameters(
        polarity=magnet.polarity,
        energy_loss=median_energy_loss(field),
        behind_velo=BehindMagnet.fitted(fit_behind_magnet(tracks, tracks.velo)),
        behind_ut=BehindMagnet.fitted(fit_behind_magnet(tracks, tracks.ut)),
        before_ut=BeforeUt.fitted(fit_before_ut(tracks)),
        in_ut=InUt.fitted(fit_in_ut(tracks)),
        seeds=Seeds.fitted(seeds),
        seed_spreads=seed_spreads,
        errors=fit_expected_errors(layer_z),
        noise=fit_noise(layer_z),
        provenance=_provenance(magnet, layer_z),
    )
    tables = {
        accuracy.MOMENTUM_FROM: list(accuracy.MOMENTUM_BINS[:-1]),
        "behind_velo": accuracy.of_behind_magnet(found.behind_velo, unseen, unseen.velo),
        "behind_ut": accuracy.of_behind_magnet(found.behind_ut, unseen, unseen.ut),
        "before_ut": accuracy.of_before_ut(found.before_ut, unseen),
        "in_ut": accuracy.of_in_ut(found.in_ut, unseen),
        "seeds": accuracy.of_seeds(found.seeds, unseen),
    }
    return replace(found, accuracy=tables)


def _provenance(magnet: Magnet, layer_z: FloatArray) -> dict[str, Any]:
    origins = Origins()
    return {
        "made by": f"hltnode {version('hltnode')}",
        "field digest": magnet.digest,
        "material digest": sha256(repr(slabs()).encode()).hexdigest(),
        "layer z, mm": np.round(layer_z, 3).tolist(),
        "flights": N_FLIGHTS,
        "step, mm": STEP,
        "largest slopes": [origins.tx, origins.ty],
        "origins from and to z, mm": [origins.first_z, origins.last_z],
        "smallest momentum, GeV": origins.p_min,
    }
