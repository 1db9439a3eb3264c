# SPDX-License-Identifier: Apache-2.0
"""Convolutions, written as products of matrices: for each result what it sees of the others is picked by number."""
import itertools

import numpy as np


class Window:
    """Numbers per spatial axis: strides, padding before, dilation of the input and of the kernel; and groups."""

    def __init__(self, rank, strides=None, low=None, input_dilation=None, kernel_dilation=None, groups=1):
        self.strides, self.low = strides or [1] * rank, low or [0] * rank
        self.input_dilation, self.kernel_dilation = input_dilation or [1] * rank, kernel_dilation or [1] * rank
        self.groups = groups


def places(w, inputs, kernel, outputs):
    """Which pixel of the input an output sees under each place of the kernel, [outputs, places]; and of the other way."""
    def all_of(sizes):
        return list(itertools.product(*map(range, sizes)))
    number = {at: i for i, at in enumerate(all_of(inputs))}
    seen = np.full((int(np.prod(outputs)), int(np.prod(kernel))), len(number))
    back = np.full((len(number), seen.shape[1]), seen.shape[0])
    for y, o in enumerate(all_of(outputs)):
        for t, k in enumerate(all_of(kernel)):
            at = [a * s + b * d - low for a, b, s, d, low in zip(o, k, w.strides, w.kernel_dilation, w.low)]
            if any(p % d for p, d in zip(at, w.input_dilation)):
                continue
            x = number.get(tuple(p // d for p, d in zip(at, w.input_dilation)), -1)
            if x >= 0:
                seen[y, t], back[x, t] = x, y
    return seen, back


def picked(m, image, table):
    """[N, pixels, C] by number as [N, rows, places, C]; zeros for what is not there."""
    zero = m.xp.zeros((image.shape[0], 1, image.shape[2]), image.dtype)
    return m.xp.concatenate([image, zero], 1)[:, table]


def flat(image):
    return image.reshape(image.shape[0], int(np.prod(image.shape[1:-1])), image.shape[-1])


def by_group(m, groups, f, *tensors):
    """f of the channels of each group, one behind the other."""
    parts = [m.xp.split(t, groups, -1) for t in tensors]
    return m.xp.concatenate([f(*p) for p in zip(*parts)], -1)


def spread(there, rows):
    """Of [pixels, places]: of all channels, in all images; in the shape of the rows."""
    there = np.repeat(there, rows.shape[1] // there.shape[1], 1)
    return np.tile(there, (rows.shape[0] // there.shape[0], 1))


def product(m, a, b, there, d):
    """a @ b, from 0 on: not -0. What is not `there` in a is no term, not 0 times what may be infinite; nor is it one of the
    gradient."""
    if not m.jax and np.isfinite(b).all():
        return m.product(a, b, d) + 0.0
    y = m.product(a[:, None], m.xp.where(there[:, :, None], b, 0), d)[:, 0]
    return y + m.stop(m.xp.where(y == 0, 0.0 - y, 0.0))


def output(m, x, w, window, size, d):
    kernel, outputs = w.shape[:-2], list(size)
    seen = places(window, x.shape[1:-1], kernel, outputs)[0]
    def one(a, b):
        rows = picked(m, flat(a), seen)
        rows = rows.reshape(a.shape[0] * seen.shape[0], seen.shape[1] * a.shape[-1])
        there = spread(seen < int(np.prod(a.shape[1:-1])), rows)
        return product(m, rows, b.reshape(rows.shape[1], b.shape[-1]), there, d)
    y = by_group(m, window.groups, one, x, w)
    return y.reshape([x.shape[0]] + outputs + [w.shape[-1]])


def input_of(m, y, w, window, size, d):
    kernel, inputs = w.shape[:-2], list(size)
    back = places(window, inputs, kernel, y.shape[1:-1])[1]
    def one(a, b):
        rows = picked(m, flat(a), back)
        rows = rows.reshape(a.shape[0] * back.shape[0], back.shape[1] * a.shape[-1])
        there = spread(back < int(np.prod(a.shape[1:-1])), rows)
        turned = m.xp.swapaxes(b.reshape(back.shape[1], -1, b.shape[-1]), 1, 2)
        return product(m, rows, turned.reshape(rows.shape[1], w.shape[-2]), there, d)
    x = by_group(m, window.groups, one, y, w)
    return x.reshape([y.shape[0]] + inputs + [w.shape[-2] * window.groups])


def kernel_of(m, x, y, window, size, d):
    seen = places(window, x.shape[1:-1], list(size), y.shape[1:-1])[0]
    def one(a, b):
        rows = picked(m, flat(a), seen)
        rows = rows.reshape(a.shape[0] * seen.shape[0], seen.shape[1] * a.shape[-1])
        there = spread(seen < int(np.prod(a.shape[1:-1])), rows)
        return product(m, m.xp.swapaxes(rows, 0, 1), b.reshape(rows.shape[0], b.shape[-1]), there.T, d)
    w = by_group(m, window.groups, one, x, y)
    return w.reshape(list(size) + [x.shape[-1] // window.groups, y.shape[-1]])


def of_node(m, n, shape, d, x):
    """What a node of a graph gives."""
    ints = lambda key: [int(v) for v in n.attrs[key]] if key in n.attrs else None
    window = Window(len(shape) - 2, ints("strides"), ints("padding_low"), ints("input_dilation"), ints("kernel_dilation"),
                    int(n.attrs.get("groups", 1)))
    result = n.attrs.get("result", "output")
    f = {"output": output, "input": input_of, "kernel": kernel_of}[result]
    return f(m, x[0], x[1], window, shape[:-2] if result == "kernel" else shape[1:-1], d)


# ---- statements of models ----

def chosen(g, x, gaps):
    """A window over x, which may have gaps between its elements, its kernel, and the sizes of the output."""
    spatial, channels = x.shape[1:-1], x.shape[-1]
    kernel = [g.rng.choice([1, 2, 3]) for _ in spatial]
    strides, dilation = [g.rng.choice([1, 1, 2, 3]) for _ in spatial], [g.rng.choice([1, 1, 2]) for _ in spatial]
    apart = [g.rng.choice([1, 1, 2, 3]) if gaps else 1 for _ in spatial]
    pairs = [(g.rng.randint(-1, 2), g.rng.randint(-2, 2)) for _ in spatial]
    groups = g.rng.choice([n for n in range(1, channels + 1) if channels % n == 0])
    out = [((n - 1) * d + 1 + a + b - (k - 1) * e - 1) // s + 1
           for n, d, (a, b), k, e, s in zip(spatial, apart, pairs, kernel, dilation, strides)]
    w = g.var(kernel + [channels // groups, groups * g.rng.choice([1, 2, 3])], text="normal(0.0, 1.0)")
    window = Window(len(spatial), strides, [a for a, _ in pairs], apart, dilation, groups)
    text = f"strides = {strides}, padding = {[list(p) for p in pairs]}, kernel_dilation = {dilation}, groups = {groups}"
    return w, window, text + (f", input_dilation = {apart}" if gaps else ""), out


def image(g):
    x = g.pick(lambda v: v.dtype == g.real and v.axis == 0 and v.shape[0] == "B" and 3 <= len(v.shape) <= 5 and
               0 not in v.shape)
    return x or g.input(g.real, ["B"] + g.rng.choice([[7, 2], [5, 4, 2], [3, 2, 4, 2]]))


def conv(g):
    x = image(g)
    w, window, text, out = chosen(g, x, g.chance(0.3))
    if min(out) <= 0:
        return None
    d = x.dtype
    return g.emit("conv", f"conv({{0}}, {{1}}, {text})", [x, w], d, ["B"] + out + [w.shape[-1]],
                  lambda m, a, b: output(m, a, b, window, out, d))


def transposed_conv(g):
    x = image(g)
    w, window, text, out = chosen(g, x, False)
    if min(out) <= 0:
        return None
    y, size, d = g.input(g.real, ["B"] + out + [w.shape[-1]]), list(x.shape[1:-1]), x.dtype
    return g.emit("transposed_conv", f"transposed_conv({{0}}, {{1}}, {size}, {text})", [y, w], d,
                  ["B"] + size + [x.shape[-1]], lambda m, a, b: input_of(m, a, b, window, size, d))
