# SPDX-License-Identifier: Apache-2.0
"""Modules that dgc writes, operation by operation in JAX, which can then differentiate them.

One operation stands on each line; what is unknown ends the program."""
import re

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "ui8": np.uint8, "i1": np.bool_}
LINE = re.compile(r'^    (%\w+(?:, %\w+)*) = "?stablehlo\.(\w+)"?(.*?)(?: loc\(#\w+\))?$')
UNARY = {
    "negate": jnp.negative, "abs": jnp.abs, "sign": jnp.sign, "floor": jnp.floor, "ceil": jnp.ceil, "sqrt": jnp.sqrt,
    "rsqrt": lax.rsqrt, "cbrt": jnp.cbrt, "exponential": jnp.exp, "exponential_minus_one": jnp.expm1, "log": jnp.log,
    "log_plus_one": jnp.log1p, "sine": jnp.sin, "cosine": jnp.cos, "tan": jnp.tan, "tanh": jnp.tanh,
    "logistic": jax.nn.sigmoid, "is_finite": jnp.isfinite, "not": jnp.logical_not, "round_nearest_even": jnp.round,
    "optimization_barrier": lambda x: lax.optimization_barrier(lax.stop_gradient(x)),  # that XLA leaves x + c - c as it is
}
BINARY = {
    "add": lax.add, "subtract": lax.sub, "multiply": lax.mul, "divide": lax.div, "remainder": lax.rem, "power": lax.pow,
    "maximum": lax.max, "minimum": lax.min, "atan2": lax.atan2, "and": lax.bitwise_and, "or": lax.bitwise_or,
    "xor": lax.bitwise_xor, "shift_left": lax.shift_left, "shift_right_logical": lax.shift_right_logical,
    "shift_right_arithmetic": lax.shift_right_arithmetic,
}
COMPARE = {"EQ": lax.eq, "NE": lax.ne, "LT": lax.lt, "LE": lax.le, "GT": lax.gt, "GE": lax.ge}
WINDOWS = {"add": (lax.add, 0), "maximum": (lax.max, -np.inf), "minimum": (lax.min, np.inf)}
EMPTY = {"maximum": -np.inf, "minimum": np.inf}
REDUCE = {"add": jnp.sum, "multiply": jnp.prod, "maximum": jnp.max, "minimum": jnp.min}

# Ops that are written as bodies of bits and polynomials, which have no slope of their own: as JAX has them, of their operands
# in the order in which bodies read them.
BODIES = {
    "exp2": jnp.exp2, "log2": jnp.log2, "log10": jnp.log10, "asin": jnp.arcsin, "acos": jnp.arccos, "sinh": jnp.sinh,
    "cosh": jnp.cosh, "asinh": jnp.arcsinh, "acosh": jnp.arccosh, "atanh": jnp.arctanh, "erf": lax.erf, "erfc": lax.erfc,
    "hypot": jnp.hypot, "copysign": jnp.copysign,
}


def shape_of(text):
    *dims, dtype = re.match(r"tensor<(.*)>", text).group(1).split("x")
    return tuple(map(int, dims)), DTYPES[dtype]


def array(rest, name):
    found = re.search(name + r" = (?:array<i64(?:: )?([^>]*)>|dense<(\[\[.*?\]\])>|\[([\d, ]*)\]|(-?\d+))", rest)
    if found.group(2):
        return eval(found.group(2))
    return [int(x) for x in re.findall(r"-?\d+", found.group(1) or found.group(3) or found.group(4) or "")]


def constant(rest):
    text, type_text = re.match(r" dense<(.*)> : (tensor<.*>)", rest).groups()
    shape, dtype = shape_of(type_text)
    if text.startswith('"'):
        return jnp.asarray(np.frombuffer(bytes.fromhex(text[3:-1]), dtype).reshape(shape))
    if text.startswith("0x"):
        digits = bytes.fromhex(text[2:])[::-1]
        return jnp.full(shape, np.frombuffer(digits, dtype)[0])
    value = {"true": True, "false": False}.get(text) if dtype is np.bool_ else float(text) if "." in text or "e" in text else int(text or 0)
    return jnp.full(shape, value, dtype)


def sides(rest):
    """[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f] as JAX's ConvDimensionNumbers."""
    out = []
    for side, letters in zip(re.search(r"conv<\[(.*?)\]x\[(.*?)\]->\[(.*?)\]>", rest).groups(), ("bf", "oi", "bf")):
        places = side.split(", ")
        count = len(places) - 2
        out.append(tuple(places.index(x) for x in (*letters, *map(str, range(count)))))
    return lax.ConvDimensionNumbers(*out)


