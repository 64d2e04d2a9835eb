"""Fits of the forms by weighted least squares, with cross-validation."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from hltnode.processing.lhcb.parametrisation.forms import SHAPE, FloatArray, Form

N_FOLDS = 5
# Combinations of terms that the sample determines worse than this are dropped.
_RCOND = 1e-7


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A fitted form: coefficients f64[5, 2, 3], and the residuals f64[n], each from a fit without its point."""

    form: Form
    coefficients: FloatArray
    residuals: FloatArray

    @classmethod
    def of(
        cls, form: Form, variables: tuple[FloatArray, FloatArray, FloatArray], values: FloatArray, weight: FloatArray
    ) -> Self:
        """Fit all points for the coefficients, and predict each fifth of them by a fit of the others."""
        used = form.used
        terms = form.terms(*variables)[:, used]
        coefficients = np.zeros(used.size)
        coefficients[used] = _least_squares(terms, values, weight)
        residuals = np.empty_like(values)
        fold = np.arange(len(values)) % N_FOLDS
        for number in range(N_FOLDS):
            out = fold == number
            residuals[out] = terms[out] @ _least_squares(terms[~out], values[~out], weight[~out]) - values[out]
        return cls(form, coefficients.reshape(SHAPE), residuals)


def _least_squares(terms: FloatArray, values: FloatArray, weight: FloatArray) -> FloatArray:
    weighted = terms * weight[:, None]
    scale = np.sqrt(np.mean(np.square(weighted), axis=0))
    found: FloatArray = np.linalg.lstsq(weighted / scale, values * weight, rcond=_RCOND)[0] / scale
    return found
