# SPDX-License-Identifier: Apache-2.0
"""Graph text, read and computed without dgc: what a placed graph means is checked by somebody who did not write it."""
import re

import numpy as np

import attention
import convolutions
import leaves
import windows
from arithmetic import EPS, KINDS, LARGEST
from elementwise import BINARY, UNARY

ESCAPES = {"n": "\n", '"': '"', "\\": "\\"}
SIMPLE = {row[0]: row for row in UNARY + BINARY}
OUTPUTS = ("loss", "metric", "total", "maximum", "minimum", "same", "predict", "value", "update")


class Node:
    def __init__(self, name, op, inputs, attrs, dtype, shape, line):
        self.name, self.op, self.inputs, self.attrs = name, op, inputs, attrs
        self.dtype, self.shape, self.line = dtype, shape, line
        self.body = None  # of a loop: a graph


class Graph:
    """nodes by name in order; outputs as (role, name, node, divisor)."""

    def __init__(self):
        self.nodes, self.outputs, self.header = {}, [], {}


def words(line):
    """Words and marks of a line, without its comment."""
    out, at = [], 0
    while at < len(line):
        if line[at] in " \t":
            at += 1
        elif line[at] == "#":
            break
        elif line[at] == '"':
            end = at + 1
            while line[end] != '"':
                end += 2 if line[end] == "\\" else 1
            text = re.sub(r"\\(x..|.)", lambda e: chr(int(e[1][1:], 16)) if e[1][0] == "x" else ESCAPES[e[1]],
                          line[at + 1:end])
            out.append(("name", text))
            at = end + 1
        elif line[at] in ",{}=:":
            out.append(("mark", line[at]))
            at += 1
        else:
            # Brackets belong to a word but where one is open: `[1, 2]` are marks.
            if line[at] in "[]":
                out.append(("mark", line[at]))
                at += 1
                continue
            end = at
            while end < len(line) and line[end] not in ' \t,{}=:"':
                end += 1
            word = line[at:end]
            while word.endswith("]") and word.count("[") < word.count("]"):
                word = word[:-1]
            # f32[ 2,3 ]: the type's bracket is a mark, the index of a name is not.
            if "[" in word and word.count("[") > word.count("]"):
                word = word[:word.index("[")]
            if re.fullmatch(r"(f32|f64|i32|i64|u8|bool)\[[^\]]*\]?", word):
                word = word[:word.index("[")]
            out.append(("name", word))
            at += len(word)
    return out


def number(text, dtype):
    if text in ("true", "false"):
        return text == "true"
    if text.startswith("nan"):
        return np.nan
    if dtype in EPS:
        return float.fromhex(text) if "x" in text else float(text)
    return int(text)


def parse_node(tokens, line):
    name, i = tokens[0][1], 2
    op, i = tokens[i][1], i + 1
    inputs, attrs = [], {}
    while i < len(tokens) and tokens[i] not in (("mark", "{"), ("mark", ":")):
        if tokens[i] != ("mark", ","):
            inputs.append(tokens[i][1])
        i += 1
    if i < len(tokens) and tokens[i] == ("mark", "{"):
        i += 1
        while tokens[i] != ("mark", "}"):
            if tokens[i] == ("mark", ","):
                i += 1
                continue
            key, i = tokens[i][1], i + 2
            if tokens[i] == ("mark", "["):
                items, i = [], i + 1
                while tokens[i] != ("mark", "]"):
                    if tokens[i] != ("mark", ","):
                        items.append(tokens[i][1])
                    i += 1
                attrs[key] = items
            else:
                attrs[key] = tokens[i][1]
            i += 1
        i += 1
    dtype, shape = None, None
    if i < len(tokens) and tokens[i] == ("mark", ":"):
        dtype, i, shape = tokens[i + 1][1], i + 2, []
        if i < len(tokens) and tokens[i] == ("mark", "["):
            i += 1
            while tokens[i] != ("mark", "]"):
                if tokens[i] != ("mark", ","):
                    shape.append(tokens[i][1])
                i += 1
    return Node(name, op, inputs, attrs, dtype, shape, line)


def parse(text):
    """Graphs by name, and in them the bodies of loops; fused ones are not read: graphs up to `placed`."""
    graphs, here, around = {}, None, []
    for n, line in enumerate(text.splitlines()):
        tokens = words(line)
        if not tokens:
            continue
        if tokens[0] == ("name", "graph") and tokens[-1] == ("mark", "{"):
            here = graphs[tokens[1][1]] = Graph()
        elif tokens[0] == ("mark", "}"):
            here = around.pop() if around else None
        elif len(tokens) > 2 and tokens[1] == ("mark", "=") and not (tokens[0][1] in OUTPUTS and len(tokens) == 3):
            node = parse_node(tokens, n)
            here.nodes[node.name] = node
            if tokens[-1] == ("mark", "{"):
                around.append(here)
                here = node.body = Graph()
        elif tokens[0][1] in OUTPUTS:
            rest = [t[1] for t in tokens[1:] if t != ("mark", "=")]
            divisor = None
            if "/" in rest:
                divisor, rest = rest[rest.index("/") + 1], rest[:rest.index("/")]
            here.outputs.append((tokens[0][1], rest[0], rest[-1], divisor))
        else:
            here.header[tokens[0][1]] = [t[1] for t in tokens[1:]]
    return graphs


