# SPDX-License-Identifier: Apache-2.0
"""A random model as XLA computes it: what dgc exports of its source, of one tower and of three, against numpy's numbers;
and where a number differs, the first node whose value does.

All graphs of a model are one module, of which XLA computes once what they have alike."""
import json
import os
import re
import sys

import numpy as np

import binding
import graphs
from arithmetic import EPS, MANY, SMALLEST, Arithmetic, bound, differs, moves_of
from check_models import MAY_REFUSE, Case
from process import Found

TYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "ui8": np.uint8, "i1": np.bool_}
VALUE = re.compile(r'tensor<([^>]*)> \{dgc\.role = "(\w+)", dgc\.name = "((?:[^"\\]|\\.)*)"\}')


def in_f64(a):
    return a.astype(np.float64) if a.dtype.kind == "f" else a


class LikeXla(Arithmetic):
    """XLA's CPU backend takes subnormals for zeros, its functions are off by a few units more than dgc's, and of a
    product and a sum it makes one operation, wherever the product is read, which then is not rounded and does not overflow."""
    fuses = True

    def term(self, product, rounded, dtype):
        if self.moves is None:
            return rounded
        if dtype == "f64":  # which is all that numpy has: what rounding took is at most so much
            product = product + 2 * EPS["f64"] * np.abs(product) * np.sign(self.moves(np.shape(product)))
        return np.where(self.moves(np.shape(rounded)) > 0, product, rounded)

    def total(self, *args, **more):
        return self.unsigned(super().total(*args, **more))

    def product(self, *args):
        return self.unsigned(super().product(*args))

    def unsigned(self, v):
        """A sum of one product is that product, which may be -0; dgc begins with 0."""
        if self.moves is None or v.dtype.kind != "f":
            return v
        return np.where(v == 0, np.copysign(0.0, self.moves(np.shape(v))), v)

    def quotient(self, a, b, dtype):
        """By what is repeated: XLA may multiply by its reciprocal."""
        y = self.r(a / b, dtype)
        if self.moves is None:
            return y
        return np.where(self.moves(np.shape(y)) > 0, self.r(a * self.r(1 / b, dtype), dtype), y)

    def r(self, v, dtype, ulps=1.0, scale=None):
        v = super().r(v, dtype, ulps if ulps <= 1 or scale is not None else 4 * ulps, scale)
        if self.moves is None or dtype not in SMALLEST:
            return v
        return np.where((np.abs(v) < SMALLEST[dtype]) & (self.moves(np.shape(v)) > 0), 0.0, v)


class Part:
    """A module that dgc has exported, with its arguments: what xla.joined takes."""
    is_sample = True

    def __init__(self, what, text, numbers):
        self.what = what
        self.module = re.sub(r'func\.func public @"?\w+"?\(', "func.func public @main(", text, count=1).encode()
        head = next(line for line in text.splitlines() if "func.func public" in line)
        args, results = head.split(") -> (", 1)
        self.names = [name.split("/replica_")[0] for _, _, name in VALUE.findall(args)]
        self.args = [np.ascontiguousarray(numbers[name], TYPES[t.split("x")[-1]]).reshape(self.shape(t))
                     for (t, _, _), name in zip(VALUE.findall(args), self.names)]
        self.places = [(name, x.dtype.str, x.shape) for name, x in zip(self.names, self.args)]
        self.results = [(role, name, np.zeros(self.shape(t), TYPES[t.split("x")[-1]]), [])
                        for t, role, name in VALUE.findall(results)]

    @staticmethod
    def shape(text):
        return [int(n) for n in text.split("x")[:-1]]

    def wanted(self):
        return self.results

    def named(self, values):
        """As Case.results names them; of a value on several towers each."""
        out = []
        for (role, name, _, _), a in zip(self.results, values):
            out.append((("loss " if role == "loss" else "") + name.split("/replica_")[0], name, a))
        return out


