# SPDX-License-Identifier: Apache-2.0
"""Modules as XLA's CPU backend computes them.

What takes time is XLA's compilation: 15 ms for each kernel, however small, and 25 ms for each module. So cases are
compiled together, as functions of one module. Operands that they share are one argument of it; then XLA computes once
what two of them compute alike. What a module was compiled to is kept where JAX keeps what it compiles, for that
module, XLA and processor."""
import hashlib
import os
import re
import tempfile
import zlib

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1 --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import jax
import jaxlib
import numpy as np
from jax._src import xla_bridge
from jax._src.lib import xla_client

jax.config.update("jax_enable_x64", True)

ELEMENTS = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "uint8": "ui8", "bool": "i1"}


def type_text(array):
    return "tensor<%s>" % "x".join([*map(str, array.shape), ELEMENTS[str(array.dtype)]])


def as_function(module, name):
    """The only function of a module, as text, under another name; without the places of its operations."""
    text = module.decode().split("\n}\n#loc")[0].split("\n", 1)[1]
    text = re.sub(r" loc\(#loc\d+\)", "", re.sub(r"\n}\n$", "", text))
    return re.sub(r'func\.func public @"?\w+"?\(', "func.func private @%s(" % name, text, count=1)


def joined(group):
    """One module of all modules of these cases, whose results stand behind each other; and its arguments."""
    args, calls, results, types = {}, [], [], []
    for i, case in enumerate(group):
        keys = case.places if case.is_sample else [(i, name) for name in case.names]
        for key, x in zip(keys, case.args):
            args.setdefault(key, (len(args), x))
        operands = ", ".join("%%arg%d" % args[key][0] for key in keys)
        mine = [type_text(value) for _, _, value, _ in case.wanted()]
        calls.append("    %%r%d:%d = func.call @f%d(%s) : (%s) -> (%s)" % (
            i, len(mine), i, operands, ", ".join(map(type_text, case.args)), ", ".join(mine)))
        results += ["%%r%d#%d" % (i, k) for k in range(len(mine))]
        types += mine
    arguments = ", ".join("%%arg%d: %s" % (at, type_text(x)) for at, x in args.values())
    text = ["module @oracle {", "  func.func public @main(%s) -> (%s) {" % (arguments, ", ".join(types)), *calls,
            "    return %s : %s" % (", ".join(results), ", ".join(types)), "  }",
            *(as_function(case.module, "f%d" % i) for i, case in enumerate(group)), "}"]
    return "\n".join(text).encode(), [x for _, x in args.values()]


def processor():
    """What XLA asks the processor it compiles for."""
    return sorted(set(re.findall(r"^(?:flags|Features|model name)\s*:.*$", open("/proc/cpuinfo").read(), re.M)))


class Kept:
    """Files by what they were made of, where JAX keeps its own, if anywhere. One that is not whole, or cannot be written, is none."""

    def __init__(self, *made_by):
        self.folder, self.made_by = os.environ.get("JAX_COMPILATION_CACHE_DIR", ""), repr(made_by).encode()

    def path(self, key):
        return os.path.join(self.folder, "module-" + hashlib.sha256(self.made_by + b"\n" + key).hexdigest())

    def read(self, key):
        try:
            with open(self.path(key), "rb") as f:
                return zlib.decompress(f.read())
        except (OSError, zlib.error):
            return None

    def write(self, key, data):
        if not self.folder:
            return
        try:
            os.makedirs(self.folder, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as f:
                f.write(zlib.compress(data, 1))
            os.replace(f.name, self.path(key))
        except OSError:
            pass


class Xla:
    def __init__(self):
        self.backend = xla_bridge.get_backend("cpu")
        self.devices = xla_client.DeviceList(tuple(self.backend.local_devices()[:1]))
        self.module = self.program = None  # the last one: the next case may have other arguments
        self.compiled = 0
        self.kept = Kept(jaxlib.__version__, os.environ["XLA_FLAGS"], processor())

    def compile(self, module):
        options, data = xla_client.CompileOptions(), self.kept.read(module)
        if data:
            return self.backend.deserialize_executable(data, self.devices, options)
        program = self.backend.compile_and_load(module, self.devices, options)
        self.kept.write(module, self.backend.serialize_executable(program))
        self.compiled += 1
        return program

    def execute(self, module, args):
        if module != self.module:
            self.module, self.program = module, self.compile(module)
        return [np.asarray(x) for x in self.program.execute([jax.device_put(x) for x in args])]

    def run(self, case):
        """The results of a case."""
        return self.execute(case.module, case.args)

    def run_all(self, group):
        """The results of each."""
        if len(group) == 1:
            return [self.run(group[0])]
        results, out = self.execute(*joined(group)), []
        for case in group:
            count = len(case.wanted())
            out.append(results[:count])
            results = results[count:]
        return out
