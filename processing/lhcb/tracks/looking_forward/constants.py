"""Constants that both kernels of Looking Forward share (docs/physics/looking-forward.md)."""

from hltnode.processing.lhcb.tracks.forward.search_with_ut import search_with_ut

_OF_FORWARD_SEARCH = {constant.name: constant.value for constant in search_with_ut.constants}


def of_forward_search(*names: str) -> dict[str, float | int]:
    """Constants with the values of the forward search with UT."""
    return {name: _OF_FORWARD_SEARCH[name] for name in names}


# mm and MeV. Each error has a term independent of the momentum, and a term that rises with the kink.
LOOKING_FORWARD_CONSTANTS: dict[str, float | int] = of_forward_search(
    "offset_of_ut", "shift_of_ut", "sigma_shift", "sigma_shift_per_kink"
) | {
    "stereo_margin": 0.5,
    "x_tolerance": 0.8,
    "x_tolerance_per_kink": 2.0,
}
