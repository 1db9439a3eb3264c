# SPDX-License-Identifier: Apache-2.0
"""Models of what the library has: layers, losses, arrays."""

import jax
import jax.numpy as jnp
import numpy as np

from model import dense, draw, Model, relu, rows_of, sgd, with_adam


def vae(count):
    """A code that is drawn by noise which is given, so that both draw the same."""
    text = """use nn
model vae {
  input x : f64[B, 6]
  input noise : f64[B, 2]
  h = nn.dense(x, 5, activation = tanh)
  mu = nn.dense(h, 2)
  spread = nn.dense(h, 2)
  back = nn.dense(mu + exp(0.5 * spread) * noise, 6)
  train mean(sum(sigmoid_cross_entropy(back, cast(x > 0, f64)), axis = 1) + kl_normal(mu, spread)) with adam(rate = 0.02)
}"""
    first = draw(31, h__kernel=(6, 5), h__bias=(5,), mu__kernel=(5, 2), mu__bias=(2,), spread__kernel=(5, 2), spread__bias=(2,))
    first.update(draw(32, back__kernel=(2, 6), back__bias=(6,)))

    def loss(p, rows):
        h = jnp.tanh(dense(p, "h", rows["x"]))
        mu, spread = dense(p, "mu", h), dense(p, "spread", h)
        back = dense(p, "back", mu + jnp.exp(spread / 2) * rows["noise"])
        bits = jnp.sum(jax.nn.softplus(back) - back * (rows["x"] > 0), 1)
        return jnp.mean(bits + jnp.sum(jnp.exp(spread) + mu ** 2 - 1 - spread, 1) / 2)

    first, step = with_adam(first, loss, 0.02)
    return Model("vae", text, {"x": rows_of(33, count, 6), "noise": rows_of(34, count, 2)}, first, step)


def recommender(count):
    """DLRM-like: bags of ids and numbers, the products of all pairs, and a perceptron on top."""
    text = """use nn
layer table(ids, size : int, join) { return nn.embedding_bag(ids, size, 3, join = join, padding = 0, to = f64) }
model recommender {
  input dense : f64[B, 4]
  input liked : i32[B, 5]
  input place : i64[B, 1]
  input label : f64[B]
  low = nn.dense(dense, 3, activation = relu)
  likes = table(liked, 9, "mean")
  places = table(1 + cast(hash(place, 6), i64), 7, "sum")
  all = stack([low, likes, places], axis = 1)
  pairs = einsum("nid,njd->nij", all, all)
  top = nn.dense(concat([low, flatten(tril(pairs, -1))], axis = 1), 1)
  train mean(sigmoid_cross_entropy(squeeze(top, 1), label)) with adagrad(rate = 0.1)
}"""
    rng = np.random.default_rng(35)
    liked = rng.integers(0, 9, (count, 5)).astype("i4")
    liked[::4] = 0  # a bag of nothing
    place = rng.integers(-(2 ** 40), 2 ** 40, (count, 1))
    place[1::3] = place[0]
    data = {"dense": rows_of(36, count, 4), "liked": liked, "place": place, "label": rng.integers(0, 2, count).astype(float)}
    first = draw(37, low__kernel=(4, 3), low__bias=(3,), likes__table=(9, 3), places__table=(7, 3), top__kernel=(12, 1), top__bias=(1,))
    names = list(first)
    first.update({n + ".adagrad.total": np.full_like(first[n], 0.1) for n in names})

    def bucket(ids):
        x = (ids + 1) * 7046029254386353131
        half = lambda v: jax.lax.div(v, jnp.int64(2 ** 32))
        x = half((x + half(x)) * 6364136223846793005 + 1442695040888963407)
        return jnp.mod(x, 6)

    def step(p, rows):
        def loss(p):
            low = relu(dense(p, "low", rows["dense"]))
            there = rows["liked"] != 0
            likes = jnp.sum(p["likes.table"][rows["liked"]] * there[..., None], 1) / jnp.maximum(there.sum(1, keepdims=True), 1)
            places = p["places.table"][1 + bucket(rows["place"])][:, 0]
            every = [low, likes, places]
            pairs = [jnp.sum(every[i] * every[j], 1) if j < i else 0 * low[:, 0] for i in range(3) for j in range(3)]
            top = dense(p, "top", jnp.concatenate([low, jnp.stack(pairs, 1)], 1))[:, 0]
            return jnp.mean(jax.nn.softplus(top) - top * rows["label"])

        slope, new = jax.grad(lambda w: loss(w))({n: p[n] for n in names}), {}
        for n in names:
            total = p[n + ".adagrad.total"] + slope[n] ** 2
            new[n + ".adagrad.total"], new[n] = total, p[n] - 0.1 * slope[n] / (jnp.sqrt(total) + 1e-7)
        return new

    return Model("recommender", text, data, first, step)


