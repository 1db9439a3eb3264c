# SPDX-License-Identifier: Apache-2.0
"""The functions of the library that are made of others: probabilities, losses, layers; and those that draw numbers."""
import numpy as np

import attention as scores
import convolutions
import leaves
import windows
from elementwise import gelu, sigmoid, softplus
from models import FLOATS, INTS, fits
from tensors import axes_of, axis_text, mean_of, reduced, rows_at, variance_of

UNKNOWN = object()  # instead of a function: nothing outside of dgc has these numbers


def drawn(m, shape):
    """Numbers that only dgc's own generator has: the reference knows nothing of what is made of them."""
    m.unknown.add(m.here)
    return m.xp.zeros(shape)


# ---- along an axis ----

def top(m, x, axis):
    return m.stop(m.xp.max(x, axis=axis, keepdims=True))


def softmax_of(m, x, axis, d):
    if m.jax and m.moves is None:
        return m.jax.nn.softmax(x, axis=axis)
    e = m.r(m.xp.exp(m.r(x - top(m, x, axis), d)), d, 8)
    return m.r(e / m.total(e, (axis,), d, True), d)


def log_softmax_of(m, x, axis, d):
    shifted = m.r(x - top(m, x, axis), d)
    e = m.r(m.xp.exp(shifted), d, 8)
    return m.r(shifted - m.r(m.xp.log(m.total(e, (axis,), d, True)), d, 8), d)


def logsumexp_of(m, x, axis, d):
    t = m.xp.max(x, axis=axis, keepdims=True)
    t = m.stop(m.xp.where(m.xp.isfinite(t), t, 0.0))  # no gap between two infinities
    e = m.r(m.xp.exp(m.r(x - t, d)), d, 8)
    return m.r(m.r(m.xp.log(m.total(e, (axis,), d, True)), d, 8) + t, d)


def l2_of(m, x, axis, d):
    s = m.total(m.r(x * x, d), (axis,), d, True)
    return m.r(x * m.r(1 / m.xp.sqrt(m.exact_max(s, np.full((), 1e-12))), d, 2), d)


def along(name, f, keeps=True):
    """The last axis, or another one; not that of the batch."""
    def row(g):
        x = g.real_value(least=1)
        axes = x and axes_of(g, x, False)
        if not axes:
            return None
        at, d, keep = axes[0], x.dtype, keeps or g.chance(0.4)
        text = f"{name}({{0}}" + ("" if at == len(x.shape) - 1 and g.chance(0.5) else f", axis = {at}")
        text += ")" if keeps or not keep else ", keep = true)"
        def run(m, v):
            y = f(m, v, at, d)
            return y if keep else m.xp.squeeze(y, at)
        return g.emit(name, text, [x], d, x.shape if keeps else reduced(x.shape, [at], keep), run)
    return row


# ---- order ----

def sort(g):
    x = g.pick(lambda v: v.dtype in FLOATS + INTS and any(n != "B" for n in v.shape))
    if not x:
        return None
    at, down = g.rng.choice([i for i, n in enumerate(x.shape) if n != "B"]), int(g.chance(0.4))
    return g.emit("sort", f"sort({{0}}, {at}{', descending = true' if down else ''})", [x], x.dtype, x.shape,
                  lambda m, v: m.xp.take_along_axis(v, leaves.argsort(m, x.dtype, (v,), at, down), at))


def top_k(g):
    x = g.pick(lambda v: v.dtype in FLOATS + INTS and v.shape and v.shape[-1] not in (0, "B"))
    if not x:
        return None
    k, which = g.rng.randint(0, x.shape[-1]), g.rng.randint(0, 1)
    def run(m, v):
        places = leaves.argsort(m, x.dtype, (v,), v.ndim - 1, 1)[..., :k]
        return places if which else m.xp.take_along_axis(v, places, -1)
    return g.emit("top_k", f"top_k({{0}}, {k})[{which}]", [x], "i32" if which else x.dtype, x.shape[:-1] + (k,), run)


# ---- losses ----