def size_of(dim, rows):
    if dim.isdigit():
        return int(dim)
    return rows * (int(dim[:-2]) if dim != "B" else 1)


def fake_random(node, offset, shape):
    """Numbers that depend on stream and element alone, as dgc's do; not the same numbers."""
    n = int(np.prod(shape)) if shape else 1
    key = hash((node.attrs["key"], node.attrs["seed"], node.op)) % 1000003
    x = np.arange(offset, offset + n, dtype=np.float64)
    u = np.modf(np.sin(x * 12.9898 + key) * 43758.5453)[0] % 1.0
    return np.asarray(u if node.op == "random_uniform" else 4 * u - 2).reshape(shape)


def tree(values, join):
    if len(values) == 1:
        return values[0]
    half = 1
    while half * 2 < len(values):
        half *= 2
    return join(tree(values[:half], join), tree(values[half:], join))


def compute(m, n, x, t, rows, given):
    """One node: x are its operands, t their element types."""
    xp, d = m.xp, n.dtype
    shape = tuple(size_of(s, rows) for s in n.shape)
    ints = lambda key: [int(v) for v in n.attrs[key]]
    one = lambda key, other=None: int(n.attrs[key]) if key in n.attrs or other is None else other
    if n.op in SIMPLE:
        ulps, f = SIMPLE[n.op][3:]
        y = f(m, *x)
        return m.r(y, t[0], ulps) if ulps else y
    if n.op == "constant":
        v = n.attrs["value"]
        v = [number(i, d) for i in v] if isinstance(v, list) else number(v, d)
        a = np.array(v, KINDS[d])
        return xp.asarray(np.broadcast_to(a, shape) if not isinstance(v, list) else a.reshape(shape))
    if n.op == "input" and n.name == "input.first_row":
        return given.get(n.name, np.int64(0))
    if n.op in ("input", "variable"):
        return given[n.name]
    if n.op == "iota":
        at = one("axis")
        line = np.arange(one("offset", 0), one("offset", 0) + shape[at]).astype(KINDS[d])
        return np.broadcast_to(line.reshape([-1 if i == at else 1 for i in range(len(shape))]), shape)
    if n.op == "batch_size":
        return np.asarray(one("batch", rows), KINDS[d])
    if n.op == "tower_count":
        return np.asarray(int(given.get("#towers", 1)), KINDS[d])
    if n.op in ("random_uniform", "random_normal"):
        return fake_random(n, one("offset", 0) + (int(x[1]) * one("width") if len(x) > 1 else 0), shape)
    if n.op == "cast":
        return m.cast(x[0], t[0], d)
    if n.op == "select":
        return xp.where(x[0], x[1], x[2])
    if n.op in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min"):
        return reduce(m, n, x[0], tuple(ints("axes")), d)
    if n.op in leaves.LEAVES:
        return leaves.of_node(m, n, t[0], x)
    if n.op in ("argmax", "argmin"):
        return getattr(xp, n.op)(x[0], axis=one("axis")).astype(np.int32) if x[0].shape[one("axis")] else \
            np.zeros(shape, np.int32)
    if n.op == "reshape":
        return x[0].reshape(shape)
    if n.op == "transpose":
        return xp.transpose(x[0], ints("perm"))
    if n.op == "broadcast":
        axes = ints("axes")
        return xp.broadcast_to(x[0].reshape([x[0].shape[axes.index(i)] if i in axes else 1 for i in range(len(shape))]),
                               shape)
    if n.op == "slice":
        return x[0][tuple(slice(b, b + s) for b, s in zip(ints("begin"), shape))]
    if n.op == "split":
        return x[0][one("offset"):one("offset") + shape[0]]
    if n.op == "pad":
        y = np.broadcast_to(x[1], shape).copy()
        y[tuple(slice(b, b + s) for b, s in zip(ints("low"), x[0].shape))] = x[0]
        return y
    if n.op == "concat":
        return xp.concatenate(x, axis=one("axis"))
    if n.op == "all_gather":
        return xp.concatenate(x, axis=0)
    if n.op == "matmul":
        a, b = (np.swapaxes(v, -1, -2) if one(k, 0) else v for v, k in zip(x, ("transpose_a", "transpose_b")))
        return m.product(a, b, d)
    if n.op == "conv":
        return convolutions.of_node(m, n, shape, d, x)
    if n.op in ("attention", "attention_gradient"):
        return attention.of_node(m, n, shape, d, x)
    if n.op.startswith("window_"):
        return windows.of_node(m, n, shape, d, x)
    if n.op == "gather":
        ok = (x[1] >= 0) & (x[1] < x[0].shape[0])
        y = x[0][np.where(ok, x[1], 0)] if x[0].shape[0] else np.zeros(shape, KINDS[d])
        return np.where(ok.reshape(ok.shape + (1,) * (x[0].ndim - 1)), y, np.zeros((), x[0].dtype))
    if n.op == "scatter_add":
        return scatter(m, x, d)
    if n.op == "all_reduce":
        how = n.attrs["reduction"]
        if how == "only_first_replica":
            return x[0]
        join = {"max": m.exact_max, "min": m.exact_min}.get(how, lambda a, b: m.r(a + b, d))
        if d not in EPS and how in ("max", "min"):
            join = np.maximum if how == "max" else np.minimum
        y = tree(list(x), join)
        return m.r(y / len(x), d) if how == "mean" and d in EPS else y // len(x) if how == "mean" else y
    if n.op in ("copy", "newest"):
        return x[0]
    if n.op == "assign":
        return x[1]
    raise NotImplementedError(n.op)