def experts(count):
    """Rows of four tokens, two experts each, with room for two tokens in each."""
    text = """use nn
model experts {
  input x : f64[B, 4, 3]
  input y : f64[B, 4, 3]
  mixed = nn.mixture_of_experts(x, experts = 3, hidden = 4, k = 2, capacity = 2, activation = tanh)
  train mean(square(x + mixed[0] - y)) + 0.05 * mixed[1] with sgd(rate = 0.1)
}"""
    data = {"x": rows_of(38, count, 12).reshape(count, 4, 3), "y": rows_of(39, count, 12).reshape(count, 4, 3)}
    data["x"][::5, 1] = data["x"][::5, 0]  # two tokens that are alike
    data["x"][1::5, 2] = 0                 # all gates alike
    shapes = {"gate": (3, 3), "up": (3, 3, 4), "up_bias": (3, 1, 4), "down": (3, 4, 3), "down_bias": (3, 1, 3)}
    first = {"mixed." + n: v for n, v in draw(40, **{n: s for n, s in shapes.items()}).items()}

    def step(p, rows):
        def loss(p):
            logits = rows["x"] @ p["mixed.gate"]
            order = jnp.argsort(-logits, -1, stable=True)[..., :2]
            share = jax.nn.softmax(jnp.take_along_axis(logits, order, -1))
            made = jnp.einsum("nlk,ekh->nleh", rows["x"], p["mixed.up"]) + p["mixed.up_bias"][:, 0]
            made = jnp.einsum("nleh,ehk->nlek", jnp.tanh(made), p["mixed.down"]) + p["mixed.down_bias"][:, 0]
            chosen = jax.nn.one_hot(order, 3, dtype=jnp.int64)  # n l j e
            queue = jnp.transpose(chosen, (0, 2, 1, 3)).reshape(-1, 8, 3)  # first choices first
            place = jnp.transpose((jnp.cumsum(queue, 1) - queue).reshape(-1, 2, 4, 3), (0, 2, 1, 3))
            weight = jnp.sum(jnp.where((chosen > 0) & (place < 2), share[..., None], 0), 2)
            y = rows["x"] + jnp.einsum("nle,nlek->nlk", weight, made)
            balance = 3 * jnp.sum(chosen[:, :, 0].mean((0, 1)) * jax.nn.softmax(logits).mean((0, 1)))
            return jnp.mean((y - rows["y"]) ** 2) + 0.05 * balance

        return sgd(p, loss, 0.1)

    return Model("experts", text, data, first, step)


def ctc(count):
    """A sequence of steps to a shorter one of labels, with lengths of both; here by the recursion over probabilities."""
    text = """use nn
model ctc {
  input x : f64[B, 6, 3]
  input label : i32[B, 2]
  input steps : i32[B]
  input labels : i32[B]
  logits = nn.dense(x, 3)
  train mean(ctc_loss(logits, label, lengths = steps, label_lengths = labels)) with sgd(rate = 0.1)
}"""
    rng = np.random.default_rng(41)
    data = {"x": rows_of(42, count, 18).reshape(count, 6, 3), "label": rng.integers(1, 3, (count, 2)).astype("i4"),
            "steps": rng.integers(3, 7, count).astype("i4"), "labels": rng.integers(0, 3, count).astype("i4")}
    first = draw(43, logits__kernel=(3, 3), logits__bias=(3,))

    def one(probs, label, steps, labels):
        kinds = jnp.array([0, 0, 0, 0, 0]).at[1].set(label[0]).at[3].set(label[1])
        alpha = jnp.where(jnp.arange(5) < 2, probs[0, kinds], 0)
        for t in range(1, 6):
            back = jnp.concatenate([jnp.zeros(1), alpha[:-1]])
            skip = jnp.where((kinds != 0) & (kinds != jnp.roll(kinds, 2)) & (jnp.arange(5) > 1), jnp.roll(alpha, 2), 0)
            alpha = jnp.where(t < steps, (alpha + back + skip) * probs[t, kinds], alpha)
        return -jnp.log(alpha[2 * labels] + jnp.where(labels > 0, alpha[2 * labels - 1], 0))

    def step(p, rows):
        def loss(p):
            probs = jax.nn.softmax(dense(p, "logits", rows["x"]))
            return jnp.mean(jax.vmap(one)(probs, rows["label"], rows["steps"], rows["labels"]))

        return sgd(p, loss, 0.1)

    return Model("ctc", text, data, first, step)


