# SPDX-License-Identifier: Apache-2.0
"""A function of the library beside the same in JAX or scipy: values, and gradients by every floating point input and variable."""
import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1 --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "attack"))
import binding  # noqa: E402

ROWS = 7
NAMES = {np.dtype(t): name for name, t in binding.DTYPES.items()}
# Where: one tower, and three that have different numbers of rows.
LAYOUTS = {"f32": ("cpu:0", 3e-5), "f64": ("cpu:0-2", 1e-9)}

MODEL = """use nn
optimizer probe() {
  state seen : type(variable) = zeros()
  seen <- gradient
  variable <- variable
}
model m {
%s}
"""


class Case:
    """`text`: an expression of the inputs, or statements that bind y. `reference` takes the inputs in their order, and as `p`
    the variables by their names, where there are any. `gradients` False: of values alone; `exact`: to the bit."""

    def __init__(self, text, inputs, reference, gradients=True, exact=False, off=1.0, types=("f32", "f64"), only=None, note=""):
        self.text, self.inputs, self.reference = text, inputs, reference
        self.gradients, self.exact, self.off, self.types, self.only, self.note = gradients, exact, off, types, only, note
        self.compiled = {}

    def value(self, p, x):
        return self.reference(*(x[n] for n in self.inputs), **({"p": p} if p else {}))

    def slopes(self, p, moved, x, weight):
        """The value, and the gradients of its weighted sum."""
        def total(p, moved):
            y = self.value(p, {**x, **moved})
            return jax.numpy.sum(y * weight), y

        by, y = jax.grad(total, (0, 1), has_aux=True)(p, moved)
        return y, *by

    def run(self, f, *args):
        """f(*args): one program, which serves all types; op by op, each of which XLA compiles, only where the reference looks at
        numbers."""
        try:
            return self.compiled.setdefault(f.__name__, jax.jit(f))(*args)
        except (jax.errors.JAXTypeError, jax.errors.JAXIndexError):
            self.compiled[f.__name__] = f
            return f(*args)

    def name(self):
        return self.text.strip().replace("\n", "; ")[:90] + (" " + self.note if self.note else "")


def rows(seed, *shape, count=ROWS):
    """Zeros, equal numbers and others between -3 and 3."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, (count,) + shape)
    x = np.where(rng.random(x.shape) < 0.5, np.round(2 * x) / 2, x)
    return np.where(rng.random(x.shape) < 0.1, 0.0, x)


def ids(seed, high, *shape, count=ROWS, low=0):
    return np.random.default_rng(seed).integers(low, high, (count,) + shape).astype(np.int32)


def differs(want, got, off, exact):
    """What is wrong with `got`; its scale is that of the largest element."""
    want, got = np.asarray(want), np.asarray(got)
    if want.shape != got.shape:
        return f"shape {got.shape}, not {want.shape}"
    if want.dtype.kind != "f" or exact:
        same = (want == got) | ((want != want) & (got != got))
        return "" if same.all() else f"{got[~same][0]!r}, not {want[~same][0]!r}, at {np.argwhere(~same)[0]}"
    both = np.isfinite(want) & np.isfinite(got)
    scale = max(np.abs(want[both]).max(initial=0), 1e-3)
    error = np.abs(np.where(both, want, 0) - np.where(both, got, 0))
    wrong = ~(both | (want == got) | (np.isnan(want) & np.isnan(got))) | (error > off * scale)
    return f"{got[wrong][0]!r}, not {want[wrong][0]!r}, at {np.argwhere(wrong)[0]}, {wrong.sum()} of {wrong.size}" if wrong.any() else ""


def declared(name, x):
    return f"  input {name} : {NAMES[x.dtype]}[B{''.join(', %d' % n for n in x.shape[1:])}]\n"


def check(lib, case, real):
    """The lines that say what differs."""
    layout, off = LAYOUTS[real]
    dtype = binding.DTYPES[real]
    given = {n: x.astype(dtype) if x.dtype.kind == "f" else x for n, x in case.inputs.items()}
    text = "".join(declared(n, x) for n, x in given.items())
    body = case.text.replace("REAL", real)
    text += ("  y = " + body if "\n" not in body else body.rstrip()) + "\n  predict out = y\n"

    def wide(x):  # as exact as can be: the numbers themselves are those of the type
        return jax.device_put(x.astype(np.float64) if x.dtype.kind == "f" else x)

    exact = {n: wide(x) for n, x in given.items()}
    slopes = [n for n, x in given.items() if x.dtype.kind == "f"] if case.gradients else []
    if case.only is not None:
        slopes = [n for n in slopes if n in case.only]

    def session(more):
        s = binding.Session(lib, [("devices", layout)])
        s.load(MODEL % (text + more))
        return s

    with session("") as s:
        made = [v for v in s.variables() if v[0] != "step"]
        shape = next(shape for n, _, shape in s.outputs("predict") if n == "out")
    rng = np.random.default_rng(5)
    held = {n: (rng.normal(size=shape) * 0.5).astype(t) for n, t, shape in made}
    held.update({n: np.abs(v) for n, v in held.items() if n.endswith("variance")})
    p = {n: wide(v) for n, v in held.items()}
    trained = [n for n in held if case.gradients]
    more = ""
    if slopes or trained:
        weight = rows(77, *shape[1:]).astype(dtype)
        more = declared("weight_of_y", weight)
        more += "".join(f"  predict by_{n} = gradient(sum(y * weight_of_y), {n})\n" for n in slopes)
        more += "  train sum(y * weight_of_y) with probe()\n" if trained else ""
        given = {**given, "weight_of_y": weight}
        want, by_p, by_x = case.run(case.slopes, p, {n: exact[n] for n in slopes}, exact, wide(weight))
    else:
        want = case.run(case.value, p, exact)

    with session(more) as s:
        for n, v in held.items():
            s.write(n, v)
        results = s.run("predict", ROWS, given)
        got = results["out"]
        wrong = differs(np.asarray(want), got.astype(np.float64) if got.dtype.kind == "f" else got, off * case.off, case.exact)
        found = [f"value: {wrong}"] if wrong else []
        for n in slopes:
            wrong = differs(by_x[n], results["by_" + n].astype(np.float64), off * case.off, False)
            found += [f"gradient by {n}: {wrong}"] if wrong else []
        if trained:
            s.run("train", ROWS, given)
            seen = {n: (t, shape) for n, t, shape in s.variables()}
            for n in trained:
                if n + ".probe.seen" in seen:
                    v = s.read(n + ".probe.seen", *seen[n + ".probe.seen"]).astype(np.float64)
                    wrong = differs(by_p[n], v, off * case.off, False)
                    found += [f"gradient by {n}: {wrong}"] if wrong else []
    return found
