# SPDX-License-Identifier: Apache-2.0
"""Functions where digits cancel, element by element: beside scipy's of the same numbers in float64, and beside numbers of mpmath 1.3
(60 digits) from both sides of the poles of gamma. What is wrong is counted in units of the last place."""
import json
import os

import numpy as np
from scipy import special

from case import binding

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "poles.json")) as file:
    POLES = np.array(json.load(file))  # x, log |gamma(x)|, digamma(x)

SMALL = np.concatenate([10.0 ** -np.arange(0, 9), -(10.0 ** -np.arange(0, 9)), [3, -3, 10, -10, 30, -30]])
SHARES = np.concatenate([10.0 ** -np.arange(1, 9), 1 - 10.0 ** -np.arange(1, 7), 0.5 + 10.0 ** -np.arange(1, 7), 0.5 - 10.0 ** -np.arange(1, 7)])


def gradient(text):
    return f"gradient(sum({text}), x)"


def cosh_log(x):
    x = np.abs(x.astype(np.longdouble))
    near = x ** 2 / 2 - x ** 4 / 12 + x ** 6 / 45 - x ** 8 * 17 / 2520
    return np.where(x < 0.02, near, np.logaddexp(x, -x) - np.log(np.longdouble(2)))


def divergence(v):
    v = v.astype(np.longdouble)
    return np.where(np.abs(v) < 1e-3, v * v / 4 + v ** 3 / 12 + v ** 4 / 48, (np.expm1(v) - v) / 2)


def cross(x, y):
    return -(y * special.log_expit(x) + (1 - y) * special.log_expit(-x))


# The text, the numbers, what is right of them as they are in the type, by how many units it may be off, and down to which size
# units are those of the number itself. digamma and lgamma have zeros, next to which they are as exact as what makes them.
ROWS = [
    ("logit(x)", SHARES, special.logit, 4, 0),
    ("erfinv(x)", np.concatenate([SHARES, -SHARES]), special.erfinv, 4, 0),
    ("normal_quantile(x)", np.concatenate([SHARES, 10.0 ** -np.arange(10.0, 37)]), special.ndtri, 6, 1e-6),
    (gradient("normal_quantile(x)"), SHARES[:8], lambda x: np.sqrt(2 * np.pi) * np.exp(special.ndtri(x) ** 2 / 2), 60, 0),
    ("sinc(x)", SMALL, np.sinc, 2, 1),
    (gradient("sinc(x)"), SMALL[:18], lambda x: -np.pi * np.sign(x) * special.spherical_jn(1, np.pi * np.abs(x)), 12, 0),
    ("log_cosh(x, 0)", SMALL, cosh_log, 4, 0),
    (gradient("log_cosh(x, 0)"), SMALL, np.tanh, 4, 0),
    ("kl_normal(stack([0 * x], axis = 1), stack([x], axis = 1))", SMALL[:18], divergence, 8, 1e-2),
    ("sigmoid_cross_entropy(x, 0 * x + 1)", SMALL, lambda x: cross(x, 1), 4, 0),
    ("sigmoid_cross_entropy(x, 0 * x)", SMALL, lambda x: cross(x, 0), 4, 0),
    (gradient("sigmoid_cross_entropy(x, 0 * x + 1)"), SMALL, lambda x: -special.expit(-x), 4, 0),
    ("sigmoid_focal_loss(x, 0 * x + 1)", SMALL, lambda x: special.expit(-x) ** 2 * cross(x, 1), 8, 0),
    ("softplus(x)", SMALL, lambda x: cross(x, 0), 4, 0),
    ("logaddexp(x, 0)", SMALL, lambda x: cross(x, 0), 4, 0),
    ("log_sigmoid(x)", SMALL, special.log_expit, 4, 0),
    ("elu(x)", SMALL, lambda x: np.where(x > 0, x, np.expm1(x)), 4, 0),
    ("entropy(stack([x], axis = 1))", np.concatenate([[0.0, 1.0], SHARES]), special.entr, 4, 0),
    ("normal_cdf(x)", SMALL, special.ndtr, 500, 0),
    ("gelu(x)", SMALL, lambda x: x * special.ndtr(x), 6, 1),
]
GAMMA = [("lgamma(x)", 1, 4, special.gammaln), ("digamma(x)", 2, 8, special.digamma), (gradient("lgamma(x)"), 2, 8, special.digamma)]


def run(lib, text, x, real):
    layout = {"f32": "cpu:0", "f64": "cpu:0-2"}[real]
    with binding.Session(lib, [("devices", layout)]) as s:
        s.load(f"model m {{\n  input x : {real}[B]\n  predict y = {text}\n}}\n")
        return s.run("predict", len(x), {"x": x})["y"].astype(np.float64)


def off(x, got, want, real, most, floor):
    """The lines that say where it is further off than `most` units of the last place of numbers of the size `floor` at least."""
    scale = np.finfo(binding.DTYPES[real]).eps * np.maximum(np.abs(want), floor)
    units = np.abs(got - want) / np.maximum(scale, np.finfo(binding.DTYPES[real]).tiny)
    units = np.where((got == want) | (np.isnan(got) & np.isnan(want)), 0, units)
    bad = ~(units <= most)
    return [f"{text}: {bad.sum()} of {bad.size}" for text in [f"at {x[k]!r} {got[k]!r}, not {want[k]!r}, {units[k]:.3g} units off"
                                                              for k in [int(np.argmax(np.where(bad, np.nan_to_num(units, nan=np.inf), -1)))]] if bad.any()]


def check(lib, row, real):
    text, points, reference, most, floor = row
    x = points.astype(binding.DTYPES[real])
    want = np.asarray(reference(x.astype(np.float64)), np.float64)
    return off(x, run(lib, text, x, real), want, real, most, floor)


def check_gamma(lib, row, real):
    """From the sides of each pole; in f32 of the numbers that are nearest there, of which scipy's in float64 are exact enough."""
    text, column, most, reference = row
    x = POLES[:, 0].astype(binding.DTYPES[real])
    kept = x != np.round(x)
    want = POLES[:, column] if real == "f64" else reference(x.astype(np.float64))
    x, want = x[kept], want[kept]
    size = special.gammaln(np.abs(x.astype(np.float64)) + 9) if column == 1 else 4 + 0 * want
    return off(x, run(lib, text, x, real), want, real, most, size)


ALL = [(f"{row[0]} {real} in digits", check, row, real) for row in ROWS for real in ("f32", "f64")]
ALL += [(f"{row[0]} {real} near poles", check_gamma, row, real) for row in GAMMA for real in ("f32", "f64")]
