#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes kinks.def: values and gradients of functions at their kinks and poles, by TensorFlow and JAX in f64.

  kinks.py > kinks.def     refuses to write a row on which they do not say what the row claims

The suite `oracle` holds what JAX says against what dgc gives: tests/oracle/kinks.py.

Each row says whose gradient dgc has there: `both` where they agree, else `tensorflow` or `jax`, or `own` with numbers
of its own, where neither has the function or both are no good: NaN among numbers that are the same; `value` where only values of
both are NaN. docs/language.md gives the reasons."""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import jax
import jax.numpy as jnp
import numpy as np


class Absent:
    """TensorFlow where it is not installed: rows can be read, of what JAX says; kinks.def can't be written."""

    def __getattr__(self, name):
        return self

    def __call__(self, *_, **__):
        return self


try:
    import tensorflow as tf
except ImportError:
    tf = Absent()
jax.config.update("jax_enable_x64", True)
np.seterr(all="ignore")
inf, nan = np.inf, np.nan
m, n = tf.math, tf.experimental.numpy
SMALL = 2.0 ** -10

AROUND = [-inf, -2, -1, -SMALL, -0.0, 0.0, SMALL, 1, 2, inf, nan]
UNIT = [-2, -1, -0.5, -0.0, 0.0, 0.5, 1, 2, nan]
PAIRS = ([1, 1, 2, 0, -0.0, nan, 1, nan, inf, inf, -inf], [0, 1, 1, -0.0, 0, 1, nan, nan, inf, 1, -inf])
TIES = [[1, 1, 0], [2, 2, 2], [nan, 1, 1], [inf, inf, 0], [-inf, -inf, -inf]]
ORDER = [[1, 1, 0, 2, 1], [2, 2, 2, 2, 2], [3, -1, 3, 5, -1], [inf, -inf, 1, inf, 0], [5, 4, 3, 2, 1]]
VECTORS = [[0, 0], [3, 4], [0, 1], [-0.0, 0]]
LOGITS = [[1, 1], [-inf, -inf], [inf, 1], [inf, inf], [-inf, 1], [nan, 1], [1000, 999]]

ROWS = []


def by_class(x, f, slope):
    """f of the probability of class 0, which has the slope `slope` by it, and the gradient by logits."""
    p = np.exp(np.array(x) - np.max(x, 1, keepdims=True))
    p = p / p.sum(1, keepdims=True)
    return f(p[:, 0]), (slope(p[:, 0]) * p[:, 0])[:, None] * (np.eye(p.shape[1])[0] - p)


def focal(lib, logs, gamma):
    """As torch's users write it: of class 0."""
    entropy = -logs[:, 0]
    return (1 - lib.exp(-entropy)) ** gamma * entropy


def row(name, text, theirs, jaxes, *operands, whose="both", own=None):
    """`text` is the language's; theirs and jaxes are those of TensorFlow and JAX, None where they have none."""
    ROWS.append((name, text, theirs, jaxes, [np.array(x, np.float64) for x in operands], whose, own))


def unary(name, theirs, jaxes, points=AROUND, text=None, **more):
    row(name, text or name + "(x)", theirs, jaxes, points, **more)


def tf_stop(f):
    """A step function: TensorFlow has no gradient, or 0, of these."""
    return lambda x: f(x) + 0 * tf.where(m.is_finite(x), x, 0)


# ---- activations ----
unary("relu", tf.nn.relu, jax.nn.relu)
unary("relu6", tf.nn.relu6, jax.nn.relu6, [-inf, -1, -0.0, 0.0, SMALL, 3, 6, 7, inf, nan])
unary("leaky_relu", lambda x: tf.where(x > 0, x, 0.25 * x), lambda x: jax.nn.leaky_relu(x, 0.25), whose="tensorflow",
      text="leaky_relu(x, 0.25)")
