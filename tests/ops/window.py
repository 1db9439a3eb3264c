#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes window.def with JAX, PyTorch and TensorFlow: windows over small integers, many of them equal, with NaN, and
their gradients. JAX has none of the maxima of dilated windows, PyTorch has. window.py > window.def"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch
from jax import lax

jax.config.update("jax_enable_x64", True)

# Input, window, strides, low and high padding, dilation of the input (of sums) and of the window, and what is shown.
CASES = [
    ("2,5,2", "2"),
    ("1,4,1", "2", "2"),
    ("2,9,3", "3", "2", "1", "1"),
    ("2,9,3", "4", "3", "2", "0", "", "2"),
    ("1,4,6,1", "2,2", "2,2"),
    ("2,5,5,2", "3,3", "2,2", "1,1", "1,1"),
    ("2,5,4,3", "3,2", "1,1", "1,0", "1,1"),
    ("1,6,7,6", "2,2", "2,2", "", "", "", "", "what does not fill a window is left out"),
    ("1,3,4,2", "2,3", "1,2", "1,0", "0,1"),
    ("2,6,5,1", "2,2", "2,1", "", "", "", "2,3"),
    ("1,2,2,1", "3,3", "", "", "", "", "", "a window longer than the input"),
    ("1,2,2,1", "3,3", "", "1,1", "1,1", "", "", "but not than it is padded"),
    ("1,2,1,1", "2,1", "2,1", "2,0", "2,0", "", "", "windows that see padding alone"),
    ("2,4,4,1", "2,2", "", "-1,0", "0,-2", "", "", "elements left out"),
    ("2,3,2,2", "1,1", "", "", "", "", "", "each element by itself"),
    ("2,3,5,1", "1,1", "2,3", "", "", "", "", "gaps between windows"),
    ("0,4,4,2", "3,3", "", "1,1", "1,1", "", "", "no rows"),
    ("2,3,3,0", "2,2", "", "", "", "", "", "no channels"),
    ("1,0,3,2", "2,2", "", "1,1", "2,1", "", "", "nothing but padding"),
    ("1,2,2,3,1", "2,1,2", "", "0,1,1", "1,0,0"),
    ("1,3,2,3,2", "2,2,2", "2,1,2", "1,1,0", "1,0,1", "", "1,1,2"),
    ("1,4,1", "2", "1", "1", "1", "2"),
    ("2,3,4,2", "3,2", "1,2", "2,1", "2,1", "2,3"),
    ("2,3,4,2", "3,2", "2,1", "1,2", "3,1", "2,3", "3,2"),
    ("2,8,9,5", "3,3", "2,2", "0,1", "1,1"),
    ("1,6,7,9", "3,3", "1,1", "1,1", "1,1"),
    ("2,9,8,17", "2,3", "2,3"),
    ("1,5,6,33", "3,3", "2,2", "0,0", "1,1"),
    ("2,6,7,4", "2,2", "2,2"),
    ("1,5,6,8", "2,3", "2,3", "1,2", "0,1"),
    ("2,3,5,4,4", "1,2,2", "1,2,2"),
    ("2,5,2", "1", "", "0", "-1", "", "", "one element each, and not of all"),
    ("2,5,2", "1", "", "-1", "0"),
    ("1,4,2", "1", "2", "-2", "-1"),
    ("1,3,4,1", "1,1", "", "0,-1", "-1,0"),
    ("2,5,3", "2", "536870912", "", "", "", "", "steps for which int is too short"),
]


def numbers(seed, shape, nan):
    i = np.arange(np.prod(shape, dtype=int), dtype=np.int64)
    x = ((i * 37 + i * i % 13 * 5 + seed * 53 + 11) % 7 - 3).astype(float)
    if nan:
        x[::5] = np.nan
    return x.reshape(shape)


def check(v):
    """A sum with other weights for neighbours; NaN counts 1000, -Inf 100."""
    v = np.asarray(v).reshape(-1)
    v = np.where(np.isnan(v), 1000, np.where(np.isneginf(v), 100, v))
    return int(np.sum(v * ((np.arange(v.size) * 29 + 7) % 31 - 15)))


def ints(text, default, n):
    return [int(t) for t in text.split(",")] if text else [default] * n