def greatest(x, window, strides, dilation):
    """The greatest element of each window, the first of equals: JAX has no slope of windows with gaps, or that leave
    elements out."""
    last = [n - (w - 1) * d for n, w, d in zip(x.shape, window, dilation)]
    seen = jnp.stack([lax.slice(x, at, [a + n for a, n in zip(at, last)], strides) for at in
                      ([k * d for k, d in zip(place, dilation)] for place in np.ndindex(*window))])
    return jnp.take_along_axis(seen, jnp.argmax(lax.stop_gradient(seen), 0)[None], 0)[0]


def operation(name, rest, region, x, out):
    shape, dtype = out
    if name in UNARY and len(x) == 1:
        return UNARY[name](x[0])
    if name in BINARY:
        return BINARY[name](*x)
    if name == "select":
        return lax.select(*x)
    if name == "compare":
        return COMPARE[rest.split(",")[0].strip()](*x)
    if name == "convert":
        return x[0].astype(dtype)
    if name == "bitcast_convert":
        return lax.bitcast_convert_type(x[0], dtype)
    if name == "iota":
        return lax.broadcasted_iota(dtype, shape, array(rest, "iota_dimension")[0])
    if name == "reshape":
        return x[0].reshape(shape)
    if name == "transpose":
        return jnp.transpose(x[0], array(rest, "permutation"))
    if name == "reverse":
        return lax.rev(x[0], array(rest, "dimensions"))
    if name == "broadcast_in_dim":
        return lax.broadcast_in_dim(x[0], shape, array(rest, "broadcast_dimensions"))
    if name == "slice":
        return lax.slice(x[0], *(array(rest, k) for k in ("start_indices", "limit_indices", "strides")))
    if name == "dynamic_slice":
        return lax.dynamic_slice(x[0], x[1:], array(rest, "slice_sizes"))
    if name == "dynamic_update_slice":
        return lax.dynamic_update_slice(x[0], x[1], x[2:])
    if name == "pad":
        keys = ("edge_padding_low", "edge_padding_high", "interior_padding")
        return lax.pad(x[0], x[1], list(zip(*(array(rest, k) for k in keys))))
    if name == "concatenate":
        return jnp.concatenate(x, array(rest, "dimension")[0])
    if name == "reduce":
        if region in EMPTY and x[0].size == 0:
            return jnp.full(shape, EMPTY[region], dtype)
        # From the neutral element on, always; jnp's sum of i32 would be i64.
        return REDUCE[region](x[0], tuple(array(rest, "dimensions"))).astype(dtype)
    if name == "reduce_window":
        keys = ("window_dimensions", "window_strides", "padding", "base_dilations", "window_dilations")
        window, strides, padding, base, dilation = (array(rest, k) for k in keys)
        join, first = WINDOWS[region]
        first = np.asarray(first, dtype)[()]
        if region == "maximum" and (max(dilation) > 1 or np.min(padding) < 0):
            padded = lax.pad(x[0], first, [(*p, b - 1) for p, b in zip(padding, base)])
            return greatest(padded, window, strides, dilation)
        return lax.reduce_window(x[0], first, join, window, strides, [tuple(p) for p in padding], base, dilation)
    if name == "dot_general":
        keys = ("lhs_contracting_dimensions", "rhs_contracting_dimensions", "lhs_batching_dimensions", "rhs_batching_dimensions")
        a, b, c, d = (array(rest, k) for k in keys)
        return lax.dot_general(*x, ((a, b), (c, d)))
    if name == "convolution":
        keys = ("window_strides", "padding", "lhs_dilation", "rhs_dilation")
        strides, padding, lhs, rhs = (array(rest, k) for k in keys)
        groups, batches = (array(rest, k)[0] for k in ("feature_group_count", "batch_group_count"))
        return lax.conv_general_dilated(x[0], x[1], strides, padding, lhs, rhs, sides(rest), groups, batches)
    if name in ("gather", "scatter"):
        axes = {k: tuple(array(rest, k)) for k in re.findall(r"(\w+) = \[", rest)}
        batching = {k: v for k, v in axes.items() if "batching" in k}
        index = x[1] if array(rest, "index_vector_dim")[0] < x[1].ndim else x[1][..., None]
        if name == "gather":
            numbers = lax.GatherDimensionNumbers(axes["offset_dims"], axes["collapsed_slice_dims"], axes["start_index_map"], **batching)
            return lax.gather(x[0], index, numbers, array(rest, "slice_sizes"), mode="clip")
        numbers = lax.ScatterDimensionNumbers(
            axes["update_window_dims"], axes["inserted_window_dims"], axes["scatter_dims_to_operand_dims"],
            operand_batching_dims=axes.get("input_batching_dims", ()),
            scatter_indices_batching_dims=axes.get("scatter_indices_batching_dims", ()))
        return lax.scatter_add(x[0], index, x[2], numbers, mode="drop")
    raise NotImplementedError(name)


