"""The kinds of events in a mixture, and the frequencies that give the weights of events."""

import numpy as np

from hltnode.processing.lhcb.offline.simulation.generation.decay_table import ALONE, DECAY_PT, DECAY_RATE
from hltnode.processing.lhcb.offline.simulation.generation.enrichment import (
    PROMPT,
    AddedRows,
    Mixture,
    added_frequency,
    places_to_add,
)
from hltnode.processing.lhcb.offline.simulation.generation.spectra import (
    PROMPT_FRACTIONS,
    PROMPT_PIDS,
    PT_MEDIAN,
    PT_SPREAD,
    NewParticles,
    eta_ratio,
)
from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.processing.offline.event_random import EventRandom


class MixtureChoice:
    """The kinds of the events of a chunk in a mixture, and how much more frequent each kind makes the events."""

    def __init__(self, mixture: Mixture, random: EventRandom, nu: float) -> None:
        self._mixture, self._nu = mixture, nu
        self._kind = mixture.chosen(random.uniform(np.arange(len(random))))
        self._frequencies = np.ones((len(mixture.kinds), len(random)))
        self.nus = nu * np.array([kind.busy for kind in mixture.kinds])[self._kind]

    @property
    def weights(self) -> Float64Array:
        """The weights of the events."""
        return self._mixture.weights(self._frequencies)

    def extra(self, random: EventRandom, event: Int64Array, mean: Float64Array, process: Int64Array) -> Int64Array:
        """How many particles to add in each row, which has `mean` particles of a process of its event."""
        kinds = self._mixture.kinds
        wanted = np.array([kind.process for kind in kinds])[self._kind][event] == process
        mean = np.where(wanted, mean, 0.0)
        n_events = len(self._kind)
        total = np.bincount(event, mean, minlength=n_events)
        ends = np.cumsum(mean)
        first = np.concatenate([[0.0], np.cumsum(total)[:-1]])
        n_added = np.where(total > 0, np.array([kind.n for kind in kinds])[self._kind], 0)
        added = np.repeat(np.arange(n_events), n_added)
        rows = np.searchsorted(ends, first[added] + random.uniform(added) * total[added], side="right")
        # Rounding must not choose a row of another event or process.
        chosen = np.flatnonzero(mean > 0)
        rows = chosen[np.clip(np.searchsorted(chosen, rows, side="right") - 1, 0, None)] if len(rows) else rows
        return np.bincount(rows, minlength=len(event)).astype(np.int64)

    def spectra(self, source: Int64Array, event: Int64Array, extra: Int64Array) -> AddedRows:
        """The spectra of the particles of the rows `source`: added ones are the last of their rows."""
        return AddedRows.of(
            places_to_add(source, extra), [kind.spectrum for kind in self._mixture.kinds], self._kind[event[source]]
        )

    def count_collisions(self, number: Int64Array) -> None:
        """Enter the frequencies of kinds with another number of collisions."""
        for row, kind in enumerate(self._mixture.kinds):
            if kind.busy != 1.0:
                self._frequencies[row] = kind.busy**number * np.exp(-(kind.busy - 1) * self._nu)

    def count_prompt(self, prompt: NewParticles, mean: Float64Array) -> None:
        """Enter the frequencies of kinds with more prompt particles; mean: f64[events], all of them."""
        particles = prompt.particles
        for row, kind in enumerate(self._mixture.kinds):
            if kind.process == PROMPT:
                spectrum = kind.spectrum
                ratio = eta_ratio(spectrum, particles.eta) * spectrum.pt_ratio(particles.pt, PT_MEDIAN, PT_SPREAD)
                if spectrum.pid:
                    fraction = PROMPT_FRACTIONS[spectrum.pid == PROMPT_PIDS].sum()
                    ratio *= (np.abs(particles.pid) == spectrum.pid) / fraction
                self._frequencies[row] = added_frequency(kind.n, prompt.event, ratio, mean)

    def count_decays(
        self,
        event: Int64Array,
        process: Int64Array,
        momentum: Float64Array,
        flight: Float64Array,
        alone: Mask,
        n_inelastic: Int64Array,
    ) -> None:
        """Enter the frequencies of kinds with more decaying particles. One row for each: place in DECAYS, momentum,
        distance flown in mean distances, whether there are no other products."""
        pt = np.hypot(momentum[:, 0], momentum[:, 1])
        eta = np.arcsinh(momentum[:, 2] / pt)
        for row, kind in enumerate(self._mixture.kinds):
            if kind.process < 0:
                continue
            spectrum, rows = kind.spectrum, np.flatnonzero(process == kind.process)
            ratio = eta_ratio(spectrum, eta[rows]) * spectrum.flight_ratio(flight[rows])
            ratio *= spectrum.pt_ratio(pt[rows], DECAY_PT[kind.process], PT_SPREAD)
            if spectrum.alone:
                ratio *= alone[rows] / ALONE[kind.process]
            self._frequencies[row] = added_frequency(kind.n, event[rows], ratio, n_inelastic * DECAY_RATE[kind.process])