def word2vec(count):
    """Skip-gram with negative samples, which are given."""
    text = """use nn
model word2vec {
  input word : i32[B]
  input near : i32[B]
  input far : i32[B, 3]
  var inner : f64[8, 3] = 0
  var outer : f64[8, 3] = 0
  u = lookup(inner, word)
  good = sum(u * lookup(outer, near), axis = 1)
  bad = einsum("nd,nkd->nk", u, lookup(outer, far))
  train mean(-log_sigmoid(good) - sum(log_sigmoid(-bad), axis = 1)) with sgd(rate = 0.3)
}"""
    rng = np.random.default_rng(44)
    data = {"word": rng.integers(0, 8, count).astype("i4"), "near": rng.integers(0, 8, count).astype("i4"),
            "far": rng.integers(0, 8, (count, 3)).astype("i4")}

    def step(p, rows):
        def loss(p):
            u = p["inner"][rows["word"]]
            good = jnp.sum(u * p["outer"][rows["near"]], 1)
            bad = jnp.sum(u[:, None] * p["outer"][rows["far"]], 2)
            return -jnp.mean(jax.nn.log_sigmoid(good) + jnp.sum(jax.nn.log_sigmoid(-bad), 1))

        return sgd(p, loss, 0.3)

    return Model("word2vec", text, data, draw(45, inner=(8, 3), outer=(8, 3)), step)


def messages(count):
    """A graph of nodes that all rows share: edges are the rows, and messages are summed at their ends."""
    text = """use nn
model messages {
  input from : i32[B]
  input to : i32[B]
  input y : f64[B]
  var nodes : f64[6, 3] = 0
  sent = nn.dense(gather(nodes, max(from, 0)), 3, activation = tanh)
  heard = segment_mean(sent, max(to, 0), 6)
  h = nn.dense(concat([nodes, heard], axis = 1), 2, activation = tanh)
  train mean(square(sum(gather(h, max(to, 0)) * gather(h, max(from, 0)), axis = 1) - y)) with sgd(rate = 0.1)
}"""
    rng = np.random.default_rng(46)
    data = {"from": rng.integers(0, 6, count).astype("i4"), "to": rng.integers(0, 4, count).astype("i4"),  # 4 and 5 hear nothing
            "y": rng.integers(-1, 2, count).astype(float)}
    first = draw(47, nodes=(6, 3), sent__kernel=(3, 3), sent__bias=(3,), h__kernel=(6, 2), h__bias=(2,))

    def step(p, rows):
        def loss(p):
            sent = jnp.tanh(dense(p, "sent", p["nodes"][rows["from"]]))
            many = jnp.bincount(rows["to"], length=6)
            heard = jax.ops.segment_sum(sent, rows["to"], 6) / jnp.maximum(many, 1)[:, None]
            h = jnp.tanh(dense(p, "h", jnp.concatenate([p["nodes"], heard], 1)))
            return jnp.mean((jnp.sum(h[rows["to"]] * h[rows["from"]], 1) - rows["y"]) ** 2)

        return sgd(p, loss, 0.1)

    return Model("messages", text, data, first, step)


