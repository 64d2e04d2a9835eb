"""Forward tracking in plain Python from its description (docs/physics/long-tracks.md); all sums in double precision."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

import numpy as np

from tests.processing.lhcb.tracks.long.forward_hypothesis_oracle import (
    MEV,
    SEEDS,
    STEREO_LAYERS,
    Z_REFERENCE,
    Z_VELO,
    Bend,
    Budget,
    Candidate,
    Hypothesis,
    Line,
    OracleHits,
    Seed,
    Settings,
    UtPart,
    parabola,
    sigma_at,
    value,
    with_ut,
    without_ut,
)


class ForwardSearch:
    """The search in one event."""

    def __init__(self, record: np.void, hits: OracleHits, settings: Settings, n_tracks: int) -> None:
        self.record, self.hits, self.settings = record, hits, settings
        self.layer_z = record["layer_z"].astype(np.float64)
        self.dx_dy = record["layer_dx_dy"].astype(np.float64)
        self.dz_dy = record["layer_dz_dy"].astype(np.float64)
        self.n_tracks = n_tracks
        self.counts: dict[str, int] = {}

    def _count(self, name: str, n: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + n

    def best(
        self, track: int, line: Line, ut: UtPart | None, used: Container[tuple[int, int]] = ()
    ) -> Candidate | None:
        """The best good continuation of a VELO track with few used hits, or None."""
        bend = Bend(self.record, line[2], line[3])
        s = self.settings
        where = without_ut(bend, s) if ut is None else with_ut(bend, line, ut, s)
        half = int(line[1] + line[3] * (Z_REFERENCE - Z_VELO) + where.shift >= 0)
        budget = Budget(*(max(n // self.n_tracks, 32) for n in (s.max_pairs, s.max_candidates)))
        best: Candidate | None = None
        for seed in SEEDS:
            # The second seed finds tracks without hits in a layer of the first seed.
            if best is not None and best.quality < s.good_quality:
                break
            for hits, kink, offset in self.x_candidates(line, bend, where, half, seed, budget):
                self._count("x candidates")
                candidate = self.complete(track, line, bend, where, half, hits, kink, offset, budget)
                if candidate is None or sum(hit in used for hit in candidate.hits.items()) > s.max_used_hits:
                    continue
                if candidate.quality < (s.max_quality if best is None else best.quality):
                    best = candidate
        return best

    def x_candidates(
        self, line: Line, bend: Bend, where: Hypothesis, half: int, seed: Seed, budget: Budget
    ) -> Iterator[tuple[dict[int, int], float, float]]:
        """Hits of the x layers, kink and offset."""
        x, y, tx, ty = line
        s = self.settings
        hits = self.hits
        z_of = [
            float(z + dz_dy * (y + ty * (z - Z_VELO) + where.shift))
            for z, dz_dy in zip(self.layer_z, self.dz_dy, strict=True)
        ]
        straight = [x + tx * (z - Z_VELO) + where.offset for z in z_of]
        nodes = (where.low, 0.5 * (where.low + where.high), where.high)
        levers = [[bend.lever(z, kink) + where.per_kink for kink in nodes] for z in z_of]
        if not where.low < where.high:
            return
        first, last, middle, beside = seed
        differences = [b - a for a, b in zip(levers[first], levers[last], strict=True)]
        ratio = parabola(
            [kink * lever for kink, lever in zip(nodes, levers[first], strict=True)],
            [b / a for a, b in zip(levers[first], levers[last], strict=True)],
        )
        rises = [kink * difference for kink, difference in zip(nodes, differences, strict=True)]
        per_rise = parabola(rises, [1 / difference for difference in differences])
        share = {
            layer: parabola(
                rises,
                [(b - a) / c for a, b, c in zip(levers[first], levers[layer], differences, strict=True)],
            )
            for layer in (*middle, *beside)
        }
        to_tolerance = s.n_sigma * differences[1] / levers[first][1]
        per_dx = where.sigma_offset[1] / levers[first][1]
        low = nodes[0] * levers[first][0] - s.n_sigma * sigma_at(where.sigma_offset, where.low)
        high = nodes[2] * levers[first][2] + s.n_sigma * sigma_at(where.sigma_offset, where.high)
        begin, end = hits.window(first, half, straight[first] + low, straight[first] + high)
        self._count("first hits", end - begin)
        for i in range(begin, end):
            dx = hits.x[i] - straight[first]
            expected = straight[last] + dx * value(ratio, dx)
            tolerance = to_tolerance * (where.sigma_offset[0] + per_dx * abs(dx))
            for j in range(*hits.window(last, half, expected - tolerance, expected + tolerance)):
                if budget.pairs == 0:
                    return
                budget.pairs -= 1
                self._count("pairs")
                rise = hits.x[j] - straight[last] - dx
                kink = rise * value(per_rise, rise)
                if not where.low <= kink <= where.high:
                    continue
                most = sigma_at(s.x_window, kink)
                chosen = {first: i, last: j}
                for layer in (*middle, *beside):
                    place = straight[layer] + dx + rise * value(share[layer], rise)
                    if (hit := self._nearest(layer, half, place, most)) is not None:
                        chosen[layer] = hit
                # The second seed repeats candidates of the first.
                if len(chosen) < 4 or chosen.keys().isdisjoint(middle) or (first == 3 and 0 in chosen and 8 in chosen):
                    continue
                yield chosen, kink, dx - kink * bend.lever(z_of[first], kink) + where.offset

    def _nearest(self, layer: int, half: int, x: float, most: float) -> int | None:
        zone = self.hits.zone(layer, half)
        at = zone.start + int(np.searchsorted(self.hits.x[zone], x))
        near = [i for i in (at - 1, at) if zone.start <= i < zone.stop and abs(self.hits.x[i] - x) < most]
        return min(near, key=lambda i: abs(self.hits.x[i] - x)) if near else None

    def complete(
        self,
        track: int,
        line: Line,
        bend: Bend,
        where: Hypothesis,
        half: int,
        chosen: dict[int, int],
        kink: float,
        offset: float,
        budget: Budget,
    ) -> Candidate | None:
        """Add stereo hits, fit, remove outliers, apply the cuts."""
        x, y, tx, ty = line
        s, hits = self.settings, self.hits
        sigma_shift = sigma_at(where.sigma_shift, kink)
        # Stereo hits in the window, by the shift in y that they require.
        found: list[tuple[int, int, float]] = []
        n_missing = 0
        for layer in STEREO_LAYERS:
            z = self.layer_z[layer]
            y_at = y + ty * (z - Z_VELO) + bend.y_change(z, kink) + where.shift
            z = z + self.dz_dy[layer] * y_at
            expected = x + tx * (z - Z_VELO) + kink * bend.lever(z, kink) + offset - self.dx_dy[layer] * y_at
            window = 3.0 * sigma_shift * abs(self.dx_dy[layer]) + s.stereo_margin
            begin, end = hits.window(layer, half, expected - window, expected + window)
            middle = hits.window(layer, half, expected, expected)[0]
            begin, end = max(begin, middle - s.max_stereo_hits), min(end, middle + s.max_stereo_hits)
            if begin == end:
                n_missing += 1
                if len(chosen) + len(STEREO_LAYERS) - n_missing < s.min_hits:
                    return None
            found += [(layer, i, float(-(hits.x[i] - expected) / self.dx_dy[layer])) for i in range(begin, end)]
        if budget.candidates == 0:
            return None
        budget.candidates -= 1
        best_score, best_shift = -1e9, 0.0
        for _, _, shift in found:
            n = len({layer for layer, _, other in found if abs(other - shift) < s.max_shift_spread})
            score = n - 0.25 * (shift / sigma_shift) ** 2
            if score > best_score:
                best_score, best_shift = score, shift
        for layer in STEREO_LAYERS:
            near = [
                (abs(other - best_shift), i)
                for of, i, other in found
                if of == layer and abs(other - best_shift) < s.max_shift_spread
            ]
            if near:
                chosen[layer] = min(near)[1]
        if len(chosen) < s.min_hits or not any(layer in chosen for layer in STEREO_LAYERS):
            return None
        self._count("fits")
        return self.fit(track, line, bend, where, chosen, kink, offset, where.shift + best_shift)

    def fit(
        self,
        track: int,
        line: Line,
        bend: Bend,
        where: Hypothesis,
        chosen: dict[int, int],
        kink: float,
        offset: float,
        shift: float,
    ) -> Candidate | None:
        """Fit kink, offset, shift and slope in y, and curvature to all hits; the last three have prior values."""
        x, y, tx, ty = line
        s, hits = self.settings, self.hits
        sigma_hit2 = s.sigma_hit[0] ** 2 + (s.hit_scatter * kink) ** 2
        sigma = (sigma_at(where.sigma_shift, kink), sigma_at(s.sigma_ty, kink), sigma_at(s.sigma_curvature, kink))
        while True:
            layers = sorted(chosen)
            design, residual = np.empty((len(layers), 5)), np.empty(len(layers))
            for row, layer in enumerate(layers):
                i = chosen[layer]
                z = hits.z[i]
                y_at = y + ty * (z - Z_VELO) + bend.y_change(z, kink) + shift
                z = z + self.dz_dy[layer] * y_at
                y_at = y + ty * (z - Z_VELO) + bend.y_change(z, kink) + shift
                lever = bend.lever(z, kink)
                dz = z - Z_REFERENCE
                expected = x + tx * (z - Z_VELO) + kink * lever + offset
                residual[row] = hits.x[i] + self.dx_dy[layer] * y_at - expected
                design[row] = (lever, 1.0, -self.dx_dy[layer], -self.dx_dy[layer] * dz, dz * dz)
            normal = design.T @ design / sigma_hit2 + np.diag([0, 0, *(1 / w**2 for w in sigma)])
            right = design.T @ residual / sigma_hit2 + np.array([0, 0, -(shift - where.shift) / sigma[0] ** 2, 0, 0])
            found = np.linalg.solve(normal, right)
            chi2 = (residual - design @ found) ** 2 / sigma_hit2
            if chi2.max() <= s.max_hit_chi2:
                break
            del chosen[layers[int(chi2.argmax())]]
            if len(chosen) < s.min_hits:
                return None
        kink, offset, shift, slope, curvature = kink + found[0], offset + found[1], shift + found[2], found[3], found[4]
        p_s = bend.s(kink)
        shift_left = shift - where.shift
        terms = {
            "chi2": s.weight_chi2 * float(chi2.sum()),
            "missing": s.penalty_missing * (12 - len(chosen)),
            "offset": ((offset - where.offset - where.per_kink * kink) / sigma_at(where.sigma_offset, kink)) ** 2,
            "shift": (shift_left / sigma_at(where.sigma_shift, kink)) ** 2,
            "slope": (slope / sigma_at(s.sigma_ty, kink)) ** 2,
            "kink": s.per_kink * abs(kink),
        }
        if where.ut is not None:
            a, b, c = where.abc
            a, b = a - where.a_per_kink * kink, b - where.b_per_kink * kink
            terms["ut a"] = (a / sigma_at(s.sigma_a, kink)) ** 2
            terms["ut b"] = ((b - s.slope_of_ut * a) / sigma_at(s.sigma_b, kink)) ** 2
            terms["ut c"] = (c / sigma_at(s.sigma_c, kink)) ** 2
            terms["ut chi2"] = where.ut_chi2
            terms["ut missing"] = s.penalty_missing_ut * (4 - len(where.ut.layer))
        z, dz = 9410.0, 9410.0 - Z_REFERENCE
        cubic = bend.value("cubic", kink)
        quadratic = kink * bend.value("curvature", kink) + curvature
        ty_behind = ty * (1 + kink * bend.value("y_slope", kink)) + slope
        return Candidate(
            velo_track=track,
            hits=dict(chosen),
            qop=p_s * MEV * bend.polarity,
            x=x + tx * (z - Z_VELO) + kink * bend.lever(z, kink) + offset + curvature * dz * dz,
            y=y + ty * (z - Z_VELO) + bend.y_change(z, kink) + shift + slope * dz,
            tx=tx + kink + 2 * quadratic * dz + 3 * kink * cubic * dz * dz,
            ty=ty_behind,
            quality=sum(terms.values()),
            ut_track=-1 if where.ut is None else where.ut.number,
            terms=terms | {"kink_": kink, "shift_": shift, "offset_": offset},
        )


def forward_tracks(
    record: np.void,
    hits: OracleHits,
    lines: Mapping[int, Line],
    ut_parts: Mapping[int, UtPart],
    s: Settings,
    without: Settings | None,
    n_velo_tracks: int,
) -> list[Candidate]:
    """The long tracks of an event.

    lines, ut_parts: of forward VELO tracks, by their number. n_velo_tracks: backward tracks included. without: the
    settings of the search without UT, if any.
    """
    search = ForwardSearch(record, hits, s, len(ut_parts))
    candidates = {}
    for number, ut in ut_parts.items():
        if (best := search.best(number, lines[number], ut)) is not None:
            candidates[number] = best
    used = {hit for candidate in candidates.values() for hit in candidate.hits.items()}
    if without is not None:
        search = ForwardSearch(record, hits, without, n_velo_tracks)
        for number, line in lines.items():
            if number in ut_parts or abs(line[2]) >= without.max_tx or abs(line[3]) >= without.max_ty:
                continue
            if (best := search.best(number, line, None, used)) is not None:
                candidates[number] = best
    return select(list(candidates.values()), s)


def select(candidates: Sequence[Candidate], s: Settings) -> list[Candidate]:
    """The candidates of an event that own enough of their hits; a hit belongs to the best candidate that uses it."""

    def bid(candidate: Candidate) -> tuple[bool, int, int]:
        bits = int(np.float32(candidate.quality).view(np.uint32)) >> 16
        return candidate.ut_track < 0, bits, candidate.velo_track

    owner: dict[tuple[int, int], Candidate] = {}
    for candidate in sorted(candidates, key=bid):
        for hit in candidate.hits.items():
            owner.setdefault(hit, candidate)
    kept = [
        candidate
        for candidate in candidates
        if sum(owner[hit] is not candidate for hit in candidate.hits.items()) <= s.max_shared * len(candidate.hits)
    ]
    return sorted(kept, key=lambda candidate: candidate.velo_track)
