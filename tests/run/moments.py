#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""moments(x, axis) of f32 beside numpy's sums in f64: moments.py DGC FOLDER. The folder is for its files.

Data that a sum of squares loses: a large mean with a tiny variance, one number that is far from all others, in the slice that
is taken as a guess and elsewhere, a slice that is unlike the rest, all alike. The variance may be off by the roundings of a sum
times the number of slices, of itself, whatever the mean is; the mean by those of its own size. On one tower, on three uneven
ones, and on two threads, which give the bits of one."""
import os
import subprocess
import sys

import needs

(np,) = needs.modules("numpy")
DGC, FOLDER = os.path.abspath(sys.argv[1]), sys.argv[2]
EPSILON = 2.0**-24
ROWS, HIGH, WIDE, CHANNELS = 40, 12, 9, 7
MODEL = """model two {
  input x : f32[B, %d, %d, %d]
  state m : f32[%d] = zeros()
  state v : f32[%d] = zeros()
  state flat_m : f32[%d, %d, %d] = zeros()
  state flat_v : f32[%d, %d, %d] = zeros()
  var w : f32[] = ones()
  mean, spread = moments(x, [0, 1, 2])
  m <- mean
  v <- spread
  flat_mean, flat_spread = moments(x, 0)
  flat_m <- flat_mean
  flat_v <- flat_spread
  train mean(x * w) with sgd(rate = 0.0)
}
"""
failures = []


def check(good, what):
    if not good:
        failures.append(what)
        print("FAILED:", what)


def cases():
    rng = np.random.default_rng(7)
    shape = (ROWS, HIGH, WIDE, CHANNELS)
    noise = rng.standard_normal(shape)
    yield "plain", noise
    yield "large mean", 1e4 + 1e-2 * noise
    yield "large mean, tiny variance", np.float32(4096) + np.ldexp(rng.integers(0, 3, shape), -11)
    yield "negative mean", -3e6 + noise
    alike = np.full(shape, 0.1)
    yield "alike", alike
    for at in 0, HIGH // 2:
        one = 1e-3 * noise
        one[3, at, 2] = 1e4
        yield f"one far away in slice {at}", one
    row = 5 + 1e-3 * noise
    row[:, HIGH // 2] += 100
    yield "the slice is unlike", row
    yield "zeros", np.zeros(shape)


def read(path):
    subprocess.run([DGC, "checkpoint", "to-npz", path, "-o", "out.npz"], check=True, capture_output=True, timeout=600)
    with np.load("out.npz") as z:
        return {name: z[name] for name in z.files}


def run(*args):
    for path in "out.safetensors", "out.npz":
        if os.path.exists(path):
            os.remove(path)
    r = subprocess.run([DGC, "train", "m.dsl", "--data", "x=x.npy", "--batch", str(ROWS), "--epochs", "1", "--checkpoint",
                        "out.safetensors", *args], capture_output=True, text=True, timeout=600)
    check(r.returncode == 0, f"{args}: {r.stderr}")
    return read("out.safetensors") if r.returncode == 0 else {}


def compare(name, got, x):
    for prefix, axes, slices in ("", (0, 1, 2), HIGH), ("flat_", 0, 1):
        count = x.size // CHANNELS if axes else ROWS
        mean, variance = x.mean(axes), x.var(axes)
        # a sum of n numbers is off by n roundings of its terms at most, and where they are as good as random by their root
        most, usual = 4 + count, 4 + np.sqrt(count)
        rounding = usual * EPSILON * np.abs(x).max()
        far = np.abs(got[prefix + "m"] - mean)
        check((far <= rounding).all(), f"{name}: {prefix}mean is off by {far.max()}")
        share = np.abs(got[prefix + "v"] - variance)
        # the point from which differences are taken is rounded: without slices that is the mean itself
        allowed = most * EPSILON * slices * variance + rounding**2 * (1 if prefix else most * EPSILON)
        check((share <= allowed).all(), f"{name}: {prefix}variance {variance.min()} is off by {share.max()}")


os.chdir(FOLDER)
sizes = (HIGH, WIDE, CHANNELS)
with open("m.dsl", "w") as f:
    f.write(MODEL % (sizes + (CHANNELS, CHANNELS) + sizes + sizes))
for name, x in cases():
    x = x.astype(np.float32)
    np.save("x.npy", x)
    exact = x.astype(np.float64)
    one = run("--devices", "cpu:0", "--threads", "1")
    compare(name, one, exact)
    two = run("--devices", "cpu:0", "--threads", "2")
    check(all(one[k].tobytes() == two[k].tobytes() for k in one), f"{name}: two threads have other bits")
    compare(name + ", three towers", run("--devices", "cpu:0-2"), exact)
sys.exit(1 if failures else 0)
