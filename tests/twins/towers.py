#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each tower has for itself, beside JAX, which is given the rows of each tower apart: towers.py DGC.

Statistics of a tower's rows alone, with gradients through them, second ones too; sums and means over towers of what they
have; variables that are met in both; predictions of a row's own tower. On one tower, two, three uneven ones, and on more
towers than rows; on one device and on several, whose bits are equal."""
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np

import twin

jax.config.update("jax_enable_x64", True)

ROWS, STEPS, RATE = 7, 4, 0.05
HEAD = """use nn
model towers {
  input x : f64[B, 3]
  input t : f64[B]
  var w : f64[3, 4] = glorot_uniform()
  var v : f64[4] = ones()
  h = x @ w
"""


def normed(h, scale, shift):
    return (h - h.mean(0)) / jnp.sqrt(jnp.mean(jnp.square(h - h.mean(0)), 0) + 1e-3) * scale + shift


def batch_norm(p, parts):
    rows = [jnp.sum(normed(x @ p["w"], p["y.scale"], p["y.shift"]) * p["v"], 1) - t for x, t in parts]
    return jnp.mean(jnp.square(jnp.concatenate(rows)))


def joined(p, parts):
    h = [x @ p["w"] for x, _ in parts]
    s = [jnp.sum(jnp.square(k), 0) for k in h]
    a = sum(jnp.exp(-0.1 * k) for k in s) / len(s)
    b = sum(jnp.tanh(k) * p["v"] for k in s)
    rows = [jnp.sum(k * (a + m), 1) - t for k, m, (_, t) in zip(h, s, parts)]
    return jnp.mean(jnp.square(jnp.concatenate(rows))) + jnp.sum(b)


def extremes(p, parts):
    rows = []
    for x, t in parts:
        h = x @ p["w"]
        rows.append(jnp.sum((h - h.min(0)) / (h.max(0) - h.min(0) + 1), 1) * t)
    return jnp.mean(jnp.concatenate(rows))


def extremes_joined(p, parts):
    """What is an extreme of a tower, and a share of a sum and of a mean over them."""
    h = [x @ p["w"] for x, _ in parts]
    s = [k.max(0) for k in h]
    a, b = sum(s) / len(s), sum(s)
    rows = [jnp.sum((k * (1 + a) - m) * p["v"] + b * jnp.max(jnp.concatenate(h), 0), 1) - t for k, m, (_, t) in zip(h, s, parts)]
    return jnp.mean(jnp.square(jnp.concatenate(rows)))


def products(p, parts):
    rows = []
    for x, t in parts:
        h = x @ p["w"]
        rows.append(jnp.sum((h @ (h.T @ h / h.shape[0])) * p["v"], 1) - t)
    return jnp.mean(jnp.square(jnp.concatenate(rows)))


def whole_and_own(p, parts):
    """The tower's mean and that of the batch in one formula, and the same sum in both meanings."""
    h = [x @ p["w"] for x, _ in parts]
    all_rows = jnp.concatenate(h)
    total = all_rows.sum(0)
    rows = [jnp.sum((k - k.mean(0)) * (all_rows.mean(0) + p["v"]) + k.sum(0) * total, 1) * t for k, (_, t) in zip(h, parts)]
    return jnp.sum(jnp.concatenate(rows)) + jnp.sum(jnp.square(total)) * 1e-2


def even_rows(p, parts):
    """A sum over all rows of what a row has of its tower."""
    return sum(k.shape[0] * jnp.sum(jnp.square((k @ p["w"]).mean(0)) * p["v"]) for k, _ in parts)


def penalty(p, parts):
    """A gradient of a gradient, through what towers have for themselves."""
    def inner(w):
        return batch_norm({**p, "w": w, "y.scale": 1.0, "y.shift": 0.0}, parts)
    return jnp.sum(jnp.square(jax.grad(inner)(p["w"])))


MODELS = {
    "batch_norm": ("y = nn.batch_norm(h, synchronize = false)\nrow = sum(y * v, axis = 1) - t\n"
                   "train loss = mean(square(row)) with sgd(%g)", batch_norm),
    "joined": ("s = local(sum(square(h), axis = 0))\na = all_reduce(exp(-0.1 * s), \"mean\")\n"
               "b = all_reduce(tanh(s) * v, op = \"sum\")\nrow = sum(h * (a + s), axis = 1) - t\n"
               "train loss = mean(square(row)) + sum(b) with sgd(%g)", joined),
    "extremes": ("low = local(min(h, axis = 0))\nhigh = local(max(h, axis = 0))\n"
                 "row = sum((h - low) / (high - low + 1), axis = 1) * t\ntrain loss = mean(row) with sgd(%g)", extremes),
    "extremes_joined": ("s = local(max(h, axis = 0))\nb = all_reduce(s, \"sum\")\n"
                        "row = sum((h * (1 + all_reduce(s, \"mean\")) - s) * v + b * max(h, axis = 0), axis = 1) - t\n"
                        "train loss = mean(square(row)) with sgd(%g)", extremes_joined),
    "products": ("c = local(transpose(h) @ h / sum(0 * t + 1))\n"
                 "row = sum((h @ c) * v, axis = 1) - t\ntrain loss = mean(square(row)) with sgd(%g)", products),
    "whole_and_own": ("total = sum(h, axis = 0)\n"
                      "row = sum((h - local(mean(h, axis = 0))) * (mean(h, axis = 0) + v) + local(total) * total, axis = 1) * t\n"
                      "train loss = sum(row) + sum(square(total)) * 0.01 with sgd(%g)", whole_and_own),
    "even_rows": ("m = sum(square(local(mean(h, axis = 0))) * v)\ntrain loss = sum(broadcast(m, [B])) with sgd(%g)", even_rows),
    "penalty": ("c = local(mean(h, axis = 0))\n"
                "y = (h - c) * rsqrt(local(mean(square(h - c), axis = 0)) + 1e-3)\n"
                "train loss = sum(square(gradient(mean(square(sum(y * v, axis = 1) - t)), w))) with sgd(%g)", penalty),
}
RATES = {"extremes_joined": 1e-3, "joined": 1e-4, "products": 1e-4, "whole_and_own": 1e-3, "penalty": 1e-3}


def apart(x, t, towers):
    """The rows of each tower that has any."""
    sizes = [len(x) // towers + (k < len(x) % towers) for k in range(towers)]
    ends = np.cumsum(sizes)
    return [(x[e - n:e], t[e - n:e]) for n, e in zip(sizes, ends) if n]


def data(name):
    rng = np.random.default_rng(11)
    x, t = rng.standard_normal((ROWS, 3)), rng.standard_normal(ROWS)
    if name == "extremes":
        x[4] = x[3]  # a tie in a tower
        x[5] = 0
    return x, t


def averages(p, parts):
    """What batch_norm keeps, after a step."""
    h = [x @ p["w"] for x, _ in parts]
    return (sum(k.mean(0) for k in h) / len(h), sum(jnp.mean(jnp.square(k - k.mean(0)), 0) for k in h) / len(h))


def trained(name, loss, begin, parts, rate):
    p, slope = {k: jnp.asarray(v) for k, v in begin.items()}, jax.jit(jax.grad(loss))
    for _ in range(STEPS):
        trains = {k: v for k, v in p.items() if k in ("w", "v", "y.scale", "y.shift")}
        if name == "batch_norm":
            for kept, now in zip(("y.moving_mean", "y.moving_variance"), averages(p, parts)):
                p[kept] = 0.99 * p[kept] + 0.01 * now
        for k, g in slope(trains, parts).items():
            p[k] = p[k] - rate * g
    return p


def main():
    failures = count = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, (text, loss) in MODELS.items():
            rate = RATES.get(name, RATE)
            model = twin.Twin(sys.argv[1], folder, "towers", HEAD + text % rate + "\n}\n")
            x, t = data(name)
            for towers in (1, 2, 3, 9):
                inputs, out = {"x": x, "t": t}, []
                for where in ("cpu:0", "cpu:0-%d" % min(towers - 1, 2)):
                    begin, end = model.train(inputs, STEPS, "--batch", str(ROWS), "--towers", str(towers), "--devices", where)
                    out.append(end)
                    if towers == 1:
                        break
                want = trained(name, loss, begin, apart(x, t, towers), rate)
                for k in want:
                    if k == "step":
                        continue
                    count += 1
                    wrong = twin.differs(want[k], out[0][k], 1e-10, 1e-3)
                    if wrong or any(np.any(o[k] != out[0][k]) for o in out):
                        failures += 1
                        print("FAILED: %s, %d towers, %s: %s" % (name, towers, k, wrong or "other bits on other devices"))
                if towers > 1 and name not in ("joined", "even_rows") and np.allclose(
                        want["w"], trained(name, loss, begin, apart(x, t, 1), rate)["w"], 1e-9):
                    failures += 1
                    print("FAILED: %s is the same on %d towers and on one: it shows nothing" % (name, towers))
        model = twin.Twin(sys.argv[1], folder, "own", "model own { input x : f64[B]; predict m = broadcast(local(mean(x)), [B]) }\n")
        for towers in (1, 2, 3, 9):
            (got,) = model.predict({"x": t}, ["m"], "--batch", str(ROWS), "--towers", str(towers))
            want = np.concatenate([np.full(len(a), a.mean()) for a, _ in apart(t, t, towers)])
            count += 1
            if wrong := twin.differs(want, got, 1e-14):
                failures += 1
                print("FAILED: predictions on %d towers: %s" % (towers, wrong))
    print("%d variables compared, %d failed" % (count, failures))
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
