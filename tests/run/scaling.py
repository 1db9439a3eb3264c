#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What --emit scaling says of messages and bytes is what the plans of so many tasks say, and its time about what a walk through
the whole plan gives; what it marks is what auto takes: scaling.py DGC SAMPLES

TEST_NUMBERS=0: of three tasks at most."""
import json
import os
import re
import subprocess
import sys

dgc, samples = sys.argv[1], sys.argv[2]
CASES = [
    ("digits.dsl", []), ("digits.dsl", ["--batch", "50"]), ("digits.dsl", ["--towers", "8"]),
    ("digits.dsl", ["--packs", "3"]), ("words.dsl", []), ("words.dsl", ["--towers", "8"]),
    ("lenet.dsl", ["--towers", "8"]), ("digits.dsl", ["--entry", "eval"]),
    ("digits.dsl", ["--entry", "predict"]), ("words.dsl", ["--entry", "predict", "--batch", "50", "--towers", "11"]),
]
TASKS = [1, 2, 3] if os.environ.get("TEST_NUMBERS") == "0" else [1, 2, 3, 4, 8]
SEVERAL = ",".join(map(str, TASKS[1:]))
NUMBERS = "messages_sent", "messages_received", "bytes_sent", "bytes_received"
failures = checks = 0


def compile_model(model, *options):
    command = [dgc, "compile", os.path.join(samples, model), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit("%s\n%s" % (" ".join(command), done.stderr))
    return done.stdout


def most_of_plans(model, tasks, options, cluster=None):
    """The most that any task sends and receives, each number by itself."""
    most = [0, 0, 0, 0]
    for task in range(tasks if tasks > 1 else 0):
        plan = compile_model(model, "--emit", "plan", "--cluster", cluster or "worker=%d" % tasks, "--task",
                             "worker:%d" % task, *options)
        sent = [int(n) for n in re.findall(r"^ +\d+ send .* m\d+ (\d+) bytes", plan, re.M)]
        received = [int(n) for n in re.findall(r"^ +\d+ receive .* m\d+ (\d+) bytes", plan, re.M)]
        if not sent + received:
            sys.exit("%s: a plan of %d tasks without messages" % (model, tasks))
        most = [max(a, b) for a, b in zip(most, (len(sent), len(received), sum(sent), sum(received)))]
    return most


for model, options in CASES:
    options = options if "--entry" in options else options + ["--entry", "train"]
    said = json.loads(compile_model(model, "--emit", "scaling", "--json", "--tasks", ",".join(map(str, TASKS)), *options))
    assert [row["tasks"] for row in said["tasks"]] == TASKS
    for row in said["tasks"]:
        names = [a["name"] for a in row["algorithms"]]
        assert names == ["reduce_to_one", "hierarchical_copy", "scatter", "ring"], names
        taken = [a for a in row["algorithms"] if a["taken"]]
        assert len(taken) == 1 and taken[0]["fixed_bits"]
        assert taken[0]["step"] == min(a["step"] for a in row["algorithms"] if a["fixed_bits"])
        for algorithm in row["algorithms"]:
            have = [algorithm[n] for n in NUMBERS]
            want = most_of_plans(model, row["tasks"], options + ["--cross-device", algorithm["name"]])
            checks += 1
            if have != want:
                failures += 1
                print("%s %s: %s over %d tasks: said %s, the plans %s"
                      % (model, " ".join(options), algorithm["name"], row["tasks"], have, want))
# Hosts that are named, and as many others again.
for named, model, options in [("aabb", "digits.dsl", []), ("abab", "digits.dsl", ["--towers", "8"]), ("aab", "digits.dsl", []),
                              ("aabb", "words.dsl", []), ("abca", "lenet.dsl", ["--towers", "11"])]:
    said = json.loads(compile_model(model, "--emit", "scaling", "--json", "--tasks", SEVERAL, "--cluster",
                                    "worker=" + ",".join(named), "--entry", "train", *options))
    assert list(said["refused"]) == ["nccl", "hierarchical_copy"]
    for row in said["tasks"]:
        assert [a["name"] for a in row["algorithms"]] == ["reduce_to_one", "scatter", "ring"]
        hosts = ["%s%d" % (named[i % len(named)], i // len(named)) for i in range(row["tasks"])]
        cluster = "worker=" + ",".join(hosts)
        taken = next(a["name"] for a in row["algorithms"] if a["taken"])
        if len(set(hosts)) > 1:
            checks += 1
            header = compile_model(model, "--emit", "placed", "--cluster", cluster, "--cross-device", "auto", *options)
            if "\n  cross_device %s\n" % taken not in header.split("{", 1)[1][:2000]:
                failures += 1
                print("%s %s over %s: auto does not take %s" % (model, " ".join(options), cluster, taken))
        for algorithm in row["algorithms"]:
            have = [algorithm[n] for n in NUMBERS]
            want = most_of_plans(model, row["tasks"], ["--entry", "train", *options, "--cross-device", algorithm["name"]], cluster)
            checks += 1
            if have != want:
                failures += 1
                print("%s %s: %s over %s: said %s, the plans %s"
                      % (model, " ".join(options), algorithm["name"], cluster, have, want))
    near, far = (json.loads(compile_model(model, "--emit", "scaling", "--json", "--tasks", "4", *how, *options))["tasks"][0]
                 for how in (["--cluster", "worker=" + ",".join(named)], []))
    for algorithm in near["algorithms"][:2]:
        checks += 1
        if algorithm["step"] >= next(a["step"] for a in far["algorithms"] if a["name"] == algorithm["name"]):
            failures += 1
            print("%s: hosts make %s no faster" % (model, algorithm["name"]))
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
# By algorithm, how many times the plan's time is said: all tasks come to an event together in the one, and each as it can in
# the other. Where a sum has a root, its tasks wait for each other most; a ring's and scatter's do the same everywhere.
WITHIN = {"ring": (0.92, 1.25), "scatter": (0.92, 1.25), "reduce_to_one": (0.85, 1.4), "hierarchical_copy": (0.66, 1.4)}


def plan_seconds(model, tasks, algorithm, *options):
    """From the table of strategies, which predicts by the plan of all tasks."""
    table = compile_model(model, "--emit", "strategies", "--cluster", "worker=%d" % tasks, "--cross-device", algorithm, *options)
    value, unit = re.search(r"^[* ] multi_worker_mirrored( +\d+){4} +([\d.]+) (\w+) ", table, re.M).group(2, 3)
    return float(value) * UNITS[unit]


for model, options in [("digits.dsl", []), ("lenet.dsl", []), ("digits.dsl", ["--link", "25GB/s,1us", "--batch", "1024"]),
                       ("digits.dsl", ["--speed", "1GFLOP/s,1GB/s"]), ("words.dsl", ["--link", "10MB/s,1ms"])]:
    said = json.loads(compile_model(model, "--emit", "scaling", "--json", "--tasks", SEVERAL, *options))
    for row in said["tasks"]:
        tasks = row["tasks"]
        for algorithm in row["algorithms"]:
            seconds = plan_seconds(model, tasks, algorithm["name"], *options)
            checks += 1
            low, high = WITHIN[algorithm["name"]]
            if not seconds * low < algorithm["step"] < seconds * high:
                failures += 1
                print("%s %s: %s over %d tasks: said %.4g s, the plan %.4g s"
                      % (model, " ".join(options), algorithm["name"], tasks, algorithm["step"], seconds))
        cluster = ["--cluster", "worker=%d" % tasks, "--emit", "placed", *options]
        taken = next(a["name"] for a in row["algorithms"] if a["taken"])
        for how in ["--task", "worker:1"], ["--cross-device", "auto"]:
            checks += 1
            header = compile_model(model, *cluster, *how).split("{", 1)[1][:2000]
            if "\n  cross_device %s\n" % taken not in header:
                failures += 1
                print("%s %s over %d tasks: auto does not take %s" % (model, " ".join(options), tasks, taken))
    alone = compile_model(model, "--cluster", "worker=2", "--emit", "placed", *options)
    checks += 1
    if "cross_device" in alone:
        failures += 1
        print("%s: something was chosen for one process" % model)
print("%d of %d" % (checks - failures, checks))
sys.exit(failures != 0)
