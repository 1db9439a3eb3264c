# SPDX-License-Identifier: Apache-2.0
"""gradients.py DGC: gradient(y, x) beside jax.grad, in f64: first and second order at kinks and poles, up to the third of
smooth functions and of what moves, joins and multiplies elements. On one tower, by the compiled backend and the interpreter;
and on three uneven ones, which give the same bits on one device and on three."""
import importlib.util
import os
import re
import sys
import tempfile

os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import erfc

from twin import Twin, differs

jax.config.update("jax_enable_x64", True)
np.seterr(all="ignore")
ROWS, MOST = 19, 1e-11  # rows of each input; how far off a number may be, of the largest beside it

# Rows of tests/ops/kinks.py whose second derivative is not JAX's where the first is, and why.
ELSEWHERE = {
    "softsign(x)": "at 0, where it jumps from 2 to -2: 0, by abs; JAX -2, as from the right",
    "cbrt(x)": "at its pole, and at infinity: NaN",
    "atanh(x)": "at its poles: infinite; JAX NaN",
    "huber(x, z)": "at its edges: TensorFlow's 1; what JAX has is shared between two functions",
}


def smooth(text, function, low=-1.5, high=1.5):
    return text, function, [(ROWS,)], (low, high), 3


def tensor(text, function, *shape, order=3):
    return text, function, [(ROWS,) + shape], (-1.5, 1.5), order


KERNEL = [[[0.5, -1], [2, 0.25]], [[1, 1], [-1, 0.5]], [[0.125, 2], [1, -0.5]]]  # 3 places, 2 channels to 2


def conv(x):
    return lax.conv_general_dilated(x, jnp.asarray(KERNEL), (2,), [(0, 0)], dimension_numbers=("NWC", "WIO", "NWC"))


def window(x, join, first):
    return lax.reduce_window(x, first, join, (1, 3, 1), (1, 2, 1), "VALID")


def attention(x):
    s = jnp.einsum("bihd,bjhd->bhij", x, x) / jnp.sqrt(2.0)
    return jnp.einsum("bhij,bjhd->bihd", jax.nn.softmax(s), x * x)


SMOOTH = [
    smooth("exp(x)", jnp.exp), smooth("exp2(x)", jnp.exp2), smooth("expm1(x)", jnp.expm1), smooth("sin(x)", jnp.sin),
    smooth("cos(x)", jnp.cos), smooth("tan(x)", jnp.tan), smooth("atan(x)", jnp.arctan), smooth("sinh(x)", jnp.sinh),
    smooth("cosh(x)", jnp.cosh), smooth("tanh(x)", jnp.tanh), smooth("asinh(x)", jnp.arcsinh), smooth("erf(x)", lax.erf),
    smooth("erfc(x)", erfc), smooth("sigmoid(x)", jax.nn.sigmoid), smooth("softplus(x)", jax.nn.softplus),
    smooth("gelu(x)", lambda x: jax.nn.gelu(x, approximate=False)), smooth("silu(x)", jax.nn.silu), smooth("mish(x)", jax.nn.mish),
    smooth("square(x)", jnp.square), smooth("x ^ 3", lambda x: x ** 3), smooth("identity(x)", lambda x: x),
    smooth("asin(x)", jnp.arcsin, -0.8, 0.8), smooth("acos(x)", jnp.arccos, -0.8, 0.8), smooth("atanh(x)", jnp.arctanh, -0.8, 0.8),
    smooth("acosh(x)", jnp.arccosh, 1.2, 3), smooth("log(x)", jnp.log, 0.5, 3), smooth("log2(x)", jnp.log2, 0.5, 3),
    smooth("log10(x)", jnp.log10, 0.5, 3), smooth("log1p(x)", jnp.log1p, 0.5, 3), smooth("sqrt(x)", jnp.sqrt, 0.5, 3),
    smooth("rsqrt(x)", lax.rsqrt, 0.5, 3), smooth("cbrt(x)", jnp.cbrt, 0.5, 3), smooth("x ^ 2.5", lambda x: x ** 2.5, 0.5, 3),
    smooth("x * stop_gradient(x)", lambda x: x * lax.stop_gradient(x)), smooth("floor(x) * x", lambda x: jnp.floor(x) * x),
    tensor("x @ transpose(x)", lambda x: x @ jnp.swapaxes(x, 1, 2), 3, 2),
    tensor("conv(x * x, cast(%s, f64), strides = 2)" % KERNEL, lambda x: conv(x * x), 7, 2),
    tensor("window_max(x * x, 3, strides = 2)", lambda x: window(x * x, lax.max, -jnp.inf), 7, 2),
    tensor("window_sum(x * x, 3, strides = 2)", lambda x: window(x * x, lax.add, 0.0), 7, 2),
    tensor("dot_product_attention(x, x, x * x)", attention, 4, 1, 2, order=2),
    tensor("cumsum(x * x, 1, reverse = true)", lambda x: jnp.cumsum((x * x)[:, ::-1], 1)[:, ::-1], 4),
    tensor("take_along(x * x, argsort(x, 1), 1)[:, 1:3]", lambda x: jnp.take_along_axis(x * x, jnp.argsort(x, 1), 1)[:, 1:3], 4),
    tensor("add_along(x, argsort(x, 1), x * x, 1)",
           lambda x: x + jax.vmap(lambda v, i: jnp.zeros(4).at[i].add(v))(x * x, jnp.argsort(x, 1)), 4),
    tensor("prod(x, axis = [1, 2])", lambda x: jnp.prod(x, (1, 2)), 3, 2),
    tensor("concat([x * x, sin(x[:, 1:3])], 1)", lambda x: jnp.concatenate([x * x, jnp.sin(x[:, 1:3])], 1), 4),
    tensor("pad(x * x, [0, 1], [0, 2], value = 3)", lambda x: jnp.pad(x * x, ((0, 0), (1, 2)), constant_values=3.0), 4),
    tensor("variance(transpose(x), axis = [1, 2])", lambda x: jnp.var(x, (1, 2)), 3, 2),
    tensor("reshape(x * x, [B, 6]) * reshape(x, [B, 6])", lambda x: (x ** 3).reshape(-1, 6), 3, 2),
    tensor("x * mean(x * x)", lambda x: x * jnp.mean(x * x), 3),
    tensor("select(x > 0, exp(x), x * x)", lambda x: jnp.where(x > 0, jnp.exp(x), x * x), 3),
]

