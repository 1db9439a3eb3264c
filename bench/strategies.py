#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a training step costs on each strategy: time, bytes between devices, bytes on them.

strategies.py BUILD [--steps N] [--only MODEL]

Devices of one task share a memory, so nothing moves between them; tasks have memories of their own. GPUs are not run:
their bytes are those of the plan, which are what a run copies, and stand there as simulated."""

import argparse
import json
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODELS = {
    "digits": ["samples/digits.dsl"],
    "wide": ["bench/wide.dsl"],
    "words": ["samples/words.dsl", "--set", "width=64"],
}
COUNTS = [1, 2, 4, 8]


def tasks(count, servers=0):
    names = [f"/job:worker/task:{i}/cpu:0" for i in range(count)]
    return ",".join(names + [f"/job:ps/task:{i}/cpu:0" for i in range(servers)])


def layouts():
    """(where, devices, computing devices, strategy and its options)"""
    for n in COUNTS:
        devices = "cpu:0" if n == 1 else f"cpu:0-{n - 1}"
        for strategy in ["one_device"] if n == 1 else ["mirrored", "central_storage", "round_robin"]:
            yield "one task", devices, n, ["--strategy", strategy]
    for n in COUNTS[1:]:
        for options in (
            ["multi_worker_mirrored"],
            ["multi_worker_mirrored", "--cross-device", "hierarchical_copy"],
            ["multi_worker_mirrored", "--cross-device", "scatter"],
            ["multi_worker_mirrored", "--cross-device", "ring"],
            ["central_storage"],
            ["round_robin", "--balance", "size"],
        ):
            yield "tasks", tasks(n), n, ["--strategy"] + options
        for servers in (1, 2):
            yield "tasks", tasks(n, servers), n, ["--strategy", "parameter_server"]
    for n in COUNTS[1:]:
        for options in (["mirrored"], ["mirrored", "--cross-device", "ring"], ["round_robin"]):
            yield "simulated", f"gpu:0-{n - 1}", n, ["--strategy"] + options


def ask(dgc, words):
    done = subprocess.run([dgc] + words, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join([dgc] + words)}\n{done.stderr}")
    return json.loads(done.stdout)


def size(count):
    for unit in ("B", "kB", "MB", "GB"):
        if count < 10000 or unit == "GB":
            return f"{count:.0f} {unit}" if count >= 100 or unit == "B" else f"{count:.2f} {unit}"
        count /= 1000


def show(dgc, name, steps):
    model = MODELS[name]
    print(f"\n### {name}: {' '.join(model)}, batch 128\n")
    print("| devices | strategy | ms/step | bytes/step | busiest device | variables | arenas |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for where, devices, n, options in layouts():
        words = model + ["--devices", devices, "--towers", str(n)] + options
        traffic = ask(dgc, ["compile"] + words + ["--emit", "traffic", "--json"])
        memory = ask(dgc, ["compile"] + words + ["--emit", "memory", "--json"])["devices"]
        ms = "simulated"
        if where != "simulated":
            ms = f"{ask(dgc, ['bench'] + words + ['--json', '--steps', str(steps)])['step_ms']:.2f}"
        moved = sum(edge["bytes"] for edge in traffic["edges"])
        most = max(sum(e["bytes"] for e in traffic["edges"] if d["name"] in (e["from"], e["to"])) for d in memory)
        stored = sum(d["fixed"]["variables"] + d["fixed"]["slots"] for d in memory)
        arenas = sum(d["arena"] for d in memory)
        kind = {"one task": "cpu", "tasks": "tasks", "simulated": "gpus"}[where]
        strategy = " ".join(options[1:]).replace("--cross-device ", "").replace("--balance ", "by ")
        if "ps/task" in devices:
            strategy += f", {devices.count('ps/task')} ps"
        print(f"| {n} {kind} | {strategy} | {ms} | {size(moved)} | {size(most)} | {size(stored)} | {size(arenas)} |",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--only", choices=MODELS)
    options = parser.parse_args()
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    print(f"{time.strftime('%Y-%m-%d')}, {os.uname().machine}, {os.cpu_count()} cores, load before {load}, "
          f"{options.steps} steps")
    for name in [options.only] if options.only else MODELS:
        show(os.path.abspath(os.path.join(options.build, "dgc")), name, options.steps)


if __name__ == "__main__":
    main()
