# SPDX-License-Identifier: Apache-2.0
"""Windows over images: what each sees is picked by number, and the maximum is the element that it chooses."""
import numpy as np

import convolutions
from models import FLOATS, INTS


def seen_by(x, window, size, outputs):
    """Which pixel each window sees at each of its places, [windows, places]; for each pixel the windows by place."""
    return convolutions.places(window, x.shape[1:-1], size, outputs)


def picked(m, image, table, missing):
    """[N, pixels, C] by number as [N, rows, places, C]; `missing` for what is not there."""
    row = m.xp.full((image.shape[0], 1, image.shape[2]), missing, image.dtype)
    return m.xp.concatenate([image, row], 1)[:, table]


def least(x):
    return -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min


def choice(m, rows, table, pixels):
    """The place that each window chooses: one takes that of those before it unless they are greater or equal."""
    xp, rows = m.xp, m.stop(rows)
    best, at = rows[:, :, 0], xp.zeros(rows[:, :, 0].shape, np.int64)
    known = (table[:, 0] < pixels)[:, None]
    for k in range(1, rows.shape[2]):
        here = (table[:, k] < pixels)[:, None]
        taken = here & (~known | ~(best >= rows[:, :, k]))
        best, at, known = xp.where(taken, rows[:, :, k], best), xp.where(taken, k, at), known | here
    return at


def total(m, x, window, size, outputs, d):
    table = seen_by(x, window, size, outputs)[0]
    rows = picked(m, convolutions.flat(x), table, 0)
    return m.total(rows, (2,), d).reshape([x.shape[0], *outputs, x.shape[-1]])


def greatest(m, x, window, size, outputs):
    table, pixels = seen_by(x, window, size, outputs)[0], int(np.prod(x.shape[1:-1]))
    rows = picked(m, convolutions.flat(x), table, least(x))
    if table.size == 0 or rows.size == 0:
        return m.xp.full([x.shape[0], *outputs, x.shape[-1]], least(x), x.dtype)
    y = m.xp.take_along_axis(rows, choice(m, rows, table, pixels)[:, :, None], 2)[:, :, 0]
    if x.dtype.kind == "f":
        y = m.xp.where(m.xp.any(m.xp.isnan(rows), axis=2), np.nan, y)
    return y.reshape([x.shape[0], *outputs, x.shape[-1]])


def put(m, x, values, window, size, d):
    table, back = seen_by(x, window, size, values.shape[1:-1])
    if table.size == 0 or x.size == 0:
        return m.xp.zeros(x.shape, x.dtype)
    rows, pixels = picked(m, convolutions.flat(x), table, least(x)), int(np.prod(x.shape[1:-1]))
    at = picked(m, choice(m, rows, table, pixels), back, -1)
    terms = picked(m, convolutions.flat(values), back, 0)
    return m.total(m.xp.where(at == np.arange(back.shape[1])[:, None], terms, 0.0), (2,), d).reshape(x.shape)


def pick(m, x, values, window, size, outputs):
    table, pixels = seen_by(x, window, size, outputs)[0], int(np.prod(x.shape[1:-1]))
    if table.size == 0 or x.size == 0:
        return m.xp.zeros([x.shape[0], *outputs, x.shape[-1]], x.dtype)
    at = choice(m, picked(m, convolutions.flat(x), table, least(x)), table, pixels)
    y = m.xp.take_along_axis(picked(m, convolutions.flat(values), table, 0), at[:, :, None], 2)
    return y.reshape([x.shape[0], *outputs, x.shape[-1]])


def of_node(m, n, shape, d, x):
    """What a node of a graph gives."""
    ints = lambda key: [int(v) for v in n.attrs[key]] if key in n.attrs else None
    window = convolutions.Window(len(shape) - 2, ints("strides"), ints("padding_low"), ints("input_dilation"),
                                 ints("kernel_dilation"))
    if n.op == "window_put":
        return put(m, x[0], x[1], window, ints("size"), d)
    f = {"window_sum": lambda *a: total(m, x[0], *a, d), "window_max": lambda *a: greatest(m, x[0], *a),
         "window_pick": lambda *a: pick(m, x[0], x[1], *a)}[n.op]
    return f(window, ints("size"), shape[1:-1])


# ---- statements of models ----

def image(g):
    kinds = FLOATS if g.chance(0.7) else INTS
    x = g.pick(lambda v: v.dtype in kinds and v.axis == 0 and v.shape[0] == "B" and 3 <= len(v.shape) <= 5 and
               0 not in v.shape)
    return x or g.input(g.real, ["B"] + g.rng.choice([[7, 2], [5, 4, 2], [3, 2, 4, 2]]))


def row(name):
    """window_sum or window_max."""
    def make(g):
        x = image(g)
        spatial = x.shape[1:-1]
        size = [g.rng.choice([1, 2, 3]) for _ in spatial]
        strides, dilation = [g.rng.choice([1, 1, 2, 3]) for _ in spatial], [g.rng.choice([1, 1, 2]) for _ in spatial]
        # no window sees padding alone: its maximum is -Inf
        pads = [[g.rng.randint(0, k - 1) for _ in "ab"] if e == 1 else [0, 0] for k, e in zip(size, dilation)]
        out = [(n + a + b - (k - 1) * e - 1) // s + 1
               for n, (a, b), k, e, s in zip(spatial, pads, size, dilation, strides)]
        if any(n + a + b < (k - 1) * e + 1 for n, (a, b), k, e in zip(spatial, pads, size, dilation)):
            return None
        window = convolutions.Window(len(spatial), strides, [a for a, _ in pads], None, dilation)
        text = f"{name}({{0}}, {size}, strides = {strides}, padding = {pads}, dilation = {dilation})"
        to = "i64" if name == "window_sum" and x.dtype == "u8" else x.dtype
        f = {"window_sum": lambda m, v: total(m, v.astype(np.int64) if to != x.dtype else v, window, size, out, to),
             "window_max": lambda m, v: greatest(m, v, window, size, out)}[name]
        return g.emit(name, text, [x], to, ["B"] + out + [x.shape[-1]], f)
    return make