# By values on the way, past which the rules of the graph would read: what is a transpose, a copy, a part of a sum.
SMOOTH += [
    tensor("h = transpose(x); return gradient(sum((h @ x) ^ 3), h)",
           lambda x: jax.grad(lambda h: jnp.sum((h @ x) ** 3))(jnp.swapaxes(x, 1, 2)), 3, 2, order=2),
    tensor("h = reshape(x, [B, 3, 2]); return gradient(sum(exp(reshape(h, [B, 2, 3]) * x)), h)",
           lambda x: jax.grad(lambda h: jnp.sum(jnp.exp(h.reshape(-1, 2, 3) * x)))(x.reshape(-1, 3, 2)), 2, 3, order=2),
    tensor("h = sum(x, axis = 1); return gradient(sum(h) * sum(h * h), h)",
           lambda x: jax.grad(lambda h: jnp.sum(h) * jnp.sum(h * h))(jnp.sum(x, 1)), 3, order=2),
    tensor("h = broadcast(mean(x), [4]); return x * sum(gradient(sum(exp(h) * exp(h)), h))",
           lambda x: x * jnp.sum(jax.grad(lambda h: jnp.sum(jnp.exp(h) * jnp.exp(h)))(jnp.full(4, jnp.mean(x)))), order=2),
    tensor("h = -x; return gradient(sum((-h) ^ 3 * x), h)", lambda x: jax.grad(lambda h: jnp.sum((-h) ** 3 * x))(-x), order=2),
    tensor("h = identity(x); return gradient(sum(h * h * x), h)", lambda x: jax.grad(lambda h: jnp.sum(h * h * x))(x), order=2),
    tensor("return gradient(sum(x ^ 3 * stop_gradient(x)), x)",
           lambda x: jax.grad(lambda h: jnp.sum(h ** 3 * lax.stop_gradient(h)))(x), order=2),
    tensor("u = sin(x); return gradient(sum(gradient(sum(u * u), u) ^ 2), u)", lambda x: 8 * jnp.sin(x), order=2),
]


class Row:
    """A function, its operands, and of which order its gradients are compared."""

    def __init__(self, text, function, operands, order, kink):
        self.text, self.function, self.operands, self.order, self.kink = text, function, operands, order, kink


def rows(rng):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ops", "kinks.py")
    spec = importlib.util.spec_from_file_location("kinks", path)
    kinks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kinks)
    for _, text, _, function, operands, _, _ in kinks.ROWS:
        if function and "[0, 1]" not in text:  # one that joins rows is tried below
            yield Row(re.sub(r"i32\[\d+\]", "i32[B]", text), function, [np.resize(x, (ROWS,) + x.shape[1:]) for x in operands], 2, True)
    for text, function, shapes, (low, high), order in SMOOTH:
        yield Row(text, function, [rng.uniform(low, high, shape) for shape in shapes], order, False)


