# SPDX-License-Identifier: Apache-2.0
"""The leaves that the language has by their names: one row serves models and graphs."""
import numpy as np

from models import FLOATS, INTS

# name -> (element types, flags, element type of the result or None: the operand's, how many operands, f(m, element type,
# operands, axis, flags by name)); operands and result have one shape, the second operand holds places along the axis
LEAVES = {}


def leaf(dtypes, *flags, result=None, operands=1):
    def add(f):
        LEAVES[f.__name__] = (dtypes, flags, result, operands, f)
        return f
    return add


@leaf(FLOATS + INTS, "reverse", "exclusive")
def cumsum(m, d, v, axis, reverse, exclusive):
    v = m.xp.moveaxis(v[0], axis, 0)
    n = v.shape[0]
    part = lambda i: v[i + exclusive:] if reverse else v[:i + 1 - exclusive]
    return m.xp.moveaxis(m.xp.stack([m.total(part(i), (0,), d) for i in range(n)]) if n else v, 0, axis)


@leaf(FLOATS + INTS + ("bool",), "descending", result="i32")
def argsort(m, d, v, axis, descending):
    if m.jax:
        return m.xp.argsort(v[0], axis, stable=True, descending=bool(descending)).astype("int32")
    v = m.xp.flip(v[0], axis) if descending else v[0]
    y = m.xp.argsort(v, axis, kind="stable").astype("int32")
    return m.xp.flip(v.shape[axis] - 1 - y, axis) if descending else y


@leaf(FLOATS + INTS + ("bool",), operands=2)
def take_along(m, d, v, axis):
    x, index = v
    there = (index >= 0) & (index < x.shape[axis])
    if x.shape[axis] == 0:
        return m.xp.zeros(index.shape, x.dtype)
    y = m.xp.take_along_axis(x, m.xp.where(there, index, 0), axis)
    return m.xp.where(there, y, m.xp.zeros((), x.dtype))


@leaf(FLOATS + INTS, operands=3)
def add_along(m, d, v, axis):
    x, index, values = (m.xp.moveaxis(i, axis, -1) for i in v)
    hit = index[..., None] == m.xp.arange(x.shape[-1])
    terms = m.xp.where(hit, values[..., None], m.xp.zeros((), x.dtype))
    return m.xp.moveaxis(m.total(m.xp.concatenate([x[..., None, :], terms], -2), (-2,), d), -1, axis)


def of_node(m, n, d, x):
    """What a node of a graph gives."""
    flags = LEAVES[n.op][1]
    return LEAVES[n.op][-1](m, d, x, int(n.attrs["axis"]), **{f: int(n.attrs.get(f, 0)) for f in flags})


def row(name):
    """A statement of a model, along an axis that is not the batch's."""
    dtypes, flags, result, operands, f = LEAVES[name]
    def make(g):
        x = g.pick(lambda v: v.dtype in dtypes and any(n != "B" for n in v.shape))
        if not x:
            return None
        axis = g.rng.choice([i for i, n in enumerate(x.shape) if n != "B"])
        v = [x]
        if operands > 1:
            if x.shape[0] != "B":
                return None
            v.append(g.input(g.rng.choice(("i32", "i64")), list(x.shape), -1, x.shape[axis]))
        if operands > 2:
            v.append(g.pick(lambda other: other.dtype == x.dtype and other.shape == x.shape) or x)
        given = {f: int(g.chance(0.4)) for f in flags}
        text = ", ".join([f"{{{i}}}" for i in range(operands)] + [str(axis)] + [f"{f} = true" for f in flags if given[f]])
        to = "i64" if name == "cumsum" and x.dtype == "u8" else x.dtype
        wide = lambda v: [v[0].astype(np.int64)] if to != x.dtype else v
        return g.emit(name, f"{name}({text})", v, result or to, x.shape, lambda m, *v: f(m, to, wide(v), axis, **given))
    return make
