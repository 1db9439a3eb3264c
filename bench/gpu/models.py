# SPDX-License-Identifier: Apache-2.0
"""What is measured: the same two models for everybody. A row: name, dgc's source, widths of the layers, the batch, how
products are rounded."""
import json

CASES = [
    ("perceptron", "samples/perceptron.dsl", [784, 512, 512, 10], 128, ["f32", "tf32"]),
    ("perceptron", "samples/perceptron.dsl", [784, 512, 512, 10], 4096, ["f32", "tf32"]),
    ("wide", "bench/gpu/wide.dsl", [4096, 4096, 4096, 4096, 4096], 4096, ["f32", "tf32", "bf16"]),
]
WARM_UP = 20


def arguments(argv):
    """Widths, batch, steps, rounding, device (cuda or cpu), steps to warm up: what a peer is called with."""
    return json.loads(argv[1]), int(argv[2]), int(argv[3]), argv[4], argv[5], WARM_UP if argv[5] == "cuda" else 1


def summary(times):
    """Milliseconds: the median, and the quarter and three quarters of the sorted times."""
    times = sorted(times)
    n = len(times)
    return {"step_ms": times[n // 2], "low_ms": times[n // 4], "high_ms": times[3 * n // 4]}
