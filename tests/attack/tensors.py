# SPDX-License-Identifier: Apache-2.0
"""The functions that are not elementwise: reductions, shapes, products, rows by number."""
import numpy as np

import attention
import convolutions
import leaves
import windows
from models import FLOATS, INTS, dims, fits, type_text


def axes_of(g, x, batch=True):
    """Some axes of x, or all."""
    able = [i for i in range(len(x.shape)) if batch or x.shape[i] != "B"]
    if not able:
        return None
    return sorted(g.rng.sample(able, g.rng.randint(1, len(able))))


def reduced(shape, axes, keep):
    return [1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes]


def axis_text(g, axes, rank):
    if len(axes) == rank and g.chance(0.7):
        return ""
    named = [i - rank if g.chance(0.3) else i for i in axes]
    return f", axis = {named[0] if len(named) == 1 and g.chance(0.7) else named}"


def reduction(name, dtypes, f, result=lambda d: d, batch=True, empty=True):
    """f(m, x, axes as a tuple, keep, dtype of x)"""
    def row(g):
        x = g.pick(lambda v: v.dtype in dtypes and v.shape and (empty or 0 not in v.shape))
        axes = x and axes_of(g, x, batch)
        if not axes:
            return None
        keep, d = g.chance(0.4), x.dtype
        text = f"{name}({{0}}{axis_text(g, axes, len(x.shape))}{', keep = true' if keep else ''})"
        return g.emit(name, text, [x], result(d), reduced(x.shape, axes, keep),
                      lambda m, v: f(m, v, tuple(axes), keep, d))
    return row


def mean_of(m, v, axes, keep, d):
    n = int(np.prod([v.shape[i] for i in axes]))
    out = d if d in FLOATS else "f32"
    if d not in FLOATS:
        v = m.r(v.astype(np.float64), out, 0.5 if d == "i64" or d == "i32" else 0)
    return m.r(m.total(v, axes, out, keep) / n, out)


BYTES = ("bool", "u8")


def sum_of(m, v, axes, keep, d):
    return m.total(v.astype(np.int64), axes, "i64", keep) if d in BYTES else m.total(v, axes, d, keep)


def moments(g):
    x = g.pick(lambda v: v.dtype in FLOATS and v.shape and 0 not in v.shape)
    axes = x and axes_of(g, x)
    if not axes:
        return None
    d, which = x.dtype, g.rng.choice([0, 1])
    return g.emit("moments", f"moments({{0}}{axis_text(g, axes, len(x.shape))})[{which}]", [x], d,
                  reduced(x.shape, axes, False), lambda m, v: (mean_of, variance_of)[which](m, v, tuple(axes), False, d))


def prod_of(m, v, axes, keep, d):
    return m.factors(v.astype(np.int64), axes, "i64", keep) if d in BYTES else m.factors(v, axes, d, keep)


def extreme(name):
    return lambda m, v, axes, keep, d: getattr(m.xp, name)(v, axis=axes, keepdims=keep)


def variance_of(m, v, axes, keep, d):
    center = mean_of(m, v, axes, True, d)
    gap = m.r(v - center, d)
    return mean_of(m, m.r(gap * gap, d), axes, keep, d)


def root(m, y, d):
    return m.r(m.xp.sqrt(y), d)


def arg(name):
    def row(g):
        x = g.pick(lambda v: v.dtype in FLOATS + INTS and v.shape and 0 not in v.shape)
        axes = x and axes_of(g, x, False)
        if not axes:
            return None
        return g.emit(name, f"{name}({{0}}, {axes[0]})", [x], "i32", reduced(x.shape, axes[:1], False),
                      lambda m, v: getattr(m.xp, name)(v, axis=axes[0]).astype(np.int32))
    return row


def extreme_of_all(name, f):
    """max and min serve elements and axes: both."""
    whole = reduction(name, FLOATS + INTS, f, empty=False)
    return lambda g: whole(g) if g.chance(0.5) else g.binary(name, "any", None, 0, BY_NAME[name])


BY_NAME = {}


# ---- shapes ----

