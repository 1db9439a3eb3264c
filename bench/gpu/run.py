#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dgc, PyTorch and JAX on one GPU, one after the other in one run: bench/gpu/run.py BUILD [--case NAME ...] [--batch N]
[--rounding f32|tf32|bf16 ...] [--who eager|graph|compiled|jax ...] [--steps N] [--seconds S] [--peak TFLOPS]
[--tf32-peak TFLOPS] [--bf16-peak TFLOPS] [--bandwidth GB/S] [--json FILE]

Each gets the same models, batches and rounding, as models.py lists them. A step's time is set against the floor: what the
device needs at least for the step's floating point operations, or for the bytes that have to move between its chip and its
memory, whichever is longer. A row of the table has milliseconds, and dgc's time over the best peer's and over the floor; who
cannot do it is named after it. On simulated GPUs it shows that it works, the peers on the CPU, and no figures."""
import argparse
import ctypes
import json
import math
import os
import re
import subprocess
import sys

from models import CASES, steps_of

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ROUNDINGS = {"f32": [], "tf32": ["--tf32"], "bf16": ["--set", "precision=bf16"]}
# Names of peers in the table: who a line of theirs is from.
PEERS = {"eager": "PyTorch", "graph": "PyTorch, CUDA graph", "compiled": "PyTorch, compiled, CUDA graph", "jax": "JAX"}
FIRST_STEPS, PEER_SECONDS = 3, 300

# f32, dense TF32 and dense bf16 operations of a multiprocessor in a clock, by compute capability, as NVIDIA's
# architecture papers say.
PER_CLOCK = {(7, 0): (128, None, None), (7, 5): (128, None, None), (8, 0): (128, 1024, 2048),
             (8, 6): (256, 256, 512), (8, 9): (256, 256, 512), (9, 0): (256, 2048, 4096)}


def peaks(given):
    """Operations a second by rounding, bytes a second; None where the driver does not say enough."""
    path = os.environ.get("DGC_CUDA_PATH")
    cuda = ctypes.CDLL(os.path.join(path, "libcuda.so.1") if path else "libcuda.so.1")

    def attribute(number):
        value = ctypes.c_int(0)
        cuda.cuDeviceGetAttribute(ctypes.byref(value), number, 0)
        return value.value

    f32 = tf32 = bf16 = bandwidth = None
    if not hasattr(cuda, "dgc_simulated_cuda") and cuda.cuInit(0) == 0:
        processors, clock = attribute(16), 1e3 * attribute(13)
        per_clock = PER_CLOCK.get((attribute(75), attribute(76)), (None, None, None))
        f32, tf32, bf16 = (processors * clock * n if n else None for n in per_clock)
        bandwidth = 2e3 * attribute(36) * attribute(37) / 8 or None
    return {"f32": given.peak * 1e12 if given.peak else f32,
            "tf32": given.tf32_peak * 1e12 if given.tf32_peak else tf32,
            "bf16": given.bf16_peak * 1e12 if given.bf16_peak else bf16,
            "bytes": given.bandwidth * 1e9 if given.bandwidth else bandwidth}


def variable_bytes(o, case):
    """Of parameters and slots, as the plan has them."""
    command = dgc_command(o, "compile", case, "f32") + ["--emit", "plan"]
    said = subprocess.run(command, capture_output=True, text=True).stdout
    return sum(int(n) for n in re.findall(r"(\d+) of variables", said))


def floor_ms(o, case, gflop, peak, bandwidth):
    """Milliseconds. Nobody is spared reading and writing all parameters and slots once, nor reading the inputs."""
    if not peak or not bandwidth:
        return None
    inputs = sum(case.batch * math.prod(shape) * (1 if dtype == "uint8" else 4) for _, dtype, shape, _ in case.inputs)
    return max(1e12 * gflop / peak, 1e3 * (2 * variable_bytes(o, case) + inputs) / bandwidth)


def dgc_command(o, verb, case, rounding):
    command = [os.path.join(o.build, "dgc"), verb, os.path.join(ROOT, case.source), "--devices", "gpu:0", "--batch",
               str(case.batch)] + ROUNDINGS[rounding]
    for setting in case.settings:
        command += ["--set", setting]
    return command


def lines_of(command, seconds):
    """The objects that it prints, and its last line where something went wrong."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        out, wrong = done.stdout, done.returncode != 0
    except subprocess.TimeoutExpired as e:
        done, out, wrong = None, (e.stdout or b"").decode(), True
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    if done is None:
        return lines, f"took more than {seconds} s"
    said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()
    return lines, said[-1] if wrong or not lines else None


