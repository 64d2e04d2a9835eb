"""The table of the metrics of a node: name, help text, label, and how the values are read. A new metric is one row of a
part of the table.

Three kinds of metrics have modules of their own, because other rules decide which samples exist: readout sources
(`sources`), the GPU (`gpu`) and monitoring histograms (`monitoring.histograms`).
"""

from hltnode.daemon.monitoring.metrics.computing import COMPUTING
from hltnode.daemon.monitoring.metrics.intake import INTAKE
from hltnode.daemon.monitoring.metrics.node import NODE
from hltnode.daemon.monitoring.metrics.outputs import OUTPUTS

TABLE = (*NODE, *INTAKE, *COMPUTING, *OUTPUTS)
