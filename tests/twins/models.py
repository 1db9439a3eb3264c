"""Models in the language and in JAX: first values, data and a step of each."""

from dataclasses import dataclass
from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np


@dataclass
class Model:
    name: str
    text: str
    data: dict
    first: dict
    step: Callable  # the variables and the rows of a batch: the variables after it


def draw(seed, **shapes):
    """First values: half of them multiples of 1/4, so that ties and zeros come up."""
    rng, out = np.random.default_rng(seed), {}
    for name, shape in shapes.items():
        value = rng.normal(size=shape) * 0.5
        out[name.replace("__", ".")] = np.where(rng.random(shape) < 0.5, np.round(4 * value) / 4, value)
    return out


def rows_of(seed, count, width):
    """Rows with zeros and repeated numbers."""
    return draw(seed, x=(count, width))["x"]


def sgd(values, loss, rate, names=None):
    """One step for the variables whose names begin so."""
    moved = {n: v for n, v in values.items() if names is None or n.startswith(names)}
    slope = jax.grad(lambda m: loss({**values, **m}))(moved)
    return {n: v - rate * slope[n] for n, v in moved.items()}


def dense(p, name, x):
    return x @ p[name + ".kernel"] + p[name + ".bias"]


def relu(x):
    return jnp.where(x > 0, x, 0)


def siamese(count):
    """Two images through one encoder: alike ones are drawn together, others pushed apart up to a margin."""
    text = """use nn
model siamese {
  input left : f64[B, 3]
  input right : f64[B, 3]
  input same : f64[B]
  encode = nn.mlp.new([4, 2])
  apart = sum(square(encode(left) - encode(right)), axis = 1)
  train mean(same * apart + (1 - same) * relu(1 - apart)) with sgd(rate = 0.1)
}"""
    left, right = rows_of(1, count, 3), rows_of(2, count, 3)
    right[::7] = left[::7]
    same = (np.arange(count) % 3 == 0).astype(float)
    first = draw(3, encode__part__0__kernel=(3, 4), encode__part__0__bias=(4,))
    first.update(draw(4, encode__part__1__kernel=(4, 2), encode__part__1__bias=(2,)))

    def step(p, rows):
        def loss(p):
            def encode(x):
                for part in "01":
                    x = relu(dense(p, "encode.part." + part, x))
                return x

            apart = jnp.sum((encode(rows["left"]) - encode(rows["right"])) ** 2, axis=1)
            return jnp.mean(rows["same"] * apart + (1 - rows["same"]) * relu(1 - apart))

        return sgd(p, loss, 0.1)

    return Model("siamese", text, {"left": left, "right": right, "same": same}, first, step)


def gan(count):
    """A critic, with a normalisation that both of its calls go on with, and what it judges."""
    text = """use nn
model gan {
  input real : f64[B, 2]
  input noise : f64[B, 3]
  norm = nn.batch_norm.new(momentum = 0.9)
  critic = nn.mlp.new([5, 1], activation = tanh)
  maker = nn.dense.new(2)
  fake = maker(noise)
  on_real = critic(norm(real))
  on_fake = critic(norm(fake))
  train d = mean(softplus(-on_real)) + mean(softplus(on_fake)) with sgd(rate = 0.1) over [critic, norm]
  train g = mean(softplus(-on_fake)) with sgd(rate = 0.2) over maker
}"""
    first = draw(5, norm__scale=(2,), norm__shift=(2,), norm__moving_mean=(2,), maker__kernel=(3, 2), maker__bias=(2,))
    first.update(draw(6, critic__part__0__kernel=(2, 5), critic__part__0__bias=(5,)))
    first.update(draw(7, critic__part__1__kernel=(5, 1), critic__part__1__bias=(1,)))
    first["norm.moving_variance"] = np.ones(2)

    def step(p, rows):
        def norm(p, x):
            center = x.mean(0)
            spread = ((x - center) ** 2).mean(0)
            return (x - center) / jnp.sqrt(spread + 1e-3) * p["norm.scale"] + p["norm.shift"], center, spread

        def critic(p, x):
            for part in "01":
                x = jnp.tanh(dense(p, "critic.part." + part, norm(p, x)[0] if part == "0" else x))
            return x

        def fake(p):
            return dense(p, "maker", rows["noise"])

        def d(p):
            return jnp.mean(jax.nn.softplus(-critic(p, rows["real"]))) + jnp.mean(jax.nn.softplus(critic(p, fake(p))))

        def g(p):
            return jnp.mean(jax.nn.softplus(-critic(p, fake(p))))

        new = dict(p)
        new.update(sgd({n: v for n, v in p.items() if "moving" not in n}, d, 0.1, ("critic", "norm")))
        new.update(sgd({n: v for n, v in p.items() if "moving" not in n}, g, 0.2, "maker"))
        for x in rows["real"], fake(p):
            _, center, spread = norm(p, x)
            new["norm.moving_mean"] = 0.9 * new["norm.moving_mean"] + 0.1 * center
            new["norm.moving_variance"] = 0.9 * new["norm.moving_variance"] + 0.1 * spread
        return new

    return Model("gan", text, {"real": rows_of(8, count, 2), "noise": rows_of(9, count, 3)}, first, step)


