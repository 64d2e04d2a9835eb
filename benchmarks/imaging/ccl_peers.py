"""Other programs that label images, as peers of the chain `ccl`: each on one thread, from arrays of bytes.

SciPy is always there. The others are in the dependency group `peers`; one that is missing is named on standard error.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from benchmarks.measure import Stopwatch, Throughput

Images = Sequence[NDArray[np.uint8]]
EIGHT_CONNECTED = np.ones((3, 3), np.int8)
MODULES = {"cv2": "opencv-python-headless", "cc3d": "connected-components-3d", "skimage": "scikit-image"}


@dataclass(frozen=True, slots=True)
class Peer:
    """A program that labels an image, 8-connected; key: of its figure in the JSON file. features: it measures, too."""

    name: str
    key: str
    label: Callable[[NDArray[np.uint8]], object]
    features: bool = False

    def throughput(self, images: Images) -> Throughput:
        """Label all images once."""
        watch = Stopwatch()
        for image in images:
            self.label(image)
        return watch.throughput(len(images))


def peers(images: Images) -> Iterator[Peer]:
    """The installed peers. Of the algorithms of a library, the one that takes least processor time for the images."""
    yield Peer("scipy.ndimage.label", "scipy", lambda image: ndimage.label(image, EIGHT_CONNECTED))
    if (cv2 := _module("cv2")) is not None:
        yield _fastest(opencv(cv2), images)
        yield _fastest(opencv(cv2, features=True), images)
    if (cc3d := _module("cc3d")) is not None:
        yield Peer(
            "cc3d.connected_components",
            "cc3d",
            lambda image: cc3d.connected_components(image, connectivity=8, binary_image=True),
        )
    if _module("skimage") is not None:
        measure = importlib.import_module("skimage.measure")
        yield Peer("skimage.measure.label", "skimage", lambda image: measure.label(image, connectivity=2))


def opencv(cv2: Any, *, features: bool = False) -> Iterator[Peer]:
    """Each algorithm of OpenCV, with areas, boxes and centroids or without."""
    cv2.setNumThreads(1)
    name = "connectedComponentsWithStats" if features else "connectedComponents"
    label = getattr(cv2, f"{name}WithAlgorithm")
    for algorithm in sorted(each for each in dir(cv2) if each.startswith("CCL_") and each != "CCL_DEFAULT"):
        yield Peer(
            f"cv2.{name} ({algorithm})",
            "opencv_with_stats" if features else "opencv",
            partial(_with_algorithm, label, cv2.CV_32S, getattr(cv2, algorithm)),
            features,
        )


def _with_algorithm(label: Any, label_type: int, algorithm: int, image: NDArray[np.uint8]) -> object:
    return label(image, 8, label_type, algorithm)


def _module(name: str) -> Any:
    if importlib.util.find_spec(name) is None:
        sys.stderr.write(f"no {MODULES[name]}: not compared (pip install --group peers)\n")
        return None
    return importlib.import_module(name)


def _fastest(candidates: Iterable[Peer], images: Images) -> Peer:
    return min(candidates, key=lambda peer: min(peer.throughput(images).cpu_us for _ in range(2)))
