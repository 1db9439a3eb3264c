#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""moments(x, axis) of f32 beside numpy's sums in f64: moments.py DGC.

Data that a sum of squares loses: a large mean with a tiny variance, one number that is far from all others, in the slice that
is taken as a guess and elsewhere, a slice that is unlike the rest, all alike. The variance may be off by the roundings of a sum
times the number of slices, of itself, whatever the mean is; the mean by those of its own size. On one tower, on three uneven
ones, and on two threads, which give the bits of one.
Many rows far from 0 lose no variance, nor do those of batch norm.

Then moments of each tower's own rows, of f32 and of f64: what states with an aggregation and `local` have of them, on one tower,
two, three uneven ones and more than rows, beside numpy's of the rows of each."""
import os
import subprocess

import needs
from checks import check, dgc, finish

(np,) = needs.modules("numpy")
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
    subprocess.run([dgc, "checkpoint", "to-npz", path, "-o", "out.npz"], check=True, capture_output=True, timeout=600)
    with np.load("out.npz") as z:
        return {name: z[name] for name in z.files}


def run(*args):
    for path in "out.safetensors", "out.npz":
        if os.path.exists(path):
            os.remove(path)
    r = subprocess.run([dgc, "train", "m.dsl", "--data", "x=x.npy", "--batch", str(ROWS), "--epochs", "1", "--checkpoint",
                        "out.safetensors", *args], capture_output=True, text=True, timeout=600)
    check(r.returncode == 0, f"{args}: {r.stderr}")
    check("-nan" not in r.stderr + r.stdout, f"a sign of NaN is printed: {r.stderr}")
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
        # the point from which differences are taken is rounded
        allowed = most * EPSILON * (slices * variance + rounding**2)
        check((share <= allowed).all(), f"{name}: {prefix}variance {variance.min()} is off by {share.max()}")


OWN_ROWS, HOWS = 5, ("mean", "sum", "only_first_replica")
OWN = """model own {
  input x : T[B, 8, 3]
  var w : T[] = ones()
  center, spread = moments(x, [0, 1])
  flat_center, flat_spread = moments(x, 0)
  state both : T[3] = zeros() aggregation(mean)
  both <- 2 * spread + center - mean(x, axis = [0, 1])
  state given : T[3] = zeros()
  state given_flat : T[8, 3] = zeros()
  given <- all_reduce(local(sqrt(spread)), "mean")
  given_flat <- all_reduce(local(flat_spread), "sum")
%s  train mean(x * w) with sgd(rate = 0.0)
}
"""


def states_of_towers():
    """A state of each kind for each of the moments, and what it is called."""
    text = ""
    for how in HOWS:
        for kept in "", " synchronization(on_read)":
            for value in "center", "spread", "flat_center", "flat_spread":
                name = f"{value}_{how}{'_read' if kept else ''}"
                text += f"  state {name} : T[{'8, ' if 'flat' in value else ''}3] = zeros() aggregation({how}){kept}\n"
                text += f"  {name} <- {value}\n"
    return text


def joined(how, values, count):
    return values[0] if how == "only_first_replica" else sum(values) / (count if how == "mean" else 1)


def own_cases():
    rng = np.random.default_rng(3)
    noise = rng.standard_normal((OWN_ROWS, 8, 3))
    yield "plain", noise
    yield "large mean", 1e6 + noise
    apart = noise.copy()
    apart += 1e3 * np.arange(OWN_ROWS)[:, None, None]  # each tower is somewhere else
    yield "towers apart", apart
    ties = np.round(noise)
    ties[1] = ties[0]
    ties[3] = 0
    yield "zeros and ties", ties
    odd = noise.copy()
    odd[0, 2, 0], odd[4, 1, 1] = np.nan, np.inf
    yield "NaN and infinity", odd