class Line:
    """An operation: the value that it gives, its name, attributes, the operation in its region, operands, its node's place."""

    def __init__(self, lines, at):
        found = LINE.match(lines[at])
        if not found:
            raise ValueError("no operation: " + lines[at])
        self.value, self.name, self.rest = found.groups()
        self.region, self.end, self.direction = None, at, None
        if self.rest.endswith("({"):
            self.end = next(k for k in range(at, len(lines)) if lines[k].startswith("    })"))
            self.region = re.search(r"stablehlo\.(\w+)", lines[at + 2]).group(1)
            self.direction = re.search(r"stablehlo\.compare ([LG]T)", "".join(lines[at:self.end]))
            self.rest += re.sub(r" loc\(.*", "", lines[self.end])
        place = re.search(r"loc\(#(loc\d+)\)$", lines[self.end])
        self.place = place and place.group(1)
        self.operands = []
        if self.name != "constant":
            self.operands = re.findall(r"%\w+", self.rest.split(" <{")[0].split(" : ")[0])

    def compute(self, values):
        if self.name == "constant":
            return constant(self.rest)
        if self.name == "sort":
            return self.sorted(*[values[v] for v in self.operands])
        out = shape_of(re.findall(r"tensor<[^>]*>", self.rest)[-1])
        return operation(self.name, self.rest, self.region, [values[v] for v in self.operands], out)

    def sorted(self, keys, beside):
        """Of what no gradient flows through: places. NaN among them is not tried where they descend."""
        axis = array(self.rest, "dimension")[0]
        by = keys if self.direction.group(1) == "LT" else -keys
        order = jnp.argsort(lax.stop_gradient(by), axis=axis, stable=True)
        return jnp.take_along_axis(keys, order, axis), jnp.take_along_axis(beside, order, axis)


class Loop:
    """A `while`, which counts from 0 to a number: as a scan, which has a slope."""

    def __init__(self, lines, at):
        found = LINE.match(lines[at].replace(" ({", "", 1))
        self.value, self.operands = found.group(1), re.findall(r"%\w+", found.group(3))
        condition, _, at = self.region(lines, at + 1)
        self.steps = int(constant(next(line.rest for line in condition if line.name == "constant")))
        begin = at + 1
        self.body, self.results, self.end = self.region(lines, begin)
        self.given = re.findall(r"(%\w+):", lines[begin])
        place = re.search(r"loc\(#(loc\d+)\)$", lines[self.end])
        self.place = place and place.group(1)

    @staticmethod
    def region(lines, at):
        """Operations, names of results and the last line of the region that begins with the line `at`."""
        out, at = operations(lines, at + 1)
        return out, results_of(lines[at]), at + 1

    def compute(self, values):
        def step(carry, _):
            inner = dict(zip(self.given, carry))
            for line in self.body:
                keep(inner, line)
            return tuple(inner[v] for v in self.results), None
        return lax.scan(step, tuple(values[v] for v in self.operands), None, length=self.steps)[0]


def keep(values, line):
    result = line.compute(values)
    values.update(zip(line.value.split(", "), result if isinstance(result, tuple) else [result]))


def results_of(line):
    return re.findall(r"%\w+", line.split(" : ")[0])


def operations(lines, at):
    """Those up to the `return` of a function or region, and the number of its line."""
    out = []
    while not re.match(r" +(stablehlo\.)?return ", lines[at]):
        out.append((Loop if "stablehlo.while" in lines[at] else Line)(lines, at))
        at = out[-1].end + 1
    return out, at


def parse(module):
    """The operations of the only function of a module, and the names of its results."""
    lines = module.decode().split("\n")
    out, at = operations(lines, 2)
    return out, results_of(lines[at])


def body_of(op, lines, module):
    """Places of nodes of this op, each with the last of its lines and what they read of others."""
    out = {}
    for place in re.findall(r'#(loc\d+) = loc\("(?:[\w.]+\.)?%s(?:\.\w+)*"' % op, module.decode()):
        mine = [line for line in lines if line.place == place]
        made = {line.value for line in mine}
        read = dict.fromkeys(v for line in mine for v in line.operands if v not in made)
        if len(mine) > 1:  # an operation alone has JAX's slope, whatever it is called
            out[place] = mine[-1], list(read)
    return out


def function(module, ops=()):
    """The only function of a module, of a list of arrays, for the list of its results. Bodies of `ops` are JAX's functions."""
    lines, results = parse(module)
    bodies = {}
    for op in set(ops) & set(BODIES):
        bodies.update((place, (op, *found)) for place, found in body_of(op, lines, module).items())

    def call(args):
        values = {"%%arg%d" % i: x for i, x in enumerate(args)}
        for line in lines:
            op, last, read = bodies.get(line.place, (None, None, None))
            if last is None:
                keep(values, line)
            elif last is line:
                values[line.value] = BODIES[op](*[values[v] for v in read])
        return [values[v] for v in results]

    return call
