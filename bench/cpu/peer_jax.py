# SPDX-License-Identifier: Apache-2.0
"""JAX on a model of cases.py: peer_jax.py CASE jit f32|bf16 THREADS."""
import itertools
import os
import sys

import jax
import jax.numpy as jnp

from cases import arguments, batches
from models_jax import steps
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from rounds import serve


def main():
    case, _, bf16, _ = arguments(sys.argv)
    held, run = steps(case, jnp.bfloat16 if bf16 else jnp.float32)
    data = itertools.cycle(batches(case))

    def step():
        nonlocal held
        held, loss = run(held, *next(data))
        return float(loss)
    serve(step, f"JAX {jax.__version__}")


main()