def tied(count):
    """The table that ids are looked up in also gives the logits."""
    text = """layer embedding(ids, size : int, units : int) {
  var table : f64[size, units] = 0
  return lookup(table, ids)
}
model tied {
  input ids : i32[B, 4]
  input next : i32[B]
  embed = embedding.new(7, 3)
  h = tanh(sum(embed(ids), axis = 1))
  train mean(softmax_cross_entropy(h @ transpose(embed.table), next)) with sgd(rate = 0.3)
}"""
    rng = np.random.default_rng(10)
    data = {"ids": rng.integers(0, 7, (count, 4)).astype("i4"), "next": rng.integers(0, 7, count).astype("i4")}

    def step(p, rows):
        def loss(p):
            logits = jnp.tanh(p["embed.table"][rows["ids"]].sum(1)) @ p["embed.table"].T
            hit = jnp.take_along_axis(jax.nn.log_softmax(logits), rows["next"][:, None], 1)
            return -jnp.mean(hit)

        return sgd(p, loss, 0.3)

    return Model("tied", text, data, draw(11, embed__table=(7, 3)), step)


def cell(count):
    """A recurrent cell, made once and called in each trip of a loop, with a head of its own."""
    text = """use nn
model cell {
  input x : f64[B, 5, 2]
  input y : f64[B]
  cell = nn.dense.new(units = 3, activation = tanh)
  h = broadcast(cast(0.0, f64), [B, 3])
  for t in 0..5 { h = cell(concat([x[:, t], h], axis = 1)) }
  guess = squeeze(nn.dense(h, 1), 1)
  train mean(square(guess - y)) with sgd(rate = 0.1)
}"""
    data = {"x": rows_of(12, 5 * count, 2).reshape(count, 5, 2), "y": rows_of(13, count, 1)[:, 0]}
    first = draw(14, cell__kernel=(5, 3), cell__bias=(3,), guess__kernel=(3, 1), guess__bias=(1,))

    def step(p, rows):
        def loss(p):
            h = jnp.zeros((len(rows["y"]), 3))
            for t in range(5):
                h = jnp.tanh(dense(p, "cell", jnp.concatenate([rows["x"][:, t], h], 1)))
            return jnp.mean((dense(p, "guess", h)[:, 0] - rows["y"]) ** 2)

        return sgd(p, loss, 0.1)

    return Model("cell", text, data, first, step)


def heat(count):
    """samples/pinn.dsl, small: the second derivative by an input is trained."""
    text = """use nn
model heat {
  input point : f64[B, 2]
  x, t = [point[:, 0], point[:, 1]]
  hidden = nn.dense(stack([x, t], 1), 5, activation = tanh)
  net = nn.dense(hidden, 1)
  u = sin(pi * x) + t * x * (1 - x) * squeeze(net, 1)
  u_t, u_x = gradient(sum(u), [t, x])
  u_xx = gradient(sum(u_x), x)
  train mean(square(u_t - 0.1 * u_xx)) with sgd(rate = 0.2)
}"""
    first = draw(21, hidden__kernel=(2, 5), hidden__bias=(5,), net__kernel=(5, 1), net__bias=(1,))

    def step(p, rows):
        def residual(p, x, t):
            def u(x, t):
                h = jnp.tanh(dense(p, "hidden", jnp.stack([x, t])))
                return jnp.sin(jnp.pi * x) + t * x * (1 - x) * dense(p, "net", h)[0]

            return jax.grad(u, 1)(x, t) - 0.1 * jax.grad(jax.grad(u))(x, t)

        return sgd(p, lambda p: jnp.mean(jax.vmap(lambda q: residual(p, q[0], q[1]))(rows["point"]) ** 2), 0.2)

    return Model("heat", text, {"point": np.abs(rows_of(22, count, 2))}, first, step)


