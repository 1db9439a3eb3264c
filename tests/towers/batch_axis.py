#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes batch_axis.def with JAX: the models of test_batch_axis.c, one step of SGD. batch_axis.py > batch_axis.def"""
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
B, ROWS_OF_FIRST = 7, 4


def numbers(seed, *shape):
    i = np.arange(np.prod(shape, dtype=int), dtype=np.int64)
    return ((i * 37 + seed * 53 + 11) % 101 - 50).reshape(shape) / 64.0


def turn(x, *perm):
    return jnp.transpose(x, perm)


def rnn(x, w, u, b):
    z = turn(x, 1, 0, 2) @ w + b
    h = jnp.tanh(z[0])
    for t in range(1, 4):
        h = jnp.tanh(z[t] + h @ u)
    return jnp.mean(jnp.square(h))


def lstm(x, w, u):
    z, h, c = turn(x, 1, 0, 2) @ w, jnp.zeros((len(x), 2)), jnp.zeros((len(x), 2))
    for t in range(4):
        g = z[t] + h @ u
        s = jax.nn.sigmoid(g)
        c = s[:, 0:2] * c + s[:, 2:4] * jnp.tanh(g[:, 4:6])
        h = s[:, 6:8] * jnp.tanh(c)
    return jnp.mean(jnp.square(h))


def both_sides(x, w, u):
    left = w @ turn(x, 1, 2, 0)  # [4,2,B]
    right = turn(x, 1, 0, 2) @ u  # [4,B,2]
    return jnp.sum(jnp.tanh(turn(left, 0, 2, 1) + right))


def softmax_last(x, v):
    return jnp.mean(jnp.square(jax.nn.softmax(turn(x, 1, 2, 0) * v, axis=1)))


def middle(x, w):
    y = turn(x, 1, 0, 2)
    m = jnp.mean(y, axis=1, keepdims=True)
    top = jnp.max(turn(x, 2, 0, 1), axis=1)  # [3,4]
    return jnp.sum(jnp.square((y - m) @ w)) + jnp.sum(jnp.tanh(turn(x, 2, 0, 1) - (top * w[:, :1])[:, None, :]))


def pieces(x, w):
    p = jnp.pad(turn(x, 1, 0, 2), ((1, 0), (0, 0), (0, 1)))
    q = jnp.concatenate([p[0:4], jnp.tanh(p[1:5])], axis=2)
    picked = q[jnp.array([3, 1, 1])]
    back = jnp.stack([q[3], q[2], q[1], q[0]], axis=0)
    return jnp.sum(jnp.square(picked @ w)) + jnp.sum(jnp.tanh(back @ w))


def channels(x, w):
    c = jnp.pad(turn(x, 2, 0, 1), ((0, 0), (0, 0), (1, 1)))
    parts = jnp.concatenate([c[:, :, i : i + 4] for i in range(3)], axis=0)
    y = (w @ parts.reshape(9, len(x) * 4)).reshape(2, len(x), 4)
    return jnp.sum(jnp.square(jnp.tanh(y - jnp.mean(y, axis=1, keepdims=True))))


def broadcasts(x, e, f):
    return jnp.mean(jnp.tanh(turn(x, 1, 0, 2) + e) * f)


def rows(x, i, e, w):
    ids = jnp.transpose(i)
    seen = jnp.zeros((5, 3)).at[ids].add(turn(x, 1, 0, 2))
    return jnp.sum(jnp.tanh(seen[ids] @ w)) + jnp.sum(jnp.tanh(e[ids] @ w))


def norm(x, s, w):
    y = turn(x, 1, 0, 2)
    center = jnp.mean(y, axis=(0, 1))
    spread = jnp.mean(jnp.square(y - center), axis=(0, 1))
    return jnp.mean(jnp.tanh(((y - center) / jnp.sqrt(spread + 1e-3) * s) @ w))


