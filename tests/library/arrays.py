# SPDX-License-Identifier: Apache-2.0
"""Parts and orders of tensors, and functions made of others, beside numpy's, JAX's and scipy's."""
import jax
import jax.numpy as jnp
import jax.scipy.special as special
import numpy as np

from case import Case, ids, rows

X, M, V = rows(1, 5), rows(2, 3, 4), rows(3, 6)
SQUARE = rows(4, 4, 4)
ODD = rows(5, 4)
NAN = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan])


def padded(mode):
    return lambda x: jnp.pad(x, ((0, 0), (1, 2), (0, 3)), mode=mode)


KINDS = np.array([0, 2, 2, 7, 0, -1, 3], np.int32)  # none of kind 1, and two of none


def segments(join):
    return lambda x, i, j: jnp.where(((j >= 0) & (j < 4))[:, None], join(x, jnp.where(i < 0, 9, i), 4)[j], 0)


LARGE = np.concatenate([np.arange(21).reshape(7, 3), np.random.default_rng(44).integers(-2 ** 63, 2 ** 63 - 1, (7, 3))], 1)


def hashed(buckets, seed):
    """By Python's integers, which have no end."""
    def wrapped(n):
        return (n + 2 ** 63) % 2 ** 64 - 2 ** 63

    def truncated(n, d):
        return abs(n) // d * (1 if n >= 0 else -1)

    def one(n):
        first = wrapped((int(n) + 2 * seed + 1) * 7046029254386353131)
        second = wrapped(wrapped(first + truncated(first, 2 ** 32)) * 6364136223846793005 + 1442695040888963407)
        return truncated(second, 2 ** 32) % buckets

    return lambda x: np.array([[one(n) for n in row] for row in np.asarray(x)], np.int32)


def mean_of(x, i, n):
    return jax.ops.segment_sum(x, i, n) / jnp.maximum(jnp.bincount(i, length=n)[:n], 1)[:, None]


def apart(seed, low, high, *shape):
    """Numbers between two, of which none is near a whole one."""
    x = np.random.default_rng(seed).uniform(low, high, (7,) + shape)
    return np.where(np.abs(x - np.round(x)) < 0.05, x + 0.1, x)


NEAR_ONE = np.array([[0, 0.25, -0.25, 0.5, 0.7], [1 - 2**-20, -1 + 2**-20, 0.999, -0.999, 1e-30], [1e-10, -1e-5, 0.49, 0.51, -0.51],
                     [0.9, -0.9, 0.99, 2**-30, 0.3], [0, 0, 0, 0, 0], [0.1, 0.2, 0.3, 0.4, 0.6], [-0.1, -0.2, -0.3, -0.4, -0.6]])
INTEGERS = ids(6, 9, 5, low=-4)

WHOLE = np.array([[-7, 7, 0, -2 ** 31, 5, 2 ** 31 - 1]] * 7, np.int32)
COUNTS = np.array([[3, -3, 5, -1, 0, 31], [1, 2, 0, 1, 32, -1], [-7, 7, 7, 3, 1, 33], [2, 2, 2, 2, 2, 2], [31, 30, 0, 0, -32, 8],
                   [4, -4, 4, -4, 4, -4], [-1, -1, -1, -1, -1, -1]], np.int32)


def with_numpy(f):
    """Integers by numpy, which warns of a division by 0 and gives 0."""
    def run(x, z):
        with np.errstate(all="ignore"):
            return f(np.asarray(x), np.asarray(z))
    return run


WHOLES = {"floor_div": np.floor_divide, "floor_mod": np.remainder, "bit_and": np.bitwise_and, "bit_or": np.bitwise_or,
          "bit_xor": np.bitwise_xor, "shift_left": np.left_shift, "shift_right": np.right_shift}

