# SPDX-License-Identifier: Apache-2.0
"""A model in the language and in JAX: first values, data and a step of it; and what several of them are made of."""

from dataclasses import dataclass
from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np


@dataclass
class Model:
    name: str
    text: str
    data: dict
    first: dict
    step: Callable  # the variables and the rows of a batch: the variables after it
    most: float = 1e-9  # how far each may be off


def draw(seed, **shapes):
    """First values: half of them multiples of 1/4, so that ties and zeros come up."""
    rng, out = np.random.default_rng(seed), {}
    for name, shape in shapes.items():
        value = rng.normal(size=shape) * 0.5
        out[name.replace("__", ".")] = np.where(rng.random(shape) < 0.5, np.round(4 * value) / 4, value)
    return out


def rows_of(seed, count, width):
    """Rows with zeros and repeated numbers."""
    return draw(seed, x=(count, width))["x"]


def sgd(values, loss, rate, names=None):
    """One step for the variables whose names begin so."""
    moved = {n: v for n, v in values.items() if names is None or n.startswith(names)}
    slope = jax.grad(lambda m: loss({**values, **m}))(moved)
    return {n: v - rate * slope[n] for n, v in moved.items()}


def with_adam(first, loss, rate):
    """First values with Adam's state, and a step of TensorFlow's form."""
    names = list(first)
    first = dict(first)
    for n in names:
        first[n + ".adam.m"] = first[n + ".adam.v"] = np.zeros_like(first[n])
    first["step"] = np.zeros((), np.int64)

    def step(p, rows):
        slope = jax.grad(lambda w: loss(w, rows))({n: p[n] for n in names})
        t = p["step"] + 1.0
        r, new = rate * jnp.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t), {"step": p["step"] + 1}
        for n in names:
            m = 0.9 * p[n + ".adam.m"] + 0.1 * slope[n]
            v = 0.999 * p[n + ".adam.v"] + 0.001 * slope[n] ** 2
            new.update({n: p[n] - r * m / (jnp.sqrt(v) + 1e-7), n + ".adam.m": m, n + ".adam.v": v})
        return new

    return first, step


def dense(p, name, x):
    return x @ p[name + ".kernel"] + p[name + ".bias"]


def relu(x):
    return jnp.where(x > 0, x, 0)
