#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From exec to the end of the first training step, of a process that ends then: start.py BUILD [--also BUILD ...]
[--only CASE ...] [--rounds N] [--threads N]

dgc twice: with its cache of compiled kernels filled before, and without (DGC_CACHE=off). JAX likewise, where the Python
that runs this has it: with a filled compilation cache on disk, and without one. All read one batch, made up; rounds take
turns. A figure is the median of the processor time of all threads in milliseconds, which does not depend on what
else runs as much as the clock does; in brackets the clock."""
import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "cpu"))
from cases import CASES, batches  # noqa: E402
from rounds import ROOT, environment  # noqa: E402

# What dgc's models call the inputs x and y.
NAMES = {"perceptron-adam-128": ("image", "label"), "lenet": ("image", "label"), "resnet": ("image", "label"),
         "chars-64": ("text", "next")}
JAX_STEP = """
import sys
sys.path.insert(0, {folder!r})
import jax.numpy as jnp
from cases import CASES, batches
from models_jax import steps
held, run = steps(CASES[{case!r}], jnp.float32)
_, loss = run(held, *batches(CASES[{case!r}], 1)[0])
print(float(loss))
"""


def write_rows(case, folder):
    """The batch as files; what dgc is told of them."""
    import numpy
    told = []
    for name, values in zip(NAMES[case.name], batches(case, 1)[0]):
        path = os.path.join(folder, f"{case.name}.{name}.npy")
        numpy.save(path, values)
        told += ["--data", f"{name}={path}"]
    return told


def of_dgc(build, case, told, cached, folder, threads):
    command = [os.path.join(build, "dgc"), "train", os.path.join(ROOT, case.source), "--steps", "1", "--quiet",
               "--batch", str(case.batch), "--threads", str(threads), *told]
    for setting in case.settings:
        command += ["--set", setting]
    env = environment(threads)
    env.update({"XDG_CACHE_HOME": folder} if cached else {"DGC_CACHE": "off"})
    return command, env


def of_jax(case, cached, folder, threads):
    text = JAX_STEP.format(folder=os.path.join(ROOT, "bench", "cpu"), case=case.name)
    env = environment(threads)
    if cached:
        env.update(JAX_COMPILATION_CACHE_DIR=os.path.join(folder, "jax"), JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
                   JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES="-1")
    return [sys.executable, "-c", text], env


def run(what):
    """Milliseconds of processor time, and by the clock."""
    command, env = what
    begin = time.perf_counter()
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)}\n{said.decode()}")
    return 1e3 * (used.ru_utime + used.ru_stime), 1e3 * (time.perf_counter() - begin)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--also", nargs="*", default=[], help="other builds of dgc")
    p.add_argument("--only", nargs="*", default=list(NAMES), choices=list(NAMES))
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    o = p.parse_args()
    has_jax = importlib.util.find_spec("jax") is not None
    builds = [o.build, *o.also]
    heads = [f"{b}, {how}" for b in builds for how in ("cached", "anew")] + (["JAX, cached", "JAX, anew"] if has_jax else [])
    print("| ms | " + " | ".join(heads) + " |\n|---|" + "---:|" * len(heads))
    with tempfile.TemporaryDirectory() as folder:
        for case in (CASES[name] for name in o.only):
            told = write_rows(case, folder)
            all = [of_dgc(b, case, told, cached, os.path.join(folder, str(i)), o.threads)
                   for i, b in enumerate(builds) for cached in (True, False)]
            all += [of_jax(case, cached, folder, o.threads) for cached in (True, False) if has_jax]
            for what in all[::2]:  # fills the caches
                run(what)
            times = [[run(what) for what in all] for _ in range(o.rounds)]
            medians = [[statistics.median(t[i][k] for t in times) for k in (0, 1)] for i in range(len(all))]
            print(f"| {case.name} | " + " | ".join(f"{used:.0f} ({clock:.0f})" for used, clock in medians) + " |",
                  flush=True)


main()
