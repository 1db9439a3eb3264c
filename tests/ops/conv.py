#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes conv.def with JAX: convolutions of small integers, and their gradients. conv.py > conv.def"""
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

# Input, kernel, strides, low and high padding, dilation of input and kernel, groups, and what is shown by it.
CASES = [
    ("2,5,2", "3,2,3"),
    ("1,4,1", "2,1,2", "2", "2", "1", "2", "2"),
    ("2,9,3", "4,3,2", "3", "2", "0", "", "2"),
    ("1,3,3,1", "2,2,1,2"),
    ("2,3,3,2", "2,2,1,2", "", "1,0", "0,1", "", "", 2),
    ("1,3,4,2", "2,1,1,4", "1,2", "1,1", "1,0", "", "", 2),
    ("2,4,3,1", "2,2,1,1", "2,1", "0,1", "1,1", "1,2", "2,1"),
    ("1,2,2,1", "3,3,1,2", "", "", "", "", "", 1, "a kernel longer than the input"),
    ("1,2,2,1", "3,3,1,2", "", "1,1", "1,1", "", "", 1, "but not than it is padded"),
    ("2,4,4,1", "2,2,1,1", "", "-1,0", "0,-2", "", "", 1, "elements left out"),
    ("2,7,6,3", "3,2,3,5", "2,1", "1,0", "-2,-1", "", "", 1, "behind alone"),
    ("1,4,3,4", "2,2,2,6", "", "-1,2", "3,-2", "2,3", "2,1", 2, "of what has gaps"),
    ("2,3,2,2", "1,1,2,3", "", "", "", "", "", 1, "a product of matrices"),
    ("0,4,4,2", "3,3,2,2", "", "1,1", "1,1", "", "", 1, "no rows"),
    ("2,3,3,0", "2,2,0,2", "", "", "", "", "", 1, "no channels"),
    ("2,3,3,2", "2,2,2,0", "", "", "", "", "", 1, "no filters"),
    ("1,0,3,2", "2,2,2,2", "", "1,1", "2,1", "", "", 1, "nothing but padding"),
    ("1,2,2,2,1", "2,1,2,1,2", "", "0,1,1", "1,0,0"),
    ("1,3,2,3,2", "2,2,2,1,2", "2,1,2", "1,1,0", "1,0,1", "1,2,1", "1,1,2", 2),
    ("3,8,9,5", "3,3,5,7", "", "1,1", "1,1"),
    ("2,12,12,6", "5,5,6,16"),
    ("2,9,9,16", "3,3,16,32", "2,2", "1,1", "1,1"),
    ("2,9,10,16", "1,1,16,24", "2,2"),
    ("2,7,7,16", "3,3,16,16", "", "2,2", "2,2", "", "2,2"),
    ("2,7,8,24", "3,3,1,24", "", "1,1", "1,1", "", "", 24, "depthwise"),
    ("2,6,6,5", "3,3,1,10", "2,2", "0,1", "1,1", "", "", 5),
    ("2,7,7,12", "3,3,3,8", "", "1,1", "1,1", "", "", 4),
    ("2,30,4", "9,4,8", "2", "4", "4"),
    ("1,6,7,6,4", "3,3,3,4,8", "", "1,1,1", "1,1,1"),
    ("2,40,40,1", "5,5,1,6", "", "2,2", "2,2"),
    ("1,5,6,32", "3,2,32,33", "", "1,0", "0,2"),
    ("1,6,5,34", "2,3,34,32", "", "2,1", "1,2", "", "2,1"),
    ("1,4,4,32", "1,1,32,32", "", "1,1", "2,0"),
    ("2,2,2,16", "3,3,16,16", "", "1,1", "1,1", "", "", 1, "longer than the image: oneDNN's gradients by units"),
    ("3,7,1,16", "3,3,16,16", "2,3", "1,1", "1,1", "", "", 1, "along one axis"),
    ("5,8,1,48", "5,5,48,8", "4,3", "2,2", "0,2", "", "", 1, "along one axis, with strides"),
    ("2,4,4,5,16", "4,2,3,16,16", "2,1,1", "3,1,1", "2,0,1", "", "", 1, "not all met behind the padding: oneDNN's by AVX-512"),
    ("3,9,10,8", "3,3,8,20", "2,3", "1,2", "1,1", "", "", 1, "strides: GPUs by phases"),
    ("2,9,8,8", "3,4,8,20", "3,2", "2,1", "1,2", "", "2,1", 1, "strides and gaps: phases of which some meet nothing"),
    ("1,5,6,8", "3,4,8,20", "2,1", "3,4", "2,3", "2,3", "1,2", 1, "of what has gaps, with strides"),
    ("2,6,5,16", "3,3,8,36", "", "2,2", "2,2", "3,2", "", 2, "of what has gaps, in groups"),
    ("1,7,6,8", "4,2,8,36", "4,6", "1,2", "2,1", "6,4", "", 1, "strides that share a divisor with gaps"),
    ("1,14,13,4", "9,9,4,20", "1,1", "4,4", "4,4", "", "", 1, "more places of the kernel than GPUs keep at first"),
    ("1,40,4", "35,4,8", "", "17", "17", "", "", 1, "more than they have bits for"),
    ("6,128,129,8", "1,1,8,20", "", "", "", "", "", 1, "GPUs: tiles of 256 by 16, and of 128 by 32"),
    ("5,100,100,9", "1,1,9,40", "", "", "", "", "", 1, "GPUs: tiles of 128 by 64"),
    ("1,260,1", "257,1,1", "", "128", "128", "", "", 1, "more meetings than are kept"),
]


