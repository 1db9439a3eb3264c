#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dgc diff: diff.py DGC SAMPLES. What it says of two texts is compared with what their lines say."""
import json
import pathlib
import re
import subprocess

from checks import check, dgc, finish, samples

LINE = re.compile(r'  (\S+) = (.*?)(?: on (\S+))?(?:  # (.*))?$')


def write(name, text):
    path = pathlib.Path(name)
    path.write_text(text)
    return path


def compiled(name, *options):
    done = subprocess.run([dgc, "compile", samples + "/digits.dsl", "--devices", "cpu:0-1", "--emit", "placed", *options],
                          check=True, stdout=subprocess.PIPE)
    return write(name, done.stdout.decode())


def diff(before, after, expected):
    """The object that --json prints, of the only graph."""
    done = subprocess.run([dgc, "diff", str(before), str(after), "--json"], stdout=subprocess.PIPE)
    check(done.returncode == expected, before.name, after.name, "exit", done.returncode)
    found = json.loads(done.stdout)
    check(found["same"] == (expected == 0), found["same"])
    return found["graphs"][0]


def nodes(path):
    """Name: what it is without its device and reason, its device."""
    found = {}
    for line in path.read_text().splitlines():
        node = LINE.match(line)
        if node:
            found[node[1]] = (node[2], node[3])
    return found


def names(graph, what):
    return sorted(n["node"] for n in graph[what])


def compare(before, after):
    old, new, found = nodes(before), nodes(after), diff(before, after, 4)
    renamed = {n["before"]: n["after"] for n in found["renamed"]}
    check(names(found, "removed") == sorted(set(old) - set(new) - set(renamed)), "removed")
    check(names(found, "added") == sorted(set(new) - set(old) - set(renamed.values())), "added")
    for was, now in renamed.items():
        check(was not in new and now not in old and old[was][0].split()[0] == new[now][0].split()[0], was, now)
    both = set(old) & set(new)
    check(set(names(found, "moved")) >= {n for n in both if old[n][1] != new[n][1]}, "moved")
    check(all(n in renamed.values() or old[n][1] != new[n][1] for n in names(found, "moved")), "did not move")
    changed = {n for n in both if old[n][0] != new[n][0]}
    check(changed >= {n for n in names(found, "changed") if n in both}, "changed", changed)
    # A line may read a new name of the same node: only then it is no change.
    for n in changed - set(names(found, "changed")):
        check(any(was in old[n][0] for was in renamed), "not told:", n)
    sums = found["nodes"]
    check(sums["same"] + sums["different"] + sums["added"] == len(new), sums)


mirrored, central = compiled("mirrored.dg", "--strategy", "mirrored"), compiled("central.dg", "--strategy", "central_storage")
one = compiled("one.dg", "--devices", "cpu:0")
other = compiled("other.dg", "--strategy", "mirrored", "--set", "rate=2e-3")
for a in (mirrored, central, one, other):
    for b in (mirrored, central, one, other):
        if a is b:
            check(diff(a, b, 0)["nodes"]["different"] == 0, a.name)
        else:
            compare(a, b)

text = mirrored.read_text()
# Another order of the lines, other reasons and origins are the same graph.
bare = write("bare.dg", re.sub(r"  # .*", "", text))
check(diff(mirrored, bare, 0)["nodes"]["same"] == len(nodes(mirrored)), "reasons")
# A new name is one, however many read it.
called = write("called.dg", text.replace("h.matmul", "h.product"))
found = diff(mirrored, called, 4)
check([(n["before"], n["after"]) for n in found["renamed"]] == [("h.matmul", "h.product"), ("tower_1/h.matmul", "tower_1/h.product")],
      found["renamed"])
check(not found["changed"] and not found["added"] and not found["removed"], found)
# Of another type, another attribute, another order of what it reads.
for pattern, put, what in [(r"(loss\.hit\.iota = iota \{axis=0\} : i32\[10\] mirrored replica 0)", r"\1 backward", "loss.hit.iota"),
                           (r"(x\.constant = constant \{value=)255\.0", r"\g<1>256.0", "x.constant"),
                           (r"(\n  h\.add = add) (\S+), (\S+)( :)", r"\1 \3, \2\4", "h.add")]:
    changed = re.sub(pattern, put, text, count=1)
    check(changed != text, pattern)
    check(what in names(diff(mirrored, write("changed.dg", changed), 4), "changed"), what)
# Files without a graph, or that are none, are wrong input; two graphs are matched by name.
check(subprocess.run([dgc, "diff", str(mirrored), "nowhere.dg"], stderr=subprocess.DEVNULL).returncode == 1, "nowhere")
check(subprocess.run([dgc, "diff", str(mirrored), samples + "/digits.dsl"], stderr=subprocess.DEVNULL,
                     stdout=subprocess.DEVNULL).returncode == 1, "a model")
two = write("two.dg", text + "\n" + text.replace("graph digits.train", "graph digits.again"))
done = subprocess.run([dgc, "diff", str(two), str(mirrored)], stdout=subprocess.PIPE)
nodes = len(re.findall(r"^  \S+ = ", text, re.M))
check(done.returncode == 4 and b"- graph digits.again\n" in done.stdout and b" %d the same" % nodes in done.stdout, done.stdout)
# A line more at the top of a model changes what is said of lines, and with --no-origins nothing.
lines = pathlib.Path(samples, "digits.dsl").read_text()
for stage in ("graph", "placed", "fused"):
    for options, same in ([], False), (["--no-origins"], True):
        texts = []
        for model in (lines, "# one more\n" + lines):
            done = subprocess.run([dgc, "compile", write("moved.dsl", model), "--emit", stage, *options], stdout=subprocess.PIPE, check=True)
            texts.append(done.stdout.decode())
        check((texts[0] == texts[1]) == same, stage, options)
        read = subprocess.run([dgc, "opt", "-", *options], input=texts[0].encode(), stdout=subprocess.PIPE, check=True).stdout.decode()
        check(read == texts[0], "read again", stage, options)
        check(not same or "-> " in texts[0] or stage == "graph", "reasons stay", stage)
dumped = subprocess.run([dgc, "compile", "moved.dsl", "--print-after", "all", "--no-origins"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
check("moved.dsl:" not in dumped.stderr.decode() and "h.matmul" in dumped.stderr.decode(), "print-after")
listed = subprocess.run([dgc, "opt", "--list-passes"], stdout=subprocess.PIPE, check=True).stdout.decode()
order = [line.split()[0] for line in listed.splitlines()]
dumps = re.findall(r"^# after (\S+)", dumped.stderr.decode(), re.M)
check(order[:-1] == dumps and order[-1] == "fuse" and len(order) > 8, order, dumps)
finish()
