#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of --emit html: picture.py DGC SAMPLES SOURCE. What it holds is compared with what dgc prints of the same graphs,
and what it shows is read in Chromium, which is skipped where there is none, or with TEST_BROWSER=off."""
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

from checks import check, dgc, finish, others, samples

root, folder = others[0], pathlib.Path.cwd()


def run(*arguments):
    return subprocess.run([dgc, *arguments], check=True, stdout=subprocess.PIPE).stdout.decode()


class Page(html.parser.HTMLParser):
    """The texts of the elements that have an id, and how many there are of each tag."""

    def __init__(self, text):
        super().__init__()
        self.texts, self.tags, self.at = {}, {}, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags[tag] = self.tags.get(tag, 0) + 1
        if tag not in ("meta", "input"):
            self.at.append((tag, dict(attributes).get("id")))

    def handle_endtag(self, tag):
        while self.at and self.at.pop()[0] != tag:
            pass

    def handle_data(self, data):
        for _, name in self.at:
            if name:
                self.texts[name] = self.texts.get(name, "") + data


def emit(name, *arguments):
    """The page in a file, and its data."""
    text = run("compile", *arguments, "--emit", "html")
    check(text == run("compile", *arguments, "--emit", "html"), name, "twice")
    path = folder / (name + ".html")
    path.write_text(text)
    check("src=" not in text and "http" not in text, name, "wants the network")
    return path, json.loads(Page(text).texts["data"])


def compare(name, data, *arguments):
    """The placed graph, node by node, with --emit json; every pass with what --dump-dir writes."""
    graph = json.loads(run("compile", *arguments, "--emit", "json"))
    text, records = data["strings"], data["records"]
    names = {n["id"]: n["name"] for n in graph["nodes"]}
    placed = next(p for p in data["passes"] if p["pass"] == "copies")
    check(len(placed["nodes"]) == len(graph["nodes"]), name, "nodes")
    for record, n in zip((records[i] for i in placed["nodes"]), graph["nodes"]):
        have = [text[record[0]], text[record[1]], text[record[2]], text[record[3]], record[4], record[5],
                data["devices"][record[6]]["name"], text[record[8]], text[record[9]], [text[i] for i in record[13]]]
        want = [n["name"], n["op"], n["type"], n.get("dist", ""), n.get("tower", -1), n.get("replica", -1),
                n["device"], n.get("why", ""), n.get("origin", ""), [names[i] for i in n["inputs"]]]
        if have != want:
            check(False, name, have, want)
    dumps = folder / (name + "-dumps")
    run("compile", *arguments, "--emit", "placed", "--dump-dir", str(dumps), "-o", os.devnull)
    counted = 0
    for dump in sorted(dumps.iterdir()):
        kind = re.fullmatch(r"(?:.*[-_.])?train[-_.].*?([a-z]+)\.dg|\d+[-_.]([a-z]+)\.dg", dump.name)
        step = kind and next((p for p in data["passes"] if p["pass"] == (kind[1] or kind[2])), None)
        if step:
            nodes = [line for line in dump.read_text().split("{\n", 1)[1].splitlines() if re.match(r"  \S+ = ", line)]
            check(len(nodes) == len(step["nodes"]), name, dump.name, len(nodes), len(step["nodes"]))
            counted += 1
    check(counted >= 4, name, "passes", counted, [d.name for d in dumps.iterdir()])
    for d, device in enumerate(data["memory"]):
        for buffer in device["buffers"]:
            check(0 <= buffer[2] <= max(buffer[3], 0) < max(len(device["steps"]), 1), name, "buffer", d, buffer)


def browse(path, **state):
    """What the page has become when its script has run."""
    address = "file://%s#%s" % (path, urllib.parse.urlencode(state))
    done = subprocess.run(
        ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1200,800",
         "--user-data-dir=%s" % (folder / "profile"), "--virtual-time-budget=20000", "--dump-dom", address],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(os.environ, HOME=str(folder)), timeout=280)
    return Page(done.stdout.decode())


def seen(page):
    """Nodes, boxes, folded boxes, edges, edges between devices."""
    numbers = re.findall(r"\d[\d,]*", page.texts.get("status", ""))
    check(len(numbers) == 5, "status", page.texts.get("status"))
    return [int(n.replace(",", "")) for n in numbers]


digits = [samples + "/digits.dsl", "--devices", "cpu:0-3", "--strategy", "mirrored"]
page, data = emit("digits", *digits)
compare("digits", data, *digits)
gpus = [samples + "/words.dsl", "--devices", "gpu:0-1", "--strategy", "central_storage"]
compare("gpus", emit("gpus", *gpus)[1], *gpus)
# A graph that was read, before and after passes: the same as of the model.
(folder / "words.dg").write_text(run("compile", *gpus, "--emit", "graph"))
drawn = run("opt", str(folder / "words.dg"), "--emit", "html", "--passes=simplify,grad", "--no-origins")
drawn, whole = json.loads(Page(drawn).texts["data"]), json.loads(Page(run("compile", *gpus, "--emit", "html")).texts["data"])
by_name = {p["pass"]: p for p in whole["passes"]}
check([p["pass"] for p in drawn["passes"]][0] == "text" and drawn["passes"][-1]["pass"] == "grad", [p["pass"] for p in drawn["passes"]])
for mine, its in ((drawn["passes"][0], by_name["source"]), (drawn["passes"][-1], by_name["grad"])):
    check([drawn["strings"][drawn["records"][i][0]] for i in mine["nodes"]] == [whole["strings"][whole["records"][i][0]] for i in its["nodes"]],
          "opt --emit html", mine["pass"])
(folder / "hostile.dsl").write_text("""# </script><img src=x onerror=alert(1)><!-- <script>
model hostile() {
  input x : f32[B]
  var w : f32[] = 1
  train mean(square(x * w)) with sgd(rate = 0.1)   # "</script>"
}
""")
hostile = run("compile", str(folder / "hostile.dsl"), "--emit", "html")
check(Page(hostile).tags["script"] == 2 and "img" not in Page(hostile).tags, "a comment is no element")

large, about = emit("resnet", root + "/bench/resnet.dsl", "--devices", "cpu:0-7", "--strategy", "mirrored")
if os.environ.get("TEST_BROWSER") == "off":
    pass
elif shutil.which("chromium"):
    first = browse(page)
    nodes, boxes, folded, edges, crossing = seen(first)
    check(nodes == len(next(p for p in data["passes"] if p["pass"] == "copies")["nodes"]), "nodes", nodes)
    check(10 < boxes < 60 and folded > boxes / 2 and crossing > 0, "it opens folded", boxes, folded)
    check(first.texts["title"] == "digits.train" and "mirrored" in first.texts["details"], first.texts["details"])
    apart = seen(browse(page, towers="apart"))
    check(apart[0] == nodes and apart[1] > boxes, "towers apart", apart)
    one = browse(page, select="tower_2/h.matmul", memory=1)
    for word in ["matmul", "f32[32,512]", "tower 2", "/cpu:2", "compute -> tower 2's worker", "digits.dsl:9", "nn.dense(x",
                 "inputs (2)", "h.kernel"]:
        check(word in one.texts["details"], repr(word), "is not in", one.texts["details"])
    check("/cpu:3: step" in one.texts["memory"] and "MiB" in one.texts["memory"], one.texts["memory"])
    source = browse(page, **{"pass": "source", "open": "*"})
    check(seen(source)[0] == len(data["passes"][0]["nodes"]) and seen(source)[2] == 0, "all open", seen(source))
    # A trace: the time of a node is what the file says of it, and of a folded layer that of its nodes.
    trace = folder / "t.json"
    run("train", *digits, "--steps", "5", "--trace", str(trace), "--quiet")
    told = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X"]
    for n, (chosen, names) in enumerate([("h.matmul", {"h.matmul"}), ("tower_2/h.matmul", {"tower_2/h.matmul"})]):
        timed = folder / ("timed%d.html" % n)
        text = json.dumps(trace.read_text()).replace("<", "\\u003c")
        after = "loadTrace(%s); show(view.graph.byName.get(%s));" % (text, json.dumps(chosen))
        timed.write_text(page.read_text() + "<script>" + after + "</script>")
        time = sum(e["dur"] for e in told if e["name"] in names) / 5
        shown = "%.2f ms a step" % (time / 1000) if time >= 1000 else "%.1f µs a step" % time
        details = browse(timed, towers="apart")
        check(shown in details.texts["details"] and "pass=" not in details.texts["details"], chosen, shown, details.texts["details"])
    # Another pass: all of it is seen, where all was, or what was chosen is not there; else what was seen before.
    far = "Math.abs(view.x + view.width * view.scale / 2 - canvas.clientWidth / 2) > 9"
    turns = {"turnPass(1)": "false", "zoom(2, 0, 0); turnPass(1)": "true",
             "show(view.graph.byName.get('tower_2/h.matmul')); zoom(2, 0, 0); turnPass(1)": "false"}
    for n, (acts, wanted) in enumerate(turns.items()):
        turned = folder / ("turned%d.html" % n)
        turned.write_text(page.read_text() + "<script>%s; $('status').textContent = 'far ' + (%s);</script>" % (acts, far))
        status = browse(turned).texts["status"]
        check(status == "far " + wanted, acts, status)
    wrong = folder / "wrong.html"
    wrong.write_text(page.read_text() + "<script>loadTrace('[]')</script>")
    check("this is no trace" in browse(wrong).texts["status"], "a wrong trace")
    check(seen(browse(large, search="conv"))[0] > 15000, "many nodes")
else:
    print("chromium: not there, so nothing was looked at in a browser", file=sys.stderr)
finish()