def flat(x, w):
    y = turn(x, 1, 0, 2).reshape(4 * B, 3)
    first = (jnp.arange(4 * B) < 9).astype(jnp.float64)
    z = jnp.tanh((y * first[:, None]) @ w)
    return jnp.sum(z.reshape(4, B, 2)[1] ** 2) + jnp.sum(z)


def moment(x, w):
    return jnp.square(w * jnp.mean(x) - 1) + w * jnp.max(x)


def held(x, i, w):
    return jnp.sum(jnp.square(jnp.zeros((5, 3)).at[jnp.transpose(i)].add(turn(x, 1, 0, 2)) * w))


def turned_ids(x, i, n, e, w):
    back = jnp.zeros((5, 3)).at[n].add(x[:, 0])
    return jnp.sum(jnp.square(e[n] - w)) + jnp.sum(jnp.tanh(e[i])) + jnp.sum(back * w)


def step(f, x, v):
    loss, grads = jax.value_and_grad(f, argnums=tuple(range(len(x), len(x) + len(v))))(*x, *v)
    return loss, [a - g for a, g in zip(v, grads)]


def after_two_workers(f, x, v, staleness):
    """Each subtracts the gradient of its own rows, the first from v, the second from what that leaves, where it is
    computed of that or, if stale, of v."""
    _, first = step(f, [a[:ROWS_OF_FIRST] for a in x], v)
    base = v if staleness else first
    _, second = step(f, [a[ROWS_OF_FIRST:] for a in x], base)
    return [a + (b - c) for a, b, c in zip(first, second, base)]


def weighed(names, v):
    return " ; ".join("%s %r" % (k, float(np.sum((np.arange(a.size) + 1) * np.asarray(a).ravel()))) for k, a in zip(names, v))


MODELS = {
    "rnn": (rnn, {"w": (3, 2), "u": (2, 2), "b": (2,)}),
    "lstm": (lstm, {"w": (3, 8), "u": (2, 8)}),
    "both_sides": (both_sides, {"w": (2, 3), "u": (3, 2)}),
    "softmax_last": (softmax_last, {"v": (3, 1)}),
    "middle": (middle, {"w": (3, 2)}),
    "pieces": (pieces, {"w": (8, 2)}),
    "channels": (channels, {"w": (2, 9)}),
    "broadcasts": (broadcasts, {"e": (4, 1, 3), "f": (3,)}),
    "rows": (rows, {"e": (5, 3), "w": (3, 2)}),
    "norm": (norm, {"s": (3,), "w": (3, 2)}),
    "flat": (flat, {"w": (3, 2)}),
    "moment": (moment, {"w": ()}),
    "held": (held, {"w": (3,)}),
    "turned_ids": (turned_ids, {"e": (5, 3), "w": (3,)}),
}
print("/* SPDX-License-Identifier: Apache-2.0 */")
print("/* NUMBERS(model, its loss and what a step of SGD with rate 1 leaves: the sum of (i + 1) v[i] of each variable), and")
print(" * WORKERS(model, staleness, what such steps of two workers leave, one after the other), by batch_axis.py. */")
for name, (f, shapes) in MODELS.items():
    x = [jnp.asarray(numbers(1, B, 4, 3))]
    if name in ("rows", "held", "turned_ids"):
        x.append(jnp.asarray((np.arange(B * 4).reshape(B, 4) * 7 + 3) % 5))
    if name == "turned_ids":
        x.append(jnp.asarray((np.arange(B) * 7 + 3) % 5))
    v = [jnp.asarray(numbers(ord(k), *s)) for k, s in shapes.items()]
    loss, left = step(f, x, v)
    print('NUMBERS(%s, "loss %r ; %s")' % (name, float(loss), weighed(shapes, left)))
    for staleness in (0, 1):
        if name != "flat":  # whose rows have numbers of their own
            print('WORKERS(%s, %d, "%s")' % (name, staleness, weighed(shapes, after_two_workers(f, x, v, staleness))))
