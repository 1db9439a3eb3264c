#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--trace and dgc trace: trace.py DGC SAMPLES. The file has the form of Chrome's trace events; what it says is compared with
graphs, with the table of traffic and with itself; its sums are computed here once more."""
import json
import re
import subprocess

from checks import check, dgc, finish, samples

MODEL = samples + "/digits.dsl"
DEVICES = ["--devices", "cpu:0-2", "--strategy", "central_storage", "--batch", "100"]


def run(*arguments):
    return subprocess.run([dgc, *arguments], check=True, stdout=subprocess.PIPE).stdout.decode()


def spans_of(path):
    """The spans of a file that has the form of the format."""
    trace = json.load(open(path))
    check(set(trace) == {"displayTimeUnit", "traceEvents", "otherData"} and trace["displayTimeUnit"] == "ms", list(trace))
    rows, spans = {}, []
    for e in trace["traceEvents"]:
        if e["ph"] == "M":
            check({"ph", "pid", "tid", "name", "args"} == set(e), e)
            if e["name"] == "thread_name":
                rows[e["tid"]] = e["args"]["name"]
        else:
            good = e["ph"] == "X" and {"ph", "pid", "tid", "name", "cat", "ts", "dur", "args"} == set(e)
            good = good and e["ts"] >= 0 and e["dur"] >= 0 and isinstance(e["name"], str) and e["tid"] in rows
            check(good, e)
            spans.append(dict(e, row=rows[e["tid"]]))
    return spans


def inside(a, b):
    return b["ts"] <= a["ts"] + 0.0015 and a["ts"] + a["dur"] <= b["ts"] + b["dur"] + 0.0015


plain = run("train", MODEL, *DEVICES, "--steps", "7", "--checkpoint", "plain.safetensors", "-q")
traced = run("train", MODEL, *DEVICES, "--steps", "7", "--checkpoint", "traced.safetensors", "-q", "--trace", "t.json")
check(plain == traced and open("plain.safetensors", "rb").read() == open("traced.safetensors", "rb").read(), "tracing changes bits")
spans = spans_of("t.json")
steps = [e for e in spans if e["cat"] == "step"]
host = [e for e in spans if e["row"] == "host"]
check([e["args"]["step"] for e in steps] == list(range(1, 8)) and all(e["name"] == "train" for e in steps), [e["args"] for e in steps])
check({e["cat"] for e in host} == {"step", "input", "checkpoint"}, {e["cat"] for e in host})
rows = {row: [e for e in spans if e["row"] == row] for row in {e["row"] for e in spans} - {"host"}}
check(set(rows) == {"/cpu:0", "/cpu:1", "/cpu:2"}, set(rows))
graph = run("compile", MODEL, *DEVICES, "--emit", "fused", "--no-origins")
on = dict(re.findall(r"^  (\S+) = .* on (\S+)(?:  #.*| \{.*)?$", graph, re.M))
for row, events in rows.items():
    for before, after in zip(events, events[1:]):
        check(before["ts"] + before["dur"] <= after["ts"] + 0.0015, "overlap", before, after)
    for e in events:
        check(sum(inside(e, step) for step in steps) == 1, "in no step", e)
        if e["cat"] == "wait":
            giver = e["args"]["for"]
            check(e["name"] == "wait: " + giver and on.get(giver) == e["args"]["on"] != row, "wait", e, on.get(giver))
        else:
            check(on.get(e["name"]) == row, "not on this device", e, on.get(e["name"]))
    names = [e["name"] for e in events if e["cat"] in ("kernel", "library") and inside(e, steps[0])]
    check(len(names) == len(set(names)) and len(names) > 5, row, names)
    for step in steps[1:]:
        check(names == [e["name"] for e in events if e["cat"] in ("kernel", "library") and inside(e, step)], row, "other steps")
# What is copied between tasks, by the table of traffic.
TASKS = ["--cluster", "worker=2;ps=1", "--batch", "100"]
run("train", MODEL, *TASKS, "--steps", "3", "-q", "--trace", "tasks.json")
tasks, copied, wanted = spans_of("tasks.json"), {}, {}
second = [e for e in tasks if e["cat"] == "step"][1]
for e in tasks:
    if e["cat"] == "copy" and inside(e, second):
        pair = (e["args"]["from"], e["row"])
        copied[pair] = copied.get(pair, 0) + e["args"]["bytes"]
for edge in json.loads(run("compile", MODEL, *TASKS, "--emit", "traffic", "--json"))["edges"]:
    if edge["bytes"]:
        wanted[(edge["from"], edge["to"])] = edge["bytes"]
check(copied and copied == wanted, "traffic", copied, wanted)
# The summary.
told = json.loads(run("trace", "t.json", "--json"))
sums = {"computing": 0.0, "copies": 0.0, "waiting": 0.0, "bytes": 0.0}
for events in rows.values():
    for e in events:
        kind = {"wait": "waiting", "copy": "copies"}.get(e["cat"], "computing")
        sums[kind] += e["dur"]
        sums["bytes"] += e["args"].get("bytes", 0)
sums["steps_time"] = sum(e["dur"] for e in steps)
sums["input"] = sum(e["dur"] for e in host if e["cat"] == "input")
sums["checkpoints"] = sum(e["dur"] for e in host if e["cat"] == "checkpoint")
for name, value in sums.items():
    check(abs(told[name] - value) <= 1e-9 * value + 1e-6, name, told[name], value)
check(told["steps"] == 7 and told["devices"] == 3 and told["evaluation"] == 0, told)
text = run("trace", "t.json")
check(len(text.splitlines()) <= 10 and "7 steps of train on 3 devices" in text and "MB a step" in text, text)
# Evaluation, and a benchmark.
run("eval", MODEL, *DEVICES, "--checkpoint", "plain.safetensors", "--trace", "e.json")
check({e["name"] for e in spans_of("e.json") if e["cat"] == "step"} == {"eval"}, "eval")
run("bench", MODEL, *DEVICES, "--steps", "3", "--trace", "b.json")
check(len([e for e in spans_of("b.json") if e["cat"] == "step"]) == 3, "bench")
run("train", MODEL, *DEVICES, "--steps", "4", "--eval-every", "2", "--trace", "v.json", "-q", "--eval-rows", "0:200")
check({e["cat"] for e in spans_of("v.json") if e["row"] == "host"} >= {"step", "evaluation", "input"}, "eval-every")
# What is no trace, or cannot be written.
for bad in ("", "[]", "{}", '{"traceEvents":[]}', '{"traceEvents":[{"ph":"X","dur":}]}', '{"traceEvents":[{"ph":"X","name":3}]}', open("t.json").read()[:-9], "\0" * 40):
    with open("bad.json", "w") as f:
        f.write(bad)
    check(subprocess.run([dgc, "trace", "bad.json"], stderr=subprocess.DEVNULL).returncode == 1, "bad", bad[:40])
done = subprocess.run([dgc, "train", MODEL, "--steps", "1", "--trace", "nowhere/t.json", "-q"], stderr=subprocess.PIPE)
check(done.returncode == 3 and b"nowhere/t.json" in done.stderr, done)
finish()
