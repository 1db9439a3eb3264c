#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nn.loss_scale and unscale beside JAX's gradients with the rule of torch's GradScaler: scaled.py DGC.

Rows whose gradients are infinite when they are scaled, whose loss is, and whose gradients are great; the scale goes down and
up again, and Adam counts the steps that were done. Plain gradients beside torch's rule too, at scales where one of the bare loss
beside the scaled one would show: Adam hides a factor. In f32, on one tower and on three uneven ones."""
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np

import twin

STEPS, ROWS, RATE = 14, 4, 0.01
MODEL = """use nn
model scaled {
  input x : f32[B, 3]
  input y : f32[B]
  var w : f32[3] = ones()
  var b : f32[] = 0
  loss, scale, finite = nn.loss_scale(mean(square(sum(x * w, axis = 1) + b - y)), [w, b], initial = %.17g, every = 3)
  state worth : f32[] = 0
  worth <- loss
  train loss with [unscale(scale, finite), %s]
}
"""
ADAM = "adam(0.01, epsilon = 1e-30)"


def mean_of(p, x, y):
    return jnp.mean(jnp.square(jnp.sum(x * p[0], 1) + p[1] - y))


def trained(x, y, scale=32768.0, sgd=None):
    def loss(p, scale, x, y):
        return mean_of(p, x, y) * scale

    slope = jax.jit(jax.grad(loss))
    p, m, v = ([np.full(3, k, np.float32), np.float32(0)] for k in (1, 0, 0))
    scale, good, done, left_out, worth = np.float32(scale), 0, 0, 0, 0
    for k in range(STEPS):
        rows = slice(k * ROWS, k * ROWS + ROWS)
        g = [np.asarray(d, np.float32) for d in slope([np.float32(a) for a in p], scale, x[rows], y[rows])]
        worth = mean_of([np.float32(a) for a in p], x[rows], y[rows])
        if not all(np.isfinite(d).all() for d in g):
            scale, good, left_out = scale / 2, 0, left_out + 1
            continue
        done += 1
        for i, d in enumerate(g):
            d = d / scale
            if sgd:
                p[i] = p[i] - np.float32(sgd) * d
                continue
            m[i], v[i] = np.float32(0.9) * m[i] + np.float32(0.1) * d, np.float32(0.999) * v[i] + np.float32(0.001) * (d * d)
            p[i] = p[i] - np.float32(RATE * np.sqrt(1 - 0.999 ** done) / (1 - 0.9 ** done)) * m[i] / (np.sqrt(v[i]) + 1e-30)
        good += 1
        if good == 3:
            scale, good = min(scale * 2, np.float32(2) ** 127), 0
    assert sgd or left_out > 1, "no step was left out"
    return {"w": p[0], "b": p[1], "loss.scale": scale, "loss.good": good, "w.unscale.done": done, "worth": worth}


def main():
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((STEPS * ROWS, 3)).astype(np.float32), rng.standard_normal(STEPS * ROWS).astype(np.float32)
    great = x.copy()
    great[4 * ROWS:5 * ROWS] *= 1e17
    great[9 * ROWS] *= 3e17
    great[11 * ROWS, 1] = 1e16
    cases = [("adam", MODEL % (32768, ADAM), great, trained(great, y))]
    for scale in (8, 1, 0.125):
        cases.append(("sgd at %g" % scale, MODEL % (scale, "sgd(0.1)"), x, trained(x, y, scale, 0.1)))
    cases = [(title, text, rows, y, want) for title, text, rows, want in cases]
    near = np.sum(x, 1) - np.float32(1e-3) * y
    cases.append(("sgd where twice the scale is infinite", MODEL % (2.0 ** 126, "sgd(0.1)"), x, near, trained(x, near, 2.0 ** 126, 0.1)))
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for title, text, rows, labels, want in cases:
            model = twin.Twin(sys.argv[1], folder, "scaled", text)
            for towers in (1, 3):
                _, got = model.train({"x": rows, "y": labels}, STEPS, "--batch", str(ROWS), "--towers", str(towers))
                for name in want:
                    wrong = twin.differs(want[name], got[name], 1e-5 if name in ("w", "b", "worth") else 0)
                    failures += wrong is not None
                    print("%s: %s, %d towers: %s" % (title, name, towers, wrong or "ok"))
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
