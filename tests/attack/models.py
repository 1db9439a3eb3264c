# SPDX-License-Identifier: Apache-2.0
"""Random models: a program is a list of statements, each of which knows its line of the language and what it computes.

Shapes hold numbers and "B", the batch, which may lie on any axis."""
import numpy as np

from elementwise import ACTIVATIONS, BINARY, OPERATORS, UNARY

FLOATS, INTS = ("f32", "f64"), ("i32", "i64", "u8")
TYPES = {"float": FLOATS, "number": FLOATS + INTS, "test": FLOATS, "bool": ("bool",), "intbool": INTS + ("bool",), "integer": INTS,
         "compare": FLOATS + INTS + ("bool",), "any": FLOATS + INTS + ("bool",), "single": ("f32",)}


class Value:
    """An input, a variable, or what a statement computes: `compute(m, *operands)`."""

    def __init__(self, name, kind, dtype, shape, text="", args=(), compute=None, function=None, low=None, high=None):
        self.name, self.kind, self.dtype, self.shape = name, kind, dtype, tuple(shape)
        self.text, self.args, self.compute, self.function = text, tuple(args), compute, function
        self.low, self.high = low, high

    def line(self):
        if self.kind == "input":
            return f"input {self.name} : {type_text(self.dtype, self.shape)}"
        if self.kind == "var":
            return f"var {self.name} : {type_text(self.dtype, self.shape)} = {self.text}"
        return f"{self.name} = {self.text.format(*[a.name for a in self.args])}"

    @property
    def axis(self):
        return self.shape.index("B") if "B" in self.shape else -1


def type_text(dtype, shape):
    return f"{dtype}[{', '.join(map(str, shape))}]"


def dims(shape, rows):
    return tuple(rows if n == "B" else n for n in shape)


def fits(a, b):
    """The shape that a and b broadcast to, or None."""
    out = []
    for i in range(1, max(len(a), len(b)) + 1):
        p, q = a[-i] if i <= len(a) else 1, b[-i] if i <= len(b) else 1
        if p != q and 1 not in (p, q):
            return None
        out.insert(0, q if p == 1 else p)
    return tuple(out) if out.count("B") <= 1 else None


class Program:
    """`values` in order; `results` are those that are given out; `loss` the float ones that are trained."""

    def __init__(self, values, results, loss):
        self.results, self.loss = list(results), list(loss)
        needed = set()
        for v in reversed(values):
            if v in results or v in loss or v.name in needed:
                needed.add(v.name)
                needed.update(a.name for a in v.args)
        self.values = [v for v in values if v.name in needed]

    def inputs(self):
        return [v for v in self.values if v.kind == "input"]

    def text(self, train="probe()", before=""):
        lines = ["use nn", before, "optimizer probe() {", "  state seen : type(variable) = zeros()",
                 "  seen <- gradient", "  variable <- variable", "}", "model m() {"]
        lines += ["  " + v.line() for v in self.values]
        for v in self.results:
            lines.append(f"  predict p_{v.name} = {self.row_first(v)}")
        if self.loss:
            terms = [f"mean({v.name if v.axis >= 0 else self.row_first(v)})" for v in self.loss]
            lines.append("  train total = " + " + ".join(terms) + f" with {train}")
        return "\n".join(line for line in lines if line) + "\n}\n"

    @staticmethod
    def row_first(v):
        if v.axis < 0:
            return f"broadcast({v.name}, [{', '.join(['B'] + [str(n) for n in v.shape])}])"
        if v.axis == 0:
            return v.name
        order = [v.axis] + [i for i in range(len(v.shape)) if i != v.axis]
        return f"transpose({v.name}, {order})"

    def evaluate(self, m, data, rows):
        """All values by name; `data` has inputs, variables, and the variables of layers."""
        m.rows, m.data, out = rows, data, {}
        for v in self.values:
            if v.kind != "statement":
                out[v.name] = data[v.name]
            else:
                m.here = v.name
                out[v.name] = v.compute(m, *[out[a.name] for a in v.args])
        return out

    def result(self, v, a, rows, xp=np):
        """What `predict` gives for a value."""
        if v.axis < 0:
            return xp.broadcast_to(a, (rows,) + dims(v.shape, rows))
        return xp.moveaxis(a, v.axis, 0)