unary("elu", tf.nn.elu, jax.nn.elu, whose="jax")
unary("elu", lambda x: tf.keras.activations.elu(x, 0.5), lambda x: jax.nn.elu(x, 0.5), text="elu(x, 0.5)", whose="jax")
unary("selu", tf.nn.selu, jax.nn.selu, whose="jax")
unary("hard_sigmoid", tf.keras.activations.hard_sigmoid, jax.nn.hard_sigmoid, [-inf, -4, -3, 0, 1, 3, 4, inf, nan])
unary("softsign", m.softsign, jax.nn.soft_sign, whose="jax")
unary("softplus", m.softplus, jax.nn.softplus)
unary("mish", tf.keras.activations.mish, jax.nn.mish, [-2, -0.0, 0.0, 2])

# ---- absolute values, steps, bounds ----
unary("abs", m.abs, jnp.abs, whose="tensorflow")
unary("sign", m.sign, jnp.sign)
for name in ["floor", "ceil", "round"]:
    unary(name, tf_stop(getattr(m, name)), getattr(jnp, name), AROUND[1:-2] + [0.5, 1.5])
unary("trunc", tf_stop(lambda x: tf.where(x < 0, m.ceil(x), m.floor(x))), jnp.trunc, AROUND[1:-2] + [0.5, 1.5])
for name in ["round_bf16", "round_f16"]:
    unary(name, None, None, [-1, -0.0, 0.0, 1, 3], whose="own", own=([-1, 0, 0, 1, 3], [1] * 5),
          text=name + "(x) if dtype(x) == f32 else x")
unary("clip", lambda x: tf.clip_by_value(x, -1, 1), lambda x: jnp.clip(x, -1, 1), text="clip(x, -1, 1)",
      whose="tensorflow")
row("max", "max(x, z)", m.maximum, jnp.maximum, *PAIRS, whose="own",
    own=(np.maximum(*PAIRS), [1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1], [0] * 11))
row("min", "min(x, z)", m.minimum, jnp.minimum, *PAIRS, whose="own",
    own=(np.minimum(*PAIRS), [0, 1, 0, 1, 1, 0, 0, 0, 1, 0, 1], [1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0]))
row("fdim", "fdim(x, z)", lambda a, b: tf.nn.relu(a - b), lambda a, b: jax.nn.relu(a - b), [1, 2, 1, nan, 1],
    [1, 1, 2, 1, nan])
SIGNS = ([1, -1, 0, -0.0, 1, 1, -2], [1, 1, 1, 1, 0, -0.0, -3])
row("copysign", "copysign(x, z)", None, jnp.copysign, *SIGNS, whose="own",
    own=(np.copysign(*SIGNS), [1, -1, 1, -1, 1, -1, 1], [0] * 7))

# ---- quotients, powers, roots, logarithms ----
row("div", "x / z", m.divide, jnp.divide, [1, 0, -1, 0, inf, 1, 1], [0, 0, 0, 1, inf, inf, -0.0])
row("ratio", "ratio(x, z)", m.divide_no_nan, None, [1, 0, -1, 0, 6], [0, 0, -0.0, 1, 2], whose="tensorflow")
row("mod", "x % z", None, jnp.fmod, [6, -6, 6, 5, -5, 0, 5, inf, 5], [3, 3, -3, 3, 3, 3, 0, 2, inf], whose="jax")
row("pow", "x ^ z", m.pow, jnp.power,
    [0, 0, 0, 0, 0, 0, -1, -2, -2, 1, 2, -0.0, inf, 0, 0, nan, 1, -8],
    [2, 1, 0, 0.5, -1, 3, 2, 3, 0.5, 0, 0, 1, 2, 1.5, -0.5, 0, nan, 0], whose="tensorflow")
for power in ["0.5", "2", "3", "1"]:
    unary("pow", lambda x, p=float(power): m.pow(x, p), lambda x, p=float(power): jnp.power(x, p), [-1, 0, 1, 4],
          text="x ^ " + power)
unary("sqrt", m.sqrt, jnp.sqrt)
unary("rsqrt", m.rsqrt, jax.lax.rsqrt, whose="jax")
unary("cbrt", n.cbrt, jnp.cbrt, whose="jax")
unary("log", m.log, jnp.log)
unary("log2", n.log2, jnp.log2)
unary("log10", n.log10, jnp.log10)
unary("log1p", m.log1p, jnp.log1p)