def program_of(tools):
    """tests/oracle/xla.py: it finds JAX's backend by the settings that it makes."""
    def make():
        sys.path.append(os.path.join(tools.source, "tests", "oracle"))
        import xla
        return xla.Xla()
    return tools.cached("xla", make)


class XlaCase(Case):
    arithmetic = LikeXla

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        for name, a in self.given.items():  # what is a zero to XLA is one to numpy, too
            if a.dtype.kind == "f":
                self.given[name] = np.where(np.abs(a) < np.finfo(a.dtype).tiny, np.zeros_like(a), a)

    def layouts(self):
        """One tower, and three; where the rows cannot be divided, unevenly."""
        three = [("devices", "cpu:0-2"), ("strategy", "mirrored")]
        if self.rows % 3:
            three = [("devices", "cpu:0-2"), ("strategy", "replicate"), ("uneven", "true")]
        return {"one tower": [("devices", "cpu:0")], "three towers": three}

    def numbers_of(self, session):
        return {"step": np.int64(0), "input.first_row": np.int64(0), **session.read_all(), **self.variables, **self.given}

    def exported(self, entry):
        """A part for each graph that this entry has."""
        parts = []
        for what, options in self.layouts().items():
            try:
                with self.session(options) as s:
                    parts.append(Part(f"{entry}, {what}", s.emit(entry, "stablehlo"), self.numbers_of(s)))
            except binding.Refused as e:
                if not any(t in e.message for t in MAY_REFUSE):
                    raise Found("refused", f"{options}: {e}") from None
                self.log.append("towers refused")
        text = self.graph(entry, "grad")
        parts.append(Part(f"{entry}, after grad", self.opted(text), self.all_numbers()))
        return parts

    def all_numbers(self):
        with self.session([("devices", "cpu:0")]) as s:
            return self.numbers_of(s)

    def opted(self, text):
        path = os.path.join(self.tools.work, "xla.dg")
        with open(path, "w") as f:
            f.write(text)
        with binding.Session(self.tools.lib, [("batch", self.rows), ("emit", "stablehlo")]) as s:
            return s.opt(path)

    def check(self):
        try:
            self.all_numbers()
        except binding.Refused as e:
            if "depends on no variable" not in e.message:
                raise Found("refused", str(e)) from None
            self.program.loss = []
            self.text = self.program.text()
            self.all_numbers()
        want, parts = self.expected(), []
        if self.program.results:
            parts += self.exported("predict")
        if self.program.loss and not self.wild:
            parts += self.exported("train")
            want.update(self.expected_step())
        if not parts:
            return
        for part, values in zip(parts, program_of(self.tools).run_all(parts)):
            try:
                self.compare_part(part, values, want)
            except Found as e:
                self.explain(part, values, want, e)
        self.log.append(f"{len(parts)} graphs")

    def compare_part(self, part, values, want):
        for name, own, value in part.named(values):
            self.compare(own, {name: value}, {name: want[name]} if name in want else {})

    def explain(self, part, values, want, found):
        """A part whose numbers are not the model's. They are explained where the graph's own text says what the model
        says, and XLA's numbers are those of the graph in XLA's arithmetic, but for nodes that docs/stablehlo.md names:
        what comes behind these is computed with XLA's numbers of them."""
        graph, got, given = self.alone(part)
        words, runs = [], self.runs(graph, given)
        self.compare("the graph, by its text,", self.outputs(graph, runs[0]), want)
        while True:
            far = {k: bound(runs[0][k], [r[k] for r in runs[1:]], graph.nodes[k].dtype) for k in runs[0]}
            wrong = {k: differs(got[k], runs[0][k], far[k]) for k in got}
            first = next((k for k in got if np.any(wrong[k])), None)
            if first is None:
                break
            node, at = graph.nodes[first], wrong[first]
            word = self.known(graph, node, runs[0], got[first][at], runs[0][first][at])
            if not word:
                raise Found("xla", f"{part.what}: {found}\nthe first node that differs: "
                            + self.place(node, got[first], runs[0][first], at)) from None
            words.append(word)
            given[first] = in_f64(got[first])
            runs = self.runs(graph, given)
        reference, bounds = self.outputs(graph, runs[0]), self.outputs(graph, far)
        try:
            self.compare_part(part, values, {k: (reference[k], bounds[k], None) for k in reference})
        except Found as e:
            raise Found("xla", f"{part.what}: {found}\nno node alone differs, but of the whole {e}") from None
        self.log += sorted(set(words)) or ["XLA's arithmetic"]

    def runs(self, graph, given):
        """All values, the first time as they are, then each moved."""
        return [graphs.run(self.arithmetic(np, moves_of(i) if i else None), graph, self.rows, given)
                for i in range(self.draws + 1)]

    @staticmethod
    def outputs(graph, values):
        """Of values of nodes those that are given out, as Part.named names them."""
        return {graph.nodes[node].inputs[0].split("/replica_")[0] if role == "update" else
                ("loss " if role == "loss" else "") + name: values[node] for role, name, node, _ in graph.outputs}

    def alone(self, part):
        """The graph of a part, XLA's value of each node as a result; and values of inputs, variables, random nodes."""
        entry, layout = part.what.split(", ")
        options = self.layouts().get(layout)
        text = self.graph(entry, "placed", options) if options else self.graph(entry, "grad")
        [graph] = graphs.parse(text).values()
        nodes = [n for n in graph.nodes.values() if n.op not in ("input", "variable", "assign")]
        lines = text.rstrip().splitlines()
        more = [f"  value {json.dumps('n%d' % i)} = {json.dumps(n.name)}" for i, n in enumerate(nodes)]
        kept = [line for line in lines[:-1] if line.split()[:1] not in (["loss"], ["predict"], ["metric"], ["update"])]
        full = Part("all", self.opted("\n".join(kept + more + ["}"]) + "\n"), self.all_numbers())
        values = {name: value for (_, name, _, _), value in zip(full.results, program_of(self.tools).run(full))}
        got = {n.name: values[f"n{i}"] for i, n in enumerate(nodes)}
        given = {k: in_f64(a) for k, a in self.all_numbers().items()}
        given.update({n.name: given[n.name.split("/replica_")[0]] for n in graph.nodes.values() if n.op == "variable"})
        given.update({n.name: in_f64(got[n.name]) for n in nodes if n.op.startswith("random")})
        return graph, got, given

    @staticmethod
    def place(node, got, want, wrong):
        at = tuple(int(k) for k in np.argwhere(wrong)[0]) if np.ndim(wrong) else ()
        return f"{node.name} = {node.op} {', '.join(node.inputs)} at {list(at)}: {got[at]!r}, not {want[at]!r}"

    @staticmethod
    def known(graph, n, values, got, want):
        """A word for what docs/stablehlo.md says of products with zeros, which XLA makes, or leaves out: NaN that dgc has not,
        or zeros where it has NaN. `got` and `want` are what differs."""
        infinite = any(not np.all(np.isfinite(np.asarray(values[k], np.float64))) for k in n.inputs)
        mask = any(graph.nodes[k].op == "cast" and graph.nodes[graph.nodes[k].inputs[0]].dtype == "bool" for k in n.inputs)
        if n.op.startswith(("conv", "attention")) and infinite and np.all(np.isnan(got)):
            return f"{n.op} of infinities"
        return "mask times infinity" if n.op == "mul" and mask and infinite and np.all(np.isnan(want)) else None


def check_xla(tools, seed, index):
    if not tools.jax:
        return "no JAX"
    case = XlaCase(tools, seed, index)
    tools.say(case.text)
    try:
        case.check()
    except Found:
        case = XlaCase(tools, seed, index, draws=MANY)
        try:
            case.check()
        except Found as e:
            raise Found(e.kind, f"{e.text}\n{case.text}\nrows {case.rows}") from None
    return ", ".join(case.log) or "nothing to compare"
