# SPDX-License-Identifier: Apache-2.0
"""Layers beside the same in JAX: `p` has the variables by their names."""
import jax
import jax.numpy as jnp
import numpy as np

from case import Case, ids, rows

X, SEQUENCE, IMAGE = rows(1, 6), rows(2, 4, 6), rows(3, 3, 2, 6)
MEMORY = rows(4, 3, 5)
VOLUME = rows(13, 2, 1, 3, 2)
EVEN = SEQUENCE + np.arange(6)  # no two features are equal, so that no variance is 0


def rms(x, p):
    return x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * p["y.scale"]


def recurrent(x, n, p):
    h = jnp.zeros((x.shape[0], p["y.bias"].shape[0]))
    for t in range(x.shape[1]):
        after = jnp.tanh(jnp.concatenate([x[:, t], h], 1) @ p["y.kernel"] + p["y.bias"])
        h = jnp.where((t < n)[:, None], after, h)
    return h


def gated_unit(x, n, p):
    h = jnp.zeros((x.shape[0], p["y.recurrent"].shape[0]))
    for t in range(x.shape[1]):
        a = jnp.split(x[:, t] @ p["y.kernel"] + p["y.bias"], 3, 1)
        b = jnp.split(h @ p["y.recurrent"], 3, 1)
        reset, update = jax.nn.sigmoid(a[0] + b[0]), jax.nn.sigmoid(a[1] + b[1])
        after = update * h + (1 - update) * jnp.tanh(a[2] + reset * (b[2] + p["y.recurrent_bias"]))
        h = jnp.where((t < n)[:, None], after, h)
    return h