def model_of(table, rng):
    """Its text, the inputs, and the names of the gradients of order 1, 2, ... by each operand of each row."""
    functions, text, inputs, names = [], [], {}, []
    for i, row in enumerate(table):
        args = ["%s%d" % (letter, i) for letter, _ in zip("xz", row.operands)]
        body = row.text if "return " in row.text else "return " + row.text
        functions.append("function of_%d(%s) { %s }" % (i, ", ".join("xz"[:len(args)]), body))
        for a, x in zip(args, row.operands):
            inputs[a], inputs["w" + a] = x, rng.normal(size=x.shape)
            text += ["input %s : f64[%s]" % (v, ", ".join(map(str, ("B",) + x.shape[1:]))) for v in (a, "w" + a)]
        scalar = "sum(of_%d(%s))" % (i, ", ".join(args))
        for order in range(1, row.order + 1):
            text.append("d%d_%d = gradient(%s, [%s])" % (order, i, scalar, ", ".join(args)))
            scalar = " + ".join("sum(d%d_%d[%d] * w%s)" % (order, i, k, a) for k, a in enumerate(args))
            for k, a in enumerate(args):
                names.append("p%d_%s" % (order, a))
                text.append("predict p%d_%s = d%d_%d[%d]" % (order, a, order, i, k))
    return "\n".join(functions + ["model gradients {"] + text + ["}", ""]), inputs, names


def by_jax(table):
    def gradients(inputs):
        out = {}
        for i, row in enumerate(table):
            args = ["%s%d" % (letter, i) for letter, _ in zip("xz", row.operands)]
            x, w = [inputs[a] for a in args], [inputs["w" + a] for a in args]
            scalar = lambda x, f=row.function: jnp.sum(f(*x))
            for order in range(1, row.order + 1):
                d = jax.grad(scalar)
                out.update({"p%d_%s" % (order, a): g for a, g in zip(args, d(x))})
                scalar = lambda x, d=d: sum(jnp.sum(g * u) for g, u in zip(d(x), w))
        return out
    return jax.jit(gradients)


def wrong_row(i, row, want, got):
    """What is wrong with the gradients of a row, or None. At a kink the second is compared where the first is JAX's: whose
    that is, tests/oracle says."""
    agree, found = np.ones(ROWS, bool), None
    for order in range(1, row.order + 1):
        off = np.zeros(ROWS, bool)
        for letter, _ in zip("xz", row.operands):
            name = "p%d_%s%d" % (order, letter, i)
            for r in np.flatnonzero(agree):
                wrong = differs(want[name][r], got[name][r], MOST, 1)
                off[r] |= wrong is not None
                if wrong and not (row.kink and order == 1):
                    found = found or "order %d by %s where that is %s: %s" % (order, letter, row.operands["xz".index(letter)][r], wrong)
        agree &= ~off
    if row.kink and row.text in ELSEWHERE:
        return None if found else "it is said to differ from JAX's, and does not"
    return found


def main():
    rng = np.random.default_rng(1)
    table = list(rows(rng))
    text, inputs, names = model_of(table, rng)
    want = {k: np.asarray(v) for k, v in by_jax(table)({k: jnp.asarray(v) for k, v in inputs.items()}).items()}
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        twin = Twin(sys.argv[1], folder, "gradients", text)
        got = dict(zip(names, twin.predict(inputs, names, "--batch", str(ROWS))))
        three = dict(zip(names, twin.predict(inputs, names, "--batch", str(ROWS), "--devices", "cpu:0-2")))
        in_turn = dict(zip(names, twin.predict(inputs, names, "--batch", str(ROWS), "--towers", "3")))
        slow = dict(zip(names, twin.predict(inputs, names, "--batch", str(ROWS), "--backend", "interp")))
    for i, row in enumerate(table):
        wrong = wrong_row(i, row, want, got)
        for name in (name for name in names if name[3:] in ("x%d" % i, "z%d" % i)):
            wrong = wrong or differs(got[name], slow[name], MOST, 1) or differs(got[name], three[name], MOST, 1)
            wrong = wrong or differs(in_turn[name], three[name], 0) and "%s has other bits on one device than on three" % name
        failed += wrong is not None
        if wrong:
            print("%s: %s" % (row.text, wrong))
    print("%d passed, %d failed" % (len(table) - failed, failed))
    return failed != 0


sys.exit(main())