# ---- trigonometry ----
unary("tan", m.tan, jnp.tan, [-0.0, 0.0, inf, nan])
unary("asin", m.asin, jnp.arcsin, UNIT)
unary("acos", m.acos, jnp.arccos, UNIT)
unary("atanh", m.atanh, jnp.arctanh, UNIT)
unary("acosh", m.acosh, jnp.arccosh, [-2, -1, 0, 0.5, 1, 2, inf, nan], whose="jax")
row("atan2", "atan2(x, z)", m.atan2, jnp.arctan2, [0, 0, -0.0, 1, 0, -1, inf], [0, 1, -1, 0, -1, 0, inf])
row("hypot", "hypot(x, z)", n.hypot, jnp.hypot, [0, 0, 3, -0.0, inf, nan], [0, 1, 4, 0, 1, 1], whose="tensorflow")

# ---- reductions ----
row("reduce_max", "max(x, axis = 1)", lambda x: m.reduce_max(x, axis=1), lambda x: jnp.max(x, axis=1), TIES)
row("reduce_min", "min(x, axis = 1)", lambda x: m.reduce_min(x, axis=1), lambda x: jnp.min(x, axis=1), TIES)
row("sort", "sort(x)[:, 3]", lambda x: tf.sort(x, axis=1)[:, 3], lambda x: jnp.sort(x, axis=1)[:, 3], ORDER)
row("sort", "sort(x, descending = true)[:, 1]", lambda x: tf.sort(x, axis=1, direction="DESCENDING")[:, 1],
    lambda x: jnp.sort(x, axis=1, descending=True)[:, 1], ORDER, whose="tensorflow")
row("top_k", "top_k(x, 2)[0][:, 1]", lambda x: m.top_k(x, 2)[0][:, 1], lambda x: jax.lax.top_k(x, 2)[0][:, 1], ORDER)
row("reduce_prod", "prod(x, axis = 1)", lambda x: m.reduce_prod(x, axis=1), lambda x: jnp.prod(x, axis=1),
    [[2, -0.5, 3], [0, 1.5, -2], [0, 4, 0], [0, 0, 0], [1, 2, -0.0]])
row("variance", "variance(x, axis = 1)", lambda x: m.reduce_variance(x, axis=1), lambda x: jnp.var(x, axis=1),
    [[1, 1], [1, 2], [0, 0]])
row("stddev", "stddev(x, axis = 1)", lambda x: m.reduce_std(x, axis=1), lambda x: jnp.std(x, axis=1),
    [[1, 1], [1, 2], [0, 0]])
row("norm", "norm(x, axis = 1)", lambda x: tf.norm(x, axis=1), lambda x: jnp.linalg.norm(x, axis=1), VECTORS)
row("l2_normalize", "l2_normalize(x, axis = 1)", lambda x: m.l2_normalize(x, axis=1),
    lambda x: x * jax.lax.rsqrt(jnp.maximum(jnp.sum(x * x, axis=1, keepdims=True), 1e-12)), VECTORS)
row("logsumexp", "logsumexp(x, axis = 1)", lambda x: m.reduce_logsumexp(x, axis=1),
    lambda x: jax.nn.logsumexp(x, axis=1), LOGITS)
row("logsumexp", "logsumexp(x, axis = [0, 1])", lambda x: m.reduce_logsumexp(x, axis=[0, 1]),
    lambda x: jax.nn.logsumexp(x, axis=[0, 1]), [[1, 2], [-3, 4]])
row("softmax", "softmax(x, axis = 1)[:, 0]", lambda x: tf.nn.softmax(x, axis=1)[:, 0],
    lambda x: jax.nn.softmax(x, axis=1)[:, 0], LOGITS)
