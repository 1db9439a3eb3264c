#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Statistics over many rows, of f32, beside those that numpy adds up in f64: statistics.py DGC. Of what relu leaves
most is 0: the differences to a mean are one number, added again and again, which is the worst that a sum in f32 can meet."""
import json
import struct
import subprocess

import numpy as np

import checks

MODEL = """
model m(height = 14, width = 14, channels = 32) {{
  input h : f32[B, height, width, channels]
  state mean_is : f32[channels] = 0
  state variance_is : f32[channels] = 0
  state sum_is : f32[channels] = 0
  c, v = moments(h, [0, 1, 2])
  mean_is <- c
  variance_is <- v
  sum_is <- sum(h, [0, 1, 2])
  var w : f32 = 1
  train mean(square(w)) with sgd(rate = 0.1)
}}
""".format()
ROWS = """
model m(length = 1, width = 1) {
  input x : f32[B, length, width]
  predict all = sum(x, [1, 2])
  predict columns = sum(x, 1)
  predict rows = sum(x, 2)
  predict apart = sum(x * x, [1, 2])
}
"""


def tensors(path):
    """Of a checkpoint, which is a safetensors file."""
    data = open(path, "rb").read()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:end])
    return {k: np.frombuffer(data[end:][slice(*v["data_offsets"])], "<f4") for k, v in head.items() if v.get("dtype") == "F32"}


def compare(what, name, got, want, bound):
    """It may be off by `bound`, relative to itself."""
    off = np.max(np.abs(got - want) / np.maximum(np.abs(want), 1e-30))
    print(f"{what}: {name} off by {off:.1e} of itself")
    checks.check(off <= bound, f"{what}: {name}: more than {bound:.1e}")


def check(what, h, bound):
    np.save("h.npy", h)
    sizes = [f"--set={name}={size}" for name, size in zip(("height", "width"), h.shape[1:3])]
    model, saved = "m.dsl", "m.st"
    open(model, "w").write(MODEL)
    subprocess.run([checks.dgc, "train", model, *sizes, "--data", "h=h.npy", "--batch", str(len(h)), "--steps", "1", "--overwrite",
                    "--checkpoint", saved, "--quiet"], check=True)
    got, h = tensors(saved), h.astype(np.float64)
    for name, want in (("mean_is", h.mean((0, 1, 2))), ("variance_is", h.var((0, 1, 2))), ("sum_is", h.sum((0, 1, 2)))):
        compare(what, name, got[name], want, bound)


def check_rows(what, x, bound):
    """Sums within each of a batch's rows."""
    np.save("x.npy", x)
    model, names = "rows.dsl", ("all", "columns", "rows", "apart")
    open(model, "w").write(ROWS)
    sizes = [f"--set={name}={size}" for name, size in zip(("length", "width"), x.shape[1:])]
    outputs = [f"--output={name}={name}.npy" for name in names]
    subprocess.run([checks.dgc, "predict", model, *sizes, "--data", "x=x.npy", "--batch", str(len(x)), *outputs, "--quiet"],
                   check=True)
    x = x.astype(np.float64)
    for name, want in zip(names, (x.sum((1, 2)), x.sum(1), x.sum(2), (x * x).sum((1, 2)))):
        compare(what, name, np.load(f"{name}.npy"), want, bound)


rng = np.random.default_rng(0)
z = rng.normal(size=(64, 14, 14, 32)).astype(np.float32)
# 12544 rows are 64 segments of 196. A rounding is at most 2^-24 of the sum so far, which on the whole is half of the last one.
# Of what relu leaves of z - 2 the differences to a mean are together twice as large as the numbers.
bound = (64 + 196) * 2.0**-25
check("what relu leaves of z - 2", np.maximum(z - 2, 0).astype(np.float32), 2 * bound)
check("relu", np.maximum(z, 0), bound)
check("1 + z / 100", 1 + z / 100, bound)

# Few images of many pixels: 50176 pixels are 196 segments, which are parts of images.
few = (196 + 256) * 2.0**-25
check("0.1", np.full((4, 112, 112, 32), 0.1, np.float32), few)
check("relu of few images", np.maximum(rng.normal(size=(4, 112, 112, 32)), 0).astype(np.float32), few)

# Rows of a million, whose segments' sums are a chain of their own, in each lane or in all; and sums of columns that are long.
for shape in ((3, 1, 1000000), (2, 1000000, 1), (2, 3, 300000), (2, 300000, 3), (1, 50176, 4), (5, 600, 700)):
    chain = 512 + max(1, min(1024, shape[1] * shape[2] // 256)) + 8
    check_rows("0.1 in " + "x".join(map(str, shape)), np.full(shape, 0.1, np.float32), chain * 2.0**-25)
checks.finish()
