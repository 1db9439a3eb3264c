# SPDX-License-Identifier: Apache-2.0
"""One small network, trained by lists of optimizers."""

import jax
import jax.numpy as jnp
import numpy as np

from model import dense, draw, Model, rows_of, sgd


def chain(count, name, links, update, slots):
    """A small network that a list of optimizers trains: update(gradients, values, state, t) gives what is added to each
    variable, None for one that stays; slots are what it keeps, by the names of the checkpoint."""
    text = """use nn
model chain {
  input x : f64[B, 3]
  input y : f64[B]
  h = nn.dense(x, 4, activation = tanh)
  o = nn.dense(h, 1)
  train mean(squared_error(squeeze(o, 1), y)) with [%s]
}""" % links
    first = draw(31, h__kernel=(3, 4), h__bias=(4,), o__kernel=(4, 1), o__bias=(1,))
    names = list(first)
    for slot, chosen in slots.items():
        begin = (lambda v: v) if slot == "average.mean" else np.zeros_like
        first.update({"%s.%s" % (n, slot): begin(first[n]) for n in names if chosen(n)})
    first["step"] = np.array(0, np.int64)

    def step(p, rows):
        def loss(q):
            h = jnp.tanh(dense(q, "h", rows["x"]))
            return jnp.mean((dense(q, "o", h)[:, 0] - rows["y"]) ** 2)

        values = {n: p[n] for n in names}
        state = {n: v for n, v in p.items() if n not in values}
        added = update(jax.grad(loss)(values), values, state, p["step"])
        out = {n: values[n] + added.get(n, 0) for n in names}
        return {**out, **state, "step": p["step"] + 1}

    return Model(name, text, {"x": rows_of(32, count, 3), "y": rows_of(33, count, 1)[:, 0]}, first, step)


def global_norm(gradients):
    return jnp.sqrt(sum(jnp.sum(g * g) for g in gradients.values()))


def adam_direction(g, state, n, t, epsilon, act=True):
    """optax.scale_by_adam"""
    m, v = n + ".scale_by_adam.m", n + ".scale_by_adam.v"
    new_m, new_v = 0.9 * state[m] + 0.1 * g, 0.999 * state[v] + 0.001 * g * g
    state[m], state[v] = jnp.where(act, new_m, state[m]), jnp.where(act, new_v, state[v])
    return new_m / (1 - 0.9 ** (t + 1.0)) / (jnp.sqrt(new_v / (1 - 0.999 ** (t + 1.0))) + epsilon)


def clipped(count):
    """optax.chain(clip_by_global_norm, masked add_decayed_weights, sgd with momentum), and an average of the weights"""

    def update(gradients, values, state, t):
        factor = 0.5 / jnp.maximum(global_norm(gradients), 0.5)
        added = {}
        for n, g in gradients.items():
            g = g * factor + (0.1 * values[n] if values[n].ndim > 1 else 0)
            state[n + ".momentum.velocity"] = 0.9 * state[n + ".momentum.velocity"] + g
            added[n] = -0.1 * state[n + ".momentum.velocity"]
            state[n + ".average.mean"] = 0.75 * state[n + ".average.mean"] + 0.25 * (values[n] + added[n])
        return added

    links = "clip_by_global_norm(0.5), decay_weights(0.1, rank_from = 2), momentum(0.1), average(0.75)"
    return chain(count, "clipped", links, update, {"momentum.velocity": lambda n: True, "average.mean": lambda n: True})


def lamb(count):
    """optax.lamb with weights that decay but for biases; a bias of zeros has no trust ratio."""

    def update(gradients, values, state, t):
        added = {}
        for n, g in gradients.items():
            u = adam_direction(g, state, n, t, 1e-6) + (0.1 * values[n] if n.endswith("kernel") else 0)
            long, wide = jnp.linalg.norm(values[n].ravel()), jnp.linalg.norm(u.ravel())
            added[n] = -0.1 * jnp.where((long > 0) & (wide > 0), long / wide, 1) * u
        return added

    links = 'scale_by_adam(epsilon = 1e-6), decay_weights(0.1, "*.kernel"), scale_by_trust_ratio(), sgd(0.1)'
    model = chain(count, "lamb", links, update, {"scale_by_adam.m": lambda n: True, "scale_by_adam.v": lambda n: True})
    model.first["o.bias"] = np.zeros(1)
    return model


def slow(count):
    """optax.MultiSteps of four, each gradient clipped; a frozen bias, a slow layer, and a rate that counts updates."""

    def update(gradients, values, state, t):
        added, last, count = {}, t % 4 == 3, t // 4
        for n, g in gradients.items():
            total = n + ".accumulate.total"
            sums = state[total] + g * (0.3 / jnp.maximum(jnp.linalg.norm(g.ravel()), 0.3))
            state[total] = jnp.where(last, 0, sums)
            if n == "h.bias":
                continue
            u = adam_direction(sums / 4, state, n, count, 1e-8, last) * (0.1 if n.startswith("h.") else 1)
            added[n] = jnp.where(last, -0.1 * 0.5 ** (count / 3) * u, 0)
        return added

    links = 'clip_by_norm(0.3), accumulate(4), freeze("?.bias*x"), freeze(["h.b*", "nothing"]), scale_by_adam(), scale(0.1, "h.*"), '
    return chain(count, "slow", links + "sgd(exponential_decay(0.1, 3, 0.5))", update,
                 {"accumulate.total": lambda n: True, "scale_by_adam.m": lambda n: n != "h.bias",
                  "scale_by_adam.v": lambda n: n != "h.bias"})
