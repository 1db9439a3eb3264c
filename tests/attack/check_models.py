# SPDX-License-Identifier: Apache-2.0
"""A random model under attack: compiled code against the interpreter, numpy and JAX; towers and strategies against each
other and against one tower; gradients; the certificate."""
import os
import random

import numpy as np

import binding
import data
import graphs
import table
from arithmetic import DRAWS, EPS, MANY, Arithmetic, bound, differs, moves_of
from models import make
from process import Found

STRATEGIES = ("mirrored", "central_storage", "round_robin", "replicate", "parameter_server", "multi_worker_mirrored",
              "one_device")
# What dgc may say no to, where towers share a model: docs/strategies.md and the pass replicate say when.
MAY_REFUSE = ("would mix the batch", "differs from tower to tower", "in asynchronous training no worker has them")
ROUND = ("reduce_sum", "reduce_prod", "matmul", "conv", "scatter_add", "attention", "attention_gradient")


def spread_options(rng, towers):
    """Options for a number of towers: a strategy, and devices that may be fewer."""
    strategy = rng.choice(STRATEGIES)
    if strategy in ("parameter_server", "multi_worker_mirrored"):
        workers = rng.choice([n for n in (1, 2, 3, 5) if towers % n == 0 and n <= towers])
        ps = f";ps={rng.randint(1, 2)}" if strategy == "parameter_server" else ""
        options = [("cluster", f"worker={max(workers, 2) if not ps else workers}{ps}")]
        if rng.random() < 0.5 and ps:
            options.append(("min-part-bytes", "8"))
    else:
        n = 1 if strategy == "one_device" else rng.randint(1, towers)
        options = [("devices", f"cpu:0-{n - 1}")]
    options += [("towers", towers), ("strategy", strategy)]
    if strategy == "replicate":
        options.append(("uneven", "true"))
    if strategy in ("mirrored", "multi_worker_mirrored") and rng.random() < 0.3:
        options.append(rng.choice([("packs", "2"), ("bytes-per-pack", "64"), ("cross-device", "hierarchical_copy"), ("cross-device", "scatter")]))
    if rng.random() < 0.3:
        options.append(("threads", rng.randint(1, 3)))
    return options


