# SPDX-License-Identifier: Apache-2.0
"""The models of cases.py in JAX's words. One function is a step; variables and slots are donated to it. bfloat16: products and
convolutions of it, variables and norms of f32."""
import jax
import jax.numpy as jnp

from cases import DECAY, MOBILE, TRANSFORMERS, batches, method

PLACES = ("NHWC", "HWIO", "NHWC")


class Scope:
    """The variables of a model, in the order in which it asks: made at first, then those that are given. `moved`:
    running averages, which have no gradient."""

    def __init__(self, values, state, dtype):
        self.values, self.state, self.dtype = values, state, dtype
        self.making, self.asked, self.averages, self.moved = values is None, 0, 0, []
        if self.making:
            self.values, self.state, self.key = [], [], jax.random.key(0)

    def var(self, shape, start=None):
        if self.making:
            self.key, key = jax.random.split(self.key)
            self.values.append(jnp.full(shape, start, "float32") if start is not None
                               else jax.random.normal(key, shape) * 0.05)
        self.asked += 1
        return self.values[self.asked - 1]

    def dense(self, x, units, bias=True):
        y = x.astype(self.dtype) @ self.var((x.shape[-1], units)).astype(self.dtype)
        return y + self.var((units,), 0.0).astype(self.dtype) if bias else y

    def conv(self, x, filters, size=3, stride=1, padding="SAME", groups=1):
        kernel = self.var((size, size, x.shape[-1] // groups, filters)).astype(self.dtype)
        y = jax.lax.conv_general_dilated(x.astype(self.dtype), kernel, (stride, stride), padding, dimension_numbers=PLACES,
                                         feature_group_count=groups)
        return y + self.var((filters,), 0.0).astype(self.dtype)

    def up(self, x, filters):
        kernel = self.var((2, 2, x.shape[-1], filters)).astype(self.dtype)
        y = jax.lax.conv_transpose(x.astype(self.dtype), kernel, (2, 2), "SAME", dimension_numbers=PLACES)
        return y + self.var((filters,), 0.0).astype(self.dtype)

    def batch_norm(self, x):
        x, axes, n = x.astype("float32"), tuple(range(x.ndim - 1)), x.shape[-1]
        center, spread = jnp.mean(x, axes), jnp.var(x, axes)
        for now, start in (center, 0.0), (spread, 1.0):
            if self.making:
                self.state.append(jnp.full((n,), start, "float32"))
            self.moved.append(0.99 * self.state[self.averages] + 0.01 * jax.lax.stop_gradient(now))
            self.averages += 1
        return ((x - center) * jax.lax.rsqrt(spread + 1e-3) * self.var((n,), 1.0) + self.var((n,), 0.0)).astype(self.dtype)

    def layer_norm(self, x):
        x = x.astype("float32")
        y = (x - jnp.mean(x, -1, keepdims=True)) * jax.lax.rsqrt(jnp.var(x, -1, keepdims=True) + 1e-5)
        return y * self.var(x.shape[-1:], 1.0) + self.var(x.shape[-1:], 0.0)


relu = jax.nn.relu


def pool(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def perceptron(s, x):
    return s.dense(relu(s.dense(relu(s.dense(x, 512)), 512)), 10)


def lenet(s, x):
    x = (x.astype("float32") / 255)[..., None]
    x = pool(relu(s.conv(x, 6, 5)))
    x = pool(relu(s.conv(x, 16, 5, padding="VALID")))
    x = relu(s.dense(x.reshape(x.shape[0], -1), 120))
    return s.dense(s.batch_norm(relu(s.dense(x, 84))), 10)


def resnet(s, x):
    x = relu(s.batch_norm(s.conv(x, 16)))
    for filters in 16, 32, 64:
        for i in range(3):
            stride = 2 if i == 0 and filters > 16 else 1
            y = s.batch_norm(s.conv(relu(s.batch_norm(s.conv(x, filters, 3, stride))), filters))
            x = relu(y + (s.conv(x, filters, 1, stride) if stride > 1 else x))
    return s.dense(x.mean((1, 2)), 10)


def mobilenet(s, x):
    x = relu(s.batch_norm(s.conv(x, 32)))
    for filters, stride in MOBILE:
        x = relu(s.batch_norm(s.conv(x, x.shape[-1], 3, stride, groups=x.shape[-1])))
        x = relu(s.batch_norm(s.conv(x, filters, 1)))
    return s.dense(x.mean((1, 2)), 10)


def unet(s, x):
    two = lambda x, filters: relu(s.conv(relu(s.conv(x, filters)), filters))
    a = two(x, 16)
    b = two(pool(a), 32)
    y = two(pool(b), 64)
    for beside, filters in (b, 32), (a, 16):
        y = two(jnp.concatenate([s.up(y, filters), beside], -1), filters)
    return s.conv(y, 2, 1)


def transformer(s, x, t):
    table = s.var((t.words, t.width))
    x = table[x] + s.var((t.length, t.width))
    for _ in range(t.blocks):
        y = s.dense(s.layer_norm(x), 3 * t.width, bias=False)
        q, k, v = (part.reshape(*part.shape[:2], t.heads, -1) for part in jnp.split(y, 3, -1))
        y = jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape)
        x = x + s.dense(y, t.width)
        x = x + s.dense(jax.nn.gelu(s.dense(s.layer_norm(x), 4 * t.width), approximate=False), t.width)
    x = s.layer_norm(x)
    return x.astype(s.dtype) @ table.T.astype(s.dtype) if t.tied else s.dense(x, t.words)


def lstm(s, x):
    units, given = 128, s.dense(x, 512).swapaxes(0, 1)
    kernel = s.var((units, 4 * units)).astype(s.dtype)

    def cell(held, z):
        h, c = held
        i, f, g, o = jnp.split(z + h @ kernel, 4, -1)
        c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None
    zeros = jnp.zeros((x.shape[0], units), s.dtype)
    return s.dense(jax.lax.scan(cell, (zeros, zeros), given)[0][0], 10)


def bag(s, x):
    return s.dense(x.mean(1), 3)  # x is the rows of the table, see sparse_step


MODELS = {"perceptron": perceptron, "lenet": lenet, "resnet": resnet, "mobilenet": mobilenet, "unet": unet,
          "lstm": lstm, "bag": bag}


def updated(name, rate, count, v, g, slots):
    if name == "sgd":
        return v - rate * g, slots
    if name == "momentum":
        m = 0.9 * slots[0] + g
        return v - rate * m, [m]
    m, n = 0.9 * slots[0] + 0.1 * g, 0.999 * slots[1] + 0.001 * g * g
    if name == "adamw":
        v = v - rate * DECAY * v
    rate = rate * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
    return v - rate * m / (jnp.sqrt(n) + 1e-7), [m, n]


def steps(case, dtype):
    """The state, and a function of it and a batch to a new state and the loss."""
    name, rate = method(case)
    if case.name in TRANSFORMERS:
        model = lambda s, x: transformer(s, x, TRANSFORMERS[case.name])
    else:
        model = MODELS[case.name.split("-")[0]]

    def loss_of(values, state, x, y):
        s = Scope(values, state, dtype)
        logits = model(s, x).astype("float32")
        picked = jnp.take_along_axis(logits, y.astype("int32")[..., None], -1)[..., 0]
        return jnp.mean(jax.nn.logsumexp(logits, -1) - picked), s.moved

    def step(held, x, y):
        values, state, slots, count = held
        count = count + 1
        (loss, state), grads = jax.value_and_grad(loss_of, has_aux=True)(values, state, x, y)
        done = [updated(name, rate, count, v, g, s) for v, g, s in zip(values, grads, slots)]
        return ([v for v, _ in done], state, [s for _, s in done], count), loss

    def sparse_step(held, x, y):
        """Of a table only the rows that a batch names are updated."""
        (table, *values), state, slots, count = held
        (loss, _), (grads, rows) = jax.value_and_grad(loss_of, (0, 2), has_aux=True)(values, state, table[x], y)
        table = table.at[x].add(-rate * rows)
        return ([table] + [v - rate * g for v, g in zip(values, grads)], state, slots, count), loss

    x = jnp.asarray(batches(case, 1)[0][0])
    s = Scope(None, None, dtype)
    if case.name == "bag":
        x = s.var((65536, 64))[x]
        s.asked = 0
        s.values, first = [], s.values
    else:
        first = []
    model(s, x)
    values, slots = first + s.values, {"sgd": 0, "momentum": 1, "adam": 2, "adamw": 2}[name]
    held = values, s.state, [[jnp.zeros_like(v) for _ in range(slots)] for v in values], jnp.zeros((), "float32")
    return held, jax.jit(sparse_step if case.name == "bag" else step, donate_argnums=0)
