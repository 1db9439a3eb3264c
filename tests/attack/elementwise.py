# SPDX-License-Identifier: Apache-2.0
"""The elementwise functions: what each is in numpy, and where its operands may lie.

A row: name, operands' types (float number test bool integer intbool compare any single), range of the operands, roundings
of the result (0: exact), the function. `m` is the arithmetic, `d` the element type."""
import numpy as np


def sigmoid(m, x):
    return 1 / (1 + m.xp.exp(-x))


def softplus(m, x):
    xp = m.xp
    if m.jax:
        return m.jax.nn.softplus(x)
    return m.exact_max(x, np.zeros(())) + xp.log1p(xp.exp(-xp.abs(x)))


def sign(m, x):
    xp = m.xp
    return xp.where(x > 0, xp.ones_like(x), xp.where(x < 0, -xp.ones_like(x) if x.dtype != np.uint8 else x, m.stop(x)))


def divide(m, a, b):
    xp = m.xp
    if a.dtype.kind == "f":
        return a / b
    safe = xp.where(b == 0, xp.ones_like(b), b)
    if a.dtype == np.uint8:
        return xp.where(b == 0, xp.zeros_like(a), a // safe)
    flip = safe == -1  # the least integer by -1 is itself
    safe = xp.where(flip, xp.ones_like(safe), safe)
    q = (a - remainder_of(m, a, safe)) // safe
    return xp.where(b == 0, xp.zeros_like(a), xp.where(flip, -a, q))


def remainder_of(m, a, b):
    return m.jax.lax.rem(*m.xp.broadcast_arrays(a, b)) if m.jax else np.fmod(a, b)


def mod(m, a, b):
    xp = m.xp
    if a.dtype.kind == "f":
        if not m.jax:
            return np.fmod(a, b)
        return a - m.xp.trunc(a / b) * b
    safe = xp.where((b == 0) | (b == -1 if b.dtype != np.uint8 else False), xp.ones_like(b), b)
    return xp.where(safe == b, remainder_of(m, a, safe), xp.zeros_like(a))


def power(m, a, b):
    """By b the gradient is 0 where a is not positive and the value finite, NaN where it is not."""
    xp = m.xp
    if m.jax is None:
        return np.power(a, b)
    safe, y = xp.power(xp.where(a > 0, m.stop(a), 1.0), b), xp.power(a, m.stop(b))
    nan = xp.sqrt(xp.where((a > 0) | xp.isfinite(y), 1.0, b - m.stop(b)) ** 2)  # a root's gradient at 0
    return y + xp.where(a > 0, safe - m.stop(safe), 0.0) + nan - m.stop(nan)


def hypot(m, a, b):
    """The gradient at (0, 0) is NaN, as that of a norm."""
    return m.xp.sqrt(a * a + b * b) if m.jax else np.hypot(a, b)


def copysign(m, a, b):
    """The gradient at 0 is 1 or -1 too, by the signs."""
    xp = m.xp
    return a * m.stop(xp.where(xp.signbit(a) == xp.signbit(b), 1.0, -1.0)) if m.jax else np.copysign(a, b)


def round_bf16(m, x):
    if m.jax:
        near = m.xp.where(m.xp.abs(x) < 2.0**-126, 0 * x, m.xp.asarray(x, np.float32).astype(m.xp.bfloat16).astype(np.float64))
        near = x + m.stop(near - x)
        return near
    with np.errstate(all="ignore"):
        bits = np.asarray(x, np.float32).view(np.uint32)
        up = bits + np.uint32(0x7fff) + ((bits >> np.uint32(16)) & np.uint32(1))
        up = np.where(np.isnan(x), bits | np.uint32(0x400000), up) & np.uint32(0xffff0000)
        up = np.where(bits & np.uint32(0x7f800000), up, bits & np.uint32(0x80000000))
        return up.astype(np.uint32).view(np.float32).astype(np.float64)


def round_f16(m, x):
    if m.jax:
        return x + m.stop(m.xp.asarray(x, np.float32).astype(np.float16).astype(np.float64) - x)
    with np.errstate(all="ignore"):
        return np.asarray(x, np.float32).astype(np.float16).astype(np.float64)


def direct(name):
    return lambda m, *a: getattr(m.xp, name)(*a)


UNARY = [  # name, types, range, roundings, function
    ("identity", "any", None, 0, lambda m, x: x),
    ("stop_gradient", "any", None, 0, lambda m, x: m.stop(x)),
    ("abs", "number", None, 0, lambda m, x: m.abs(x)),
    ("sign", "number", None, 0, sign),
    ("floor", "float", None, 0, direct("floor")),
    ("ceil", "float", None, 0, direct("ceil")),
    ("round", "float", None, 0, direct("round")),
    ("trunc", "float", None, 0, direct("trunc")),
    ("round_bf16", "single", None, 0, round_bf16),
    ("round_f16", "single", None, 0, round_f16),
    ("square", "number", None, 1, lambda m, x: x * x),
    ("sqrt", "float", "positive", 1, direct("sqrt")),
    ("rsqrt", "float", "positive", 2, lambda m, x: 1 / m.xp.sqrt(x)),
    ("cbrt", "float", None, 8, direct("cbrt")),
    ("exp", "float", "small", 8, direct("exp")),
    ("exp2", "float", "small", 8, direct("exp2")),
    ("expm1", "float", "small", 8, direct("expm1")),
    ("log", "float", "positive", 8, direct("log")),
    ("log2", "float", "positive", 8, direct("log2")),
    ("log10", "float", "positive", 8, direct("log10")),
    ("log1p", "float", "positive", 8, direct("log1p")),
    ("sin", "float", None, 8, direct("sin")),
    ("cos", "float", None, 8, direct("cos")),
    ("tan", "float", "small", 8, direct("tan")),
    ("asin", "float", "unit", 8, direct("arcsin")),
    ("acos", "float", "unit", 8, direct("arccos")),
    ("atan", "float", None, 8, direct("arctan")),
    ("sinh", "float", "small", 8, direct("sinh")),
    ("cosh", "float", "small", 8, direct("cosh")),
    ("tanh", "float", None, 8, direct("tanh")),
    ("asinh", "float", None, 8, direct("arcsinh")),
    ("acosh", "float", "above_one", 8, direct("arccosh")),
    ("atanh", "float", "unit", 8, direct("arctanh")),
    ("erf", "float", None, 8, lambda m, x: m.special("erf")(x)),
    ("erfc", "float", None, 8, lambda m, x: m.special("erfc")(x)),
    ("sigmoid", "float", None, 10, sigmoid),
    ("softplus", "float", None, 10, softplus),
    ("is_nan", "test", None, 0, direct("isnan")),
    ("is_inf", "test", None, 0, direct("isinf")),
    ("is_finite", "test", None, 0, direct("isfinite")),
    ("not", "bool", None, 0, direct("logical_not")),
    ("neg", "number", None, 0, lambda m, x: -x),
]

BINARY = [
    ("add", "number", None, 1, lambda m, a, b: a + b),
    ("sub", "number", None, 1, lambda m, a, b: a - b),
    ("mul", "number", None, 1, lambda m, a, b: a * b),
    ("div", "number", "nonzero", 1, divide),
    ("mod", "number", "nonzero", 0, mod),
    ("pow", "float", "power", 16, power),
    ("max", "any", None, 0, lambda m, a, b: a | b if a.dtype == bool else m.exact_max(a, b)),
    ("min", "any", None, 0, lambda m, a, b: a & b if a.dtype == bool else m.exact_min(a, b)),
    ("atan2", "float", None, 8, direct("arctan2")),
    ("hypot", "float", None, 8, hypot),
    ("fdim", "float", None, 1, lambda m, a, b: m.xp.where(a <= b, 0.0, a - b)),
    ("copysign", "float", None, 0, copysign),
    ("eq", "compare", None, 0, lambda m, a, b: a == b),
    ("ne", "compare", None, 0, lambda m, a, b: a != b),
    ("lt", "compare", None, 0, lambda m, a, b: a < b),
    ("le", "compare", None, 0, lambda m, a, b: a <= b),
    ("gt", "compare", None, 0, lambda m, a, b: a > b),
    ("ge", "compare", None, 0, lambda m, a, b: a >= b),
    ("and", "bool", None, 0, lambda m, a, b: a & b),
    ("or", "bool", None, 0, lambda m, a, b: a | b),
    ("xor", "intbool", None, 0, lambda m, a, b: a ^ b),
    ("shift_left", "integer", None, 0, lambda m, a, b: m.xp.left_shift(a, b)),
    ("shift_right", "integer", None, 0, lambda m, a, b: m.xp.right_shift(a, b)),
]

# What the language writes as an operator, and not as a call.
OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "pow": "^", "eq": "==", "ne": "!=", "lt": "<",
             "le": "<=", "gt": ">", "ge": ">=", "and": "and", "or": "or"}

