#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dgc, PyTorch and JAX on one GPU, one after the other in one run: bench/gpu/run.py BUILD [--steps N] [--case NAME]
[--batch N] [--peak TFLOPS] [--tf32-peak TFLOPS] [--bf16-peak TFLOPS] [--bandwidth GB/S].

Each gets the same models, batches and rounding (f32, TF32, and bf16 for the wide one). A step's time is set against the
floor: what the device needs at least for the step's floating point operations, or for the bytes that have to move between
its chip and its memory, whichever is longer. Who is not installed is named. On simulated GPUs it shows that it works, the
peers on the CPU, and no figures."""
import argparse
import ctypes
import json
import os
import subprocess
import sys

from models import CASES

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# f32, dense TF32 and dense bf16 operations of a multiprocessor in a clock, by compute capability, as NVIDIA's
# architecture papers say.
PER_CLOCK = {(7, 0): (128, None, None), (7, 5): (128, None, None), (8, 0): (128, 1024, 2048),
             (8, 6): (256, 256, 512), (8, 9): (256, 256, 512), (9, 0): (256, 2048, 4096)}

OPTIONS = {"f32": [], "tf32": ["--tf32"], "bf16": ["--set", "precision=bf16"]}


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


def floor_ms(widths, batch, gflop, peak, bandwidth):
    """Milliseconds. Nobody is spared reading and writing all parameters and slots once, nor reading the inputs."""
    parameters = sum(a * b + b for a, b in zip(widths, widths[1:]))
    slots = 2 if widths[-1] == 10 else 0  # adam, sgd
    moved = 4 * (2 * (1 + slots) * parameters + batch * widths[0])
    return max(1e12 * gflop / peak, 1e3 * moved / bandwidth) if peak and bandwidth else None


def run_json(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode == 0 and lines:
        return lines, None
    said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()
    return lines, said[-1]


def measure_dgc(build, source, batch, steps, rounding):
    command = [os.path.join(build, "dgc"), "bench", os.path.join(ROOT, source), "--devices", "gpu:0", "--json",
               "--batch", str(batch), "--steps", str(steps)] + OPTIONS[rounding]
    lines, wrong = run_json(command)
    if wrong:
        sys.exit("dgc: " + wrong)
    result = lines[0]
    device = result["devices"][0]
    return {"who": "dgc", "step_ms": result["step_ms"], "busy": device["busy"]}, result["gflop"], device["simulated"]


def measure_peer(name, script, widths, batch, steps, rounding, device):
    lines, wrong = run_json([sys.executable, os.path.join(HERE, script), json.dumps(widths), str(batch), str(steps),
                             rounding, device])
    return lines + ([{"who": name, "absent": wrong}] if wrong else [])


def show(result, floor, simulated):
    if "absent" in result:
        print("  %-36s absent: %s" % (result["who"], result["absent"]))
        return
    if simulated:
        print("  %-36s works; %s, so there are no figures" % (result["who"], "simulated" if result["who"] == "dgc"
                                                                     else "on the CPU"))
        return
    spread = " (%.3f to %.3f)" % (result["low_ms"], result["high_ms"]) if "low_ms" in result else ""
    busy = ", busy %.0f %%" % (100 * result["busy"]) if "busy" in result else ""
    over = ", %.2f of the floor" % (result["step_ms"] / floor) if floor else ""
    version = " " + result["version"] if "version" in result else ""
    print("  %-36s %.3f ms%s%s%s" % (result["who"] + version, result["step_ms"], spread, busy, over))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("build")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--case")
    parser.add_argument("--batch", type=int)
    for name in ("--peak", "--tf32-peak", "--bf16-peak", "--bandwidth"):
        parser.add_argument(name, type=float)
    given = parser.parse_args()
    print(subprocess.run([os.path.join(given.build, "dgc"), "devices"], capture_output=True, text=True).stdout, end="")
    peak = None
    for name, source, widths, batch, roundings in CASES:
        if given.case not in (None, name):
            continue
        batch = given.batch or batch
        for rounding in roundings:
            mine, gflop, simulated = measure_dgc(given.build, source, batch, given.steps, rounding)
            device, rows = ("cpu", 8) if simulated else ("cuda", batch)
            peak = peak or peaks(given)
            floor = None if simulated else floor_ms(widths, batch, gflop, peak[rounding], peak["bytes"])
            print("%s %s, batch %d, %s: %s" % (name, "-".join(map(str, widths)), batch, rounding,
                                               "floor %.3f ms" % floor if floor else "no floor: simulated" if simulated
                                               else "no floor: give --peak, --tf32-peak, --bf16-peak and --bandwidth"))
            show(mine, floor, simulated)
            for peer, script in (("PyTorch", "peer_torch.py"), ("JAX", "peer_jax.py")):
                for result in measure_peer(peer, script, widths, rows, given.steps, rounding, device):
                    show(result, floor, simulated)


main()
