"""Names of particles by their PDG codes (Particle Data Group, Review of Particle Physics, "Monte Carlo particle
numbering scheme")."""

_NAMES = {
    11: ("e⁻", "e⁺"),
    13: ("µ⁻", "µ⁺"),
    15: ("τ⁻", "τ⁺"),
    22: ("γ", "γ"),
    111: ("π⁰", "π⁰"),
    113: ("ρ⁰", "ρ⁰"),
    130: ("K⁰L", "K⁰L"),
    211: ("π⁺", "π⁻"),
    221: ("η", "η"),
    310: ("K⁰S", "K⁰S"),
    313: ("K*⁰", "K̅*⁰"),
    321: ("K⁺", "K⁻"),
    333: ("φ", "φ"),
    411: ("D⁺", "D⁻"),
    421: ("D⁰", "D̅⁰"),
    431: ("Ds⁺", "Ds⁻"),
    443: ("J/ψ", "J/ψ"),
    511: ("B⁰", "B̅⁰"),
    521: ("B⁺", "B⁻"),
    531: ("Bs⁰", "B̅s⁰"),
    2112: ("n", "n̅"),
    2212: ("p", "p̅"),
    3112: ("Σ⁻", "Σ̅⁺"),
    3122: ("Λ", "Λ̅"),
    3222: ("Σ⁺", "Σ̅⁻"),
    3312: ("Ξ⁻", "Ξ̅⁺"),
    3334: ("Ω⁻", "Ω̅⁺"),
    4122: ("Λc⁺", "Λ̅c⁻"),
    5122: ("Λb⁰", "Λ̅b⁰"),
    1000020030: ("³He", "³H̅e̅"),
}


def particle_name(pid: int) -> str:
    """The name of a particle, or its code if the table has no name."""
    names = _NAMES.get(abs(pid))
    return f"PDG {pid}" if names is None else names[pid < 0]