def reshape(g):
    x = g.pick(lambda v: "B" not in v.shape[1:])
    if x is None:
        return None
    at = 1 if x.axis == 0 else 0
    rest = [n for n in x.shape[at:]]
    if len(rest) >= 2 and g.chance(0.5):
        i = g.rng.randrange(len(rest) - 1)
        new = rest[:i] + [rest[i] * rest[i + 1]] + rest[i + 2:]
    else:
        i = g.rng.randint(0, len(rest))
        new = rest[:i] + [1] + rest[i:]
        for k, n in enumerate(rest):
            if n in (4, 12, 28) and g.chance(0.5):
                new = rest[:k] + [2, n // 2] + rest[k + 1:]
    shape = list(x.shape[:at]) + new
    text = [str(n) for n in shape]
    if 0 not in shape and g.chance(0.3):
        text[g.rng.randrange(len(text))] = "-1"
    return g.emit("reshape", f"reshape({{0}}, [{', '.join(text)}])", [x], x.dtype, shape,
                  lambda m, v: v.reshape(dims(shape, m.rows)))


def expand(g):
    x = g.pick(lambda v: len(v.shape) < 5)
    at = g.rng.randint(0, len(x.shape))
    shape = list(x.shape[:at]) + [1] + list(x.shape[at:])
    return g.emit("expand", f"expand({{0}}, {at if at < len(x.shape) else -1})", [x], x.dtype, shape,
                  lambda m, v: m.xp.expand_dims(v, at))


def squeeze(g):
    x = g.pick(lambda v: 1 in v.shape)
    if x is None:
        return None
    at = g.rng.choice([i for i, n in enumerate(x.shape) if n == 1])
    return g.emit("squeeze", f"squeeze({{0}}, {at})", [x], x.dtype, x.shape[:at] + x.shape[at + 1:],
                  lambda m, v: m.xp.squeeze(v, at))


def flatten(g):
    x = g.pick(lambda v: v.axis == 0 and len(v.shape) >= 2 and 0 not in v.shape)
    if x is None:
        return None
    n = int(np.prod(x.shape[1:]))
    return g.emit("flatten", "flatten({0})", [x], x.dtype, ["B", n], lambda m, v: v.reshape(m.rows, n))


def transpose(g):
    x = g.pick(lambda v: len(v.shape) >= 2)
    if x is None:
        return None
    rank = len(x.shape)
    perm = list(range(rank))
    if g.chance(0.3):
        perm[-1], perm[-2] = perm[-2], perm[-1]
        text = "transpose({0})"
    else:
        g.rng.shuffle(perm)
        text = f"transpose({{0}}, {perm})"
    return g.emit("transpose", text, [x], x.dtype, [x.shape[i] for i in perm], lambda m, v: m.xp.transpose(v, perm))


def broadcast(g):
    x = g.pick(lambda v: len(v.shape) < 4)
    shape = [g.size() if n == 1 and g.chance(0.7) else n for n in x.shape]
    if "B" in shape or g.chance(0.5):
        shape = [g.rng.choice([2, 3])] * g.rng.randint(0, 1) + shape
    else:
        shape = ["B"] + shape
    return g.emit("broadcast", f"broadcast({{0}}, [{', '.join(map(str, shape))}])", [x], x.dtype, shape,
                  lambda m, v: m.xp.broadcast_to(v, dims(shape, m.rows)))


def together(name):
    """concat and stack of two or three values of one shape, up to the axis."""
    def row(g):
        x = g.pick(lambda v: any(n != "B" for n in v.shape) or name == "stack")
        if x is None:
            return None
        if name == "stack":
            at = g.rng.randint(0, len(x.shape))
            others = [v for v in g.values if v.dtype == x.dtype and v.shape == x.shape]
        else:
            at = g.rng.choice([i for i, n in enumerate(x.shape) if n != "B"])
            others = [v for v in g.values if v.dtype == x.dtype and len(v.shape) == len(x.shape) and
                      all(p == q or i == at and q != "B" for i, (p, q) in enumerate(zip(x.shape, v.shape)))]
        parts = [x] + [g.rng.choice(others) for _ in range(g.rng.randint(1, 2))]
        shape = list(x.shape)
        if name == "stack":
            shape.insert(at, len(parts))
        else:
            shape[at] = sum(v.shape[at] for v in parts)
        text = f"{name}([{', '.join('{%d}' % i for i in range(len(parts)))}], axis = {at})"
        f = "stack" if name == "stack" else "concatenate"
        return g.emit(name, text, parts, x.dtype, shape, lambda m, *v: getattr(m.xp, f)(v, axis=at))
    return row


def cut(g):
    """x[...] and slice(x, begin, size)"""
    x = g.pick(lambda v: any(n != "B" and n > 0 for n in v.shape))
    if x is None:
        return None
    index, text, shape, begin, count = [], [], [], [], []
    for n in x.shape:
        if n == "B" or n == 0:
            index.append(slice(None)), text.append(":"), shape.append(n), begin.append(0), count.append(-1)
            continue
        a = g.rng.randrange(n)
        b = a if g.chance(0.03) else g.rng.randint(a + 1, n)
        begin.append(a), count.append(b - a)
        if g.chance(0.25):
            index.append(a), text.append(str(a - n if g.chance(0.4) else a))
        else:
            index.append(slice(a, b)), text.append(f"{a}:{b}"), shape.append(b - a)
    if g.chance(0.5):
        shape = [n if c == -1 else c for n, c in zip(x.shape, count)]
        return g.emit("slice", f"slice({{0}}, {begin}, {count})", [x], x.dtype, shape, lambda m, v: v[tuple(
            slice(a, None if c == -1 else a + c) for a, c in zip(begin, count))])
    return g.emit("slice", f"{{0}}[{', '.join(text)}]", [x], x.dtype, shape, lambda m, v: v[tuple(index)])


def pad(g):
    x = g.pick(lambda v: v.shape and v.dtype != "bool")
    if x is None:
        return None
    low = [0 if n == "B" else g.rng.randint(0, 2) for n in x.shape]
    high = [0 if n == "B" else g.rng.randint(0, 2) for n in x.shape]
    fill = g.rng.choice([0, 1, 3]) if x.dtype not in FLOATS else g.rng.choice([0, -1.5, 2])
    shape = [n if n == "B" else n + p + q for n, p, q in zip(x.shape, low, high)]
    return g.emit("pad", f"pad({{0}}, {low}, {high}, value = {fill})", [x], x.dtype, shape,
                  lambda m, v: m.xp.pad(v, list(zip(low, high)), constant_values=fill))


def iota(g):
    like = g.pick(lambda v: v.shape and "B" not in v.shape)
    shape = like.shape if like else (3,)
    dtype = g.rng.choice(FLOATS + INTS)
    at = g.rng.randrange(len(shape))
    def f(m):
        column = np.arange(shape[at]).astype({"f32": "f8", "f64": "f8", "i32": "i4", "i64": "i8", "u8": "u1"}[dtype])
        return m.xp.asarray(np.broadcast_to(column.reshape([-1 if i == at else 1 for i in range(len(shape))]), shape))
    return g.emit("iota", f"iota({type_text(dtype, shape)}, axis = {at})", [], dtype, shape, f)


def facts(g):
    """shape rank dtype type size: what is known of a value when the model is compiled, used as numbers."""
    x = g.real_value(least=1)
    if x is None or x.shape[-1] == "B":
        return None
    form, f = g.rng.choice([
        ("{0} * shape({0})[-1]", lambda v: v.shape[-1]), ("{0} * rank({0})", lambda v: v.ndim),
        ("{0} * size([rank({0}), 1, 1])", lambda v: 3), ("{0} * cast(2, dtype({0}))", lambda v: 2),
        ("{0} + iota(dtype({0})[...shape({0})[-1:]]) * 0", lambda v: None)])
    return g.emit("shape", form, [x], x.dtype, x.shape,
                  lambda m, v: v + 0.0 if f(v) is None else m.r(v * f(v), x.dtype))


def cast(g):
    x = g.pick(lambda v: True)
    to = g.rng.choice(FLOATS + INTS + ("bool",))
    return g.emit("cast", f"cast({{0}}, {to})", [x], to, x.shape, lambda m, v: m.cast(v, x.dtype, to))


def select(g):
    c = g.pick(lambda v: v.dtype == "bool")
    a = c and g.pick(lambda v: fits(c.shape, v.shape) is not None)
    if a is None:
        return None
    b = g.partner(a, FLOATS + INTS + ("bool",))
    shape = fits(c.shape, fits(a.shape, b.shape) or (-1,))
    if shape is None:
        return None
    return g.emit("select", g.rng.choice(["select({0}, {1}, {2})"]), [c, a, b], a.dtype, shape,
                  lambda m, k, p, q: m.xp.where(k, p, q))


def ratio(g):
    a = g.real_value()
    b = a and g.partner(a, FLOATS)
    shape = a and fits(a.shape, b.shape)
    if shape is None:
        return None
    def f(m, p, q):
        return m.r(m.xp.where(q == 0, 0.0, p / m.xp.where(q == 0, 1.0, q)), a.dtype)
    return g.emit("ratio", "ratio({0}, {1})", [a, b], a.dtype, shape, f)


# ---- products ----

def matmul(g):
    a = g.pick(lambda v: v.dtype == g.real and len(v.shape) >= 2 and 0 not in v.shape)
    if a is None:
        return None
    k, d = a.shape[-1], a.dtype
    right = g.chance(0.85)
    if right:
        b = g.pick(lambda v: v.dtype == d and len(v.shape) >= 2 and v.shape[-2] == k and 0 not in v.shape and
                   fits(a.shape[:-2], v.shape[:-2]) is not None)
        if b is None or g.chance(0.4):
            if k == "B":
                return None
            b = g.var([k, g.size() or 2], text="normal(0.0, 1.0)")
    else:
        b, a = a, g.var([g.size() or 2, a.shape[-2]], text="normal(0.0, 1.0)") if a.shape[-2] != "B" else None
        if a is None:
            return None
    lead = fits(a.shape[:-2], b.shape[:-2])
    shape = lead is not None and list(lead) + [a.shape[-2], b.shape[-1]]
    if not shape:
        return None
    bf16 = d == "f32" and g.chance(0.1)
    def f(m, p, q):
        if bf16:
            near = BY_NAME["round_bf16"]
            p, q = near(m, p), near(m, q)
        return m.product(p, q, d)
    text = "matmul({0}, {1}, precision = bf16)" if bf16 else g.rng.choice(["{0} @ {1}", "matmul({0}, {1})"])
    return g.emit("matmul", text, [a, b], d, shape, f)


# ---- rows by number ----

# What is an input still, whose range is looked at before it is used.
AS_INPUT = ("cast", "reshape", "broadcast", "expand", "squeeze", "flatten", "identity", "expect_range")


def some_ids(g, n):
    """Integers of 0..n-1 with the batch in front, or some that may lie outside."""
    if g.chance(0.3):
        outside = g.pick(lambda v: v.dtype in ("i32", "i64") and v.kind == "statement" and 0 not in v.shape and
                         v.function not in AS_INPUT)
        if outside:
            return outside
    return g.input(g.rng.choice(INTS), ["B"] + g.k[:g.rng.randint(0, 1)], 0, n - 1)


def rows_at(m, table, ids):
    n = table.shape[0]
    ok = (ids >= 0) & (ids < n)
    found = m.xp.take(table, m.xp.where(ok, ids, 0).astype(np.int64), axis=0)
    return m.xp.where(ok.reshape(ok.shape + (1,) * (table.ndim - 1)), found, m.xp.zeros((), table.dtype))


def gather(name):
    def row(g):
        if g.chance(0.6):
            table = g.var([g.rng.choice([2, 5, 7]), g.rng.choice([1, 3])], text="normal(0.0, 1.0)")
        else:
            table = g.pick(lambda v: 1 <= len(v.shape) <= 3 and "B" not in v.shape and 0 not in v.shape and
                           (len(v.shape) == 2 or name == "gather"))
            if table is None:
                return None
        ids = some_ids(g, table.shape[0])
        return g.emit(name, name + "({0}, {1})", [table, ids], table.dtype, ids.shape + table.shape[1:], rows_at)
    return row


def scatter_add(g):
    x = g.pick(lambda v: v.dtype in FLOATS + INTS and 1 <= len(v.shape) <= 2 and "B" not in v.shape and
               0 not in v.shape)
    if x is None:
        x = g.var([4, 3], text="normal(0.0, 1.0)")
    ids = some_ids(g, x.shape[0])
    shape, d = ids.shape + x.shape[1:], x.dtype
    values = g.pick(lambda v: v.dtype == d and v.shape == shape)
    if values is None:
        values = g.input(d, shape) if shape and shape[0] == "B" else None
    if values is None:
        return None
    def f(m, table, i, v):
        ok = (i >= 0) & (i < table.shape[0])
        at, rest = m.xp.where(ok, i, 0).astype(np.int64).reshape(-1), table.shape[1:]
        v = m.xp.where(ok.reshape(ok.shape + (1,) * len(rest)), v, m.xp.zeros((), v.dtype)).reshape((-1,) + rest)
        if m.jax:
            out, size = table.at[at].add(v), m.xp.abs(table).at[at].add(m.xp.abs(v))
        else:
            out, size = table.copy(), np.abs(table)
            np.add.at(out, at, v)
            np.add.at(size, at, np.abs(v))
        return m.r(out, d, len(at), m.stop(size) if d in FLOATS else None)
    return g.emit("scatter_add", "scatter_add({0}, {1}, {2})", [x, ids, values], d, x.shape, f)


def one_hot(g):
    n = g.rng.choice([2, 5])
    ids = g.input(g.rng.choice(INTS), ["B"] + g.k[:g.rng.randint(0, 1)], 0, n - 1)
    return g.emit("one_hot", f"one_hot({{0}}, {n}, {g.real})", [ids], g.real, ids.shape + (n,),
                  lambda m, i: (i[..., None] == m.xp.arange(n)).astype(np.float64))


def expect_range(g):
    ids = g.input(g.rng.choice(INTS), ["B"], -3, 4) if g.chance(0.9) else None
    if ids is None or ids.dtype == "u8":
        ids = g.input("i32", ["B"], -3, 4)
    return g.emit("expect_range", "expect_range({0}, -3, 4)", [ids], ids.dtype, ids.shape, lambda m, v: v)


def tensor_rows(elementwise):
    """name -> a function of the generator. `elementwise`: name -> its numpy function."""
    BY_NAME.update(elementwise)
    numbers, everything = FLOATS + INTS, FLOATS + INTS + ("bool",)
    rows = {
        "sum": reduction("sum", everything, sum_of, lambda d: "i64" if d in BYTES else d),
        "mean": reduction("mean", everything, mean_of, lambda d: d if d in FLOATS else "f32", empty=False),
        "prod": reduction("prod", numbers, prod_of, lambda d: "i64" if d in BYTES else d, batch=False),
        "any": reduction("any", ("bool",), extreme("any")),
        "all": reduction("all", ("bool",), extreme("all")),
        "max": extreme_of_all("max", extreme("max")),
        "min": extreme_of_all("min", extreme("min")),
        "variance": reduction("variance", FLOATS, variance_of, empty=False),
        "moments": moments,
        "stddev": reduction("stddev", FLOATS, lambda m, v, a, k, d: root(m, variance_of(m, v, a, k, d), d), empty=False),
        "norm": reduction("norm", FLOATS, lambda m, v, a, k, d: root(m, m.total(m.r(v * v, d), a, d, k), d)),
        "argmax": arg("argmax"), "argmin": arg("argmin"), "reshape": reshape, "expand": expand, "squeeze": squeeze,
        "flatten": flatten, "transpose": transpose, "broadcast": broadcast, "concat": together("concat"),
        "stack": together("stack"), "slice": cut, "pad": pad, "iota": iota, "cast": cast, "select": select,
        "ratio": ratio, "matmul": matmul, "conv": convolutions.conv,
        "dot_product_attention": attention.row,
        "window_sum": windows.row("window_sum"), "window_max": windows.row("window_max"),
        "transposed_conv": convolutions.transposed_conv, "gather": gather("gather"), "lookup": gather("lookup"),
        "scatter_add": scatter_add, "one_hot": one_hot, "expect_range": expect_range,
    }
    rows.update({name: leaves.row(name) for name in leaves.LEAVES})
    for name in ("shape", "rank", "dtype", "type", "size"):
        rows[name] = facts
    return rows
