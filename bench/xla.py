#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of all samples: XLA's CPU program of what dgc exports beside dgc's own CPU backend, in turn in one run:
xla.py BUILD [--rounds N] [--steps N] [--only SAMPLE] [--core N]

Python has JAX: $(tools/oracles.sh) is one. XLA runs the function `train` of `dgc compile --emit stablehlo`, at its own
settings but for the threads; dgc runs `dgc bench --threads 1`. Both take the batch of the model (128 where it has none),
numbers made up in the ranges that `dgc bench` says, written anew at each step, and read the loss. Variables stay where they
are: XLA's are donated, each to the result that takes its place.

One thread each: XLA_FLAGS says so, and both are pinned to one core (sched_setaffinity, which dgc inherits; --core, by default
the last that this process may use). A round is `--steps` steps of the one, then of the other; a figure is the median of the
rounds' medians. Compilation is from the text: of the sample by dgc, its cache of kernels being off, with the time that takes
the StableHLO of `train`; of that by XLA."""
import argparse
import os
import re
import statistics
import subprocess
import sys
import time

from rounds import ROOT, dgc, median_ms

VALUE = re.compile(r'tensor<([^>]*)> \{dgc\.role = "(\w+)", dgc\.name = "((?:[^"\\]|\\.)*)"\}')


def arguments():
    p = argparse.ArgumentParser(description="XLA's CPU program of what dgc exports, beside dgc's CPU backend.")
    p.add_argument("build")
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--steps", type=int, default=50)
    p.add_argument("--only", metavar="SAMPLE")
    p.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    return p.parse_args()


class Exported:
    """An entry of a sample as StableHLO: its text, arguments and results as (type, role, name)."""

    def __init__(self, build, sample, entry):
        began = time.perf_counter()
        command = [os.path.join(build, "dgc"), "compile", sample, "--entry", entry, "--emit", "stablehlo"]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            sys.exit(run.stderr)
        self.seconds = time.perf_counter() - began
        lines = run.stdout.split("\n")
        at = next(i for i, line in enumerate(lines) if "func.func public" in line)
        args, results = lines[at].split(") -> (", 1)
        self.args, self.results = VALUE.findall(args), VALUE.findall(results)
        places = {name: i for i, (_, role, name) in enumerate(self.results) if role == "variable"}

        def donated(found):
            place = places.get(found[3]) if found[2] == "variable" else None
            return found[0] if place is None else "%s, tf.aliasing_output = %d : i32}" % (found[0][:-1], place)
        args = re.sub(VALUE, donated, args)
        lines[at] = re.sub(r'@"?%s"?\(' % entry, "@main(", args) + ") -> (" + results
        self.text = "\n".join(lines).encode()


class Xla:
    """A sample that is trained by XLA."""

    def __init__(self, build, sample, ranges):
        import jax
        import numpy as np
        from jax._src import xla_bridge
        from jax._src.lib import xla_client
        self.np, self.put = np, jax.device_put
        self.types = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "ui8": np.uint8, "i1": np.bool_}
        backend = xla_bridge.get_backend("cpu")
        devices = xla_client.DeviceList(tuple(backend.local_devices()[:1]))
        init, train = (Exported(build, sample, entry) for entry in ("init", "train"))
        first = backend.compile_and_load(init.text, devices, xla_client.CompileOptions())
        values = first.execute([self.put(self.zeros(t)) for t, _, _ in init.args])
        state = {name: x for (_, _, name), x in zip(init.results, values)}
        began = time.perf_counter()
        self.program = backend.compile_and_load(train.text, devices, xla_client.CompileOptions())
        self.compile = train.seconds + time.perf_counter() - began
        r = np.random.default_rng(1)
        self.inputs = [self.made_up(r, t, ranges[name]) for t, role, name in train.args if role == "input"]
        self.state = [state[name] if name in state else self.put(self.zeros(t)) for t, role, name in train.args
                      if role == "variable"]
        names = [name for _, role, name in train.args if role == "variable"]
        self.new = [(i, names.index(name)) for i, (_, role, name) in enumerate(train.results) if role == "variable"]
        self.loss = next(i for i, (_, role, _) in enumerate(train.results) if role == "loss")

    def shape(self, text):
        *dims, dtype = text.split("x")
        return list(map(int, dims)), self.types[dtype]

    def zeros(self, text):
        return self.np.zeros(*self.shape(text))

    def made_up(self, r, text, limits):
        shape, dtype = self.shape(text)
        if self.np.dtype(dtype).kind == "f":
            return r.uniform(*limits, shape).astype(dtype)
        return r.integers(limits[0], limits[1], shape, endpoint=True).astype(dtype)

    def step(self):
        out = self.program.execute([self.put(x) for x in self.inputs] + self.state)
        for i, place in self.new:
            self.state[place] = out[i]
        return float(self.np.asarray(out[self.loss]))

    def steps(self, count):
        """The median step in ms."""
        loss = []
        return median_ms(lambda: loss.append(self.step()), count), loss[-1]


def bench(build, sample, steps, cache):
    return dgc(build, sample, None, steps, 1, env={**os.environ, **({} if cache else {"DGC_CACHE": "off"})})


def main():
    o = arguments()
    os.sched_setaffinity(0, {o.core})
    os.environ.update(JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3",
                      XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    import jax
    jax.config.update("jax_enable_x64", True)
    print("| sample | dgc, ms | XLA, ms | ratio | dgc compiles, ms | XLA compiles, ms | ratio |\n|---|---:|---:|---:|---:|---:|---:|")
    for name in sorted(os.listdir(os.path.join(ROOT, "samples"))):
        if not name.endswith(".dsl") or o.only not in (None, name[:-4]):
            continue
        sample, ours, theirs, compiled = os.path.join(ROOT, "samples", name), [], [], ([], [])
        ranges = {i["name"]: (i["low"], i["high"]) for i in bench(o.build, sample, 1, True)["inputs"]}
        xla = Xla(o.build, sample, ranges)
        xla.steps(5)
        for i in range(o.rounds):
            ours.append(bench(o.build, sample, o.steps, True)["step_ms"])
            median, loss = xla.steps(o.steps)
            theirs.append(median)
            if i < 3:  # a compilation is long: three say enough
                compiled[0].append(bench(o.build, sample, 1, False)["compile_ms"])
                compiled[1].append(1000 * Xla(o.build, sample, ranges).compile)
        if loss != loss:
            sys.exit("%s: the loss is no number" % name)
        a, b, c, d = map(statistics.median, (ours, theirs, *compiled))
        print("| %s | %.3f | %.3f | %.2f | %.0f | %.0f | %.2f |" % (name[:-4], a, b, b / a, c, d, d / c), flush=True)


main()
