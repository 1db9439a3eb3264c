# SPDX-License-Identifier: Apache-2.0
"""Residual blocks, by the layers of samples/resnet.dsl, in f64 and in f32."""

import os

import jax
import jax.numpy as jnp
import numpy as np

from model import dense, draw, Model, relu

SAMPLE = os.path.join(os.path.dirname(__file__), "..", "..", "samples", "resnet.dsl")
LAYERS = ("a", 2, 3), ("b.y.conv", 3, 3), ("b.y", 3, 3), ("c.y.conv", 3, 5), ("c.y", 5, 5)
MOVING = ".moving_mean", ".moving_variance"
RATE = 0.05


def text(real):
    with open(SAMPLE, encoding="utf-8") as f:
        layers = f.read().partition("# Digits")[0]
    return layers + """model residual {
  input image : %s[B, 4, 4, 2]
  input label : i32[B]
  a = relu(conv(image, 3, 1))
  b = block(a, 3, stride = 1)
  c = block(b, 5, stride = 2)
  logits = nn.dense(mean(c, axis = [1, 2]), 3)
  train mean(softmax_cross_entropy(logits, label)) with momentum(rate = %g)
}""" % (real, RATE)


def pictures(count):
    rng = np.random.default_rng(61)
    image = draw(60, image=(count, 4, 4, 2))["image"]
    image[::5] = 0            # nothing to see
    image[1::5] = image[1]    # the same again
    return {"image": image, "label": rng.integers(0, 3, count).astype("i4")}


def values(real):
    """First values, with what momentum keeps for each that is trained."""
    first = draw(62, logits__kernel=(5, 3), logits__bias=(3,))
    for k, (name, channels, filters) in enumerate(LAYERS):
        shapes = {name + ".conv2d.kernel": (3, 3, channels, filters), name + ".scale": (filters,), name + ".shift": (filters,)}
        first.update(draw(63 + k, **shapes))
    first.update({n + ".momentum.velocity": np.zeros_like(v) for n, v in first.items()})
    for name, _, filters in LAYERS:
        first.update({name + MOVING[0]: np.zeros(filters), name + MOVING[1]: np.ones(filters)})
    return {n: v.astype(real) for n, v in first.items()}


def conv(p, name, x, stride, moved):
    """A convolution of batch-normalized values; `moved` gets what evaluation is to see."""
    y = jax.lax.conv_general_dilated(x, p[name + ".conv2d.kernel"], (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    center, spread = y.mean((0, 1, 2)), y.var((0, 1, 2))
    for end, now in zip(MOVING, (center, spread)):
        moved[name + end] = 0.99 * p[name + end] + 0.01 * now
    return (y - center) / jnp.sqrt(spread + 1e-3) * p[name + ".scale"] + p[name + ".shift"]


def block(p, name, x, stride, moved):
    y = conv(p, name + ".y", relu(conv(p, name + ".y.conv", x, stride, moved)), 1, moved)
    short = jnp.zeros_like(y).at[..., : x.shape[-1]].set(x[:, ::stride, ::stride])
    return relu(y + short)


def step(p, rows):
    trained = [n for n in p if n + ".momentum.velocity" in p]

    def loss(p):
        moved = {}
        a = relu(conv(p, "a", rows["image"].astype(p["a.scale"].dtype), 1, moved))
        c = block(p, "c", block(p, "b", a, 1, moved), 2, moved)
        logits = jax.nn.log_softmax(dense(p, "logits", c.mean((1, 2))))
        return -jnp.mean(jnp.take_along_axis(logits, rows["label"][:, None], 1)), moved

    slope, new = jax.grad(lambda w: loss({**p, **w}), has_aux=True)({n: p[n] for n in trained})
    for n in trained:
        velocity = 0.9 * p[n + ".momentum.velocity"] + slope[n]
        new[n + ".momentum.velocity"], new[n] = velocity, p[n] - RATE * velocity
    return new


def residual(count):
    return Model("residual", text("f64"), pictures(count), values("f8"), step)


def residual_f32(count):
    data = pictures(count)
    data["image"] = data["image"].astype("f4")
    return Model("residual in f32", text("f32"), data, values("f4"), step, 1e-4)
