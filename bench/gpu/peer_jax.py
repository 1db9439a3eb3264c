# SPDX-License-Identifier: Apache-2.0
"""JAX on a case of models.py: peer_jax.py NAME BATCH STEPS SECONDS ROUNDINGS DEVICE. A line of JSON for each rounding. A step
copies the batch to the device, trains, and waits for it, as `dgc bench` does."""
import json
import os
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp
import numpy as np

from models import WIDTH, arguments, timed
from cases import batches
import models_jax


def wide(dtype):
    """As models_jax.steps."""
    def loss_of(layers, x, y):
        for i, (w, b) in enumerate(layers):
            x = jnp.matmul(x.astype(dtype), w.astype(dtype), preferred_element_type=jnp.float32) + b
            x = jax.nn.relu(x) if i < 3 else x
        return jnp.mean((x - y) ** 2)

    def step(layers, x, y):
        loss, grads = jax.value_and_grad(loss_of)(layers, x, y)
        return jax.tree.map(lambda v, g: v - 1e-3 * g, layers, grads), loss
    r = np.random.default_rng(0)
    layers = [(jnp.asarray(r.normal(0, WIDTH ** -0.5, (WIDTH, WIDTH)), jnp.float32), jnp.zeros(WIDTH)) for _ in range(4)]
    return layers, jax.jit(step, donate_argnums=0)


def measure(case, steps, seconds, rounding):
    jax.config.update("jax_default_matmul_precision", "tensorfloat32" if rounding == "tf32" else "highest")
    dtype = jnp.bfloat16 if rounding == "bf16" else jnp.float32
    held, run = wide(dtype) if case.name == "wide" else models_jax.steps(case, dtype)
    x_host, y_host = batches(case, 1)[0]

    def step():
        nonlocal held
        held, loss = run(held, jax.device_put(x_host), jax.device_put(y_host))
        jax.block_until_ready((held, loss))
    return timed(step, steps, seconds)


def main():
    case, steps, seconds, roundings, device = arguments(sys.argv)
    if device == "cuda" and jax.default_backend() != "gpu":
        print(json.dumps({"who": "JAX", "absent": "this JAX has no GPU"}))
        return
    for rounding in roundings:
        said = {"who": "JAX", "rounding": rounding, "version": jax.__version__}
        try:
            said |= measure(case, steps, seconds, rounding)
        except Exception as e:  # a version that cannot
            said["absent"] = (str(e) or repr(e)).splitlines()[0]
        print(json.dumps(said), flush=True)


main()