def penalty(count):
    """samples/gan.dsl, small: a critic's slopes between real and made points; and gradients of a mean, by a variable and by
    rows, in a loss."""
    text = """use nn
layer network(x, units) { return nn.dense(nn.dense(x, 6, activation = leaky_relu), units) }
model penalty {
  input real : f64[B, 2]
  input noise : f64[B, 3]
  input share : f64[B]
  var scale : f64[2] = 1
  critic = network.new(1)
  maker = network.new(2)
  made = maker(noise) * scale
  between = stop_gradient(expand(share) * real + expand(1 - share) * made)
  slope = gradient(sum(critic(between)), between)
  lead = mean(critic(real)) - mean(critic(made))
  by_scale, by_made = gradient(lead, [scale, made])
  train d = mean(square(norm(slope, axis = 1) - 1)) - lead + sum(square(by_scale)) with sgd(rate = 0.05) over critic
  train g = lead + 10 * sum(square(by_made)) with sgd(rate = 0.1) over [maker, scale]
}"""
    first = draw(23, critic__dense__kernel=(2, 6), critic__dense__bias=(6,), critic__kernel=(6, 1), critic__bias=(1,))
    first.update(draw(24, maker__dense__kernel=(3, 6), maker__dense__bias=(6,), maker__kernel=(6, 2), maker__bias=(2,)))
    first["scale"] = np.array([1.0, 0.5])

    def step(p, rows):
        def network(p, name, x):
            h = dense(p, name + ".dense", x)
            return dense(p, name, jnp.where(h > 0, h, 0.01 * h))

        def made(p):
            return network(p, "maker", rows["noise"]) * p["scale"]

        def lead(p, made):
            return jnp.mean(network(p, "critic", rows["real"])) - jnp.mean(network(p, "critic", made))

        def d(p):
            share = rows["share"][:, None]
            between = jax.lax.stop_gradient(share * rows["real"] + (1 - share) * made(p))
            slope = jax.grad(lambda x: jnp.sum(network(p, "critic", x)))(between)
            by_scale = jax.grad(lambda s: lead(p, made({**p, "scale": s})))(p["scale"])
            return jnp.mean((jnp.linalg.norm(slope, axis=1) - 1) ** 2) - lead(p, made(p)) + jnp.sum(by_scale**2)

        def g(p):
            by_made = jax.grad(lambda m: lead(p, m))(made(p))
            return lead(p, made(p)) + 10 * jnp.sum(by_made**2)

        return {**p, **sgd(p, d, 0.05, "critic"), **sgd(p, g, 0.1, ("maker", "scale"))}

    data = {"real": rows_of(25, count, 2), "noise": rows_of(26, count, 3), "share": np.abs(rows_of(27, count, 1))[:, 0]}
    return Model("penalty", text, data, first, step)


def chain(count, name, links, update, slots):
    """A small network that a list of optimizers trains: update(gradients, values, state, t) gives what is added to each
    variable, None for one that stays; slots are what it keeps, by the names of the checkpoint."""
    text = """use nn
model chain {
  input x : f64[B, 3]
  input y : f64[B]
  h = nn.dense(x, 4, activation = tanh)
  o = nn.dense(h, 1)
  train mean(squared_error(squeeze(o, 1), y)) with [%s]
}""" % links
    first = draw(31, h__kernel=(3, 4), h__bias=(4,), o__kernel=(4, 1), o__bias=(1,))
    names = list(first)
    for slot, chosen in slots.items():
        begin = (lambda v: v) if slot == "average.mean" else np.zeros_like
        first.update({"%s.%s" % (n, slot): begin(first[n]) for n in names if chosen(n)})
    first["step"] = np.array(0, np.int64)

    def step(p, rows):
        def loss(q):
            h = jnp.tanh(dense(q, "h", rows["x"]))
            return jnp.mean((dense(q, "o", h)[:, 0] - rows["y"]) ** 2)

        values = {n: p[n] for n in names}
        state = {n: v for n, v in p.items() if n not in values}
        added = update(jax.grad(loss)(values), values, state, p["step"])
        out = {n: values[n] + added.get(n, 0) for n in names}
        return {**out, **state, "step": p["step"] + 1}

    return Model(name, text, {"x": rows_of(32, count, 3), "y": rows_of(33, count, 1)[:, 0]}, first, step)