def numbers(seed, shape):
    i = np.arange(np.prod(shape, dtype=int), dtype=np.int64)
    return ((i * 37 + i * i % 13 * 5 + seed * 53 + 11) % 17 - 8).reshape(shape).astype(float)


def check(v):
    """A sum with other weights for neighbours; NaN counts 1000."""
    v = np.asarray(v).reshape(-1)
    v = np.where(np.isnan(v), 1000, v)
    return int(np.sum(v * ((np.arange(v.size) * 29 + 7) % 31 - 15)))


def ints(text, default, n):
    return [int(t) for t in text.split(",")] if text else [default] * n


print("/* SPDX-License-Identifier: Apache-2.0 */")
print("/* CONV(input, kernel, strides, low, high, input dilation, kernel dilation, groups, output, then check sums of output and\n"
      " * gradients, of numbers and with a NaN in input and upstream gradient, where there are neither strides nor dilation).\n"
      " * Written by conv.py with JAX " + jax.__version__ + ". */")
for case in CASES:
    x, w, strides, low, high, xd, wd, groups, what = tuple(case) + ("", "", "", "", "", "", "", 1, "")[len(case):]
    sx, sw = ints(x, 0, 0), ints(w, 0, 0)
    n = len(sx) - 2
    letters = "DHW"[3 - n:]
    def one(a, b, groups):
        return jax.lax.conv_general_dilated(
            a, b, ints(strides, 1, n), list(zip(ints(low, 0, n), ints(high, 0, n))), ints(xd, 1, n), ints(wd, 1, n),
            (f"N{letters}C", f"{letters}IO", f"N{letters}C"), feature_group_count=groups)
    def f(a, b):
        if not nan:
            return one(a, b, groups)
        # On CPUs XLA multiplies those of other groups by 0, so that NaN reaches them: group by group it does not.
        pairs = zip(jnp.split(a, groups, -1), jnp.split(b, groups, -1))
        return jnp.concatenate([one(c, d, 1) for c, d in pairs], -1)
    a, b = numbers(1, sx), numbers(2, sw)
    sums = []
    for nan in False, True:
        if nan and strides + xd + wd:  # XLA multiplies what is between strides by 0
            sums += [0, 0, 0]
            continue
        if nan and a.size:
            a.reshape(-1)[a.size // 2] = np.nan
        if a.size and b.size:
            y, back = jax.vjp(f, jnp.asarray(a), jnp.asarray(b))
            g = numbers(3, y.shape)
            if nan and g.size:
                g.reshape(-1)[g.size // 2] = np.nan
            dx, dw = back(jnp.asarray(g))
        else:  # of nothing nothing comes
            y = jnp.zeros(jax.eval_shape(f, jnp.asarray(a), jnp.asarray(b)).shape)
            dx, dw = jnp.zeros(sx), jnp.zeros(sw)
        sums += [check(y), check(dx), check(dw)]
    comment = f" /* {what} */" if what else ""
    print(f'CONV("{x}", "{w}", "{strides}", "{low}", "{high}", "{xd}", "{wd}", {groups}, "{",".join(map(str, y.shape))}",'
          f' {", ".join(map(str, sums))}){comment}')
