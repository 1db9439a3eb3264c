"""The leaves that the language has by their names: one row serves models and graphs."""
from models import FLOATS, INTS

# name -> (element types, flags, element type of the result or None: the operand's, f(m, element type, operands, axis,
# flags by name)); operands and result have one shape
LEAVES = {}


def leaf(dtypes, *flags, result=None):
    def add(f):
        LEAVES[f.__name__] = (dtypes, flags, result, f)
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


def of_node(m, n, d, x):
    """What a node of a graph gives."""
    flags = LEAVES[n.op][1]
    return LEAVES[n.op][3](m, d, x, int(n.attrs["axis"]), **{f: int(n.attrs.get(f, 0)) for f in flags})


def row(name):
    """A statement of a model, along an axis that is not the batch's."""
    dtypes, flags, result, f = LEAVES[name]
    def make(g):
        x = g.pick(lambda v: v.dtype in dtypes and any(n != "B" for n in v.shape))
        if not x:
            return None
        axis = g.rng.choice([i for i, n in enumerate(x.shape) if n != "B"])
        given = {f: int(g.chance(0.4)) for f in flags}
        text = ", ".join(["{0}", str(axis)] + [f"{f} = true" for f in flags if given[f]])
        return g.emit(name, f"{name}({text})", [x], result or x.dtype, x.shape,
                      lambda m, *v: f(m, x.dtype, v, axis, **given))
    return make