ARRAYS = [
    Case("cut(x, 1, 1, 4)", {"x": X}, lambda x: x[:, 1:4], exact=True),
    Case("cut(x, -2, 2, 2)", {"x": M}, lambda x: x[:, 2:2], gradients=False, note="nothing"),
    Case("reverse(x)", {"x": X}, lambda x: x[:, ::-1], exact=True),
    Case("reverse(x, 1)", {"x": M}, lambda x: x[:, ::-1], exact=True),
    Case("reverse(x)", {"x": INTEGERS}, lambda x: x[:, ::-1], note="of integers"),
    Case("x[:, ::2]", {"x": X}, lambda x: x[:, ::2], exact=True),
    Case("x[:, 1::3]", {"x": rows(7, 6, 2)}, lambda x: x[:, 1::3], exact=True),
    Case("x[:, ::9]", {"x": X}, lambda x: x[:, ::9], exact=True),
    Case("x[:, -5:-1:3, :, 2::4]", {"x": rows(7, 6, 2, 3)}, lambda x: x[:, -5:-1:3, :, 2::4], exact=True),
    Case("x[:, 5:2:3, ::2, 1]", {"x": rows(7, 6, 2, 3)}, lambda x: x[:, 5:2:3, ::2, 1], gradients=False, note="nothing"),
    Case("roll(x, 2)", {"x": X}, lambda x: jnp.roll(x, 2, 1), exact=True),
    Case("roll(x, -8, 1)", {"x": M}, lambda x: jnp.roll(x, -8, 1), exact=True),
    Case("roll(x, 0)", {"x": X}, lambda x: x, exact=True),
    Case("tile(x, [1, 2, 3])", {"x": M}, lambda x: jnp.tile(x, (1, 2, 3))),
    Case("repeat(x, 3)", {"x": X}, lambda x: jnp.repeat(x, 3, 1)),
    Case("repeat(x, 2, 1)", {"x": M}, lambda x: jnp.repeat(x, 2, 1)),
    Case("pad_edge(x, [0, 1, 0], [0, 2, 3])", {"x": M}, padded("edge")),
    Case("pad_reflect(x, [0, 1, 0], [0, 2, 3])", {"x": M}, padded("reflect")),
    Case("pad_symmetric(x, [0, 1, 0], [0, 2, 3])", {"x": M}, padded("symmetric")),
    Case("pad_wrap(x, [0, 1, 0], [0, 2, 3])", {"x": M}, padded("wrap")),
    Case("x @ eye(4, 3, REAL)", {"x": ODD}, lambda x: x @ jnp.eye(4, 3)),
    Case("select(lower(3, 4, 1), x, 0)", {"x": M}, lambda x: jnp.where(jnp.tri(3, 4, 1) > 0, x, 0), exact=True),
    Case("tril(x)", {"x": SQUARE}, jnp.tril, exact=True),
    Case("tril(x, -1)", {"x": M}, lambda x: jnp.tril(x, -1), exact=True),
    Case("triu(x)", {"x": SQUARE}, jnp.triu, exact=True),
    Case("triu(x, 2)", {"x": M}, lambda x: jnp.triu(x, 2), exact=True),
    Case("tril(x)", {"x": np.where(rows(8, 3, 3) > 1, np.nan, np.inf)}, jnp.tril, gradients=False, note="of NaN and Inf"),
    Case("diagonal(x)", {"x": SQUARE}, lambda x: jnp.diagonal(x, axis1=1, axis2=2), exact=True),
    Case("trace(x)", {"x": SQUARE}, lambda x: jnp.trace(x, axis1=1, axis2=2)),
    Case("cumprod(x)", {"x": V}, lambda x: jnp.cumprod(x, 1)),
    Case("cumprod(x, axis = 1, from_end = true)", {"x": M}, lambda x: jnp.cumprod(x[:, ::-1], 1)[:, ::-1]),
    Case("cummax(x)", {"x": np.arange(42.0).reshape(7, 6) * 5 % 11}, lambda x: jax.lax.cummax(x, 1)),
    Case("cummax(x)", {"x": V}, lambda x: jax.lax.cummax(x, 1), gradients=False, note="with ties"),
    Case("cummin(x, 1)", {"x": np.arange(84.0).reshape(7, 6, 2) * 5 % 13}, lambda x: jax.lax.cummin(x, 1)),
    Case("cummin(x)", {"x": INTEGERS}, lambda x: jax.lax.cummin(x, 1), note="of integers"),
    Case("gather(segment_sum(x, max(i, -9), 4), max(j, -9))", {"x": X, "i": KINDS, "j": KINDS[::-1].copy()}, segments(jax.ops.segment_sum)),
    Case("gather(segment_mean(x, max(i, -9), 4), max(j, -9))", {"x": X, "i": KINDS, "j": KINDS[::-1].copy()}, segments(mean_of)),
    Case("gather(segment_count(max(i, -9), 4, REAL), max(j, -9))", {"i": KINDS, "j": KINDS[::-1].copy()},
         lambda i, j: jnp.where((j >= 0) & (j < 4), jnp.bincount(jnp.where(i < 0, 9, i), length=10)[:4][j], 0) * 1.0),
    Case("hash(x, 1000)", {"x": LARGE}, hashed(1000, 0)), Case("hash(x, 7, seed = 5)", {"x": LARGE}, hashed(7, 5)),
    Case("hash(x, 7)", {"x": LARGE.astype(np.int32)}, hashed(7, 0), note="of i32"),
    Case("floor_mod(x, z)", {"x": rows(45, 3, 5) * 3, "z": apart(46, -2, 2, 3, 5)}, jnp.remainder, note="of floats"),
    Case("floor_mod(x, z)", {"x": np.array([[-7, 5.5, 0, -0.0, 1, -1, np.nan]] * 7),
                             "z": np.array([[2, 0, -3, 1, np.inf, np.inf, 2], [-2, np.nan, 0, -1, -np.inf, 3, 0]] * 3 + [[0.5] * 7])},
         with_numpy(np.remainder), gradients=False, note="at edges"),
    Case("floor_mod(x, -2)", {"x": X}, lambda x: jnp.remainder(x, -2.0), note="by a number"),
    *[Case(f"{name}(x, z)", {"x": WHOLE, "z": COUNTS}, with_numpy(f), note="of i32") for name, f in WHOLES.items()],
    *[Case(f"{name}(x, z)", {"x": WHOLE.astype(np.int64) << 32 | 5, "z": 2 * COUNTS.astype(np.int64)}, with_numpy(f), note="of i64")
      for name, f in WHOLES.items()],
    *[Case(f"{name}(x, z)", {"x": (WHOLE & 255).astype(np.uint8), "z": (COUNTS & 15).astype(np.uint8)}, with_numpy(f), note="of u8")
      for name, f in WHOLES.items()],
    Case("bit_or(bit_and(x, 6), 9) + bit_xor(-1, x)", {"x": WHOLE}, lambda x: ((x & 6) | 9) + (-1 ^ x), note="with numbers"),
    Case("logsumexp(x, axis = [1, 2])", {"x": M}, lambda x: special.logsumexp(x, (1, 2)), note="of several axes"),
    Case("logsumexp(x, axis = [0, 1], keep = true) + 0 * x", {"x": X}, lambda x: special.logsumexp(x) + 0 * x, types=("f32",),
         note="of the batch"),
]