def reduce(m, n, x, axes, d):
    xp = m.xp
    if n.op == "reduce_sum":
        return m.total(x, axes, d)
    if n.op == "reduce_prod":
        return m.factors(x, axes, d)
    if d == "bool":
        return xp.any(x, axis=axes) if n.op == "reduce_max" else xp.all(x, axis=axes)
    low, high = (-np.inf, np.inf) if d in EPS else (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
    f, start = (xp.max, low) if n.op == "reduce_max" else (xp.min, high)
    return f(x, axis=axes, initial=start)


def scatter(m, x, d):
    table, i, v = x
    width = table.shape[1:]
    ok = ((i >= 0) & (i < table.shape[0])).reshape(-1)
    at, v = i.reshape(-1)[ok], v.reshape((-1,) + width)[ok]
    y, size = table.copy(), np.abs(table) if d in EPS else None
    np.add.at(y, at, v)
    if size is not None:
        np.add.at(size, at, np.abs(v))
    return m.r(y, d, len(at), size)


PRODUCTS, SUMS = ("mul", "square"), ("add", "sub", "fdim", "reduce_sum", "all_reduce")


def by_reciprocal(graph, n):
    """Whether a quotient may be a product with the reciprocal: one of what is repeated."""
    return n.op == "div" and n.dtype in EPS and graph.nodes[n.inputs[1]].op == "broadcast"


def term(m, graph, name, rows, values):
    """What a sum reads of a node: a product that may not have been rounded, be it repeated or moved in between."""
    n = graph.nodes[name]
    if n.op in ("broadcast", "reshape", "transpose", "neg"):
        return compute(m, n, [term(m, graph, n.inputs[0], rows, values)], [n.dtype], rows, values)
    if n.dtype not in EPS or n.op not in PRODUCTS and not by_reciprocal(graph, n):
        return values[name]
    a, b = values[n.inputs[0]], values[n.inputs[-1]]
    b = m.r(1 / b, n.dtype) if n.op == "div" else b
    product = a * b
    overflows = np.isinf(product) & np.isfinite(a) & np.isfinite(b)
    return m.term(np.where(overflows, np.copysign(LARGEST["f64"], product), product), values[name], n.dtype)


def loop(m, n, x, rows):
    """All results of a scan."""
    carries, sequences = int(n.attrs["carries"]), int(n.attrs["carries"]) + int(n.attrs["sequences"])
    names = [i.name for i in n.body.nodes.values() if i.op == "input"]
    length, carried, stacks = int(n.attrs["length"]), list(x[:carries]), [None] * (len(n.body.outputs) - carries)
    for t in range(length)[::-1] if "reverse" in n.attrs else range(length):
        now = carried + [s[t] for s in x[carries:sequences]] + list(x[sequences:])
        values = run(m, n.body, rows, dict(zip(names, now)))
        results = [values[node] for _, _, node, _ in n.body.outputs]
        carried = results[:carries]
        for k, y in enumerate(results[carries:]):
            if stacks[k] is None:
                stacks[k] = np.zeros((length,) + y.shape, y.dtype)
            stacks[k][t] = y
    return carried + stacks


def run(m, graph, rows, given):
    """Values of all nodes by name; `given` has inputs and variables, and what else is not to be computed."""
    values, results = {}, {}
    for n in graph.nodes.values():
        if n.dtype is None:
            raise NotImplementedError(f"{n.op} without a type")
        if n.name in given:
            values[n.name] = given[n.name]
            continue
        if n.op == "scan":
            results[n.name] = loop(m, n, [values[i] for i in n.inputs], rows)
            values[n.name] = results[n.name][0]
            continue
        if n.op == "output":
            values[n.name] = results[n.inputs[0]][int(n.attrs["index"])]
            continue
        fused = m.fuses and n.op in SUMS
        if m.fuses and by_reciprocal(graph, n):
            values[n.name] = m.quotient(*[values[i] for i in n.inputs], n.dtype)
            continue
        x = [term(m, graph, i, rows, values) if fused else values[i] for i in n.inputs]
        values[n.name] = compute(m, n, x, [graph.nodes[i].dtype for i in n.inputs] or [n.dtype], rows, given)
    return values
