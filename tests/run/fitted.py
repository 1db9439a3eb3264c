#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nn.running_norm: means and deviations of the rows that were trained on, and of no others, beside numpy's of the same rows; on one
device and several, in batches of several sizes, stopped and gone on with, with NaN and columns that do not change: fitted.py DGC."""
import subprocess

import numpy as np

from checks import check, dgc, finish

MODEL = """use nn
model m() {
  input x : %s[B, %s]
  z = nn.running_norm(x)
  p = sum(z * 0.5, axis = %s)
  var w : %s[] = 1
  train mean(square(p * w - 1)) with sgd(0.01)
  predict z = z
  data train { x = "x.npy" }
}
"""
TRAINED, ALL = 80, 101


def run(*args):
    return subprocess.run([dgc, *args], capture_output=True, text=True)


def want(x, epsilon=1e-7):
    axes = tuple(range(x.ndim - 1))
    seen = x[:TRAINED].astype(np.float64)
    center, width = np.nanmean(seen, axis=axes), np.nanstd(seen, axis=axes)
    return np.where(np.isnan(x), 0, (x - center) / np.maximum(width, epsilon))


def compare(what, x, near):
    kind, inner = {"float32": "f32", "float64": "f64"}[x.dtype.name], x.shape[1:]
    with open("m.dsl", "w") as f:
        f.write(MODEL % (kind, ", ".join(map(str, inner)), [a + 1 for a in range(len(inner))], kind))
    np.save("x.npy", x)
    for batch, more in ((16, ()), (80, ()), (7, ()), (16, ("--devices", "cpu:0-2")), (7, ("--devices", "cpu:0-1", "--strategy", "central_storage"))):
        train = ("train", "m.dsl", "--rows", "0:%d" % TRAINED, "--batch", str(batch), "--quiet", "--checkpoint", "c.safetensors", *more)
        # In the second epoch the same rows are seen once more; the first of two parts ends inside of the first.
        for parts in (["--epochs", "1", "--overwrite"],), (["--epochs", "2", "--overwrite"],), (["--steps", "2", "--overwrite"], ["--epochs", "1", "--resume"]):
            done = [run(*train, *part) for part in parts]
            if batch == TRAINED and parts[0][0] == "--steps":
                continue
            check(all(d.returncode == 0 for d in done), what, batch, *more, *parts, *(d.stderr for d in done))
            got = run("predict", "m.dsl", "--checkpoint", "c.safetensors", "--data", "x.npy", "--output", "z.npy")
            check(got.returncode == 0, what, got.stderr)
            off = np.max(np.abs(np.load("z.npy") - want(x)))
            check(off <= near, what, batch, *more, *parts, "off by", off)


rng = np.random.default_rng(0)
table = rng.normal([1000, -2, 0.001], [3, 1, 0.0005], (ALL, 3))
compare("f32", table.astype(np.float32), 1e-4)  # 1000 has a place of 6e-5, a fifty thousandth of the deviation
compare("f64", table, 1e-9)
holes = table.copy()
holes[rng.random(table.shape) < 0.3] = np.nan
compare("missing", holes, 1e-9)
holes[:, 1], holes[:, 2] = 5, np.nan
compare("equal, and all missing", holes[:, :2], 1e-9)
compare("images", rng.normal(3, 2, (ALL, 4, 4, 2)), 1e-9)
np.save("x.npy", holes)
with open("m.dsl", "w") as f:
    f.write(MODEL % ("f64", "3", [1], "f64"))
got = run("train", "m.dsl", "--epochs", "1", "--batch", "16", "--quiet", "--overwrite", "--checkpoint", "c.safetensors")
check(got.returncode == 0, "a column without a number", got.stderr)
finish()
