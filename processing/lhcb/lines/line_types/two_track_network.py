"""The network of TwoTrackMVA, a monotone Lipschitz network: its response always rises with displacement and momentum
(O. Kitouni, N. Nolte, M. Williams, "Robust and provably monotonic networks", Mach. Learn.: Sci. Technol. 4 (2023)
035020, arXiv:2112.00038).

Linear layers with GroupSort of pairs between them (C. Anil, J. Lucas, R. Grosse, "Sorting out Lipschitz function
approximation", ICML 2019, arXiv:1811.05381), plus a slope times the sum of the monotone inputs. Weights: Allen 2023
(Apache-2.0), which LHCb has trained on heavy-flavour decays; two_track_network.json.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from hltnode.processing.selection.expressions.functions import exp, maximum, minimum

FILE = Path(__file__).with_name("two_track_network.json")


@dataclass(frozen=True, slots=True)
class Layer:
    """weights[output][input], biases[output]."""

    weights: tuple[tuple[float, ...], ...]
    biases: tuple[float, ...]

    def outputs(self, inputs: list[Any]) -> list[Any]:
        """The linear combinations, summed in the order of the inputs, the bias last."""
        results = []
        for weights, bias in zip(self.weights, self.biases, strict=True):
            total = weights[0] * inputs[0]
            for weight, value in zip(weights[1:], inputs[1:], strict=True):
                total = total + weight * value
            results.append(total + bias)
        return results


@dataclass(frozen=True, slots=True)
class MonotoneNetwork:
    """slope: smallest rise of the response, before the sigmoid, with each input numbered in `monotone_inputs`."""

    layers: tuple[Layer, ...]
    slope: float
    monotone_inputs: tuple[int, ...]

    @classmethod
    def load(cls, path: Path = FILE) -> Self:
        """Load the network from a file."""
        content = json.loads(path.read_text())
        layers = tuple(
            Layer(tuple(tuple(row) for row in layer["weights"]), tuple(layer["biases"])) for layer in content["layers"]
        )
        return cls(layers, content["slope"], tuple(content["monotone_inputs"]))

    def response(self, inputs: list[Any]) -> Any:
        """The response, 0 to 1, as an expression of the inputs."""
        values = list(inputs)
        for layer in self.layers[:-1]:
            linear = layer.outputs(values)
            values = []
            for first, second in zip(linear[::2], linear[1::2], strict=True):
                values += [minimum(first, second), maximum(first, second)]
        (result,) = self.layers[-1].outputs(values)
        rise = inputs[self.monotone_inputs[0]]
        for i in self.monotone_inputs[1:]:
            rise = rise + inputs[i]
        return 1.0 / (1.0 + exp(-(result + self.slope * rise)))


TWO_TRACK_NETWORK = MonotoneNetwork.load()
"""Inputs: ln(flight chi2), sum of pt / GeV, vertex chi2, ln(smallest IP chi2)."""