def measure_dgc(o, case, rounding):
    """What `dgc bench` says, or a string: what went wrong."""
    def bench(steps):
        command = dgc_command(o, "bench", case, rounding) + ["--json", "--steps", str(steps)]
        lines, wrong = lines_of(command, PEER_SECONDS)
        return wrong or lines[0]
    said = bench(FIRST_STEPS)
    return said if isinstance(said, str) else bench(steps_of(said["step_ms"], o.steps, o.seconds))


def measure_peers(o, case, roundings, device):
    """By (name, rounding)."""
    told = [case.name, str(case.batch), str(o.steps), str(o.seconds), ",".join(roundings), device]
    ways = [who for who in o.who if who != "jax"]
    commands = [("PyTorch", ["peer_torch.py", *told, ",".join(ways)])] if ways else []
    commands += [("JAX", ["peer_jax.py", *told])] if "jax" in o.who else []
    results = {}
    for name, command in commands:
        lines, wrong = lines_of([sys.executable, os.path.join(HERE, command[0]), *command[1:]],
                                PEER_SECONDS * len(roundings))
        if wrong:
            lines.append({"who": name, "absent": wrong})
        for line in lines:
            for rounding in [line["rounding"]] if "rounding" in line else roundings:
                results.setdefault((line["who"], rounding), line)
    return results


def cell(result, simulated):
    if not result or "absent" in result:
        return "–"
    return "works" if simulated else f"{result['step_ms']:.3f}"


def show(case, rounding, mine, peers, floor, simulated):
    theirs = [peers.get((name, rounding)) for name in PEERS.values()]
    known = [t["step_ms"] for t in theirs if t and "step_ms" in t]
    good = not isinstance(mine, str)
    ratio = f"{mine['step_ms'] / min(known):.2f}" if good and known and not simulated else "–"
    over = f"{mine['step_ms'] / floor:.2f}" if good and floor else "–"
    cells = [case.name, str(case.batch), rounding, cell(mine if good else None, simulated)]
    cells += [cell(t, simulated) for t in theirs] + [ratio, f"{floor:.3f}" if floor else "–", over]
    print("| " + " | ".join(cells) + " |", flush=True)
    for why in ([f"dgc: {mine}"] if not good else []):
        print(f"  {why}")
    for (name, of), result in peers.items():
        if of == rounding and "absent" in result:
            print(f"  {name}: {result['absent']}", flush=True)


def run_case(o, case, roundings, peak, log):
    mine = {rounding: measure_dgc(o, case, rounding) for rounding in roundings}
    simulated = any(not isinstance(m, str) and m["devices"][0]["simulated"] for m in mine.values())
    device, rows = ("cpu", 8) if simulated else ("cuda", case.batch)
    peers = measure_peers(o, case._replace(batch=rows), roundings, device)
    for rounding in roundings:
        m = mine[rounding]
        floor = None if simulated or isinstance(m, str) else floor_ms(o, case, m["gflop"], peak[rounding], peak["bytes"])
        show(case, rounding, m, peers, floor, simulated)
        log.append({"case": case.name, "batch": case.batch, "rounding": rounding, "dgc": m, "floor_ms": floor,
                    "peers": [p for (_, of), p in peers.items() if of == rounding]})


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--steps", type=int, default=100, help="the most of a measurement")
    p.add_argument("--seconds", type=float, default=3, help="the most of a measurement, beside starting and compiling")
    p.add_argument("--case", nargs="+", choices=sorted({c.case.name for c in CASES}), metavar="NAME")
    p.add_argument("--rounding", nargs="+", choices=ROUNDINGS, default=list(ROUNDINGS))
    p.add_argument("--who", nargs="*", choices=PEERS, default=list(PEERS))
    p.add_argument("--batch", type=int)
    p.add_argument("--json", metavar="FILE")
    for name in ("--peak", "--tf32-peak", "--bf16-peak", "--bandwidth"):
        p.add_argument(name, type=float)
    o = p.parse_args()
    print(subprocess.run([os.path.join(o.build, "dgc"), "devices"], capture_output=True, text=True).stdout)
    names = ["model", "batch", "rounding", "dgc, ms", *PEERS.values(), "dgc / best", "floor", "dgc / floor"]
    print("| " + " | ".join(names) + " |\n|---|---:|---|" + "---:|" * (len(names) - 3), flush=True)
    peak, log = peaks(o), []
    for case, roundings in CASES:
        roundings = [r for r in roundings if r in o.rounding]
        if roundings and (o.case is None or case.name in o.case):
            run_case(o, case._replace(batch=o.batch or case.batch), roundings, peak, log)
            if o.json:
                with open(o.json, "w") as file:
                    json.dump(log, file, indent=1)


main()