A, W, T = rows(30, 3, 4), rows(31, 4, 5), rows(32, 3, 2)


def summed(letters):
    return lambda *x: jnp.einsum(letters, *x)


def einsum(letters, **inputs):
    return Case(f'einsum("{letters}", {", ".join(inputs)})', inputs, summed(letters))


EINSUMS = [
    einsum("nij,njk->nik", a=A, b=W), einsum("nij, njk -> nki", a=A, b=W), einsum("nij,njk->nki", a=A, b=W), einsum("nij,nij->nij", a=A, b=rows(33, 3, 4)),
    einsum("nij,nij->n", a=A, b=rows(33, 3, 4)), einsum("nij->nj", a=A), einsum("nij->nji", a=A), einsum("nij,nik->nijk", a=A, b=T),
    einsum("nii->ni", a=SQUARE), einsum("nii->n", a=SQUARE), einsum("nijj,nj->ni", a=rows(34, 2, 3, 3), b=rows(35, 3)),
    einsum("nij,njk,nil->nlk", a=A, b=W, c=T), einsum("nij,nkj,nk,ni->nj", a=A, b=rows(36, 2, 4), c=rows(37, 2), d=rows(38, 3)),
    einsum("nihd,njhd->nhij", a=rows(39, 3, 2, 4), b=rows(40, 5, 2, 4)), einsum("n,nij->nji", a=rows(41), b=A),
    Case('expand(x[:, 0]) * einsum("nij,nik->jk", x, z)[0]', {"x": A, "z": T},
         lambda x, z: x[:, 0][..., None] * jnp.einsum("nij,nik->jk", x, z)[0]),
    Case('einsum("nij,nik->njk", x, z)', {"x": ids(42, 5, 3, 4), "z": ids(43, 5, 3, 2)}, summed("nij,nik->njk"), note="of integers"),
]