class Generator:
    def __init__(self, rng, only=None):
        self.rng, self.values, self.only = rng, [], only
        self.real = rng.choice(["f32", "f64"])
        self.names = 0

    # ---- choices ----
    def chance(self, p):
        return self.rng.random() < p

    def size(self, low=1):
        return 0 if self.chance(0.02) else self.rng.choice([n for n in (1, 2, 3, 4, 5, 7, 17) if n >= low])

    def pick(self, wanted):
        found = [v for v in self.values if wanted(v)]
        if not found:
            return None
        return self.rng.choice(found[-6:] if self.chance(0.6) else found)

    def real_value(self, rank=None, least=0):
        return self.pick(lambda v: v.dtype == self.real and (rank is None or len(v.shape) == rank) and
                         len(v.shape) >= least and 0 not in v.shape)

    # ---- values ----
    def fresh(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    def add(self, value):
        self.values.append(value)
        return value

    def input(self, dtype, shape, low=None, high=None):
        return self.add(Value(self.fresh("x"), "input", dtype, shape, low=low, high=high))

    def var(self, shape, dtype=None, text="zeros()"):
        return self.add(Value(self.fresh("w"), "var", dtype or self.real, shape, text=text))

    def emit(self, function, text, args, dtype, shape, compute):
        if len(shape) > 6 or list(shape).count("B") > 1:
            return None
        if np.prod([4 if n == "B" else n for n in shape]) > 6000:
            return None
        return self.add(Value(self.fresh("v"), "statement", dtype, shape, text, args, compute, function))

    def partner(self, a, dtypes):
        """Another operand for a: a value that broadcasts with it, or a variable, or a."""
        b = self.pick(lambda v: v.dtype in dtypes and v.dtype == a.dtype and fits(a.shape, v.shape) is not None and
                      0 not in v.shape)
        if a.dtype in FLOATS and a.dtype == self.real and self.chance(0.3):
            shape = [n if n != "B" and self.chance(0.8) else 1 for n in a.shape]
            b = self.var(shape[self.rng.randint(0, len(shape)):] if shape else [])
        return b or a

    def within(self, x, domain):
        """x, led into the range in which a function is defined; now and then as it is."""
        if domain is None or self.chance(0.15) or x.dtype not in FLOATS:
            return x
        form, f = {
            "positive": ("abs({0}) + 0.25", lambda m, v: m.r(m.abs(v) + 0.25, x.dtype)),
            "above_one": ("abs({0}) + 1.25", lambda m, v: m.r(m.abs(v) + 1.25, x.dtype)),
            "unit": ("tanh({0}) * 0.875", lambda m, v: m.r(m.r(m.xp.tanh(v), x.dtype, 8) * 0.875, x.dtype)),
            "small": ("tanh({0}) * 4", lambda m, v: m.r(m.r(m.xp.tanh(v), x.dtype, 8) * 4.0, x.dtype)),
            "nonzero": ("copysign(abs({0}) + 0.5, {0})", lambda m, v: m.xp.copysign(
                m.r(m.abs(v) + 0.5, x.dtype), v)),
            "power": ("tanh({0}) + 1.5", lambda m, v: m.r(m.r(m.xp.tanh(v), x.dtype, 8) + 1.5, x.dtype)),
        }[domain]
        return self.emit("guard", form, [x], x.dtype, x.shape, f) or x

    # ---- statements: each gives one or None ----
    def unary(self, name, types, domain, ulps, f):
        x = self.pick(lambda v: v.dtype in TYPES[types])
        if x is None:
            return None
        x = self.within(x, domain)
        if types == "test" or name == "not":
            return self.emit(name, "not {0}" if name == "not" else name + "({0})", [x], "bool", x.shape, f)
        d = x.dtype
        form = "-{0}" if name == "neg" else name + "({0})"
        return self.emit(name, form, [x], d, x.shape, lambda m, v: m.r(f(m, v), d, ulps) if ulps else f(m, v))

    def activation(self, name, ulps, f):
        x = self.real_value()
        if x is None:
            return None
        d = x.dtype
        return self.emit(name, name + "({0})", [x], d, x.shape,
                         lambda m, v: m.r(f(m, v, d), d, ulps) if ulps else f(m, v, d))

    def binary(self, name, types, domain, ulps, f):
        a = self.pick(lambda v: v.dtype in TYPES[types])
        if a is None:
            return None
        b = self.partner(a, TYPES[types])
        if domain == "power":
            a, b = self.within(a, "power"), self.within(b, "unit")
        elif domain:
            b = self.within(b, domain)
        shape = fits(a.shape, b.shape)
        if shape is None:
            return None
        d, out = a.dtype, "bool" if types == "compare" else a.dtype
        call = name if name not in OPERATORS else None
        form = f"{call}({{0}}, {{1}})" if call else f"{{0}} {OPERATORS[name]} {{1}}"
        return self.emit(name, form, [a, b], out, shape,
                         lambda m, p, q: m.r(f(m, p, q), d, ulps) if ulps else f(m, p, q))

    def begin(self):
        """Inputs of all types, with the batch in front."""
        self.k = [self.size() or 3 for _ in range(3)]
        for _ in range(self.rng.randint(1, 3)):
            self.input(self.real, ["B"] + self.k[:self.rng.randint(0, 3)])
        others = ["f32", "f64"] if self.real == "f32" else ["f64"]  # JAX is asked where all is f64
        for dtype in self.rng.sample(others + ["i32", "i64", "u8", "bool"], 2):
            self.input(dtype, ["B"] + self.k[:self.rng.randint(0, 2)])
        self.var(self.k[:1])


def elementwise_rows():
    """name -> a function of the generator, for all elementwise functions."""
    rows = {}
    for row in UNARY:
        rows[row[0]] = lambda g, row=row: g.unary(*row)
    for row in ACTIVATIONS:
        rows[row[0]] = lambda g, row=row: g.activation(*row)
    for row in BINARY:
        rows[row[0]] = lambda g, row=row: g.binary(*row)
    return rows


def make(rng, rows, first=None):
    """A program of a few statements; `first`, if given, is the function that must be in it."""
    g = Generator(rng)
    g.begin()
    wanted = [first] if first else []
    names = list(rows)
    for _ in range(rng.randint(3, 12)):
        wanted.append(rng.choice(names))
    rng.shuffle(wanted)
    for name in wanted:
        for _ in range(3 if name == first else 1):
            if rows[name](g):
                break
    used = {a.name for v in g.values for a in v.args}
    leaves = [v for v in g.values if v.kind == "statement" and (v.name not in used or v.function == first)]
    results = [v for v in leaves if 0 not in v.shape][:6]
    loss = [v for v in leaves if v.dtype == g.real and 0 not in v.shape][:4]
    return Program(g.values, results, loss)
