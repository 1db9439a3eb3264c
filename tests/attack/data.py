# SPDX-License-Identifier: Apache-2.0
"""Numbers on purpose: zeros, ties, NaN, infinities, denormals, ids that repeat and lie at the ends of their range."""
import numpy as np

from arithmetic import LARGEST, SMALLEST
from models import FLOATS, dims

NUMPY = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "bool": np.bool_}
ROWS = (1, 2, 3, 4, 5, 7, 8, 13)


def floats(rng, shape, dtype, wild):
    """`rng`: random.Random. Not wild: nothing whose gradient is not a number."""
    n = int(np.prod(shape)) if shape else 1
    way = rng.randrange(4)
    if way == 0:  # many ties and zeros
        a = [rng.choice([-2, -1, -0.5, 0, 0, 0.5, 1, 2, 6]) for _ in range(n)]
    elif way == 1:
        a = [rng.choice([0.0, rng.gauss(0, 1)]) for _ in range(n)]
    else:
        a = [rng.gauss(0, 1) for _ in range(n)]
    if wild:
        special = [np.nan, np.inf, -np.inf, -0.0, SMALLEST[dtype] / 8, -SMALLEST[dtype] / 1024, LARGEST[dtype],
                   1e-30, -1e20, 3.5e4, 2.0 ** 24 + 1, -87.5, 88.7]
        for _ in range(max(1, n // 8)):
            a[rng.randrange(n)] = rng.choice(special)
    return np.array(a, NUMPY[dtype]).reshape(shape)


def integers(rng, shape, dtype, low, high, wild):
    n = int(np.prod(shape)) if shape else 1
    if low is None:
        low, high = -4, 5
        info = np.iinfo(NUMPY[dtype])
        ends = [info.min, info.max, 0] if wild else [low, high]
    else:
        ends = [low, high]
    if dtype == "u8":
        low, high, ends = max(low, 0), max(high, 0), [max(e, 0) for e in ends]
    a = [rng.choice(ends) if rng.random() < 0.25 else rng.randint(low, high) for _ in range(n)]
    if n > 1 and rng.random() < 0.3:
        a = [a[0]] * n  # one row alone
    return np.array(a, NUMPY[dtype]).reshape(shape)


def inputs(rng, program, rows, wild):
    """An array for each input, by name."""
    out = {}
    for v in program.inputs():
        shape = dims(v.shape, rows)
        if 0 in shape:
            out[v.name] = np.zeros(shape, NUMPY[v.dtype])
        elif v.dtype in FLOATS:
            out[v.name] = floats(rng, shape, v.dtype, wild and rng.random() < 0.5)
        elif v.dtype == "bool":
            out[v.name] = integers(rng, shape, "u8", 0, 1, False).astype(bool)
        else:
            out[v.name] = integers(rng, shape, v.dtype, v.low, v.high, wild)
    return out


def variables(rng, listed):
    """A value for each variable of floats, as (name, dtype, shape) lists them: what an optimizer keeps is left alone."""
    out = {}
    for name, dtype, shape in listed:
        if np.dtype(dtype).kind != "f" or name.endswith(".seen"):
            continue
        a = floats(rng, shape, "f32" if dtype == np.float32 else "f64", False)
        out[name] = np.abs(a) + dtype(0.5) if name.endswith("variance") else a
    return out