def long_short(x, n, p):
    c = h = jnp.zeros((x.shape[0], p["y.bias"].shape[0] // 4))
    for t in range(x.shape[1]):
        put, keep, new, out = jnp.split(jnp.concatenate([x[:, t], h], 1) @ p["y.kernel"] + p["y.bias"], 4, 1)
        after = jax.nn.sigmoid(keep + 1) * c + jax.nn.sigmoid(put) * jnp.tanh(new)
        here = (t < n)[:, None]
        h = jnp.where(here, jax.nn.sigmoid(out) * jnp.tanh(after), h)
        c = jnp.where(here, after, c)
    return h


FEW = np.array([0, 4, 1, 2, 3, 0, 2])
HERE = np.arange(4) < FEW[:, None]
PADDED_BY_ANY = np.where(HERE[..., None], SEQUENCE, np.array([np.nan, np.inf, -np.inf, np.nan, 1e30, np.nan]))


def unpadded(layer):
    """What a layer makes of sequences of FEW steps, wherever what stands behind them comes from."""
    return lambda x, n, p: layer(jnp.where(HERE[..., None], x, 0), n, p)


def groups(count):
    def norm(x, p):
        parts = x.reshape(x.shape[0], -1, count, x.shape[-1] // count)
        center = parts - parts.mean((1, 3), keepdims=True)
        even = center / jnp.sqrt((center ** 2).mean((1, 3), keepdims=True) + 1e-5)
        return even.reshape(x.shape) * p["y.scale"] + p["y.shift"]
    return norm


def transposed(strides, padding="SAME"):
    """A convolution's way back, whose kernel has the filters before the channels."""
    def layer(x, p):
        axes = "DHW"[5 - x.ndim:]
        y = jax.lax.conv_transpose(x, p["y.kernel"], strides, padding, dimension_numbers=(f"N{axes}C", f"{axes}IO", f"N{axes}C"),
                                   transpose_kernel=True)
        return y + p["y.bias"]
    return layer


def weight_normed(x, p):
    v = p["y.direction"]
    return jnp.tanh(x @ (v / jnp.linalg.norm(v, axis=0) * p["y.gain"]) + p["y.bias"])


def turned(x, base=10000.0):
    """By complex numbers."""
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None] / base ** (jnp.arange(half) / half)
    z = (x[..., :half] + 1j * x[..., half:]) * jnp.exp(1j * angle)[:, None]
    return jnp.concatenate([z.real, z.imag], -1)


def heads_of(x, count):
    return x.reshape(x.shape[0], x.shape[1], count, -1)


def attention(count, kv=None, causal=False, rotate=False, to=None, path="y"):
    def layer(x, *more, p):
        from_ = more[0] if to == "memory" else x
        q = heads_of(x @ p[path + ".q.kernel"], count)
        k, v = (heads_of(from_ @ p[f"{path}.{n}.kernel"], kv or count) for n in "kv")
        if rotate:
            q, k = turned(q), turned(k)
        each = count // (kv or count)
        k, v = jnp.repeat(k, each, 2), jnp.repeat(v, each, 2)
        scores = jnp.einsum("nihd,njhd->nhij", q, k) / np.sqrt(q.shape[-1])
        if causal:
            scores = jnp.where(jnp.tri(*scores.shape[2:]) > 0, scores, -jnp.inf)
        if to == "lengths":
            seen = more[0][:, None, None, None] > jnp.arange(scores.shape[3])
            scores = jnp.where(seen, scores, -1e30)
            mixed = jnp.where(jnp.any(seen, -1, keepdims=True), jax.nn.softmax(scores), 0)
        else:
            mixed = jax.nn.softmax(scores)
        y = jnp.einsum("nhij,njhd->nihd", mixed, v)
        return y.reshape(x.shape) @ p[path + ".kernel"]
    return layer


def normed(x, p, path):
    center = x - x.mean(-1, keepdims=True)
    return center / jnp.sqrt((center ** 2).mean(-1, keepdims=True) + 1e-5) * p[path + ".scale"] + p[path + ".shift"]


def dense(x, p, path):
    return x @ p[path + ".kernel"] + p.get(path + ".bias", 0)


def forward(x, p, path):
    return dense(jax.nn.gelu(dense(x, p, path + ".wide"), approximate=False), p, path)


def encoder(x, p):
    for i in range(2):
        h = f"y.{{}}.{i}"
        x = x + attention(2, path=h.format("mixed"))(normed(x, p, h.format("first")), p=p)
        x = x + forward(normed(x, p, h.format("second")), p, h.format("wide"))
    return normed(x, p, "y")


def decoder(x, memory, p):
    for i in range(2):
        h = f"y.{{}}.{i}"
        x = x + attention(2, causal=True, path=h.format("mixed"))(normed(x, p, h.format("first")), p=p)
        x = x + attention(2, to="memory", path=h.format("seen"))(normed(x, p, h.format("second")), memory, p=p)
        x = x + forward(normed(x, p, h.format("third")), p, h.format("wide"))
    return normed(x, p, "y")


def gated(x, p):
    return (jax.nn.silu(x @ p["y.gate.kernel"]) * (x @ p["y.wide.kernel"])) @ p["y.kernel"]


def waves(x):
    at = jnp.arange(4)[:, None] / 10000.0 ** (jnp.arange(3) / 3)
    return x + jnp.concatenate([jnp.sin(at), jnp.cos(at)], 1)


def experts(k, room):
    """Token by token, choice by choice."""
    def layer(x, p):
        logits = x @ p["made.gate"]
        order = np.argsort(-np.asarray(jax.lax.stop_gradient(logits)), -1, kind="stable")[..., :k]
        share = jax.nn.softmax(jnp.take_along_axis(logits, jnp.asarray(order), -1))
        many, out = logits.shape[-1], []
        for row in range(x.shape[0]):
            used, y = [0] * many, [0.0 * x[row, t] for t in range(x.shape[1])]
            for j in range(k):
                for t in range(x.shape[1]):
                    e = int(order[row, t, j])
                    used[e] += 1
                    if used[e] <= room:
                        h = jax.nn.gelu(x[row, t] @ p["made.up"][e] + p["made.up_bias"][e, 0], approximate=False)
                        y[t] = y[t] + share[row, t, j] * (h @ p["made.down"][e] + p["made.down_bias"][e, 0])
            out.append(jnp.stack(y))
        return jnp.stack(out)
    return layer


def balance(x, p):
    logits = x @ p["made.gate"]
    first = jax.nn.one_hot(jnp.argmax(logits, -1), logits.shape[-1]).mean((0, 1))
    return x[:, 0] + logits.shape[-1] * jnp.sum(first * jax.nn.softmax(logits).mean((0, 1)))


def bag(mean, padding=None):
    def layer(i, *w, p):
        there = (i != padding) * (w[0] if w else 1.0) if padding is not None else jnp.ones(i.shape) * (w[0] if w else 1.0)
        total = jnp.sum(p["y.table"][i] * there[..., None], -2)
        return total / jnp.maximum(jnp.sum(i != (-1 if padding is None else padding), -1, keepdims=True), 1) if mean else total
    return layer


def looked_up(combiner):
    """As tf.nn.embedding_lookup_sparse joins."""
    def layer(i, *w, p):
        weight = jnp.where(i >= 0, w[0] if w else 1.0, 0)
        table = jnp.concatenate([p["t"], jnp.zeros((1, 3))])  # -1 names the last row
        total, some = jnp.sum(table[i] * weight[..., None], -2), (i >= 0).any(-1)
        squares = jnp.where(some, (weight ** 2).sum(-1), 1)
        share = {"sum": jnp.ones(len(i)), "mean": weight.sum(-1), "sqrtn": jnp.sqrt(squares)}[combiner]
        return jnp.where(some[:, None], total / jnp.where(some, share, 1)[:, None], 0)
    return layer


def convolved(x, kernel, stride=1):
    return jax.lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def evened(x, p, path):
    gap = (x - p[path + ".moving_mean"]) / jnp.sqrt(p[path + ".moving_variance"] + 1e-3)
    return gap * p[path + ".scale"] + p[path + ".shift"]


def block(*parts, stride=1):
    """As trained: what it computes behind the training."""
    def layer(x, p):
        h = x
        for i, (name, step) in enumerate(parts):
            h = evened(convolved(jax.nn.relu(h) if i else h, p[f"y.{name}.conv2d.kernel"], step), p, "y." + name)
        past = "y.past.conv2d.kernel" in p
        return jax.nn.relu(h + (evened(convolved(x, p["y.past.conv2d.kernel"], stride), p, "y.past") if past else x))
    return layer


def excited(x, p):
    weight = jax.nn.sigmoid(dense(jax.nn.relu(dense(x.mean((1, 2)), p, "y.narrow")), p, "y.weight"))
    return x * weight[:, None, None]


LENGTHS = np.array([4, 1, 0, 2, 3, 4, 1], np.int32)  # one is empty
BAGS = ids(5, 5, 3)
BAGS[0] = 0
PADDED = np.where(np.arange(3) < np.array([3, 0, 1, 2, 3, 1, 3])[:, None], ids(8, 5, 3), -1)
TABLE = "  var t : REAL[5, 3] = uniform()\n  y = "

OUTSIDE = np.array([[0, 4, -1], [5, 2, 2], [-2, 9, 4], [1, 1, 5], [2**30, 0, 3], [3, -7, 0], [5, 6, 7]], np.int32)  # of 0 to 4


def table_rows(table, i):
    """Zeros where there is no row: JAX's filling, but that its negative numbers count from the end."""
    return jnp.take(table, jnp.where(jnp.asarray(i) < 0, 1 << 20, jnp.asarray(i)), axis=0, mode="fill", fill_value=0)


LAYERS = [
    Case("nn.embedding(2 * i - i, 5, 3)", {"i": OUTSIDE}, lambda i, p: table_rows(p["y.table"], i), types=("f32",), note="beyond"),
    Case("nn.embedding_bag(2 * i - i, 5, 3, join = \"mean\", padding = 0, to = REAL)", {"i": OUTSIDE}, lambda i, p: jnp.sum(
        table_rows(p["y.table"], i) * (i != 0)[..., None], 1) / jnp.maximum(jnp.sum(i != 0, 1), 1)[:, None], note="beyond"),
    Case("select(nn.length_mask(2 * i - i, 4)[:, 0, 0], 1, 0)", {"i": OUTSIDE[:, 0]}, lambda i: jnp.where(
        jnp.arange(4) < i[:, None], jnp.float32(1), jnp.float32(0)), note="beyond"),
    Case("nn.rnn(x, 3, lengths = 2 * n - n)", {"x": SEQUENCE, "n": np.array([0, 255, 4, 3, 128, 1, 2], np.uint8)}, recurrent,
         note="of bytes"),
    Case("nn.rnn(x, 3, lengths = 2 * n - n)", {"x": SEQUENCE, "n": np.array([0, 2**32, 1, 1 - 2**32, -1, 2, 3])}, recurrent,
         note="of 64 bits"),
    *(Case(f"nn.{cell}(x, 3, lengths = n)", {"x": PADDED_BY_ANY, "n": FEW}, unpadded(of), note="of what is NaN behind them")
      for cell, of in (("rnn", recurrent), ("gru", gated_unit), ("lstm", long_short))),
    Case("select(nn.length_mask(2 * n - n, 4)[:, 0, 0], 1, 0)", {"n": np.array([0, 2**32, 2**32 + 1, 2**31, 3 - 2**32, -1, 2])},
         lambda n: jnp.where(jnp.arange(4) < n[:, None], jnp.float32(1), jnp.float32(0)), note="of 64 bits"),
    Case("nn.rnn(x, 3, lengths = sum(x[:, :, 0] > 0, axis = 1))", {"x": SEQUENCE},
         lambda x, p: recurrent(x, jnp.sum(x[:, :, 0] > 0, 1), p), note="counted"),
    Case("  cell = nn.bidirectional.new(2, cell = nn.gru, sequence = true)\n  y = cell(x, lengths = n) - cell(x, lengths = cast(n, i32))",
         {"x": SEQUENCE, "n": np.array([0, 1, 2, 3, 4, 4, 0])}, lambda x, n, p: jnp.zeros((7, 4, 4)), gradients=False, exact=True),
    Case("  cell = nn.stacked.new([3, 2])\n  y = cell(x, lengths = n) - cell(x, lengths = cast(n, i32))",
         {"x": SEQUENCE, "n": np.array([0, 1, 2, 3, 4, 4, 2], np.uint8)}, lambda x, n, p: jnp.zeros((7, 2)), gradients=False, exact=True),
    Case("nn.rms_norm(x)", {"x": X}, rms),
    Case("nn.rms_norm(x)", {"x": 0 * X}, rms, gradients=False, note="of 0"),
    Case("nn.group_norm(x, groups = 2)", {"x": IMAGE}, groups(2), off=10),
    Case("nn.instance_norm(x)", {"x": EVEN}, groups(6), off=10),
    Case("nn.weight_norm(x, 3, activation = tanh)", {"x": X}, weight_normed),
    Case("nn.conv_transpose1d(x, 3)", {"x": SEQUENCE}, transposed([1])),
    Case("nn.conv_transpose1d(x, 3, size = 2, stride = 3)", {"x": SEQUENCE}, transposed([3])),
    Case('nn.conv_transpose1d(x, 3, size = 4, stride = 2, padding = "valid")', {"x": SEQUENCE}, transposed([2], "VALID")),
    Case("nn.conv_transpose(x, 3, size = [2, 3], stride = [1, 2])", {"x": IMAGE}, transposed([1, 2])),
    Case("nn.conv_transpose3d(x, 2, stride = 2)", {"x": VOLUME}, transposed([2, 2, 2])),
    Case('nn.conv_transpose3d(x, 2, size = [1, 2, 3], stride = [2, 1, 1], padding = "valid")', {"x": VOLUME}, transposed([2, 1, 1], "VALID")),
    Case("nn.rotary(x)", {"x": rows(6, 5, 2, 4)}, turned),
    Case("x + nn.position_waves(4, 6, to = REAL)", {"x": SEQUENCE}, waves),
    Case("nn.position_embedding(x)", {"x": SEQUENCE}, lambda x, p: x + p["y.table"]),
    Case("nn.multi_head_attention(x, heads = 3)", {"x": SEQUENCE}, attention(3)),
    Case("nn.multi_head_attention(x, heads = 3, causal = true, rotate = true, kv_heads = 1)", {"x": SEQUENCE},
         attention(3, 1, True, True)),
    Case("nn.multi_head_attention(x, heads = 2, memory = memory)", {"x": SEQUENCE, "memory": MEMORY}, attention(2, to="memory")),
    Case("nn.multi_head_attention(x, heads = 2, mask = nn.length_mask(n, 4))", {"x": SEQUENCE, "n": LENGTHS},
         attention(2, to="lengths")),
    Case("nn.feed_forward(x, 5)", {"x": SEQUENCE}, lambda x, p: forward(x, p, "y")),
    Case("nn.gated_feed_forward(x, 5)", {"x": SEQUENCE}, gated),
    Case("nn.transformer_encoder(x, blocks = 2, heads = 2, hidden = 5)", {"x": EVEN}, encoder, off=100),
    Case("nn.transformer_decoder(x, memory, blocks = 2, heads = 2, hidden = 5)", {"x": EVEN, "memory": MEMORY}, decoder, off=100),
    Case("  made = nn.mixture_of_experts(x, experts = 4, hidden = 5)\n  y = made[0]", {"x": SEQUENCE}, experts(2, 99), off=10),
    Case("  made = nn.mixture_of_experts(x, experts = 4, hidden = 5, k = 3, capacity = 2)\n  y = made[0]", {"x": SEQUENCE},
         experts(3, 2), off=10, note="with little room"),
    Case("  made = nn.mixture_of_experts(x, experts = 4, hidden = 5)\n  y = x[:, 0] + made[1]", {"x": SEQUENCE}, balance,
         note="balance"),
    Case("nn.embedding(i, 5, 3, padding = 2)", {"i": BAGS}, lambda i, p: jnp.where((i != 2)[..., None], p["y.table"][i], 0),
         types=("f32",)),
    Case("nn.embedding_bag(i, 5, 3, to = REAL)", {"i": BAGS}, bag(False)),
    Case("nn.embedding_bag(i, 5, 3, join = \"mean\", padding = 0, to = REAL)", {"i": BAGS}, bag(True, 0)),
    Case("nn.embedding_bag(i, 5, 3, padding = 1, weights = w, to = REAL)", {"i": BAGS, "w": rows(7, 3)}, bag(False, 1)),
    Case(TABLE + "nn.embedding_lookup_sparse(t, i)", {"i": PADDED}, looked_up("mean")),
    Case(TABLE + "nn.embedding_lookup_sparse(t, i, w, combiner = \"sum\")", {"i": PADDED, "w": rows(9, 3)}, looked_up("sum")),
    Case(TABLE + "nn.embedding_lookup_sparse(t, i, w)", {"i": PADDED, "w": abs(rows(9, 3)) + 0.5}, looked_up("mean")),
    Case(TABLE + "nn.embedding_lookup_sparse(t, i, w, combiner = \"sqrtn\")", {"i": PADDED, "w": rows(9, 3)}, looked_up("sqrtn")),
    Case(TABLE + "nn.sparse_dense_matmul(i, w, t)", {"i": PADDED, "w": rows(9, 3)}, looked_up("sum")),
    Case("nn.residual_block(x, 6)", {"x": IMAGE}, block(("first", 1), ("second", 1)), gradients=False),
    Case("nn.residual_block(x, 4, stride = 2)", {"x": IMAGE}, block(("first", 2), ("second", 1), stride=2), gradients=False),
    Case("nn.bottleneck_block(x, 2, stride = 2)", {"x": IMAGE},
         block(("first", 1), ("second", 2), ("third", 1), stride=2), gradients=False),
    Case("nn.squeeze_excite(x, 3)", {"x": IMAGE}, excited),
]