def check_own(name, x, towers, got, epsilon):
    sizes = [OWN_ROWS // towers + (t < OWN_ROWS % towers) for t in range(towers)]
    parts = [p.astype(np.longdouble) for p in np.split(x, np.cumsum(sizes)[:-1]) if len(p)]
    of = {"center": [p.mean((0, 1)) for p in parts], "spread": [p.var((0, 1)) for p in parts],
          "flat_center": [p.mean(0) for p in parts], "flat_spread": [p.var(0) for p in parts]}
    want = {"both": 2 * joined("mean", of["spread"], len(parts)), "given_flat": sum(of["flat_spread"]),
            "given": joined("mean", [np.sqrt(v) for v in of["spread"]], len(parts))}
    for how in HOWS:
        for value, values in of.items():
            want[f"{value}_{how}"] = joined(how, values, len(parts))
            want[f"{value}_{how}_read"] = joined(how, values, towers)
    largest = np.abs(x[np.isfinite(x)]).max()
    for state, value in want.items():
        known = np.isfinite(value)
        far = np.abs(got[state][known] - value[known])
        # means are rounded as what they are of, variances by the roundings of 40 squares, in 8 slices
        spread = max(np.abs(v[np.isfinite(v)]).max(initial=0) for v in of["spread"] + of["flat_spread"])
        allowed = len(parts) * 16 * epsilon * ((0 if "spread" in state or "given" in state else largest) + 40 * spread)
        check((far <= allowed).all(), f"{name} on {towers} towers: {state} is off by {far.max(initial=0)}, not {allowed}")
        check(not np.isfinite(got[state][~known]).any(), f"{name} on {towers} towers: {state} is finite")


def own():
    for kind, dtype in ("f32", np.float32), ("f64", np.float64):
        with open("m.dsl", "w") as f:
            f.write((OWN % states_of_towers()).replace("T[", kind + "["))
        for name, x in own_cases():
            x = x.astype(dtype)
            np.save("x.npy", x)
            for towers in 1, 2, 3, 7:
                got = run("--no-shuffle", "--allow-nan", "--batch", str(OWN_ROWS), "--towers", str(towers))
                check_own(f"{kind} {name}", x, towers, got, np.finfo(dtype).eps / 2)


MANY = """use nn
model many {
  input x : f32[B, 4]
  var w : f32[] = ones()
  center, spread = moments(x, 0)
  state m : f32[4] = zeros()
  state v : f32[4] = zeros()
  m <- center
  v <- spread
  h = nn.batch_norm(x, momentum = 0.0)
  y = nn.batch_norm(x, momentum = 0.0, synchronize = false)
  train mean(x * w) + 0 * mean(h + y) with sgd(rate = 0.0)
}
"""


def many_rows():
    """Numbers so far from 0 that the mean of as many is rounded by as much as they differ, and one infinity."""
    rows = 50_000
    x = (1e6 + np.random.default_rng(5).standard_normal((rows, 4))).astype(np.float32)
    x[7, 3] = np.inf
    np.save("x.npy", x)
    exact = x.astype(np.float64)
    mean, variance = exact.mean(0), exact[:, :3].var(0)
    with open("m.dsl", "w") as f:
        f.write(MANY)
    for towers in 1, 3:
        got = run("--allow-nan", "--batch", str(rows), "--towers", str(towers))
        for name in ("v", "h.moving_variance") + ("y.moving_variance",) * (towers == 1):
            far = np.abs(got[name][:3] - variance).max()
            check(far <= 1e-5, f"{rows} rows on {towers} towers: {name} is off by {far}")
        for name in "m", "h.moving_mean", "y.moving_mean":
            far = np.abs(got[name][:3] - mean[:3]).max()
            check(far <= 2 * EPSILON * 1e6, f"{rows} rows on {towers} towers: {name} is off by {far}")
            check(got[name][3] == np.inf, f"{rows} rows on {towers} towers: {name} is {got[name][3]}, not infinity")


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
with np.errstate(invalid="ignore"):
    own()
    many_rows()
finish()
