# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of a reference: numpy or JAX in f64, where each value that a model rounds can be moved a little.

How far a result may be away from the reference is not a number that somebody has chosen. The reference is computed again
with each rounded value moved by a part of its own rounding, up or down by chance (stochastic arithmetic: Vignes, "A
stochastic arithmetic for reliable scientific computation", 1993); what the results move by is their bound. Where a step,
a tie or a comparison hangs on a rounding, the bound grows to the size of the step by itself."""
import math

import numpy as np

EPS = {"f32": 2.0 ** -24, "f64": 2.0 ** -53}
TINY = {"f32": 2.0 ** -149, "f64": 5e-324}
SMALLEST = {"f32": 2.0 ** -126, "f64": 2.2250738585072014e-308}
LARGEST = {"f32": 3.4028234663852886e38, "f64": 1.7976931348623157e308}
RANGE = {"u8": (0, 255), "i32": (-2 ** 31, 2 ** 31 - 1), "i64": (-2 ** 63, 2 ** 63 - 1)}
KINDS = {"f32": np.float64, "f64": np.float64, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "bool": np.bool_}
DRAWS = 6
MANY = 60  # before something is called wrong


def moves_of(seed):
    """From -1 to 1 by chance, the same in each run."""
    source = np.random.default_rng(seed)
    return lambda shape: source.uniform(-1.0, 1.0, size=shape)


class Arithmetic:
    """`moves`: a generator of random numbers, or None for the reference itself. `xp`: numpy or jax.numpy."""

    def __init__(self, xp, moves=None, jax=None):
        self.xp, self.moves, self.jax = xp, moves, jax
        self.training = False

    def r(self, v, dtype, ulps=1.0, scale=None):
        """A float that dgc has rounded: `ulps` roundings of its own size, or of `scale`."""
        xp = self.xp
        if dtype not in EPS:
            return v
        if dtype == "f32":
            v = xp.where(xp.abs(v) > LARGEST["f32"] * (1 + EPS["f32"]), xp.sign(v) * np.inf, v)
            v = v - self.stop(xp.where(xp.abs(v) <= TINY["f32"] / 2, v, 0.0))
        if self.moves is None:
            return v
        sign = self.moves(np.shape(v))
        size = xp.abs(v) if scale is None else scale
        size = xp.where(xp.isfinite(size), size, 0.0)
        if self.jax:  # the factor also moves the gradient that flows back
            size = self.jax.lax.stop_gradient(size)
            own = xp.where(xp.isfinite(v), v, 1.0)
            ratio = size / xp.where(xp.abs(own) > 0, xp.abs(own), 1.0)
            factor = 1.0 + self.jax.lax.stop_gradient(xp.minimum(ratio, 2.0 ** 20) * EPS[dtype] * ulps * sign)
            return v * factor
        low = xp.where((xp.abs(v) > 0) & (xp.abs(v) < SMALLEST[dtype]), TINY[dtype], 0.0)
        return v + (EPS[dtype] * ulps * size + low * ulps) * sign

    fuses = False  # whether a product and a sum may be one operation

    def term(self, product, rounded, dtype):
        """What a sum takes of a product."""
        return rounded

    def special(self, name):
        """A function that numpy lacks."""
        if self.jax:
            s = self.jax.scipy.special
            return {"erf": s.erf, "erfc": s.erfc}[name]
        return np.vectorize(getattr(math, name), otypes=[np.float64])

    def exact_max(self, a, b):
        """Between equals the left operand; NaN if one is NaN."""
        xp = self.xp
        return xp.where(xp.isnan(a) | xp.isnan(b), a + b, xp.where(a >= b, a, b))

    def exact_min(self, a, b):
        xp = self.xp
        return xp.where(xp.isnan(a) | xp.isnan(b), a + b, xp.where(a <= b, a, b))

    def abs(self, v):
        """The gradient at 0 is 0."""
        return v * self.stop(self.xp.sign(v)) if self.jax and v.dtype.kind == "f" else self.xp.abs(v)

    def stop(self, v):
        return self.jax.lax.stop_gradient(v) if self.jax else v

    def cast(self, v, source, to):
        xp = self.xp
        if to == source:
            return v
        if to == "bool":
            return v != 0
        if to in EPS:
            out = v.astype(np.float64) if source not in EPS else v
            exact = source in ("bool", "u8") or (source, to) in (("f32", "f64"), ("i32", "f64"))
            return out if exact else self.r(out, to, 0.5)
        if source in EPS:
            low, high = RANGE[to]
            whole = xp.trunc(xp.where(xp.isnan(v), 0.0, v))
            inside = xp.clip(whole, float(low), float(high) if to != "i64" else 2.0 ** 62)
            out = inside.astype(KINDS[to])
            return xp.where(whole >= float(high), KINDS[to](high), out) if to == "i64" else out
        return v.astype(KINDS[to])

    def total(self, v, axes, dtype, keep=False):
        xp = self.xp
        if dtype not in EPS:
            return xp.sum(v, axis=axes, keepdims=keep, dtype=KINDS[dtype])
        n = int(np.prod([np.shape(v)[i] for i in axes])) if axes else 1
        s = xp.sum(v, axis=axes, keepdims=keep)
        size = xp.sum(self.size(v), axis=axes, keepdims=keep)
        return self.unsure(self.r(s, dtype, max(n - 1, 0), size), size > LARGEST[dtype] / 2)

    def size(self, v):
        """Absolute values, of what is finite."""
        return self.stop(self.xp.where(self.xp.isfinite(v), self.xp.abs(v), 0.0))

    def unsure(self, v, where):
        """Any value where the order of additions decides whether they overflow."""
        if self.moves is None or self.jax:
            return v
        return np.where(where, (np.nan, 0.0, np.inf, -np.inf)[int(2 + 1.999 * self.moves(()))], v)

    def factors(self, v, axes, dtype, keep=False):
        """The product along axes. Where a part of it could leave the range of the type, nothing is known."""
        xp = self.xp
        if dtype not in EPS:
            return xp.prod(v, axis=axes, keepdims=keep, dtype=v.dtype)
        p = self.r(xp.prod(v, axis=axes, keepdims=keep), dtype, int(np.prod([np.shape(v)[i] for i in axes])))
        size = xp.log(xp.where(xp.isfinite(v) & (v != 0), xp.abs(v), 1.0))
        low = xp.sum(xp.minimum(size, 0), axis=axes, keepdims=keep) < math.log(SMALLEST[dtype])
        high = xp.sum(xp.maximum(size, 0), axis=axes, keepdims=keep) > math.log(LARGEST[dtype])
        return self.unsure(p, low | high)

    def product(self, a, b, dtype):
        """a @ b"""
        xp = self.xp
        if dtype not in EPS:
            return xp.matmul(a, b)
        size = xp.matmul(self.size(a), self.size(b))
        return self.unsure(self.r(xp.matmul(a, b), dtype, np.shape(a)[-1], size), size > LARGEST[dtype] / 2)


def bound(reference, moved, dtype):
    """How far a result in `dtype` may be from the reference, by element: inf where nothing is known."""
    if dtype not in EPS:
        same = np.ones(np.shape(reference), bool)
        for m in moved:
            same &= np.asarray(m == reference)
        return np.where(same, 0.0, np.inf)
    with np.errstate(all="ignore"):
        finite = np.isfinite(reference)
        size = np.where(finite, np.abs(reference), 0.0)
        worst, known = np.zeros(np.shape(reference)), np.ones(np.shape(reference), bool)
        for m in moved:
            known &= (np.isfinite(m) == finite) & (np.isnan(m) == np.isnan(reference))
            worst = np.maximum(worst, np.where(finite & np.isfinite(m), np.abs(m - reference), 0.0))
        # The draws meet the worst case seldom: eight times what they show.
        far = 8 * worst + 4 * EPS[dtype] * size + 2 * SMALLEST[dtype] * (dtype == "f32") * (worst > 0)
        if dtype == "f64":
            far = np.maximum(far, 1e-9 * size + 1e-300)
        else:
            known &= ~finite | (size < LARGEST["f32"] * (1 - 2.0 ** -16))
        return np.where(known, far, np.inf)


def differs(got, reference, far):
    """Where `got` is not the reference within its bound; NaN equals NaN, an infinity itself."""
    with np.errstate(all="ignore"):
        got = np.asarray(got).astype(np.float64) if np.asarray(got).dtype.kind == "f" else np.asarray(got)
        if got.dtype.kind != "f":
            return (got != reference) & (far < np.inf)
        same = (got == reference) | (np.isnan(got) & np.isnan(reference))
        return ~same & ~(np.abs(got - reference) <= far) & (far < np.inf)
