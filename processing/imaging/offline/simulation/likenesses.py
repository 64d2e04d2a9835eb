"""Images like those of public collections for labelling: printed text, ridges of a finger, blobs.

The kinds are those of YACCLAB: F. Bolelli, M. Cancilla, L. Baraldi and C. Grana, Toward reliable experiments on the
performance of connected components labeling algorithms, J. Real-Time Image Proc. 17 (2020) 229,
doi:10.1007/s11554-018-0756-1.
"""

import numpy as np
from numpy.typing import NDArray

GreyImage = NDArray[np.uint8]
"""u8[height, width]; 0 is background."""
THRESHOLD = 128
"""Grey values from here on are foreground; smaller ones become 0."""
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,;:-"


def text_image(width: int, height: int, rng: np.random.Generator) -> GreyImage:
    """Lines of random words in the font of Pillow. Raises ValueError without Pillow."""
    try:
        from PIL import Image, ImageDraw
    except ImportError as error:
        raise ValueError("images of text need Pillow: pip install 'hltnode[images]'") from error
    image = Image.new("L", (width, height))
    draw = ImageDraw.Draw(image)
    letters = np.array(list(_LETTERS))
    for y in range(2, height, 14):
        words = ("".join(rng.choice(letters, int(n))) for n in rng.integers(1, 10, max(1, width // 30)))
        draw.text((3, y), " ".join(words), fill=255)
    return _above_threshold(np.asarray(image, np.uint8))


def ridges(width: int, height: int, rng: np.random.Generator) -> GreyImage:
    """Parallel bent lines of some seven pixels, like the ridges of a finger."""
    y, x = np.indices((height, width), dtype=np.float32)
    bend = 25.0 * _smooth_noise(width, height, 40.0, rng)
    angle = rng.uniform(0.0, np.pi)
    phase = (x * np.cos(angle) + y * np.sin(angle) + bend) * (2 * np.pi / 7.0)
    return _above_threshold((127.5 + 127.5 * np.sin(phase)).astype(np.uint8))


def blobs(width: int, height: int, rng: np.random.Generator) -> GreyImage:
    """Round spots on a dark ground, bright in the middle, like cells or stars."""
    return _above_threshold((THRESHOLD + 60.0 * (_smooth_noise(width, height, 4.0, rng) - 1.0)).clip(0, 255))


def _smooth_noise(width: int, height: int, length: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """Noise of mean 0 and variance 1 that changes over `length` pixels."""
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width))
    spectrum = np.fft.rfft2(rng.standard_normal((height, width))) * np.exp(-2.0 * (np.pi * length * frequency) ** 2)
    noise = np.fft.irfft2(spectrum, (height, width))
    noise -= noise.mean()
    spread = float(noise.std())
    # A tiny image has one value.
    return (noise / spread if spread > 0.0 else noise).astype(np.float32)


def _above_threshold(grey: NDArray[np.number]) -> GreyImage:
    return np.where(grey >= THRESHOLD, grey, 0).astype(np.uint8)