def cross_entropy(g):
    x = g.pick(lambda v: v.dtype == g.real and len(v.shape) >= 1 and v.shape[-1] not in (0, "B"))
    if x is None:
        return None
    n, d = x.shape[-1], x.dtype
    if g.chance(0.3):
        p = g.partner(x, FLOATS)
        if p.shape != x.shape:
            return None
        def soft(m, v, q):
            shifted = m.r(v - top(m, v, -1), d)
            lse = m.r(m.xp.log(m.total(m.r(m.xp.exp(shifted), d, 8), (-1,), d)), d, 8)
            return m.r(m.r(m.total(q, (-1,), d) * lse, d) - m.total(m.r(q * shifted, d), (-1,), d), d)
        return g.emit("softmax_cross_entropy", "softmax_cross_entropy({0}, {1})", [x, p], d, x.shape[:-1], soft)
    if x.shape[:1] != ("B",):
        return None
    ids = g.input(g.rng.choice(INTS), x.shape[:-1], 0, n - 1)
    def hard(m, v, i):
        logs = log_softmax_of(m, v, v.ndim - 1, d)
        return -m.xp.squeeze(m.xp.take_along_axis(logs, i[..., None].astype(np.int64), axis=-1), -1)
    return g.emit("softmax_cross_entropy", "softmax_cross_entropy({0}, {1})", [x, ids], d, x.shape[:-1], hard)


def correct(g):
    x = g.pick(lambda v: v.dtype == g.real and len(v.shape) >= 2 and v.shape[0] == "B" and v.shape[-1] not in (0, "B"))
    if x is None:
        return None
    ids = g.input(g.rng.choice(INTS), x.shape[:-1], 0, x.shape[-1] - 1)
    return g.emit("correct", "correct({0}, {1})", [x, ids], "bool", x.shape[:-1],
                  lambda m, v, i: m.xp.argmax(v, axis=-1) == i)


def in_top_k(g):
    x = g.pick(lambda v: v.dtype == g.real and len(v.shape) >= 2 and v.shape[0] == "B" and v.shape[-1] not in (0, "B"))
    if x is None:
        return None
    ids, k = g.input(g.rng.choice(INTS), x.shape[:-1], 0, x.shape[-1] - 1), g.rng.randint(0, x.shape[-1])
    return g.emit("in_top_k", f"in_top_k({{0}}, {{1}}, {k})", [x, ids], "bool", x.shape[:-1],
                  lambda m, v, i: m.xp.any(leaves.argsort(m, x.dtype, (v,), v.ndim - 1, 1)[..., :k] == i[..., None], axis=-1))


def pairs(name, f):
    def row(g):
        a = g.real_value()
        b = a and g.partner(a, FLOATS)
        shape = a and fits(a.shape, b.shape)
        if shape is None or (name == "sigmoid_cross_entropy" and a.shape != b.shape):
            return None
        text = "({0}, 0.5 * {1})" if name == "sigmoid_cross_entropy" else "({0}, {1})"  # an input would be looked at
        return g.emit(name, name + text, [a, b], a.dtype, shape, lambda m, p, q: f(m, p, q, a.dtype))
    return row


def sigmoid_cross_entropy(m, x, y, d):
    return m.r(m.r(softplus(m, x), d, 10) - m.r(x * (0.5 * y), d), d)


def huber(m, x, y, d):
    e = m.abs(m.r(x - y, d))
    return m.xp.where(e <= 1.0, m.r(0.5 * e * e, d, 3), m.r(e - 0.5, d, 2))


def weighted(name):
    """A loss by weights: one number."""
    def row(g):
        x = g.real_value(least=1)
        w = x and g.partner(x, FLOATS)
        if w is None or fits(x.shape, w.shape) != x.shape:
            return None
        d, axes = x.dtype, tuple(range(len(x.shape)))
        def f(m, v, q):
            s = m.total(m.r(v * q, d), axes, d)
            q = m.xp.broadcast_to(q, v.shape)
            if name == "sum_over_batch_size":
                return m.r(s / v.size, d)
            n = m.total(q, axes, d) if name == "weighted_mean" else m.xp.sum(q != 0).astype(np.float64)
            return m.r(m.xp.where(n == 0, 0.0, s / m.xp.where(n == 0, 1.0, n)), d)
        return g.emit(name, name + "({0}, {1})", [x, w], d, (), f)
    return row


def clip(g):
    x = g.pick(lambda v: v.dtype in FLOATS + INTS)
    low = g.rng.choice([0, 1, 2] if x is None or x.dtype == "u8" else [-2, -1, 0])
    return x and g.emit("clip", f"clip({{0}}, {low}, {low + 3})", [x], x.dtype, x.shape, lambda m, v: m.exact_min(
        m.exact_max(v, m.xp.asarray(low, v.dtype)), m.xp.asarray(low + 3, v.dtype)).astype(v.dtype) if
        v.dtype.kind != "f" else m.exact_min(m.exact_max(v, np.full((), float(low))), np.full((), float(low + 3))))


