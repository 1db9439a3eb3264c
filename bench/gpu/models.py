# SPDX-License-Identifier: Apache-2.0
"""What is measured: the same models for everybody, those of bench/cpu and one that is matrix products and little else."""
import collections
import os
import statistics
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cpu"))
import cases
from cases import rows

F32, ALL = ("f32", "tf32"), ("f32", "tf32", "bf16")
WIDTH = 4096
Sized = collections.namedtuple("Sized", "case roundings")


def characters(length, batch):
    return cases.CASES[f"chars-{length}"]._replace(batch=batch)


def batch_of(name, batch):
    return cases.CASES[name]._replace(batch=batch)


def perceptron(batch):
    return cases.CASES["perceptron-adam-128"]._replace(name="perceptron-adam", batch=batch)


# cases.py's rows, each with a batch of its own, and how products are rounded.
CASES = [
    Sized(perceptron(128), ALL),
    Sized(perceptron(4096), ALL),
    Sized(cases.Case("wide", "bench/gpu/wide.dsl", (), 4096,
                     [("x", "float32", (WIDTH,), 1), ("y", "float32", (WIDTH,), 1)], True), ALL),
    Sized(batch_of("lenet", 128), F32),
    Sized(batch_of("lenet", 2048), F32),
    Sized(batch_of("resnet", 128), ALL),
    Sized(batch_of("resnet", 1024), ALL),
    Sized(characters(64, 128), ALL),
    Sized(characters(1024, 16), ALL),
]
WARM_UP = 5


def arguments(argv):
    """What a peer is called with: NAME BATCH STEPS SECONDS ROUNDINGS DEVICE. The case, the most steps and seconds, the
    roundings, and cuda or cpu."""
    case = next(c.case for c in CASES if c.case.name == argv[1])._replace(batch=int(argv[2]))
    return case, int(argv[3]), float(argv[4]), argv[5].split(","), argv[6]


def steps_of(step_ms, steps, seconds):
    return max(3, min(steps, int(1e3 * seconds / max(step_ms, 1e-3))))


def timed(step, steps, seconds):
    """Milliseconds: the median of at most so many steps and so many seconds, and a quarter and three quarters of the way
    through the sorted times."""
    def some(count):
        times = []
        for _ in range(count):
            begin = time.perf_counter()
            step()
            times.append(1e3 * (time.perf_counter() - begin))
        return sorted(times)
    step_ms = statistics.median(some(WARM_UP))
    times = some(steps_of(step_ms, steps, seconds))
    n = len(times)
    return {"step_ms": times[n // 2], "low_ms": times[n // 4], "high_ms": times[3 * n // 4]}