class Case:
    """One model with its numbers. `program` may be a smaller one: the shrinker's."""
    arithmetic = Arithmetic

    def __init__(self, tools, seed, index, program=None, given=None, draws=DRAWS):
        self.draws = draws
        self.tools, self.rng = tools, random.Random(f"model:{seed}:{index}")
        rows, names = table.rows(), list(table.rows())
        first = names[index % len(names)]
        made = make(self.rng, rows, first)
        self.first = first
        self.program = program or made
        self.rows = self.rng.choice(data.ROWS)
        self.wild = self.rng.random() < 0.4
        self.variables = {}
        numbers = data.inputs(self.rng, made, self.rows, self.wild)
        self.given = {**numbers, **(given or {})}
        self.towers = self.rng.randint(2, 5)
        self.spreads = [spread_options(self.rng, self.towers) for _ in range(2)]
        self.variables_seed = self.rng.random()
        self.text = self.program.text()
        self.jax = tools.jax if not self.wild else None
        self.log = []

    # ---- running dgc ----
    def session(self, options):
        base = [("seed", 3), ("verify-each", "true"), ("batch", self.rows)]
        s = binding.Session(self.tools.lib, base + options)
        s.load(self.text)
        self.variables = data.variables(random.Random(self.variables_seed), sorted(s.variables(), key=str))
        for name in self.variables:
            self.variables[name] = self.given.get(name, self.variables[name])
            s.write(name, self.variables[name])
        return s

    def results(self, options, train):
        """What predict gives, and what a training step writes: the losses and each gradient."""
        with self.session(options) as s:
            out = s.run("predict", self.rows, self.given) if self.program.results else {}
            if train:
                losses = s.run("train", self.rows, self.given)
                out.update({"loss " + k: v for k, v in losses.items()})
                after = s.read_all()
                out.update({k: v for k, v in after.items() if k.endswith(".seen")})
                out.update({k: v for k, v in after.items() if ".moving_" in k})
            return out

    def graph(self, entry, stage, options=()):
        with self.session(list(options)) as s:
            return s.emit(entry, stage)

    # ---- references ----
    def numbers(self):
        return {k: a.astype(np.float64) if a.dtype.kind == "f" else a
                for k, a in {**self.variables, **self.given}.items()}

    def expected(self):
        """name -> (reference, bound, dtype) for what predict gives, by numpy."""
        runs, unknown = [], set()
        for draw in range(self.draws + 1):
            m = self.arithmetic(np, moves_of(draw) if draw else None)
            m.unknown = unknown
            values = self.program.evaluate(m, self.numbers(), self.rows)
            runs.append({v: self.program.result(v, values[v.name], self.rows) for v in self.program.results})
        spoilt = set(unknown)
        for v in self.program.values:
            if any(a.name in spoilt for a in v.args):
                spoilt.add(v.name)
        out = {}
        for v in self.program.results:
            if v.name not in spoilt:
                far = bound(runs[0][v], [r[v] for r in runs[1:]], v.dtype)
                out["p_" + v.name] = (runs[0][v], far, v.dtype)
        return out

    def expected_step(self):
        """name -> (reference, bound, dtype) for what a training step writes, by the text of its graph."""
        [graph] = graphs.parse(self.graph("train", "grad")).values()
        runs = []
        given = {**self.numbers(), "step": np.int64(0)}
        for n in graph.nodes.values():
            if n.op == "variable" and n.name not in given:
                given[n.name] = np.zeros([int(k) for k in n.shape])
            if n.op.startswith("random"):
                return {}
        for draw in range(self.draws + 1):
            runs.append(graphs.run(self.arithmetic(np, moves_of(draw) if draw else None), graph, self.rows, given))
        out = {}
        for role, name, node, _ in graph.outputs:
            n = graph.nodes[node]
            if role == "update" and n.inputs[0].endswith(".seen"):
                name = n.inputs[0]
            elif role == "loss":
                name = "loss " + name
            else:
                continue
            far = bound(runs[0][node], [r[node] for r in runs[1:]], n.dtype)
            out[name] = (runs[0][node], far, n.dtype)
        return out

    def expected_by_jax(self, draws):
        """The same by JAX, for models of f64. Without draws the bound is 1e-9 alone."""
        jax, program = self.jax, self.program
        everything = self.numbers()
        wanted = {k: v for k, v in everything.items() if k in self.variables}
        held = {k: v for k, v in everything.items() if k not in wanted}
        unknown = set()

        def loss(wanted, moves):
            def take(shape):
                size = int(np.prod(shape))
                begin = used[0] % (len(moves) - size)
                used[0] = begin + size
                return moves[begin:begin + size].reshape(shape)
            used = [0]
            m = Arithmetic(jax.numpy, None if moves is None else take, jax)
            m.training, m.unknown = True, unknown
            values = program.evaluate(m, {**held, **wanted}, self.rows)
            return sum(jax.numpy.mean(values[v.name]) for v in program.loss)

        step = jax.jit(jax.value_and_grad(loss))
        runs = [step(wanted, None)] + [step(wanted, moves_of(i)((1 << 16,))) for i in range(draws)]
        if unknown:
            return {}
        out = {"loss total": [r[0] for r in runs]}
        for k in wanted:
            out[k + ".probe.seen"] = [r[1][k] for r in runs]
        return {k: (np.asarray(r[0]), self.summed(np.asarray(r[0]), bound(np.asarray(r[0]), [np.asarray(x) for x in r[1:]], "f64")),
                    "f64") for k, r in out.items()}

    @staticmethod
    def summed(gradient, far):
        """A gradient is a sum over rows, which the draws do not move: parts that cancel each other leave what they are rounded
        by, of which the largest element tells the size."""
        finite = np.abs(gradient[np.isfinite(gradient)])
        return np.maximum(far, data.ROWS[-1] * EPS["f64"] * finite.max()) if finite.size else far

    # ---- the checks ----
    def compare(self, kind, got, want, exact=False):
        for name in want:
            reference, far, dtype = want[name]
            if name not in got:
                continue
            wrong = differs(got[name], reference, np.zeros_like(far) if exact else far)
            if np.any(wrong):
                at = tuple(int(i) for i in np.argwhere(wrong)[0]) if np.ndim(wrong) else ()
                raise Found(kind, f"{name}{list(at)} is {np.asarray(got[name])[at]!r}, not "
                            f"{np.asarray(reference)[at]!r} within {np.asarray(far)[at]:.3g} ({np.sum(wrong)} of "
                            f"{np.size(wrong)} elements)")

    @staticmethod
    def bits(kind, a, b):
        for name in a:
            x, y = a[name], b[name]
            same = (x == y) | (x != x) & (y != y)
            if x.dtype.kind == "f":
                same &= np.signbit(x) == np.signbit(y) if not np.any(x != x) else same
            if not np.all(same):
                at = tuple(int(i) for i in np.argwhere(~same)[0]) if np.ndim(same) else ()
                raise Found(kind, f"{name}{list(at)}: {x[at]!r} and {y[at]!r}")

    def rounds(self, entry):
        """Does the order of additions matter?"""
        text = self.graph(entry, "grad")
        return any(f" {op} " in line and (": f32" in line or ": f64" in line)
                   for line in text.splitlines() for op in ROUND)

    def check(self):
        train = bool(self.program.loss) and not self.wild
        try:
            compiled = self.results([("devices", "cpu:0")], train)
        except binding.Refused as e:
            if "depends on no variable" in e.message:
                self.program.loss, train = [], False
                self.text = self.program.text()
                compiled = self.results([("devices", "cpu:0")], False)
            else:
                raise Found("refused", str(e)) from None
        interp = self.results([("devices", "cpu:0"), ("backend", "interp")], train)
        want = self.expected()
        self.compare("numpy-interp", interp, want)
        self.compare("numpy", compiled, want)
        if self.program.results and not self.rounds("predict"):
            self.bits("interp", {k: v for k, v in compiled.items() if k.startswith("p_")},
                      {k: v for k, v in interp.items() if k.startswith("p_")})
        if train:
            step = self.expected_step()
            self.compare("step-interp", interp, step)
            self.compare("step", compiled, step)
            want.update(step)
            if self.jax and self.program.values and all(v.dtype != "f32" for v in self.program.values):
                self.log.append("jax")
                try:
                    self.compare("jax", interp, self.expected_by_jax(0))
                except Found:
                    self.compare("jax", interp, self.expected_by_jax(self.draws))
        self.check_towers(train, want)

    def check_towers(self, train, want):
        first = None
        for options in self.spreads:
            try:
                got = self.results(options, train)
            except binding.Refused as e:
                if any(t in e.message for t in MAY_REFUSE):
                    self.log.append("towers refused")
                    return
                raise Found("refused", f"{options}: {e}") from None
            self.compare("towers", got, want)
            if first is not None:
                self.bits("strategies", first, got)
            first = got
        rng = random.Random(self.variables_seed)
        if rng.random() < 0.25:
            self.verify(self.spreads[0])
        if train and rng.random() < 0.5:
            workers = min(self.towers, rng.randint(2, 3))
            self.verify([("cluster", f"worker={workers};ps=1"), ("towers", self.towers - self.towers % workers),
                         ("strategy", "parameter_server"), ("staleness", rng.randint(0, 2))])

    def verify(self, options):
        """The certificate, with numbers; of workers that do not wait for each other, too, whose steps are no sum over towers."""
        path = os.path.join(self.tools.work, "model.dsl")
        with open(path, "w") as f:
            f.write(self.text)
        with binding.Session(self.tools.lib, [("batch", self.rows), ("numeric", "true")] + options) as s:
            try:
                s.verify(path)
            except binding.Refused as e:
                if not any(t in e.message for t in MAY_REFUSE):
                    raise Found("verify", f"{options}: {e}") from None


def check_model(tools, seed, index):
    case = Case(tools, seed, index)
    tools.say(case.text)
    try:
        try:
            case.check()
        except Found:
            case = Case(tools, seed, index, draws=MANY)
            case.check()
    except Found as e:
        from shrink import shrink
        raise Found(e.kind, f"{e.text}\n{shrink(tools, seed, index, e.kind)}") from None
    return ", ".join(case.log) or "same"