# ---- layers ----

def dense_of(m, x, path, d, bias=True, activation=None):
    y = m.product(x, m.data[path + ".kernel"], d)
    if bias:
        y = m.r(y + m.data[path + ".bias"], d)
    return activation(m, y, d) if activation else y


def layer(name, rank, text, compute, shape, wanted=lambda v: True):
    """`compute(m, x, path, dtype)`; a layer wants its batch in front."""
    def row(g):
        x = g.pick(lambda v: v.dtype == g.real and v.axis == 0 and 0 not in v.shape and
                   (len(v.shape) == rank if rank else len(v.shape) >= 2) and wanted(v))
        if x is None and rank:
            sizes = {3: [3, 4], 4: [4, 6, 2], 5: [3, 4, 3, 2]}[rank]
            x = g.input(g.real, ["B"] + sizes)
            if not wanted(x):
                return None
        if x is None:
            return None
        d = x.dtype
        return g.emit(name, "nn." + text(x), [x], d, shape(x), lambda m, v: compute(m, v, m.here, d))
    return row


def relu_of(m, y, d):
    return m.jax.nn.relu(y) if m.jax else m.exact_max(y, np.zeros(()))


def mlp_of(m, x, path, d):
    x = dense_of(m, x, path + ".part.0", d, activation=relu_of)
    return dense_of(m, x, path + ".part.1", d, activation=relu_of)


def normalised(m, x, path, d, center, spread):
    gap = m.r(x - center, d)
    y = m.r(gap * m.r(1 / m.xp.sqrt(m.r(spread, d)), d, 2), d)
    return m.r(m.r(y * m.data[path + ".scale"], d) + m.data[path + ".shift"], d)


def layer_norm_of(m, x, path, d):
    at = (x.ndim - 1,)
    return normalised(m, x, path, d, mean_of(m, x, at, True, d), variance_of(m, x, at, True, d) + 1e-5)


def batch_norm_of(m, x, path, d):
    if not m.training:
        return normalised(m, x, path, d, m.data[path + ".moving_mean"], m.data[path + ".moving_variance"] + 1e-3)
    at = tuple(range(x.ndim - 1))
    return normalised(m, x, path, d, mean_of(m, x, at, False, d), variance_of(m, x, at, False, d) + 1e-3)