def sequences(count):
    """A bidirectional layer of each kind over rows of 0 to 5 steps, two on each other, where lengths are computed
    and one is below 0, and 34 steps of one."""
    text = """use nn
model sequences {
  input x : f64[B, 34, 2]
  input n : i32[B]
  short = x[:, 0:5]
  r = nn.bidirectional(short, 3, cell = nn.rnn, sequence = true, lengths = n)
  g = nn.bidirectional(r, 2, cell = nn.gru, lengths = n)
  m = nn.stacked(short, [3, 2], lengths = n - 1)
  u = nn.lstm(short, 2)
  l = nn.lstm(x, 2)
  train mean(square(g)) + mean(m * u * l) + 0.1 * mean(r) with sgd(0.3)
}"""
    x = rows_of(31, count, 68).reshape(count, 34, 2)
    x[::6] = 0
    n = np.arange(count).astype("i4") % 6
    first = {}
    for name, (k, v) in {"r.ahead": (2, 3), "r.back": (2, 3)}.items():
        first.update(draw(len(first), **{name + ".kernel": (k + v, v), name + ".bias": (v,)}))
    for name in "g.ahead", "g.back":
        first.update(draw(len(first), **{name + ".kernel": (6, 6), name + ".recurrent": (2, 6), name + ".bias": (6,),
                                         name + ".recurrent_bias": (2,)}))
    for name, (k, v) in {"m.part.0": (2, 3), "m.part.1": (3, 2), "u": (2, 2), "l": (2, 2)}.items():
        first.update(draw(len(first), **{name + ".kernel": (k + v, 4 * v), name + ".bias": (4 * v,)}))

    def run(p, name, cell, x, n, carry, reverse=False):
        """All outputs, and the last one."""
        def step(carry, xs):
            x_t, t = xs
            new = cell({k: p[f"{name}.{k}"] for k in ("kernel", "bias", "recurrent", "recurrent_bias") if f"{name}.{k}" in p}, x_t, carry)
            on = (t < n)[:, None]
            return tuple(jnp.where(on, a, b) for a, b in zip(new, carry)), jnp.where(on, new[0], 0)
        last, ys = jax.lax.scan(step, carry, (x.swapaxes(0, 1), jnp.arange(x.shape[1])), reverse=reverse)
        return ys.swapaxes(0, 1), last[0]

    def plain(p, x, carry):
        return (jnp.tanh(jnp.concatenate([x, carry[0]], 1) @ p["kernel"] + p["bias"]),)

    def gated(p, x, carry):
        a, b = x @ p["kernel"] + p["bias"], carry[0] @ p["recurrent"]
        reset, update = jax.nn.sigmoid(a[:, :2] + b[:, :2]), jax.nn.sigmoid(a[:, 2:4] + b[:, 2:4])
        return (update * carry[0] + (1 - update) * jnp.tanh(a[:, 4:] + reset * (b[:, 4:] + p["recurrent_bias"])),)

    def memory(p, x, carry):
        i, f, g, o = jnp.split(jnp.concatenate([x, carry[0]], 1) @ p["kernel"] + p["bias"], 4, 1)
        c = jax.nn.sigmoid(f + 1) * carry[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
        return jax.nn.sigmoid(o) * jnp.tanh(c), c

    def step(p, rows):
        def loss(p):
            x, n = rows["x"], rows["n"]
            short, every, zero = x[:, :5], jnp.full(len(x), 34), lambda u, k: (jnp.zeros((len(x), u)),) * k
            r = jnp.concatenate([run(p, "r.ahead", plain, short, n, zero(3, 1))[0],
                                 run(p, "r.back", plain, short, n, zero(3, 1), True)[0]], 2)
            g = jnp.concatenate([run(p, "g.ahead", gated, r, n, zero(2, 1))[1],
                                 run(p, "g.back", gated, r, n, zero(2, 1), True)[1]], 1)
            m = run(p, "m.part.1", memory, run(p, "m.part.0", memory, short, n - 1, zero(3, 2))[0], n - 1, zero(2, 2))[1]
            u, l = (run(p, name, memory, y, every, zero(2, 2))[1] for name, y in (("u", short), ("l", x)))
            return jnp.mean(g ** 2) + jnp.mean(m * u * l) + 0.1 * jnp.mean(r)

        return sgd(p, loss, 0.3)

    return Model("sequences", text, {"x": x, "n": n}, first, step)


def segments(count):
    """A U-Net of two levels: windows whose maxima are equal, strides back, and what it saw on the way down beside it."""
    text = """use nn
model segments {
  input x : f64[B, 4, 4, 1]
  input label : i32[B, 4, 4]
  a = nn.conv2d(x, 2, activation = tanh)
  b = nn.conv2d(nn.max_pool2d(a), 3, activation = tanh)
  up = nn.conv_transpose(b, 2, size = 2, stride = 2)
  logits = nn.conv2d(concat([up, a], axis = 3), 3, size = 1)
  train mean(softmax_cross_entropy(logits, label)) with sgd(rate = 0.3)
}"""
    x = rows_of(48, count, 16).reshape(count, 4, 4, 1)
    x[::5] = 0  # all windows equal
    data = {"x": x, "label": np.random.default_rng(49).integers(0, 3, (count, 4, 4)).astype("i4")}
    first = draw(50, a__kernel=(3, 3, 1, 2), a__bias=(2,), b__kernel=(3, 3, 2, 3), b__bias=(3,), up__kernel=(2, 2, 2, 3), up__bias=(2,),
                 logits__kernel=(1, 1, 4, 3), logits__bias=(3,))

    def conv(p, name, x):
        y = jax.lax.conv_general_dilated(x, p[name + ".kernel"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return y + p[name + ".bias"]

    def step(p, rows):
        def loss(p):
            a = jnp.tanh(conv(p, "a", rows["x"]))
            windows = a.reshape(-1, 2, 2, 2, 2, 2).transpose(0, 1, 3, 5, 2, 4).reshape(-1, 2, 2, 2, 4)
            first = jnp.argmax(windows, -1)  # of equals the first
            b = jnp.tanh(conv(p, "b", jnp.take_along_axis(windows, first[..., None], -1)[..., 0]))
            blocks = jnp.einsum("nhwc,ijfc->nhiwjf", b, p["up.kernel"])
            up = blocks.reshape(-1, 4, 4, 2) + p["up.bias"]
            logits = conv(p, "logits", jnp.concatenate([up, a], 3))
            return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), rows["label"][..., None], -1))

        return sgd(p, loss, 0.3)

    return Model("segments", text, data, first, step)