# Made of these by the library: name, roundings, function. Where m.jax computes the reference itself, its own is taken.
def elu(m, x, d, alpha):
    low = m.exact_min(x, m.xp.zeros(()))
    return m.xp.where(x > 0, x, m.r(alpha * m.r(m.xp.expm1(low), d, 8), d))


def gelu(m, x, d):
    if m.jax and m.moves is None:
        return m.jax.nn.gelu(x, approximate=False)
    return m.r(0.5 * x, d) * m.r(1 + m.r(m.special("erf")(m.r(x * 0.7071067811865476, d, 2)), d, 8), d)


def relu(m, x, d):
    return m.jax.nn.relu(x) if m.jax else m.exact_max(x, np.zeros(()))


def relu6(m, x, d):
    return m.jax.nn.relu6(x) if m.jax else m.exact_min(m.exact_max(x, np.zeros(())), np.full((), 6.0))


def hard_sigmoid(m, x, d):
    y = m.r(m.r(x / 6, d) + 0.5, d)
    return m.jax.nn.relu6(6 * y) / 6 if m.jax else m.exact_min(m.exact_max(y, np.zeros(())), np.ones(()))


ACTIVATIONS = [
    ("relu", 0, relu),
    ("relu6", 0, relu6),
    ("leaky_relu", 1, lambda m, x, d: m.xp.where(x > 0, x, x * 0.01)),
    ("elu", 1, lambda m, x, d: elu(m, x, d, 1.0)),
    ("selu", 2, lambda m, x, d: 1.0507009873554805 * elu(m, x, d, 1.6732632423543772)),
    ("gelu", 2, gelu),
    ("silu", 1, lambda m, x, d: x * m.r(sigmoid(m, x), d, 10)),
    ("mish", 1, lambda m, x, d: x * m.r(m.xp.tanh(m.r(softplus(m, x), d, 10)), d, 8)),
    ("softsign", 4, lambda m, x, d: x / (1 + m.abs(x))),
    ("hard_sigmoid", 0, hard_sigmoid),
]