def same(n, size, stride, dilation):
    """Before and behind, as TensorFlow pads."""
    out = -(-n // stride)
    need = max((out - 1) * stride + (size - 1) * dilation + 1 - n, 0)
    return out, need // 2, need - need // 2


def biased(m, y, path, d, bias):
    return m.r(y + m.data[path + ".bias"], d) if bias else y


def conv_layer(name, rank):
    """conv1d, conv2d, conv3d and depthwise."""
    def row(g):
        each = lambda choices: [g.rng.choice(choices) for _ in range(rank)] if g.chance(0.3) else g.rng.choice(choices)
        size, stride, dilation = each([1, 2, 3]), each([1, 2]), each([1, 1, 2])
        axes = list(zip(*([n] * rank if isinstance(n, int) else n for n in (size, stride, dilation))))
        padding, bias, filters = g.rng.choice(["same", "valid"]), g.chance(0.7), g.rng.choice([1, 2, 4])
        groups = 0 if name == "depthwise" else g.rng.choice([1, 1, 2])  # 0: as many as channels
        def plan(x):
            if padding == "same":
                return [same(n, *a) for n, a in zip(x.shape[1:-1], axes)]
            return [((n - (k - 1) * e - 1) // s + 1, 0, 0) for n, (k, s, e) in zip(x.shape[1:-1], axes)]
        def text(x):
            shared = f'size = {size}, stride = {stride}, padding = "{padding}", dilation = {dilation}'
            shared += "" if bias else ", use_bias = false"
            return f"depthwise({{0}}, {filters}, {shared})" if not groups else \
                f"{name}({{0}}, {2 * filters}, {shared}, groups = {groups})"
        def run(m, x, path, d):
            many, w, p = groups or x.shape[-1], m.data[path + ".kernel"], plan(x)
            strides, dilations = [s for _, s, _ in axes], [e for _, _, e in axes]
            if m.jax and m.moves is None:
                names = "DHW"[3 - rank:]
                y = m.jax.lax.conv_general_dilated(
                    x, w, strides, padding.upper(), None, dilations,
                    (f"N{names}C", f"{names}IO", f"N{names}C"), feature_group_count=many)
            else:
                window = convolutions.Window(rank, strides, [low for _, low, _ in p], None, dilations, many)
                y = convolutions.output(m, x, w, window, [out for out, _, _ in p], d)
            return biased(m, y, path, d, bias)
        def shape(x):
            return ["B"] + [out for out, _, _ in plan(x)] + [2 * filters if groups else filters * x.shape[-1]]
        return layer(name, rank + 2, text, run, shape, lambda v: all(n > (k - 1) * e for n, (k, _, e) in zip(v.shape[1:-1], axes)) and
                     v.shape[-1] % (groups or 1) == 0)(g)
    return row


def conv_transpose(name, rank):
    """conv_transpose of images, conv_transpose1d and conv_transpose3d."""
    def row(g):
        each = lambda: [g.rng.choice([1, 2, 3]) for _ in range(rank)] if g.chance(0.4) else g.rng.choice([1, 2, 3])
        size, stride, padding, bias = each(), each(), g.rng.choice(["same", "valid"]), g.chance(0.7)
        sizes, strides = ([n] * rank if isinstance(n, int) else n for n in (size, stride))
        more = [0 if padding == "same" else max(k - s, 0) for k, s in zip(sizes, strides)]
        whole = lambda x: [n * s + m for n, s, m in zip(x.shape[1:-1], strides, more)]
        def run(m, x, path, d):
            w = m.data[path + ".kernel"]
            low = [same(n, k, s, 1)[1] if padding == "same" else 0 for n, k, s in zip(whole(x), sizes, strides)]
            if m.jax and m.moves is None:
                names = "DHW"[3 - rank:]
                y = m.jax.lax.conv_transpose(x, w, strides, padding.upper(), transpose_kernel=True,
                                             dimension_numbers=(f"N{names}C", f"{names}IO", f"N{names}C"))
            else:
                y = convolutions.input_of(m, x, w, convolutions.Window(rank, strides, low), whole(x), d)
            return biased(m, y, path, d, bias)
        text = f'{name}({{0}}, 3, size = {size}, stride = {stride}, padding = "{padding}"{"" if bias else ", use_bias = false"})'
        return layer(name, rank + 2, lambda x: text, run, lambda x: ["B"] + whole(x) + [3])(g)
    return row


def pool(kind, rank):
    """max_pool1d to mean_pool3d."""
    name = f"{kind}_pool{rank}d"
    def row(g):
        size, padding = g.rng.choice([1, 2, 3]), g.rng.choice(["same", "valid"])
        stride = g.rng.choice([None, None, 1, 2])
        def plan(x):
            step = stride or size
            return [same(n, size, step, 1) if padding == "same" else ((n - size) // step + 1, 0, 0) for n in x.shape[1:-1]]
        def run(m, x, path, d):
            outs = [out for out, _, _ in plan(x)]
            window = convolutions.Window(rank, [stride or size] * rank, [low for _, low, _ in plan(x)])
            if kind == "max":
                return windows.greatest(m, x, window, [size] * rank, outs)
            table = windows.seen_by(x, window, [size] * rank, outs)[0]
            count = np.sum(table < np.prod(x.shape[1:-1]), axis=1).reshape(outs + [1])
            return m.r(windows.total(m, x, window, [size] * rank, outs, d) / count, d)
        text = f"{name}({{0}}, {size}" + (f", stride = {stride}" if stride else "") + \
            (', padding = "same")' if padding == "same" else ")")
        return layer(name, rank + 2, lambda x: text, run, lambda x: ["B"] + [out for out, _, _ in plan(x)] + [x.shape[-1]],
                     lambda v: min(v.shape[1:-1]) >= size)(g)
    return row


def stretched(m, x, axis, factor, d):
    """Linear interpolation between the centres of pixels along an axis."""
    n = x.shape[axis]
    centres = (np.arange(n * factor) + 0.5) / factor - 0.5
    shares = m.r(np.stack([np.interp(centres, np.arange(n), row) for row in np.eye(n)]), d, 4, np.ones(()))
    return m.xp.moveaxis(m.product(m.xp.moveaxis(x, axis, -1), shares, d), -1, axis)


def upsample(g):
    factor, bilinear = g.rng.choice([1, 2, 3]), g.chance(0.5)
    def run(m, x, path, d):
        shape = (x.shape[0], x.shape[1] * factor, x.shape[2] * factor, x.shape[3])
        if not bilinear:
            return m.xp.repeat(m.xp.repeat(x, factor, 1), factor, 2)
        y = stretched(m, stretched(m, x, 1, factor, d), 2, factor, d)
        if m.jax and m.moves is None:  # JAX's own, but for its share of 0 in what is infinite
            return m.xp.where(m.xp.all(m.xp.isfinite(x)), m.jax.image.resize(x, shape, "bilinear"), y)
        return y
    text = f"upsample({{0}}, {factor}" + (", bilinear = true)" if bilinear else ")")
    return layer("upsample", 4, lambda x: text, run,
                 lambda x: ["B", x.shape[1] * factor, x.shape[2] * factor, x.shape[3]])(g)


def lstm_of(m, x, path, d):
    xp, kernel, bias = m.xp, m.data[path + ".kernel"], m.data[path + ".bias"]
    u = kernel.shape[1] // 4
    h = xp.zeros((x.shape[0], u))
    c = h
    for t in range(x.shape[1]):
        z = m.r(m.product(xp.concatenate([x[:, t], h], axis=1), kernel, d) + bias, d)
        forget, write = m.r(sigmoid(m, m.r(z[:, u:2 * u] + 1, d)), d, 10), m.r(sigmoid(m, z[:, :u]), d, 10)
        c = m.r(m.r(forget * c, d) + m.r(write * m.r(xp.tanh(z[:, 2 * u:3 * u]), d, 8), d), d)
        h = m.r(m.r(sigmoid(m, z[:, 3 * u:]), d, 10) * m.r(xp.tanh(c), d, 8), d)
    return h


def rnn_of(m, x, path, d):
    kernel, bias = m.data[path + ".kernel"], m.data[path + ".bias"]
    h = m.xp.zeros((x.shape[0], kernel.shape[1]))
    for t in range(x.shape[1]):
        z = m.r(m.product(m.xp.concatenate([x[:, t], h], axis=1), kernel, d) + bias, d)
        h = m.r(m.xp.tanh(z), d, 8)
    return h


def gru_of(m, x, path, d, every=False):
    xp, all_h = m.xp, []
    kernel, again, bias, more = (m.data[f"{path}.{name}"] for name in ("kernel", "recurrent", "bias", "recurrent_bias"))
    u = again.shape[0]
    h = xp.zeros((x.shape[0], u))
    for t in range(x.shape[1]):
        a, b = m.r(m.product(x[:, t], kernel, d) + bias, d), m.product(h, again, d)
        reset = m.r(sigmoid(m, m.r(a[:, :u] + b[:, :u], d)), d, 10)
        update = m.r(sigmoid(m, m.r(a[:, u:2 * u] + b[:, u:2 * u], d)), d, 10)
        inner = m.r(reset * m.r(b[:, 2 * u:] + more, d), d)
        candidate = m.r(xp.tanh(m.r(a[:, 2 * u:] + inner, d)), d, 8)
        h = m.r(m.r(update * h, d) + m.r(m.r(1 - update, d) * candidate, d), d)
        all_h.append(h)
    return xp.stack(all_h, 1) if every else h


def both_ways_of(m, x, path, d):
    parts = [rnn_of(m, y, f"{path}.{name}", d) for name, y in (("ahead", x), ("back", x[:, ::-1]))]
    return m.xp.concatenate(parts, axis=1)


def stacked_of(m, x, path, d):
    return gru_of(m, gru_of(m, x, path + ".part.0", d, True), path + ".part.1", d)


def attention_of(causal):
    def run(m, x, path, d):
        n, length, k = x.shape
        heads = [dense_of(m, x, f"{path}.{name}", d, bias=False).reshape(n, length, 2, k // 2) for name in "qkv"]
        return dense_of(m, scores.attention(m, heads, causal, d).reshape(n, length, k), path, d)
    return run


def block_of(m, x, path, d):
    a = m.r(x + attention_of(False)(m, layer_norm_of(m, x, path + ".first", d), path + ".mixed", d), d)
    wide = dense_of(m, layer_norm_of(m, a, path + ".second", d), path + ".wide", d, activation=gelu)
    return m.r(a + dense_of(m, wide, path + ".narrow", d), d)


def attention(g):
    causal = g.chance(0.5)
    return layer("attention", 3, lambda x: f"attention({{0}}, 2{', causal = true' if causal else ''})",
                 attention_of(causal), lambda x: x.shape, even)(g)


def even(v):
    return v.shape[2] % 2 == 0


def embedding(g):
    ids = g.input(g.rng.choice(INTS), ["B"] + g.k[:g.rng.randint(0, 1)], 0, 4)
    return g.emit("embedding", "nn.embedding({0}, 5, 3)", [ids], "f32", ids.shape + (3,),
                  lambda m, i: rows_at(m, m.data[m.here + ".table"], i))


def random(name, text):
    def row(g):
        x = g.real_value(least=1)
        if x is None:
            return None
        return g.emit(name, text, [x], x.dtype, x.shape, lambda m, v: drawn(m, v.shape))
    return row


def dropout(g):
    x = g.real_value(least=1)
    return x and g.emit("dropout", "dropout({0}, 0.5)", [x], x.dtype, x.shape,
                        lambda m, v: drawn(m, v.shape) if m.training else v)


def library_rows():
    last = lambda x, n: list(x.shape[:-1]) + [n]
    rows = {
        "softmax": along("softmax", softmax_of), "log_softmax": along("log_softmax", log_softmax_of),
        "logsumexp": along("logsumexp", logsumexp_of, False), "l2_normalize": along("l2_normalize", l2_of),
        "softmax_cross_entropy": cross_entropy, "correct": correct, "in_top_k": in_top_k, "clip": clip,
        "sort": sort, "top_k": top_k,
        "sigmoid_cross_entropy": pairs("sigmoid_cross_entropy", sigmoid_cross_entropy),
        "squared_error": pairs("squared_error", lambda m, x, y, d: m.r(m.r(x - y, d) ** 2, d)),
        "absolute_error": pairs("absolute_error", lambda m, x, y, d: m.abs(m.r(x - y, d))),
        "huber": pairs("huber", huber), "embedding": embedding, "conv1d": conv_layer("conv1d", 1), "conv2d": conv_layer("conv2d", 2),
        "conv3d": conv_layer("conv3d", 3), "depthwise": conv_layer("depthwise", 2), "conv_transpose": conv_transpose("conv_transpose", 2),
        "conv_transpose1d": conv_transpose("conv_transpose1d", 1), "conv_transpose3d": conv_transpose("conv_transpose3d", 3), "attention": attention,
        "dropout": dropout, "upsample": upsample,
        "random_uniform": random("random_uniform", "{0} + random_uniform(type({0}), -1, 1)"),
        "random_normal": random("random_normal", "{0} * random_normal(type({0}))"),
        "dense": layer("dense", 0, lambda x: "dense({0}, 3, activation = tanh)", lambda m, x, path, d: dense_of(
            m, x, path, d, activation=lambda m, y, d: m.r(m.xp.tanh(y), d, 8)), lambda x: last(x, 3)),
        "mlp": layer("mlp", 0, lambda x: "mlp({0}, [3, 2])", mlp_of, lambda x: last(x, 2)),
        "layer_norm": layer("layer_norm", 0, lambda x: "layer_norm({0})", layer_norm_of, lambda x: x.shape),
        "batch_norm": layer("batch_norm", 0, lambda x: "batch_norm({0})", batch_norm_of, lambda x: x.shape),
        "rnn": layer("rnn", 3, lambda x: "rnn({0}, 2)", rnn_of, lambda x: ["B", 2]),
        "gru": layer("gru", 3, lambda x: "gru({0}, 2)", gru_of, lambda x: ["B", 2]),
        "bidirectional": layer("bidirectional", 3, lambda x: "bidirectional({0}, 2, cell = nn.rnn)", both_ways_of,
                               lambda x: ["B", 4]),
        "stacked": layer("stacked", 3, lambda x: "stacked({0}, [3, 2], cell = nn.gru)", stacked_of, lambda x: ["B", 2]),
        "lstm": layer("lstm", 3, lambda x: "lstm({0}, 2)", lstm_of, lambda x: ["B", 2]),
        "transformer_block": layer("transformer_block", 3, lambda x: "transformer_block({0}, 2, 5)", block_of,
                                   lambda x: x.shape, even),
    }
    for rank in 1, 2, 3:
        rows.update({f"{kind}_pool{rank}d": pool(kind, rank) for kind in ("max", "mean")})
    for name in ("sum_over_batch_size", "sum_by_nonzero_weights", "weighted_mean"):
        rows[name] = weighted(name)
    return rows