SPECIAL = [
    Case("log_sigmoid(x)", {"x": 20 * X}, jax.nn.log_sigmoid),
    Case("log_sigmoid(x)", {"x": NAN}, jax.nn.log_sigmoid, gradients=False, note="of NaN and Inf"),
    Case("logit(x)", {"x": apart(9, 0.0, 0.9, 5)}, special.logit),
    Case("logaddexp(x, z)", {"x": X, "z": np.where(ids(10, 2, 5) > 0, X, rows(11, 5))}, jnp.logaddexp),
    Case("logaddexp(x, z)", {"x": NAN, "z": NAN[::-1].copy()}, jnp.logaddexp, gradients=False, note="of NaN and Inf"),
    Case("logaddexp(x, z)", {"x": np.repeat(NAN, 7).reshape(7, 7), "z": np.tile(NAN, 7).reshape(7, 7)}, jnp.logaddexp, gradients=False,
         note="of each with each"),
    Case("logaddexp(x, x)", {"x": NAN}, lambda x: jnp.logaddexp(x, x), gradients=False, note="of equals"),
    Case("xlogy(x, z)", {"x": np.where(ids(12, 2, 5) > 0, X, 0), "z": apart(13, 0.1, 3, 5)}, special.xlogy),
    Case("xlogy(x, z)", {"x": np.zeros(7), "z": NAN}, lambda x, z: x, gradients=False, note="of 0"),
    Case("xlogy(x, 2)", {"x": np.where(ids(12, 2, 5) > 0, X, 0)}, lambda x: special.xlogy(x, 2.0), note="a number"),
    Case("xlogy(0.5, z)", {"z": apart(13, 0.1, 3, 5)}, lambda z: special.xlogy(0.5, z), note="of a number"),
    Case("sinc(x)", {"x": X}, jnp.sinc),
    Case("normal_cdf(x)", {"x": 2 * X}, jax.scipy.stats.norm.cdf),
    Case("clip(x, none, 0.3)", {"x": X}, lambda x: jnp.minimum(x, 0.3)),
    Case("clip(x, -0.3, none) + clip(x, none, none)", {"x": X}, lambda x: jnp.maximum(x, -0.3) + x),
    Case("erfinv(x)", {"x": NEAR_ONE}, special.erfinv),
    Case("erfinv(x)", {"x": np.array([1, -1, np.nan, 2, -1.5, np.inf, -np.inf])}, special.erfinv, gradients=False, note="at its ends"),
    Case("gradient(sum(erfinv(x)), x)", {"x": apart(14, -0.9, 0.9, 5)},
         lambda x: jax.grad(lambda x: jnp.sum(special.erfinv(x)))(x), note="twice"),
    Case("gradient(sum(gradient(sum(erfinv(x)), x)), x)", {"x": apart(14, -0.9, 0.9, 5)},
         lambda x: jax.grad(lambda x: jnp.sum(jax.grad(lambda x: jnp.sum(special.erfinv(x)))(x)))(x), off=10, note="three times"),
    Case("normal_quantile(x)", {"x": apart(15, 0.06, 0.9, 5)}, special.ndtri),
    Case("lgamma(x)", {"x": np.concatenate([apart(16, -7, 9, 40), apart(17, 10, 1e4, 5), np.full((7, 2), 0.5)], 1)}, special.gammaln, off=5),
    Case("lgamma(x)", {"x": np.concatenate([apart(16, -7, 9, 40), np.full((7, 1), 1.0), np.full((7, 1), 2.0)], 1)}, special.gammaln,
         off=5, note="near its zeros"),
    Case("lgamma(x)", {"x": np.array([0.0, -1, -2, np.inf, -np.inf, np.nan, 1e-30])}, special.gammaln, gradients=False, note="at its poles"),
    Case("digamma(x)", {"x": np.concatenate([apart(18, -7, 9, 40), apart(19, 10, 1e4, 5)], 1)}, special.digamma, off=20),
    Case("gradient(sum(lgamma(x)), x)", {"x": apart(20, -4, 9, 20)}, special.digamma, off=20, note="is digamma"),
    Case("lbeta(x, z)", {"x": apart(21, 0.1, 9, 5), "z": apart(22, 0.1, 9, 5)}, lambda x, z: special.gammaln(x) + special.gammaln(z) - special.gammaln(x + z), off=20),
]
