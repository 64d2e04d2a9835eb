"""The monitoring histograms of the nodes."""

from tools.dashboards.elements import NODES, Board, Distribution, Panel, Query, number, recent

ENTRIES = f'{NODES},le="+Inf"'
NOT_A_NUMBER = f'{NODES},kind="not_a_number"'

DATA_QUALITY = Board(
    uid="hltnode-data-quality",
    title="HLT1: data quality",
    numbers=(
        number("Histograms", f"count(count by (histogram) (hltnode_histogram_bucket{{{ENTRIES}}}))"),
        number("Entries in five minutes", f"sum(increase(hltnode_histogram_bucket{{{ENTRIES}}}[5m]))"),
        number(
            "Outside their range",
            f"sum(increase(hltnode_histogram_outside_total{{{NODES}}}[5m]))"
            f" / sum(increase(hltnode_histogram_bucket{{{ENTRIES}}}[5m]))",
            "percentunit",
            warn=0.1,
            alarm=0.5,
        ),
    ),
    rows={
        "Masses": (
            Distribution("K0S to two pions", "Hlt1KsToPiPi_mass", "MeV", over_time=True),
            Distribution("φ to two kaons", "phi_mass", "MeV", over_time=True),
            Distribution("J/ψ to two muons", "jpsi_mass", "MeV", over_time=True),
            Distribution("D0 to a kaon and a pion", "Hlt1D2KPi_mass", "MeV", over_time=True),
        ),
        "Detectors and tracks": (
            Distribution("Primary vertices along the beam", "pv_z", "mm", over_time=True),
            Distribution("VELO tracks of an event", "velo_tracks", "tracks"),
            Distribution("Long tracks of an event", "long_tracks", "tracks"),
            Distribution("pt of long tracks", "long_pt", "MeV"),
            Distribution("VELO hits along the beam", "velo_hit_z", "mm"),
            Distribution("UT hits across the beam", "ut_hit_x", "mm"),
            Distribution("SciFi hits across the beam", "scifi_hit_x", "mm"),
            Distribution("Muon hits across the beam", "muon_hit_x", "mm"),
        ),
        "Channels": (
            Panel(
                "Groups of channels that differ from their neighbours",
                "short",
                (
                    Query(
                        f"topk(10, sum by (instance, kind, finding) (hltnode_channel_groups_off{{{NODES}}}))",
                        "{{instance}} {{kind}} {{finding}}",
                    ),
                ),
                "Dead or noisy in the last comparison of the run, and masked by no condition. /status names them.",
                width=24,
            ),
        ),
        "Values outside": (
            Panel(
                "Values that are not a number",
                "short",
                (
                    Query(
                        f"topk(10, {recent('hltnode_histogram_outside_total', 'histogram', NOT_A_NUMBER)})",
                        "{{histogram}}",
                    ),
                ),
                "In the last five minutes. Some histograms never have any; in others they show a defect of a fit.",
                width=12,
            ),
            Panel(
                "Values outside the range",
                "short",
                (Query(recent("hltnode_histogram_outside_total", "kind"), "{{kind}}"),),
                "In the last five minutes, of all histograms.",
                width=12,
            ),
        ),
    },
)
