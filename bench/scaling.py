#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a step takes on 1, 2 and 4 processes of this machine, as predicted and as measured, by each way of summing:
scaling.py BUILD [MODEL ...] [--steps N] [--rounds N] [--batch N] [--link RATE,DELAY]

The link is what bench_messages measures of dgc's messages between two processes here (the delay at 1 KB, the rate at 1 MB),
unless --link says it. The speed of a task is that with which the prediction for one process is what one process takes. Both are
printed, and given to `dgc compile --emit scaling`. Ways take turns in each round; a figure is the median over the rounds of the
median step of the first process. Where there is data, the bits of all ways but the ring are compared: they are one process's."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
WAYS = ["reduce_to_one", "hierarchical_copy", "scatter", "ring"]
TASKS = [1, 2, 4]


def run(*command):
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **MPI}, capture_output=True, text=True)
    if done.returncode:
        sys.exit("%s\n%s" % (" ".join(command), done.stderr))
    return done.stdout


def measure_link(build):
    """Between two processes that give each other bytes."""
    times = {}
    for line in run("mpirun", "-n", "2", os.path.join(build, "bench_messages")).splitlines():
        cells = line.replace("|", " ").split()
        if len(cells) > 2 and cells[0].isdigit():
            times[int(cells[0])] = float(cells[2]) * 1e-6
    small, large = min(times), 1 << 20
    return "%.3fGB/s,%.3fus" % ((large - small) / (times[large] - times[small]) / 1e9, times[small] * 1e6)


def measure(build, model, tasks, way, given):
    launcher = ["mpirun", "-n", str(tasks)] if tasks > 1 else []
    options = ["--cross-device", way] if tasks > 1 else []
    out = run(*launcher, os.path.join(build, "dgc"), "bench", model, "--json", "--threads", "1", "--batch", str(given.batch),
              "--steps", str(given.steps), *options)
    return json.loads(out)["step_ms"] / 1e3


def predict(build, model, given, *options):
    out = run(os.path.join(build, "dgc"), "compile", model, "--entry", "train", "--emit", "scaling", "--json", "--batch",
              str(given.batch), "--tasks", ",".join(map(str, TASKS)), *options)
    return {row["tasks"]: row["algorithms"] for row in json.loads(out)["tasks"]}


def same_bits(build, model, given):
    """Whether a few steps end with one checkpoint, however many processes there are."""
    if not model.endswith("digits.dsl"):
        return None  # no data, or not so little
    with tempfile.TemporaryDirectory() as folder:
        ends = set()
        for tasks in TASKS:
            for way in WAYS[:3] if tasks > 1 else [WAYS[0]]:
                path = os.path.join(folder, "%d%s" % (tasks, way))
                launcher = ["mpirun", "-n", str(tasks)] if tasks > 1 else []
                options = ["--cross-device", way] if tasks > 1 else []
                run(*launcher, os.path.join(build, "dgc"), "train", os.path.join(build, model), "--towers", "4", "--steps", "3",
                    "--batch", str(given.batch), "--quiet", "--checkpoint", path, *options)
                with open(path, "rb") as f:
                    ends.add(f.read())
        return len(ends) == 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", nargs="?", default=os.path.join(ROOT, "build"))
    parser.add_argument("models", nargs="*", default=["samples/digits.dsl", "bench/wide.dsl"])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--link")
    given = parser.parse_args()
    build = os.path.abspath(given.build)
    print("load %.1f %.1f, %d cores" % (*os.getloadavg()[:2], os.cpu_count()))
    link = given.link or measure_link(build)
    for model in given.models:
        times = {}
        for _ in range(given.rounds):
            for tasks in TASKS:
                for way in WAYS if tasks > 1 else WAYS[:1]:
                    times.setdefault((tasks, way), []).append(measure(build, model, tasks, way, given))
        measured = {key: statistics.median(all_of) for key, all_of in times.items()}
        # The default speeds, both as many times as high as one process asks for.
        factor = predict(build, model, given)[1][0]["step"] / measured[1, WAYS[0]]
        speed = "%.3fGFLOP/s,%.3fGB/s" % (100 * factor, 20 * factor)
        said = predict(build, model, given, "--link", link, "--speed", speed)
        print("\n%s, batch %d: --link %s --speed %s" % (model, given.batch, link, speed))
        bits = same_bits(build, model, given)
        if bits is not None:
            print("bits: %s" % ("one process's" if bits else "ANOTHER"))
        print("| processes | sums by | messages | sent | predicted ms | measured ms | least | most | of reduce_to_one |")
        print("|---:|---|---:|---:|---:|---:|---:|---:|---:|")
        for tasks in TASKS:
            for a in said[tasks] if tasks > 1 else said[tasks][:1]:
                key = tasks, a["name"]
                print("| %d | %s | %d | %.2f MB | %.2f | %.2f | %.2f | %.2f | %.2f |"
                      % (tasks, a["name"] if tasks > 1 else "–", max(a["messages_sent"], a["messages_received"]),
                         a["bytes_sent"] / 1e6, 1e3 * a["step"], 1e3 * measured[key], 1e3 * min(times[key]),
                         1e3 * max(times[key]), measured[key] / measured[tasks, "reduce_to_one"]))
    print("\nload %.1f %.1f" % os.getloadavg()[:2])


if __name__ == "__main__":
    main()
