#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attention on one thread, f32: dgc's leaf and PyTorch's scaled_dot_product_attention, in turn in one run:
attention.py BUILD [--rounds N] [--steps N]

Each is timed with what makes its operands and its loss: q, k and v fed from memory and scaled by variables of a head's
shape, the mean of the result, and (back) the gradients of all. A figure is the least of the rounds' median steps, as
whatever else runs only adds."""

import argparse
import json
import subprocess
import sys

from rounds import dgc, environment, median_ms

# Rows, length, heads, size, causal.
SHAPES = [(16, 64, 8, 16, True), (16, 64, 8, 64, False), (4, 256, 8, 64, True), (4, 256, 8, 64, False),
          (1, 1024, 8, 64, True), (1, 1024, 8, 64, False), (1, 1024, 16, 32, False), (1, 1024, 4, 128, False),
          (1, 4096, 4, 64, True), (1, 4096, 4, 64, False)]


def torch_step(shape, back, steps):
    import torch
    torch.set_num_threads(1)
    rows, length, heads, size, causal = shape
    data = [torch.rand(rows, length, heads, size) for _ in "qkv"]
    weights = [torch.ones(heads, size, requires_grad=True) for _ in "qkv"]
    attend = torch.nn.functional.scaled_dot_product_attention

    def step():
        if back:
            q, k, v = ((x * w).transpose(1, 2) for x, w in zip(data, weights))
            attend(q, k, v, is_causal=causal).mean().backward()
        else:
            q, k, v = (x.transpose(1, 2) for x in data)
            with torch.no_grad():
                y = attend(q, k, v, is_causal=causal)
            (y.transpose(1, 2) * weights[0]).mean().backward()
        with torch.no_grad():
            for w in weights:
                if w.grad is not None:
                    w -= 1e-3 * w.grad
                    w.grad = None

    median_ms(step, 2)
    return median_ms(step, steps)


def dgc_step(build, shape, back, steps):
    rows, length, heads, size, causal = shape
    given = {"length": length, "heads": heads, "size": size, "causal": str(causal).lower(), "back": str(back).lower()}
    settings = [f"{name}={value}" for name, value in given.items()]
    return dgc(build, "bench/attention.dsl", rows, steps, 1, settings)["step_ms"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--torch", help=argparse.SUPPRESS)
    options = p.parse_args()
    if options.torch:
        print(torch_step(*json.loads(options.torch), options.steps))
        return
    print("rows x length, heads x size: milliseconds of dgc and PyTorch, and their ratio")
    for shape in SHAPES:
        line = "%d x %d, %d x %d%s:" % (*shape[:4], " causal" if shape[4] else "")
        for back in (False, True):
            mine, other = [], []
            for _ in range(options.rounds):
                mine.append(dgc_step(options.build, shape, back, options.steps))
                again = [sys.executable, __file__, options.build, "--steps", str(options.steps), "--torch",
                         json.dumps([shape, back])]
                other.append(float(subprocess.run(again, capture_output=True, text=True, check=True,
                                                  env=environment(1)).stdout))
            a, b = min(mine), min(other)
            line += "  %s %.2f %.2f, %.2f" % ("back" if back else "forward", a, b, a / b)
        print(line, flush=True)


if __name__ == "__main__":
    main()
