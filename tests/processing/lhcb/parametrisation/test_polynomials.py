"""Forms of polynomials, and their fits."""

from __future__ import annotations

import numpy as np
import pytest

from hltnode.processing.lhcb.parametrisation.forms import SHAPE, Form
from hltnode.processing.lhcb.parametrisation.polynomials import Fit

EVEN, ODD = Form("kink", "mm"), Form("kink", "mm", odd=True, order=4)


def sample(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    return rng.uniform(-0.5, 0.5, n), rng.uniform(-0.3, 0.3, n), rng.uniform(-0.25, 0.25, n)


@pytest.mark.parametrize("form", [EVEN, ODD])
def test_a_polynomial_of_the_form_is_found_again(form: Form) -> None:
    truth = np.where(form.used, np.random.default_rng(6).normal(size=form.used.size), 0.0).reshape(SHAPE)
    variables = sample(1000)
    found = Fit.of(form, variables, form.value(truth, *variables), np.ones(1000))
    np.testing.assert_allclose(found.coefficients, truth, atol=1e-6)
    assert np.abs(found.residuals).max() < 1e-9


@pytest.mark.parametrize(("form", "sign"), [(EVEN, 1.0), (ODD, -1.0)])
def test_forms_have_the_symmetries_of_the_magnet(form: Form, sign: float) -> None:
    bend, tx, ty = sample(100)
    coefficients = np.random.default_rng(7).normal(size=SHAPE)
    value = form.value(coefficients, bend, tx, ty)
    np.testing.assert_allclose(form.value(coefficients, -bend, -tx, ty), sign * value)
    np.testing.assert_allclose(form.value(coefficients, bend, tx, -ty), value)


def test_residuals_are_those_of_points_that_the_fit_has_not_seen() -> None:
    rng = np.random.default_rng(8)
    variables = sample(60)
    noise = rng.normal(size=60)
    found = Fit.of(EVEN, variables, noise, np.ones(60))
    of_all = EVEN.value(found.coefficients, *variables) - noise
    assert np.mean(found.residuals**2) > 1.5 * np.mean(of_all**2)


def test_points_of_more_weight_are_fitted_better() -> None:
    variables = sample(400)
    values, heavy = np.sin(20.0 * variables[0]), np.arange(400) < 40
    error = []
    for weight in (np.ones(400), np.where(heavy, 100.0, 1.0)):
        found = Fit.of(EVEN, variables, values, weight)
        error.append(np.mean((EVEN.value(found.coefficients, *variables) - values)[heavy] ** 2))
    assert error[1] < 0.7 * error[0]