def global_norm(gradients):
    return jnp.sqrt(sum(jnp.sum(g * g) for g in gradients.values()))


def adam_direction(g, state, n, t, epsilon, act=True):
    """optax.scale_by_adam"""
    m, v = n + ".scale_by_adam.m", n + ".scale_by_adam.v"
    new_m, new_v = 0.9 * state[m] + 0.1 * g, 0.999 * state[v] + 0.001 * g * g
    state[m], state[v] = jnp.where(act, new_m, state[m]), jnp.where(act, new_v, state[v])
    return new_m / (1 - 0.9 ** (t + 1.0)) / (jnp.sqrt(new_v / (1 - 0.999 ** (t + 1.0))) + epsilon)


def clipped(count):
    """optax.chain(clip_by_global_norm, masked add_decayed_weights, sgd with momentum), and an average of the weights"""

    def update(gradients, values, state, t):
        factor = 0.5 / jnp.maximum(global_norm(gradients), 0.5)
        added = {}
        for n, g in gradients.items():
            g = g * factor + (0.1 * values[n] if values[n].ndim > 1 else 0)
            state[n + ".momentum.velocity"] = 0.9 * state[n + ".momentum.velocity"] + g
            added[n] = -0.1 * state[n + ".momentum.velocity"]
            state[n + ".average.mean"] = 0.75 * state[n + ".average.mean"] + 0.25 * (values[n] + added[n])
        return added

    links = "clip_by_global_norm(0.5), decay_weights(0.1, rank_from = 2), momentum(0.1), average(0.75)"
    return chain(count, "clipped", links, update, {"momentum.velocity": lambda n: True, "average.mean": lambda n: True})


def lamb(count):
    """optax.lamb with weights that decay but for biases; a bias of zeros has no trust ratio."""

    def update(gradients, values, state, t):
        added = {}
        for n, g in gradients.items():
            u = adam_direction(g, state, n, t, 1e-6) + (0.1 * values[n] if n.endswith("kernel") else 0)
            long, wide = jnp.linalg.norm(values[n].ravel()), jnp.linalg.norm(u.ravel())
            added[n] = -0.1 * jnp.where((long > 0) & (wide > 0), long / wide, 1) * u
        return added

    links = 'scale_by_adam(epsilon = 1e-6), decay_weights(0.1, "*.kernel"), scale_by_trust_ratio(), sgd(0.1)'
    model = chain(count, "lamb", links, update, {"scale_by_adam.m": lambda n: True, "scale_by_adam.v": lambda n: True})
    model.first["o.bias"] = np.zeros(1)
    return model


def slow(count):
    """optax.MultiSteps of four, each gradient clipped; a frozen bias, a slow layer, and a rate that counts updates."""

    def update(gradients, values, state, t):
        added, last, count = {}, t % 4 == 3, t // 4
        for n, g in gradients.items():
            total = n + ".accumulate.total"
            sums = state[total] + g * (0.3 / jnp.maximum(jnp.linalg.norm(g.ravel()), 0.3))
            state[total] = jnp.where(last, 0, sums)
            if n == "h.bias":
                continue
            u = adam_direction(sums / 4, state, n, count, 1e-8, last) * (0.1 if n.startswith("h.") else 1)
            added[n] = jnp.where(last, -0.1 * 0.5 ** (count / 3) * u, 0)
        return added

    links = 'clip_by_norm(0.3), accumulate(4), freeze("?.bias*x"), freeze(["h.b*", "nothing"]), scale_by_adam(), scale(0.1, "h.*"), '
    return chain(count, "slow", links + "sgd(exponential_decay(0.1, 3, 0.5))", update,
                 {"accumulate.total": lambda n: True, "scale_by_adam.m": lambda n: n != "h.bias",
                  "scale_by_adam.v": lambda n: n != "h.bias"})


