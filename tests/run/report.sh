#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The page of logs, and a batch as the model sees it. What the page shows is read in Chromium, where that is.
. "$(dirname "$0")/lib.sh"

mkdir '<' # so that a name can end a script
train="$dgc train $samples/digits.dsl --set hidden=4 --rows 0:640 --eval-rows 0:100 --batch 64 --quiet"
expect 0 'one log' $train --epochs 3 --eval-every 1e --log-every 5 --log a.jsonl --checkpoint a.safetensors
expect 0 'another one' $train --epochs 2 --eval-every 1e --log-every 5 --log '</script>b.csv' --set rate=0.01 --no-shuffle
expect 0 'a third' $train --epochs 1 --log c.jsonl --checkpoint c.safetensors --seed 7
cp c.jsonl longer.jsonl
printf '{"step":15,"epoch":2,"train.loss":77,"seconds":9}\n{"step":20,"ep' >>longer.jsonl
sed 's/"step":0/"step":10/' c.jsonl | head -1 >more
expect 0 'and goes on' $train --epochs 2 --log c.jsonl --checkpoint c.safetensors --seed 7 --resume
expect 0 report "$dgc" report a.jsonl '</script>b.csv' c.jsonl -o r.html
empty out
[ "$(grep -c '</script>' r.html)" = 2 ] && pass || fail 'a name ends a script'
! grep -o '[a-z]*://[^"]*' r.html | grep -vq '^http://www.w3.org/2000/svg$' && pass || fail 'the page asks for others'
expect 0 'to standard output' "$dgc" report a.jsonl -o -
cp out one.html
shows out '<!DOCTYPE html>'
expect 2 'nowhere' "$dgc" report a.jsonl
expect 1 'no log' "$dgc" report "$samples/digits.dsl" -o no.html
shows err 'is no log of a training'
expect 1 'not there' "$dgc" report nowhere.jsonl -o no.html
[ ! -e no.html ] && pass || fail 'a page of nothing'
expect 0 'a line that somebody who was killed left' "$dgc" report longer.jsonl -o longer.html

if browser=$(command -v chromium || command -v chromium-browser); then
  # page FILE: what it shows.
  page() { timeout 300 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" --dump-dom "file://$work/$1" 2>/dev/null >dom; }
  page r.html
  python3 - <<'PYTHON' && pass || fail 'the page shows others'
import re
dom = open("dom").read()
rows = re.findall(r"<tr>(.*?)</tr>", dom[dom.index('id="runs"'):dom.index('id="settings"')], re.S)
cells = [[re.sub("<[^>]*>", "", c) for c in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S)] for row in rows]
assert [r[0] for r in cells] == ["log", "a.jsonl", "&lt;/script&gt;b.csv", "c.jsonl (gone on with 1 time)"], cells
assert [r[1] for r in cells] == ["step", "30", "20", "20"] and "val.accuracy" in cells[0], cells
settings = dom[dom.index('id="settings"'):dom.index("<p>")]
assert "--seed" in settings and "--batch" in settings and "--log" not in re.findall(r"<th>(.*?)</th>", settings), settings
titles = re.findall(r"<h2>([a-z_]+)</h2>", dom)
assert titles == ["loss", "accuracy", "rate", "examples_per_second"], titles
curves = re.findall(r"<polyline[^>]*stroke-dasharray=\"([^\"]*)\"", dom[:dom.index("accuracy</h2>")])
assert sorted(curves) == ["5 4", "5 4", "none", "none", "none"], curves
points = max(re.findall(r"<polyline class=\"curve\" points=\"([^\"]*)\"", dom), key=len)
assert len(points.split()) == 6 and all(0 <= float(x) <= 460 for x in points.replace(",", " ").split()), points
PYTHON
  page longer.html
  grep -q '>77<' dom && pass || fail 'a whole line is missing'
else
  skipped=$((skipped + 1))
  echo 'SKIP: no Chromium to read the page in'
fi

# --- a batch ---
expect 0 'a batch' $train --steps 14 --seed 5 --dump-batch 13 --devices cpu:0-1 --towers 3
expect 0 'in order' $train --steps 2 --no-shuffle --dump-batch 2
python3 - "$samples" <<'PYTHON' && pass || fail 'the batches are others'
import struct, sys, zipfile
def npz(path):
    with zipfile.ZipFile(path) as z:
        out = {}
        for name in z.namelist():
            raw = z.read(name)
            size, = struct.unpack("<H", raw[8:10])
            out[name[:-4]] = (eval(raw[10:10 + size]), raw[10 + size:])
        return out
images = open(sys.argv[1] + "/data/train-images.idx", "rb").read()[16:]
labels = open(sys.argv[1] + "/data/train-labels.idx", "rb").read()[8:]
for path, epoch in (("batch-13.npz", 1), ("batch-2.npz", 0)):
    b = npz(path)
    rows = struct.unpack("<64q", b["dgc.rows"][1])
    assert struct.unpack("<q", b["dgc.epoch"][1]) == (epoch,) and len(set(rows)) == 64 and max(rows) < 640
    assert b["label"] == ({"descr": "|u1", "fortran_order": False, "shape": (64,)}, bytes(labels[r] for r in rows)), path
    assert b["image"][1] == b"".join(images[784 * r:784 * r + 784] for r in rows), path
    assert (list(rows) == list(range(64, 128))) == (path == "batch-2.npz"), rows
PYTHON
finish
