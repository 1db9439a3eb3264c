# SPDX-License-Identifier: Apache-2.0
"""JAX on the same model: peer_jax.py WIDTHS BATCH STEPS ROUNDING DEVICE. A line of JSON. A step copies the batch to the device,
trains, and waits for it, as `dgc bench` does."""
import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from models import arguments, summary

widths, batch, steps, rounding, device, warm_up = arguments(sys.argv)
if device == "cuda" and jax.default_backend() != "gpu":
    print(json.dumps({"who": "JAX", "absent": "this JAX has no GPU"}))
    sys.exit()
jax.config.update("jax_default_matmul_precision", "tensorfloat32" if rounding == "tf32" else "highest")
classes = widths[-1] == 10
rng = np.random.default_rng(0)
parameters = [(jnp.array(rng.normal(0, (2 / (a + b)) ** 0.5, (a, b)), jnp.float32), jnp.zeros(b, jnp.float32))
              for a, b in zip(widths, widths[1:])]


def product(x, w):
    if rounding == "bf16":
        return jnp.matmul(x.astype(jnp.bfloat16), w.astype(jnp.bfloat16), preferred_element_type=jnp.float32)
    return x @ w


def loss_of(parameters, x, y):
    for i, (w, b) in enumerate(parameters):
        x = product(x, w) + b
        if i < len(parameters) - 1:
            x = jax.nn.relu(x)
    if classes:
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], axis=1))
    return jnp.mean((x - y) ** 2)


def adam(p, g, m, v, t):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 1e-3 * (m / (1 - 0.9 ** t)) / (jnp.sqrt(v / (1 - 0.999 ** t)) + 1e-8), m, v


def step(state, x, y):
    parameters, m, v, t = state
    grads = jax.grad(loss_of)(parameters, x, y)
    if not classes:
        return jax.tree.map(lambda p, g: p - 1e-3 * g, parameters, grads), m, v, t
    flat, shape = jax.tree.flatten(parameters)
    rest = [jax.tree.flatten(tree)[0] for tree in (grads, m, v)]
    new = [adam(*all_of_one, t) for all_of_one in zip(flat, *rest)]
    return tuple(jax.tree.unflatten(shape, [n[i] for n in new]) for i in range(3)) + (t + 1,)


zeros = jax.tree.map(jnp.zeros_like, parameters)
state = (parameters, zeros, jax.tree.map(jnp.zeros_like, parameters), jnp.float32(1))
train = jax.jit(step, donate_argnums=0)
x_host = rng.random((batch, widths[0]), np.float32)
y_host = rng.integers(0, 10, batch, np.int32) if classes else rng.random((batch, widths[-1]), np.float32)
times = []
for i in range(warm_up + steps):
    begin = time.perf_counter()
    state = train(state, jax.device_put(x_host), jax.device_put(y_host))
    jax.block_until_ready(state)
    if i >= warm_up:
        times.append(1e3 * (time.perf_counter() - begin))
print(json.dumps({"who": "JAX", "version": jax.__version__, **summary(times)}))
