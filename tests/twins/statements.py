# SPDX-License-Identifier: Apache-2.0
"""Models of what the language says: layers that are called twice, the batch twice, gradients as values."""

import jax
import jax.numpy as jnp
import numpy as np

from model import dense, draw, Model, relu, rows_of, sgd


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


def frozen(count):
    """A body with normalisations that has been learned, and stays: as Keras' trainable = False, also in what it computes."""
    text = """use nn
layer body(x) {
  norm = nn.batch_norm(x, training = false)
  h = nn.dense(norm, 4, activation = tanh)
  return nn.running_norm(nn.batch_norm(h, training = false), training = false)
}
model frozen {
  input x : f64[B, 3]
  input y : f64[B]
  h = body(x)
  made = nn.dense(h, 1)
  train mean(square(made[:, 0] - y)) with [freeze("h.*"), sgd(rate = 0.1)]
}"""
    first = draw(51, h__norm__scale=(3,), h__norm__shift=(3,), h__norm__moving_mean=(3,), h__h__kernel=(3, 4), h__h__bias=(4,))
    first.update(draw(52, h__batch_norm__scale=(4,), h__batch_norm__shift=(4,), h__batch_norm__moving_mean=(4,)))
    first.update(draw(53, h__center=(4,), made__kernel=(4, 1), made__bias=(1,)))
    first.update({"h.norm.moving_variance": np.array([0.5, 1.0, 2.0]), "h.batch_norm.moving_variance": np.array([4.0, 1, 0.25, 2])})
    first.update({"h.count": np.array([10.0, 20, 30, 40]), "h.spread": np.array([5.0, 10, 60, 40])})

    def step(p, rows):
        def normed(x, path):
            gap = (x - p[path + ".moving_mean"]) / jnp.sqrt(p[path + ".moving_variance"] + 1e-3)
            return gap * p[path + ".scale"] + p[path + ".shift"]

        h = normed(jnp.tanh(dense(p, "h.h", normed(rows["x"], "h.norm"))), "h.batch_norm")
        h = (h - p["h.center"]) / jnp.sqrt(p["h.spread"] / p["h.count"])
        made = sgd(p, lambda p: jnp.mean((dense(p, "made", h)[:, 0] - rows["y"]) ** 2), 0.1, "made")
        return {**p, **made}

    return Model("frozen", text, {"x": rows_of(54, count, 3), "y": rows_of(55, count, 1)[:, 0]}, first, step)


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


def sharpness(count):
    """SAM: the gradient where the loss is greatest nearby. Targets without noise are met by some rows on purpose: slopes of 0."""
    text = """function network(x, w, v) { return squeeze(tanh(x @ w) @ v, 1) }
model sharpness {
  input x : f64[B, 3]
  input y : f64[B]
  var w : f64[3, 4] = zeros()
  var v : f64[4, 1] = zeros()
  here = mean(squared_error(network(x, w, v), y))
  up = gradient(here, [w, v])
  far = 0.05 / sqrt(sum(square(up[0])) + sum(square(up[1])) + 1e-12)
  there = mean(squared_error(network(x, w + stop_gradient(far * up[0]), v + stop_gradient(far * up[1])), y))
  train there with sgd(rate = 0.2)
}"""
    data = {"x": rows_of(51, count, 3), "y": rows_of(52, count, 1)[:, 0]}
    data["x"][::4] = data["y"][::4] = 0

    def step(p, rows):
        def loss(p):
            return jnp.mean((jnp.squeeze(jnp.tanh(rows["x"] @ p["w"]) @ p["v"], 1) - rows["y"]) ** 2)

        up = jax.grad(loss)(p)
        far = 0.05 / jnp.sqrt(sum(jnp.sum(g * g) for g in up.values()) + 1e-12)
        slope = jax.grad(loss)({n: p[n] + far * up[n] for n in p})
        return {n: p[n] - 0.2 * slope[n] for n in p}

    return Model("sharpness", text, data, draw(53, w=(3, 4), v=(4, 1)), step)