def contrastive(count):
    """Two towers with all rows of the batch as negatives, pairs of rows with equal ids, distances of all to all, and
    attention over the batch: what has the batch twice."""
    text = """use nn
model contrastive {
  input a : f64[B, 3]
  input b : f64[B, 3]
  input id : i32[B]
  u = nn.dense(a, 2)
  v = nn.dense(b, 2)
  logits = u @ transpose(v)
  loss = logsumexp(logits, axis = 1) - sum(u * v, axis = 1)
  same = expand(id, 1) == all_gather(id)
  d = sum(square(expand(u, 1) - all_gather(v)), axis = 2)
  other = mean(select(same, d, relu(1 - d)))
  hardest = max(select(same, -inf, logits + 0.5 * all_gather(v[:, 0])), axis = 1)
  mixed = softmax(logits) @ v
  cold = sum(transpose(all_gather(u)) @ all_gather(b), axis = 1)
  train mean(loss) + other + mean(square(mixed)) + sum(cold ^ 3) / B + mean(hardest) with sgd(rate = 0.05)
}"""
    a, b = rows_of(15, count, 3), rows_of(16, count, 3)
    b[::5] = 0
    a[1::10] = a[0::10]
    data = {"a": a, "b": b, "id": np.random.default_rng(17).integers(0, 3, count).astype("i4")}
    first = draw(18, u__kernel=(3, 2), u__bias=(2,), v__kernel=(3, 2), v__bias=(2,))

    def step(p, rows):
        def loss(p):
            u, v = dense(p, "u", rows["a"]), dense(p, "v", rows["b"])
            logits = u @ v.T
            same = rows["id"][:, None] == rows["id"][None]
            d = jnp.sum((u[:, None] - v[None]) ** 2, axis=2)
            hardest = jnp.max(jnp.where(same, -jnp.inf, logits + 0.5 * v[:, 0]), axis=1)
            total = jnp.mean(jax.nn.logsumexp(logits, axis=1) - jnp.sum(u * v, axis=1))
            total += jnp.mean(jnp.where(same, d, relu(1 - d))) + jnp.mean((jax.nn.softmax(logits) @ v) ** 2)
            return total + jnp.sum(jnp.sum(u.T @ rows["b"], axis=1) ** 3) / len(u) + jnp.mean(hardest)

        return sgd(p, loss, 0.05)

    return Model("contrastive", text, data, first, step)


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


def with_adam(first, loss, rate):
    """First values with Adam's state, and a step of TensorFlow's form."""
    names = list(first)
    first = dict(first)
    for n in names:
        first[n + ".adam.m"] = first[n + ".adam.v"] = np.zeros_like(first[n])
    first["step"] = np.zeros((), np.int64)

    def step(p, rows):
        slope = jax.grad(lambda w: loss(w, rows))({n: p[n] for n in names})
        t = p["step"] + 1.0
        r, new = rate * jnp.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t), {"step": p["step"] + 1}
        for n in names:
            m = 0.9 * p[n + ".adam.m"] + 0.1 * slope[n]
            v = 0.999 * p[n + ".adam.v"] + 0.001 * slope[n] ** 2
            new.update({n: p[n] - r * m / (jnp.sqrt(v) + 1e-7), n + ".adam.m": m, n + ".adam.v": v})
        return new

    return first, step


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
    """A bidirectional layer of each kind over rows of 0 to 5 steps, two on each other, and 34 steps of one."""
    text = """use nn
model sequences {
  input x : f64[B, 34, 2]
  input n : i32[B]
  short = x[:, 0:5]
  r = nn.bidirectional(short, 3, cell = nn.rnn, sequence = true, lengths = n)
  g = nn.bidirectional(r, 2, cell = nn.gru, lengths = n)
  m = nn.stacked(short, [3, 2], lengths = n)
  u = nn.lstm(short, 2)
  l = nn.lstm(x, 2)
  train mean(square(g)) + mean(m * u * l) + 0.1 * mean(r) with sgd(0.3)
}"""
    x = rows_of(31, count, 68).reshape(count, 34, 2)
    x[::6] = 0
    n = np.arange(count).astype("i4") % 7 - 1
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
            m = run(p, "m.part.1", memory, run(p, "m.part.0", memory, short, n, zero(3, 2))[0], n, zero(2, 2))[1]
            u, l = (run(p, name, memory, y, every, zero(2, 2))[1] for name, y in (("u", short), ("l", x)))
            return jnp.mean(g ** 2) + jnp.mean(m * u * l) + 0.1 * jnp.mean(r)

        return sgd(p, loss, 0.3)

    return Model("sequences", text, {"x": x, "n": n}, first, step)


def all_models(count):
    return [make(count) for make in (siamese, gan, tied, cell, contrastive, heat, penalty, clipped, lamb, slow,
                                    vae, recommender, experts, ctc, word2vec, messages, sequences)]