# Rows of q that f32 holds, and not times 1 / log(2).
FAR, NEAR = 1.75 * 2.0 ** 127, [2.0 ** -125 * i for i in (1, 1.25, 1.5, 1.75)]
row("dot_product_attention",
    "dot_product_attention(expand(expand(x[:, 0:1])), expand(expand(x[:, 1:5])), expand(expand(z[:, 1:5])))[:, 0, 0, 0]",
    lambda x, z: tf.reduce_sum(tf.nn.softmax(x[:, 0:1] * x[:, 1:5]) * z[:, 1:5], axis=1),
    lambda x, z: jnp.sum(jax.nn.softmax(x[:, 0:1] * x[:, 1:5]) * z[:, 1:5], axis=1),
    [[-FAR] + NEAR, [FAR] + [-k for k in NEAR], [FAR] + 4 * [-NEAR[0]]], 3 * [[0, 1, 5, 2, 3]])
row("log_softmax", "log_softmax(x, axis = 1)[:, 0]", lambda x: tf.nn.log_softmax(x, axis=1)[:, 0],
    lambda x: jax.nn.log_softmax(x, axis=1)[:, 0], LOGITS)

# ---- losses ----
row("softmax_cross_entropy", "softmax_cross_entropy(x, iota(i32[7], axis = 0) * 0)",
    lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits([0] * 7, x), lambda x: -jax.nn.log_softmax(x, axis=1)[:, 0],
    LOGITS)
row("sigmoid_cross_entropy", "sigmoid_cross_entropy(x, z)",
    lambda x, z: tf.nn.sigmoid_cross_entropy_with_logits(z, x), lambda x, z: jax.nn.softplus(x) - x * z,
    [0, -0.0, 1, 2, -2], [0, 1, 0.5, 1, 0])
# What is infinite and has no share counts for nothing: theirs multiply 0 by Inf.
MASKED = [[0.5, 1, -inf], [3, -inf, -inf], [1, 2, 3]]
row("softmax_cross_entropy", "softmax_cross_entropy(x, one_hot(iota(i32[3]) * 0, 3, dtype(x)))",
    lambda x: tf.nn.softmax_cross_entropy_with_logits(tf.one_hot([0] * 3, 3, dtype=x.dtype), x),
    lambda x: -jnp.sum(jax.nn.one_hot([0] * len(x), 3) * jax.nn.log_softmax(x), 1), MASKED, whose="value",
    own=by_class(MASKED, lambda p: -np.log(p), lambda p: -1 / p))
row("sigmoid_cross_entropy", "sigmoid_cross_entropy(x, cast(x > 0, dtype(x)))",
    lambda x: tf.nn.sigmoid_cross_entropy_with_logits(tf.cast(x > 0, x.dtype), x),
    lambda x: jax.nn.softplus(x) - x * (x > 0), [inf, -inf], whose="value", own=([0, 0], [0, 0]))
for gamma, owner in [(2.0, "both"), (0.5, "own"), (0.0, "own")]:
    row("focal_loss", "focal_loss(x, iota(i32[4]) * 0, %g)" % gamma,
        lambda x, g=gamma: focal(tf, tf.nn.log_softmax(x), g),
        lambda x, g=gamma: focal(jnp, jax.nn.log_softmax(x), g), MASKED + [[1000, 0, -1000]], whose=owner,
        own=by_class(MASKED + [[1000, 0, -1000]], lambda p: -np.where(p < 1, 1 - p, 0) ** gamma * np.log(p),
                     lambda p: np.where(p < 1, gamma * (1 - p) ** (gamma - 1) * np.log(p) - (1 - p) ** gamma / p, 0)))
row("absolute_error", "absolute_error(x, z)", lambda x, z: m.abs(x - z), lambda x, z: jnp.abs(x - z),
    [0, 1, -1, -0.0], [0, 0, 0, 0], whose="tensorflow")


def optax_huber(x, z):
    error = jnp.abs(x - z)
    quadratic = jnp.minimum(error, 1)
    return 0.5 * quadratic ** 2 + (error - quadratic)


row("huber", "huber(x, z)", lambda x, z: tf.stack([tf.keras.losses.huber(z[i:i + 1], x[i:i + 1]) for i in range(7)]),
    optax_huber, [0, 1, -1, 2, -2, 0.5, -0.0], [0, 0, 0, 0, 0, 0, 0])
