"""oracle.py CASES SUITE: runs by XLA the modules that the program CASES writes, and compares what they give.

Each case is a module with its arguments and what node_eval makes of them. Where a result differs, the case is written
once more with the value of each node as a result, and the first node that differs is named.
"""
import json
import os
import re
import subprocess
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1 --xla_backend_optimization_level=0"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import jax
import numpy as np
from jax._src import xla_bridge
from jax._src.lib import xla_client

import interpret

jax.config.update("jax_enable_x64", True)

DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "bool": np.bool_}


class Case:
    """One record: a line of JSON, then the module, the arguments and the results as they lie in memory."""

    def __init__(self, head, stream):
        self.name, self.tolerance = head["case"], head["tolerance"]
        self.module = stream.read(head["module"])
        self.names = [t[1] for t in head["args"]]
        self.args = [self.tensor(t, stream) for t in head["args"]]
        self.results = [(t[0], t[1], self.tensor(t, stream)) for t in head["results"]]

    @staticmethod
    def tensor(t, stream):
        dtype = np.dtype(DTYPES[t[2]])
        count = int(np.prod(t[3], dtype=np.int64))
        return np.frombuffer(stream.read(count * dtype.itemsize), dtype).reshape(t[3])

    def size(self, result):
        """The sum of all that the result of an op's case, "case_3", may be a sum of: operands "c3.x0" and so on."""
        mine = [x for x, name in zip(self.args, self.names) if name.startswith("c%s." % result.split("_")[-1])]
        with np.errstate(all="ignore"):
            return sum(float(np.sum(np.abs(np.where(np.isfinite(x), x, 0)), dtype=np.float64)) for x in mine)

    def wanted(self):
        """Role, name, value and, if there are any, bounds."""
        out = []
        for role, name, value in self.results:
            if role in ("low", "high"):
                out[-1][3].append(value)
            else:
                out.append((role, name, value, []))
        return out


def cases(program, *args):
    process = subprocess.Popen([program, *args], stdout=subprocess.PIPE)
    while True:
        line = process.stdout.readline()
        if not line:
            break
        yield Case(json.loads(line), process.stdout)
    if process.wait():
        sys.exit("%s has failed" % program)


class Xla:
    def __init__(self):
        self.backend = xla_bridge.get_backend("cpu")
        self.devices = xla_client.DeviceList(tuple(self.backend.local_devices()[:1]))
        self.module = self.program = None  # the last one: the next case may have other arguments

    def run(self, case):
        if case.module != self.module:
            self.program = self.backend.compile_and_load(case.module, self.devices, xla_client.CompileOptions())
            self.module = case.module
        return [np.asarray(x) for x in self.program.execute([jax.device_put(x) for x in case.args])]


# Units in the last place that XLA's own functions may be off, of f32 and f64, beside what ours may.
ULPS = {}
# A number that is none to a device that has no subnormal f32, which a cast may have been before.
TINY = 1.2e-38


# Whose order of additions dgc says, and XLA does not keep: their bounds are points.
IN_ORDER = ("cumsum", "window_sum", "window_put", "scatter_add", "add_along")


def differs(tolerance, want, bounds, got, size):
    """What is wrong, or None. XLA's CPU takes subnormals for zeros."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return "it is %s%s, not %s%s" % (got.dtype, list(got.shape), want.dtype, list(want.shape))
    if want.size == 0:
        return None
    if want.dtype.kind != "f":
        bad = got != want
    else:
        eps = np.finfo(want.dtype).eps
        with np.errstate(all="ignore"):
            w, g = want.astype(np.float64), got.astype(np.float64)
            if tolerance in ("f32", "f64"):
                most = np.max(np.abs(np.where(np.isfinite(w), w, 0)), initial=0)
                room = (1e-9 if tolerance == "f64" else 2e-4) * np.maximum(np.abs(w), most)
                low = high = w
            else:
                low, high = bounds if bounds else (w, w)
                room = ULPS.get(tolerance, 8) * eps * np.abs(w) + TINY + (tolerance in IN_ORDER) * eps * size
            ok = (g >= low - room) & (g <= high + room) | (g == w) | (np.isnan(g) & np.isnan(w))
            ok |= np.isneginf(low) & np.isposinf(high)
        bad = ~ok
    if not np.any(bad):
        return None
    at = np.unravel_index(np.argmax(bad), bad.shape)
    return "%d of %d elements, the first %s: %r instead of %r" % (
        np.count_nonzero(bad), bad.size, list(map(int, at)), got[at].item(), want[at].item())


def compare(case, got):
    for (role, name, want, bounds), have in zip(case.wanted(), got):
        why = differs(case.tolerance, want, bounds, have, case.size(name) if case.tolerance in IN_ORDER else 0)
        if why:
            return "%s %s: %s" % (role, name, why)
    return None


BODY = "*body*"
VIEWS = {"slice", "transpose", "broadcast_in_dim", "return"}  # what cases read their operands through


def documented(path):
    """The operations that docs/stablehlo.md says of each op; those of bodies under BODY."""
    text = open(path).read()
    body = re.search(r"In \*body\* stand(.*?)\. A fused", text, re.S)
    table = {BODY: set(re.findall(r"`(\w+)`", body.group(1).split(":", 1)[1]))}
    for op, what in re.findall(r"^\| `(\w+)` \| (.*) \|$", text.split("## Every op")[1], re.M):
        table[op] = set(re.findall(r"`(\w+)`", what)) | (table[BODY] if re.match(r"body\b", what) else set())
    return table


def undocumented(table, case):
    op = case.name.split()[1]
    used = set(re.findall(rb"stablehlo\.(\w+)(?=[\" ])", case.module))
    more = {name.decode() for name in used} - VIEWS - table[op] - (table["round_bf16"] if op in ("matmul", "conv") else set())
    return more and "docs/stablehlo.md does not say that %s is written with %s" % (op, ", ".join(sorted(more)))


def main():
    program, suite = sys.argv[1:3]
    only = ["--only", sys.argv[3]] if len(sys.argv) > 3 else []
    table = documented(os.path.join(os.path.dirname(__file__), "..", "..", "docs", "stablehlo.md"))
    xla, passed, failed, results = Xla(), 0, 0, 0
    for case in cases(program, suite, *only):
        try:
            wrong = compare(case, interpret.gradients(case) if suite == "gradients" else xla.run(case))
            wrong = wrong or suite == "ops" and undocumented(table, case)
        except Exception as e:
            wrong = str(e)[:400]
        results += len(case.wanted())
        passed += not wrong
        if not wrong:
            continue
        failed += 1
        print("%s: %s" % (case.name, wrong), flush=True)
        if suite == "gradients":
            continue
        for all_nodes in cases(program, suite, "--nodes", "--only", case.name):
            try:
                first = compare(all_nodes, xla.run(all_nodes))
            except Exception as e:
                first = None
            print("  the first node that differs: %s" % first)
    print("%d results" % results)
    print("%d passed, %d failed" % (passed, failed))
    return failed != 0


sys.exit(main())
