#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data as people have it, as a model sees it, beside what numpy, csv and datetime of Python make of the same files.

formats.py DGC SAMPLES; numpy is that of tools/oracles.sh."""
import csv
import datetime
import itertools
import os
import re
import shlex
import subprocess

import needs

(np,) = needs.modules("numpy")
from checks import check, dgc, finish  # noqa: E402  (goes to a folder of its own)

NAMES = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "uint8": "u8", "bool": "bool"}


def run(*words):
    return subprocess.run([dgc, *words], capture_output=True, text=True)


def read(path, kind, shape=(), more=()):
    """What a model predicts that hands its input on; or the error."""
    dims = "".join(", %d" % n for n in shape)
    with open("hand_on.dsl", "w") as f:
        f.write("model hand_on() {\n  input x : %s[B%s]\n  predict y = x\n}\n" % (kind, dims))
    got = run("predict", "hand_on.dsl", "--data", "x=" + path, "--output", "y=y.npy", "--quiet", *more)
    return np.load("y.npy") if got.returncode == 0 else got.stderr


def equal(got, want, what):
    same = isinstance(got, np.ndarray) and got.dtype == want.dtype and got.shape == want.shape
    check(same and np.array_equal(got, want, equal_nan=got.dtype.kind == "f"), what, str(got)[:200], str(want)[:200])


def refused(got, words, what):
    check(isinstance(got, str) and words in got and got.count("error:") == 1, what, got)


# --- npy: every type, both orders of bytes, both orders of axes, alone and in npz ---
random = np.random.default_rng(5)
BECOMES = {"f2": "f4", "i1": "i4", "i2": "i4", "u2": "i4", "u4": "i8", "u8": "i8"}
for descr in ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"):
    for bytes_order in "<>":
        for shape in ((7,), (5, 3), (3, 4, 2), (2, 3, 1, 4)):
            kind = np.dtype(bytes_order + descr)
            if kind.kind == "f":
                values = random.normal(size=shape).astype(kind)
                values.flat[:4] = [0, -0.0, np.inf, np.nan]
            elif kind.kind == "b":
                values = random.integers(0, 2, shape).astype(kind)
            else:
                most = min(np.iinfo(kind).max, 2**63 - 1)
                values = random.integers(max(np.iinfo(kind).min, -(2**63)), most, shape, np.int64, endpoint=True).astype(kind)
                values.flat[:2] = [np.iinfo(kind).min, most]
            want = np.ascontiguousarray(values).astype(BECOMES.get(descr, descr))
            for order in "CF":
                np.save("x.npy", np.asarray(values, order=order))
                what = (str(kind), shape, order)
                equal(read("x.npy", NAMES[want.dtype.name], shape[1:]), want, what)
            np.savez_compressed("x.npz", a=np.asfortranarray(values), b=values)
            equal(read("x.npz:a", NAMES[want.dtype.name], shape[1:]), want, what)
np.save("x.npy", np.array([1, 2**63], "u8"))
refused(read("x.npy", "i64"), "9223372036854775808", "u64 that i64 does not hold")
np.save("x.npy", np.array([1 + 2j]))
refused(read("x.npy", "f32"), "'<c16'", "complex numbers")
values = np.arange(24, dtype=">i2").reshape(4, 6)
with open("short.npy", "wb") as f:
    np.save(f, values)
    f.truncate(f.tell() - 2)
refused(read("short.npy", "i32", (6,)), "i16[4,6], but 46 bytes", "too short")
for start, words in ((b"\x89HDF\r\n\x1a\n", "HDF5"), (b"PAR1\x15", "Parquet"), (b"ARROW1\0\0", "Arrow"), (b"GIF89a", "GIF"), (b"RIFF....WEBP", "WebP")):
    open("other", "wb").write(start + bytes(100))
    refused(read("other", "f32"), words, "what is known and not read")
# IDX has them too.
for code, kind in ((9, ">i1"), (0xB, ">i2"), (0xC, ">i4"), (0xD, ">f4"), (0xE, ">f8")):
    values = (random.normal(size=(4, 3)) * 100).astype(kind)
    open("x.idx", "wb").write(bytes([0, 0, code, 2, 0, 0, 0, 4, 0, 0, 0, 3]) + values.tobytes())
    want = values.astype(BECOMES.get(kind[1:], kind[1:]))
    equal(read("x.idx", NAMES[want.dtype.name], (3,)), want, "IDX " + kind)

# --- text: windows that overlap ---
text = bytes(random.integers(0, 256, 1000, np.uint8))
open("x.txt", "wb").write(text)
for size, step in ((64, 64), (64, 32), (64, 1), (10, 7), (5, 40), (999, 1), (499, 500)):
    for shift in (0, 1):
        first = range(0, len(text) - size, step)
        want = np.array([list(text[i + shift:i + shift + size]) for i in first], np.uint8)
        path = "x.txt:%d%s%s" % (size, "" if step == size else "/%d" % step, "+1" if shift else "")
        for memory in ("1000000", "0"):
            os.environ["DGC_DATA_MEMORY"] = memory
            equal(read(path, "u8", (size,)), want, path + " in memory of " + memory)
            equal(read(path, "f64", (size,)), want.astype("f8"), path + " as f64")
        del os.environ["DGC_DATA_MEMORY"]
# Windows that move: as many in each epoch, begun at all places in as many epochs as there are, and the same when resumed.
with open("moving.dsl", "w") as f:
    f.write("model m() {\n  input x : u8[B, 7]\n  input y : u8[B, 7]\n  var w : f32[] = 0\n"
            "  train w * mean(cast(x, f32) + cast(y, f32)) with sgd(0.001)\n  predict z = x\n}\n")
begun = []
for epoch in range(8):
    for memory, more in (("1000000", []), ("0", []), ("0", ["--resume", "half.safetensors"])):
        if more:
            run("train", "moving.dsl", "--data", "x=x.txt:7/moving", "--data", "y=x.txt:7/moving+1", "--batch", "200", "--steps",
                str(epoch + 1), "--checkpoint", "half.safetensors", "--overwrite", "--no-shuffle")
        os.environ["DGC_DATA_MEMORY"] = memory
        number = str(epoch + bool(more) + 1)
        done = run("train", "moving.dsl", "--data", "x=x.txt:7/moving", "--data", "y=x.txt:7/moving+1", "--batch", "200", "--steps",
                   number, "--dump-batch", number, "--no-shuffle", *more)
        check(done.returncode == 0, "moving", done.stderr)
        batch = np.load("batch-%s.npz" % number)
        first = text.index(bytes(batch["x"][0]))
        want = np.array([list(text[i:i + 7]) for i in range(first, first + 7 * len(batch["x"]), 7)], np.uint8)
        equal(batch["x"], want, "moving %d" % epoch)
        equal(batch["y"], np.array([list(text[i + 1:i + 8]) for i in range(first, first + 7 * len(want), 7)], np.uint8), "moving + 1")
        check(len(want) == (1000 - 1 - 7 - 6) // 7 + 1, "as many rows", len(want))
        begun += [first] if not more and memory == "0" else []
del os.environ["DGC_DATA_MEMORY"]
check(begun[0] == 0 and sorted(begun[:7]) == list(range(7)) and begun[7] == begun[0], "all places", begun)
equal(read("x.txt:7/moving", "u8", (7,))[:3], np.array([list(text[i:i + 7]) for i in (0, 7, 14)], np.uint8), "predictions do not move")
for path in ("x.txt:0", "x.txt:64/0", "x.txt:64/", "x.txt:/3", "x.txt:64+2", "x.txt:99999999999", "x.txt:64/movingx", "x.txt:64/moving/2"):
    refused(read(path, "u8", (64,)), "is not a window", path)
refused(read("x.txt:1000", "u8", (1000,)), "too few", "one window is too long")
refused(read("x.txt", "u8", (8,)), "windows of 8 bytes are FILE.txt:8", "a byte a row")

# --- archives: what is wrong is so of a member; none is a checkpoint ---
np.savez("x.npz", a=np.zeros(4, "c8"), b=np.zeros(4, "f4"))
refused(read("x.npz:a", "f32"), "x.npz:a: its elements are '<c8'", "the member")
open("learns.dsl", "w").write("model m() {\n  input x : f32[B]\n  var w : f32[1] = zeros()\n  predict p = x * w\n}\n")
done = run("predict", "learns.dsl", "--data", "x=x.npz:b", "--checkpoint", "x.npz")
check(done.returncode and "it is a zip archive, as npz files" in done.stderr, "an npz file as a checkpoint", done.stderr)

# --- tables: words, dates, what is missing; quotes as RFC 4180 has them ---
CITIES = ["Ulm", "Zürich", "Aachen, Stadt", 'the "other" one', "", "two\nlines", "aachen", "10", "Ulm", "Zürich"]
AGES = ["31", "", "NA", "12.5", "nan", "null", "-4", "1e3", "?", "0.1"]
DATES = ["1970-01-01", "1969-12-31", "2000-02-29", "0001-01-01", "9999-12-31", "1900-03-01", "2026-11-23", "1582-10-15",
         "2100-02-28", "1600-02-29"]
TIMES = ["1970-01-01T00:00:00Z", "2026-11-23 14:05", "2026-11-23T14:05:30+02:00", "2026-11-23T14:05:30.25-0530",
         "1969-12-31T23:59:59.5Z", "2000-02-29", "0001-01-01T00:00:00Z", "2026-11-23T23:59:59+14:00", "2026-01-01t00:00z",
         "2026-07-01T12:00:00.123456"]


def table(path, columns, separator=",", quoting=csv.QUOTE_MINIMAL, header=True, end="\r\n"):
    with open(path, "w", newline="") as f:
        out = csv.writer(f, delimiter=separator, quoting=quoting, lineterminator=end)
        if header:
            out.writerow(columns)
        out.writerows(zip(*columns.values()))


def python_cells(path, column, separator=","):
    with open(path, newline="") as f:
        return [row[column] for row in csv.DictReader(f, delimiter=separator)]


EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def seconds(text):
    text = text.replace("z", "Z").replace("t", "T")
    time = datetime.datetime.fromisoformat(text.replace("Z", "+00:00").replace("-0530", "-05:30"))
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.timezone.utc)
    return (time - EPOCH) / datetime.timedelta(seconds=1)


for separator in ",;\t":
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL):
        for end in ("\r\n", "\n"):
            table("t.csv", {"id": range(10), "city": CITIES, "age": AGES, "day": DATES, "time": TIMES, "last-one": range(10, 20)},
                  separator, quoting, end=end)
            what = (separator, quoting, end)
            cells = {name: python_cells("t.csv", name, separator) for name in ("id", "city", "age", "day", "time", "last-one")}
            equal(read("t.csv:id", "i32"), np.array(cells["id"], "i4"), what)
            equal(read("t.csv:last-one", "i32"), np.array(cells["last-one"], "i4"), what)
            missing = [cell in ("", "NA", "nan", "null", "?") for cell in cells["age"]]
            ages = [np.nan if no else float(cell) for no, cell in zip(missing, cells["age"])]
            equal(read("t.csv:age:optional", "f64"), np.array(ages), what)
            equal(read("t.csv:3:optional", "f64"), np.array(ages), what)
            equal(read("t.csv:age:present", "bool"), ~np.array(missing), what)
            days = [datetime.date.fromisoformat(cell).toordinal() - 719163 for cell in cells["day"]]
            equal(read("t.csv:day:date", "i32"), np.array(days, "i4"), what)
            equal(read("t.csv:time:time", "f64"), np.array([seconds(cell) for cell in cells["time"]]), what)
            refused(read("t.csv:city:category", "i32"), "its words have no numbers", what)
            refused(read("t.csv:age", "f64"), "':NAME:optional'", what)
            refused(read("t.csv:city", "f64"), "is not a number", what)
            refused(read("t.csv:city:date", "f64"), "is not a date", what)
            refused(read("t.csv:day:category:category", "i32"), "no column 'day:category'", what)
POINTS = ["%s.%s.%s%s" % (cell[8:10], cell[5:7], cell[:4], cell[10:]) for cell in DATES + TIMES]
table("p.csv", {"at": POINTS})
equal(read("p.csv:at:time", "f64"), np.array([seconds(cell) for cell in DATES + TIMES]), "times with points, as Jena's weather has")
table("p.csv", {"day": POINTS[:len(DATES)]})
equal(read("p.csv:day:date", "i32"), np.array([datetime.date.fromisoformat(cell).toordinal() - 719163 for cell in DATES], "i4"), "days")
refused(read("p.csv:1-2/24", "f64"), "sliding_window_view", "windows of tables")
for day in ("29.02.2026", "01.13.2026", "32.01.2026", "1.1.2026", "01.01.26", "01-01-2026", "01.01-2026", "01.01.2026x", "01.01.0000", "01."):
    table("d.csv", {"day": ["01.01.2026", day]})
    refused(read("d.csv:day:date", "i32"), "'%s' is not a date" % day, day)
for day in ("2026-02-29", "1900-02-29", "2026-13-01", "2026-00-10", "2026-1-1", "0000-01-01", "2026-01-32", "26-01-01", "2026-01-01x"):
    table("d.csv", {"day": ["2026-01-01", day]})
    refused(read("d.csv:day:date", "i32"), "'%s' is not a date" % day, day)
for time in ("2026-01-01T24:00", "2026-01-01T12", "2026-01-01T12:60", "2026-01-01T12:00:60", "2026-01-01T12:00+2", "2026-01-01T12:00:00.",
             "2026-01-01T12:00+24:00", "2026-01-01 12:00 Z"):
    table("d.csv", {"time": ["2026-01-01T00:00", time]})
    refused(read("d.csv:time:time", "f64"), "'%s' is not a time" % time, time)
open("open.csv", "w").write('a,b\n1,"two\n3,4\n')
refused(read("open.csv:b:present", "bool"), "must end with a quote", "a quote that does not end")

# A first line that is neither names nor numbers is not left out as if it were names.
for cell in ("", "NA", "7x", "-.5.", "1.2.3"):
    for line in (cell + ",2", "2," + cell):
        open("f.csv", "w").write(line + "\n3,4\n")
        refused(read("f.csv", "f64", (2,)), "is it a row, or names?", "a first line with the cell '%s'" % cell)
open("f.csv", "w").write(",2\n3,4\n")
equal(read("f.csv:2", "f64"), np.array([2.0, 4]), "what is not wanted does not matter")
equal(read("f.csv:1:optional", "f64"), np.array([np.nan, 3]), "no number in the first line")
for column in ("1_000", "1.000,50", "1'000", "10%", "NA", "-.5.", "1 000"):  # whole columns of what no number is written as
    open("f.csv", "w").write('"%s"\n3\n4\n' % column)
    refused(read("f.csv", "f64"), "a decimal comma" if "," in column else "and no cell that is a name: is it a row, or names?",
            "a column that begins with '%s'" % column)
    open("f.csv", "w").write('"%s",1_5\n3,4\n' % column)
    refused(read("f.csv", "f64", (2,)), "a decimal comma" if "," in column else "is it a row, or names?", "a line of '%s' and another" % column)
    if "," not in column:
        equal(read("f.csv:%s" % column, "f64"), np.array([3.0]), "asked for by the name '%s'" % column)
for zeros, ints in ((["-0", "0", "1"], [0, 0, 1]), (["1", "-0", "-00", "+0", " -0 "], [1, 0, 0, 0, 0]), (["7.5", "-0"], None), (["-0", "NA"], None)):
    table("z.csv", {"x": zeros, "y": range(len(zeros))})
    for kind in ("f32", "f64"):
        got = read("z.csv:x:optional", kind)
        want = np.array([np.nan if z == "NA" else float(z) for z in zeros], np.dtype(kind[:1] + str(int(kind[1:]) // 8)))
        equal(got, want, "zeros of " + kind)
        check(list(np.signbit(got)) == list(np.signbit(want)), "signs of zeros", zeros, kind, got)
    if ints:
        equal(read("z.csv:x", "i32"), np.array(ints, "i4"), "integers have one zero")
for names in (",a", "a,2019", "a,", "1st,2nd"):
    open("f.csv", "w").write(names + "\n3,4\n")
    equal(read("f.csv", "f64", (2,)), np.array([[3.0, 4]]), "names " + names)
for text in ("1,2\0\n3,4\n".encode(), "a,b\n3,4\n".encode("utf-16"), b"a,b\n3,4\n" + bytes(100)):
    open("f.csv", "wb").write(text)
    refused(read("f.csv", "f64", (2,)), "it has a byte 0", "a byte 0")

# Numbers: each as Python reads it, in every way to write one.
written = ["%.*g" % (int(random.integers(1, 18)), x) for x in np.exp(random.normal(size=400) * 30) * random.choice([-1, 1], 400)]
written += ["0.1", "1e22", "1e23", "1e-22", "1e-23", "9007199254740993", "9007199254740993.0", "123456789012345678", "1.7976931348623157e308",
            "4.9e-324", "-0.0", ".5", "5.", "+7.25", "1E5", "1e+05", "00012.50", "0.000000000000000000001", "179769313486231580000"]
table("n.csv", {"x": written, "y": ["1.5"] * len(written)})
equal(read("n.csv:x", "f64"), np.array([float(t) for t in written]), "numbers as Python reads them")
for text in ("", "-", ".", "e5", "1e", "1e+", "0x", "1.2.3", "1,5", "--1", "1 2", "five"):
    open("n.csv", "w").write('x;y\n1;"%s"\n' % text)
    got = read("n.csv:y", "f64")
    check(isinstance(got, str) and "line 2, column 2" in got, "no number: " + text, got)

# A cell is a number where Python says so, but for digits between underscores; what C's strtod takes beside them is refused.
parts = (("", "+", "-", "++", " "), ("0x10", "0X1P3", "0x1p3", "0x", "1", "007", "1.", ".5", "1.5", ".", "inf", "Inf", "infinity", "INFINITY", "infinit",
                               "nan", "NAN", "nan()", "nan(abc)", "nan(ind)", "nan(0x1)", "1.#INF", "1.#IND", "0b1", "1_000", "\u0663"),
         ("", "e5", "E-3", "p3", "d5", "f", "L", "e", "x", "(1)", " "))
numbers, others = {}, []
for text in ("".join(p) for p in itertools.product(*parts)):
    try:
        numbers[text] = float(text.replace("_", "x") if text.isascii() else "x")
    except ValueError:
        others.append(text)
table("n.csv", {"x": ["0.5", *numbers]})
equal(read("n.csv:x", "f64"), np.array([0.5, *numbers.values()]), "numbers as Python reads them, with signs, powers and blanks")
for text in random.choice(others, 60, replace=False):
    open("n.csv", "w", encoding="utf-8").write("x;y\n1;%s\n" % text)
    wrong = "the cell is empty" if not text.strip() else "'%s' is not a number" % text.strip()
    refused(read("n.csv:y", "f64"), "n.csv: line 2, column 2: " + wrong, "no number: " + text)
for text in ("0x10", "-0x1p3", "nan(abc)", "+NaN(ind)", "-nan()"):  # none of these is a name, either
    open("n.csv", "w").write("%s\n1\n" % text)
    refused(read("n.csv", "f64"), "line 1 has '%s' in column 1, which is no number" % text, "first line: " + text)
open("n.csv", "w").write("x\n%s.5\n0.%s1\n" % ("1" + "0" * 300, "0" * 300))
equal(read("n.csv:x", "f64"), np.array([1e300, 1e-301]), "numbers of many digits")

# Names of columns that have commas and quotes are written as in the table.
NAMES = ["v,1", 'a "b"', "2", '","', "c:category", ",", "x"]
table("n.csv", {n: [i, i + 10] for i, n in enumerate(NAMES)})
open("columns.dsl", "w").write("model m {\n%s}\n" % "".join("  input i%d : i32[B]\n  predict p%d = i%d + 0\n" % (i, i, i) for i in range(len(NAMES))))
given = ["i%d=n.csv:%s" % (i, '"%s"' % n.replace('"', '""')) for i, n in enumerate(NAMES)]
given[-1] = 'i6=n.csv:"x",n.csv:6,n.csv:"v,1"'
given[:-1] = ["%s,%s,%s" % (g, g.split("=", 1)[1], g.split("=", 1)[1]) for g in given[:-1]]
got = run("predict", "columns.dsl", *(x for g in given for x in ("--data", g)), "--output", "all.csv", "--quiet")
check(got.returncode == 0, "names with commas", got.stderr)
if got.returncode == 0:
    want = [[i, i + 10] * 3 for i in range(6)] + [[6, 16, 5, 15, 0, 10]]
    check(np.loadtxt("all.csv", delimiter=",", skiprows=1).T.tolist() == want, "columns that are chosen by quoted names", open("all.csv").read())
got = read("n.csv:v,1", "i32")
quoted = ['"%s"' % n.replace('"', '""') if "," in n or '"' in n else n for n in NAMES]
refused(got, "it has no column 'v', only: " + ", ".join(quoted), "a name with a comma, and no quotes around it")

# Words have the numbers of their bytes' order, whatever the order of the rows; those of another file are 0.
MODEL = """model m() {
  input city : i32[B]
  input y : f32[B]
  var table : f32[%d] = zeros()
  p = gather(table, city)
  train mean(square(p - y)) with sgd(rate = 0.5)
  predict p = p
  predict number = city + 0
}
"""
words = sorted({w for w in CITIES if w}, key=lambda w: w.encode())
numbers = {w: i + 1 for i, w in enumerate(words)}
want = np.array([numbers.get(w, 0) for w in CITIES], "i4")
open("m.dsl", "w").write(MODEL % (len(words) + 1))
table("t.csv", {"city": CITIES, "y": range(10)})
table("turned.csv", {"city": CITIES[::-1], "y": range(9, -1, -1)})
table("first.csv", {"city": CITIES[:4], "y": range(4)})
table("rest.csv", {"city": CITIES[4:], "y": range(4, 10)})
table("other.csv", {"city": ["Ulm", "Bonn", "", "aachen", "Rom"], "y": range(5)})
data = ["--data", "city=%s:city:category", "--data", "y=%s:y"]


def given(*files):
    return ["--data", "city=" + ",".join(f + ":city:category" for f in files), "--data", "y=" + ",".join(f + ":y" for f in files)]


def numbers_of(checkpoint, *files):
    got = run("predict", "m.dsl", "--checkpoint", checkpoint, *given(*files), "--output", "number=n.npy", "--quiet")
    check(got.returncode == 0, "predict", got.stderr)
    return (np.load("n.npy"), got.stderr) if got.returncode == 0 else (None, got.stderr)


for name, files in (("one", ["t.csv"]), ("two", ["first.csv", "rest.csv"]), ("three", ["turned.csv"])):
    got = run("train", "m.dsl", *given(*files), "--steps", "3", "--batch", "4", "--quiet", "--checkpoint", name + ".safetensors")
    check(got.returncode == 0, name, got.stderr)
    equal(numbers_of(name + ".safetensors", "t.csv")[0], want, name)
    got, notes = numbers_of(name + ".safetensors", "other.csv")
    equal(got, np.array([numbers["Ulm"], 0, 0, numbers["aachen"], 0], "i4"), name + ", other words")
    check("input city: 2 rows have words that its training had not, which" in notes, notes)
check(open("one.safetensors", "rb").read() == open("two.safetensors", "rb").read(), "the same bytes from one file or two")
# Blanks around a cell are no part of it, those between quotes are, of a word.
with open("blanks.csv", "w") as f:
    f.write('city,y\n sp,1\n"sp", 2\nsp ,"3 "\n" sp"," 4"\n"sp " , "5" \n')
equal(read("blanks.csv:y", "f32"), np.arange(1, 6, dtype="f4"), "numbers between blanks")
got = run("train", "m.dsl", *given("blanks.csv"), "--steps", "1", "--batch", "5", "--quiet", "--checkpoint", "blanks.safetensors")
check(got.returncode == 0, "blanks", got.stderr)
equal(numbers_of("blanks.safetensors", "blanks.csv")[0], np.array([2, 2, 2, 1, 3], "i4"), "words between blanks")
# A training that goes on has the words of its checkpoint, also with other data.
got = run("train", "m.dsl", *given("other.csv"), "--resume", "one.safetensors", "--checkpoint", "on.safetensors", "--steps", "5", "--batch",
          "4", "--quiet")
check(got.returncode == 0 and "2 rows" in got.stderr, "goes on", got.stderr)
equal(numbers_of("on.safetensors", "t.csv")[0], want, "after it has gone on")
# Test data of a training is read with the words of the training.
got = run("train", "m.dsl", *given("t.csv"), "--eval-data", "city=other.csv:city:category", "--eval-data", "y=other.csv:y", "--steps", "3",
          "--batch", "4", "--quiet", "--overwrite", "--checkpoint", "one.safetensors")
check(got.returncode == 0 and "2 rows" in got.stderr, "tests", got.stderr)
# A table that is too small is said with row and value.
open("small.dsl", "w").write(MODEL % 3)
got = run("train", "small.dsl", *given("t.csv"), "--steps", "1", "--batch", "4", "--quiet")
check(got.returncode == 1 and "must be from" in got.stderr, "more words than rows", got.stderr)
# What a column is read as, and numbers of columns.
for spec, text in (("city:categorical", "no column is read as ':categorical': there are ':category'"), ("0", "their numbers begin at 1")):
    got = run("train", "m.dsl", "--data", "city=t.csv:" + spec, "--data", "y=t.csv:y", "--steps", "1", "--quiet")
    check(got.returncode == 1 and text in got.stderr, spec, got.stderr)
# A file without the name of an input.
got = run("train", "m.dsl", "--data", "t.csv:y", "--steps", "1", "--quiet")
check(got.returncode == 2 and "which input is read from t.csv:y? write --data city=t.csv:y" in got.stderr, "no name", got.stderr)
# Words of a file that are not UTF-8; numbers beside words.
open("latin.csv", "wb").write("city,y\nZürich,1\n".encode("latin-1"))
got = run("train", "m.dsl", *given("latin.csv"), "--steps", "1", "--quiet")
check(got.returncode == 1 and "is not UTF-8" in got.stderr, "not UTF-8", got.stderr)
np.save("n.npy", np.arange(4, dtype="i4"))
got = run("train", "m.dsl", "--data", "city=t.csv:city:category,n.npy", "--data", "y=t.csv:y,n.npy", "--steps", "1", "--quiet")
check(got.returncode == 1 and "they are not one input" in got.stderr, "words and numbers", got.stderr)
# Without a line of names: it is one where a word stands over a number.
for header in (False, True):
    table("iris.csv", {"a": ["5.1", "4.9", "6"], "b": ["3.5", "3", "2.25"], "kind": ["setosa", "virginica", "setosa"]}, header=header)
    open("iris.dsl", "w").write(MODEL.replace("city", "kind") % 3)
    got = run("train", "iris.dsl", "--data", "kind=iris.csv:3:category", "--data", "y=iris.csv:1", "--steps", "1", "--batch", "3",
              "--quiet", "--overwrite", "--checkpoint", "iris.safetensors")
    check(got.returncode == 0, "iris", got.stderr)
# The table of docs/training.md, with what is missing and a name with a comma; another one of people whose fate is not known.
page = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/training.md")).read()
open("titanic.dsl", "w").write(re.search(r"^use nn\nmodel titanic.*?^}$", page, re.M | re.S).group())
some = np.random.default_rng(1)
lines = ["Survived,Name,Sex,Age,Fare"]
for i in range(891):
    woman = some.random() < 0.4
    lines.append('%d,"Doe, J%d",%s,%s,%.2f' % (some.random() < (0.8 if woman else 0.2), i, "female" if woman else "male",
                                               "" if i % 5 == 0 else some.integers(1, 80), some.random() * 100))
open("titanic.csv", "w").write("\n".join(lines) + "\n")
open("test.csv", "w").write("\n".join(line.split(",", 1)[1] for line in lines[:9]) + "\n")
commands = re.findall(r"^dgc (?:train|predict) titanic.*$", page, re.M)
check(len(commands) == 2, "commands of docs/training.md")
for command in commands:
    got = run(*shlex.split(command)[1:])
    check(got.returncode == 0, command, got.stderr)
check("stopped early" in run(*shlex.split(commands[0])[1:], "--overwrite").stderr, "patience")
check(len(open("chance.csv").read().split()) == 9, "a chance for each row")
finish()