row("sum_by_nonzero_weights", "sum_by_nonzero_weights(x, z)",
    lambda x, z: m.divide_no_nan(m.reduce_sum(x * z), m.reduce_sum(tf.where(z != 0, tf.ones_like(z), 0))),
    None, [1, 2, 3], [0, 0, 0], whose="tensorflow")
row("weighted_mean", "weighted_mean(x, z)", lambda x, z: m.divide_no_nan(m.reduce_sum(x * z), m.reduce_sum(z)), None,
    [1, 2, 3], [0, 0, 0], whose="tensorflow")


def by_tensorflow(f, operands):
    x = [tf.constant(v) for v in operands]
    with tf.GradientTape() as tape:
        for v in x:
            tape.watch(v)
        y = f(*x)
    d = tape.gradient(y, x)
    return [y.numpy()] + [np.zeros(v.shape) if g is None else tf.convert_to_tensor(g).numpy() for v, g in zip(x, d)]


def by_jax(f, operands):
    x = [jnp.asarray(v) for v in operands]
    d = jax.grad(lambda *a: f(*a).sum(), argnums=tuple(range(len(x))))(*x)
    return [np.asarray(v) for v in (f(*x),) + d]


def same(a, b):
    return all(np.allclose(p, q, rtol=1e-11, atol=1e-15, equal_nan=True) for p, q in zip(a, b))


def fills(own, theirs):
    """Theirs are NaN somewhere, and own has their numbers elsewhere."""
    known = [~np.isnan(v) for v in theirs]
    return not all(k.all() for k in known) and same([np.asarray(v)[k] for v, k in zip(own, known)],
                                                    [v[k] for v, k in zip(theirs, known)])


def decide(name, text, theirs, jaxes, operands, whose, own):
    tensorflow = theirs and by_tensorflow(theirs, operands)
    jaxs = jaxes and by_jax(jaxes, operands)
    agree = tensorflow and jaxs and same(tensorflow, jaxs)
    lacks = agree and whose in ("own", "value") and fills(own, jaxs)
    if (whose == "both") != bool(agree) and not lacks:
        sys.stderr.write("%s is `%s`\n  TensorFlow: %s\n  JAX: %s\n" % (text, whose, tensorflow, jaxs))
        return None
    if whose in ("own", "value"):
        own = [np.array(v, np.float64) for v in own]
        if any(r and same(own, r) for r in (tensorflow, jaxs)):
            sys.stderr.write("%s is not dgc's own\n" % text)
            return None
        return own
    return jaxs if whose == "jax" else tensorflow


def number(x):
    if np.isnan(x):
        return "NAN"
    if np.isinf(x):
        return "INFINITY" if x > 0 else "-INFINITY"
    return "%d" % x if x == int(x) and abs(x) < 1e9 and (x or not np.signbit(x)) else repr(float(x))


def numbers(values):
    return "LIST(%s)" % ", ".join(number(x) for x in np.ravel(values)) if np.size(values) else "NONE"


def main():
    if isinstance(tf, Absent):
        return "kinks.py needs TensorFlow"
    wrong = 0
    print("""/* SPDX-License-Identifier: Apache-2.0 */
/* Functions at their kinks and poles, by TensorFlow %s and JAX %s in f64. kinks.py writes this.
 *
 * KINK(name, expression, whose, columns, x, z, y, gradient by x, gradient by z) of the sum of y; columns: of x, 0 if
 * it has one axis; z is NONE in functions of x alone. */""" % (tf.__version__, jax.__version__))
    for name, text, theirs, jaxes, operands, whose, own in ROWS:
        result = decide(name, text, theirs, jaxes, operands, whose, own)
        if result is None:
            wrong += 1
            continue
        y, dx = result[:2]
        z, dz = (operands[1], result[2]) if len(operands) > 1 else ([], [])
        columns = operands[0].shape[1] if operands[0].ndim > 1 else 0
        print('KINK("%s", "%s", "%s", %d,' % (name, text, whose, columns))
        print(",\n".join("     " + numbers(v) for v in (operands[0], z, y, dx, dz)) + ")")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