def both(f, x):
    """f(x) and its gradient, weighted."""
    shape = jax.eval_shape(f, jnp.asarray(x)).shape
    if x.size == 0 or 0 in shape:
        return jnp.zeros(shape) if 0 in shape else f(jnp.asarray(x)), jnp.zeros(x.shape)
    y, back = jax.vjp(f, jnp.asarray(x))
    return y, back(jnp.asarray(numbers(3, y.shape, False)))[0]


def tensorflow(x, size, strides, pads):
    """TensorFlow's max_pool2d and its gradient, weighted."""
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.max_pool2d(x, size, strides, [[0, 0], *pads, [0, 0]])
        loss = tf.reduce_sum(y * numbers(3, y.shape, False))
    return y, tape.gradient(loss, x)


def pytorch(x, size, strides, pads, dilation):
    """max_pool and its gradient, weighted."""
    x = torch.tensor(np.moveaxis(x, -1, 1), requires_grad=True)
    padded = torch.nn.functional.pad(x, [n for pair in reversed(pads) for n in pair], value=-np.inf)
    y = getattr(torch.nn.functional, f"max_pool{len(size)}d")(padded, size, strides, 0, dilation)
    back = lambda t: np.moveaxis(t.detach().numpy(), 1, -1)
    (y * torch.tensor(np.moveaxis(numbers(3, back(y).shape, False), -1, 1))).sum().backward()
    return back(y), back(x.grad)


print("/* SPDX-License-Identifier: Apache-2.0 */")
print("/* WINDOW(input, window, strides, low, high, input dilation, window dilation, windows, then check sums of\n"
      " * window_sum, its gradient, window_max, its gradient, and the last two with NaN in the input where there is\n"
      " * no padding). Written by window.py with JAX " + jax.__version__ + ", of dilated maxima PyTorch " +
      torch.__version__ + "; TensorFlow " + tf.__version__ + " gives\n * the same maxima and gradients where it has such"
      " windows and there is no NaN. */")
compared = 0
for case in CASES:
    x, size, strides, low, high, xd, wd, what = tuple(case) + ("",) * (8 - len(case))
    sx = ints(x, 0, 0)
    n = len(sx) - 2
    full = lambda text, default: (1, *ints(text, default, n), 1)
    pads = [(0, 0), *zip(ints(low, 0, n), ints(high, 0, n)), (0, 0)]
    def of(start, op):
        cut = tuple(slice(max(-a, 0), min(b, 0) or None) for a, b in pads)  # JAX has no gradient by what is left out
        more = [(max(a, 0), max(b, 0)) for a, b in pads]
        numbers_of = full(size, 1), full(strides, 1), more, full(xd, 1), full(wd, 1)
        return lambda a: lax.reduce_window(a[cut], start, op, *numbers_of)
    y, dx = both(of(0.0, lax.add), numbers(1, sx, False))
    sums, windows = [check(y), check(dx)], y.shape
    for nan in False, True:
        # Of maxima there is no such thing. Beside NaN PyTorch takes another one, and JAX takes padding.
        if xd or (nan and (wd or max(max(p) for p in pads) > 0)):
            sums += [0, 0]
            continue
        if wd:
            y, dx = pytorch(numbers(1, sx, nan), ints(size, 1, n), ints(strides, 1, n), pads[1:-1],
                            ints(wd, 1, n))
        else:
            y, dx = both(of(-jnp.inf, lax.max), numbers(1, sx, nan))
        sums += [check(y), check(dx)]
        if n == 2 and not wd and y.size and not nan and all(0 <= a < k and 0 <= b < k for (a, b), k in
                                                            zip(pads[1:3], ints(size, 1, n))):
            other = tensorflow(numbers(1, sx, nan), ints(size, 1, n), ints(strides, 1, n), pads[1:3])
            assert all(np.array_equal(a, b) for a, b in zip((y, dx), other)), case
            compared += 1
    comment = f" /* {what} */" if what else ""
    print(f'WINDOW("{x}", "{size}", "{strides}", "{low}", "{high}", "{xd}", "{wd}", "{",".join(map(str, windows))}",'
          f' {", ".join(map(str, sums))}){comment}')
assert compared >= 8
