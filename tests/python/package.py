#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package: package.py SOURCE. Its numbers are numpy's, or those of a file with the same rows."""
import html
import http.server
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.parse

import numpy as np

import dgc

MODEL = """use nn
model small(hidden = 16) {
  input image : f32[B, 8]
  input label : i32[B]
  h       = nn.dense(image, units = hidden, activation = relu)
  logits  = nn.dense(h, units = 3)
  train   mean(softmax_cross_entropy(logits, label)) with adam(rate = 0.01)
  metric  accuracy = mean(correct(logits, label))
  predict probability = softmax(logits)
}
"""
LINE = """model line() {
  input x : f64[B, 2]
  input y : f64[B]
  var w : f64[2] = zeros()
  p = sum(x * w, axis = 1)
  train mean(square(p - y)) with sgd(rate = 0.1)
  predict p = p
}
"""
passed = 0


def check(condition, *what):
    global passed
    if not condition:
        sys.exit("FAIL: " + " ".join(map(str, what)))
    passed += 1


def refused(kind, says, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except kind as error:
        check(says in str(error), repr(says), "is not in", error)
    else:
        check(False, "not refused:", says)


random = np.random.default_rng(1)
image = random.normal(size=(201, 8)).astype(np.float32)
label = (image[:, 0] > 0).astype(np.int64) + (image[:, 1] > 0)
data = {"image": image, "label": label}


def model(**options):
    return dgc.compile(MODEL, batch=32, devices="cpu:0-1", strategy="mirrored", **options)


def weights(m):
    return {name: m.variables[name] for name in m.variables}


def equal(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


DRAWN = """
model drawn {
  input x : f64[B, 2]
  predict p = x + random_uniform(type(x))
  metric m = mean(random_uniform(type(x)) + x)
}
"""


def test_drawn():
    """What is drawn belongs to the rows, however they are given."""
    x = np.zeros((7, 2))
    m = dgc.compile(DRAWN, seed=3)
    whole = m.predict({"x": x})["p"]
    check(len(np.unique(whole)) == 14 and np.array_equal(m.predict({"x": x}, batch=3)["p"], whole), "predict in batches")
    check(np.array_equal(m.run("predict", {"x": x[:2]}, first=4)["p"], whole[4:6]), "run from a row")
    check(np.array_equal(m.run("predict", {"x": x[:2]})["p"], whole[:2]), "run")
    check([t.name for t in m.inputs("predict")] == ["x"], "the inputs are the model's", m.inputs("predict"))
    means = [dgc.compile(DRAWN, seed=3, batch=b).evaluate({"x": x})["m"] for b in (1, 3, 7)]
    check(np.allclose(means, means[0], rtol=1e-15) and 0 < means[0] < 1, "evaluate in batches", means)


def test_line():
    """Steps of gradient descent, evaluation and prediction beside numpy's own."""
    x, y, w = random.normal(size=(7, 2)), random.normal(size=7), np.zeros(2)
    m = dgc.compile(LINE)
    for _ in range(5):
        loss = m.run("train", {"x": x, "y": y})["loss"]
        check(np.isclose(loss, np.mean((x @ w - y) ** 2), rtol=1e-14), "loss", loss)
        w = w - 0.1 * 2 / 7 * x.T @ (x @ w - y)
    check(np.allclose(m.variables["w"], w, rtol=1e-13), "weights")
    check(np.isclose(m.evaluate({"x": x, "y": y})["loss"], np.mean((x @ w - y) ** 2), rtol=1e-13), "evaluate")
    check(np.allclose(m.predict({"x": x}, batch=3)["p"], x @ w, rtol=1e-13), "predict")
    m.variables["w"] = [1, -2]
    check(np.allclose(m.predict({"x": x})["p"], x @ [1, -2], rtol=1e-13), "assigned")


def test_sources(folder):
    """Arrays, whatever their layout and type, files and functions train to the same bits."""
    calls = []

    def images(first, count):
        calls.append(threading.get_ident())
        return image[first:first + count]

    np.save(folder / "image.npy", image)
    np.save(folder / "label.npy", label)
    wide = np.zeros((201, 16), np.float32)
    wide[:, ::2] = image
    forms = [data, {"image": str(folder / "image.npy"), "label": folder / "label.npy"},
             {"image": wide[:, ::2], "label": label.astype(np.uint16)},
             {"image": image.astype(">f4"), "label": label.astype(np.int8)},
             {"image": np.asfortranarray(image), "label": label.tolist()},
             {"image": dgc.Source(image.shape, np.float32, images),
              "label": dgc.Source(label.shape, "i4", lambda first, count: label[first:first + count])}]
    trained = []
    for form in forms:
        m = model()
        m.train(form, epochs=2)
        trained.append(weights(m))
    for i, other in enumerate(trained[1:]):
        check(equal(trained[0], other), "form", i + 1)
    check(calls and set(calls) != {threading.get_ident()}, "the function was called by a thread of the library's")


WORDS = """model words {
  input x : f32[B, 8]
  input town : i32[B, 1]
  input y : f32[B]
  var w : f32[8] = normal()
  var bias : f32[9, 1] = normal()
  p = sum(x * w, axis = 1) + squeeze(lookup(bias, town[:, 0]), 1)
  train mean(square(p - y)) with sgd(rate = 0.1)
  predict p = p
  predict is = p > 0
}
"""


def test_predictions(folder):
    """Rows in files, also words, and rows that a function makes, give what arrays give; no rows give none."""
    np.save(folder / "x.npy", image)
    towns = np.array(["Ulm", "Rom", "Oslo"])[label]
    (folder / "t.csv").write_text("town\n" + "\n".join(towns) + "\n")
    m = dgc.compile(WORDS, batch=32)
    words = "%s:town:category" % (folder / "t.csv")
    m.train({"x": image, "town": words, "y": image[:, 0]}, epochs=1)
    numbers = {town: i for i, town in enumerate(dict.fromkeys(towns), 1)}  # 0 are those that training has not seen
    want = m.predict({"x": image, "town": np.array([[numbers[t]] for t in towns], np.int32)})
    forms = [{"x": image, "town": words}, {"x": folder / "x.npy", "town": words},
             {"x": dgc.Source(image.shape, "f32", lambda first, count: image[first:first + count]), "town": words},
             {"x": image[:50], "town": dgc.Source((50, 1), "i32", lambda first, count: [[numbers[t]] for t in towns[first:first + count]])}]
    for form in forms:
        got = m.predict(form)
        rows = len(got["p"])
        check(rows in (50, 201) and equal(got, {k: v[:rows] for k, v in want.items()}), "predicted otherwise", form)
        check(got["is"].dtype == bool and got["p"].dtype == np.float32, got["is"].dtype)
    none = m.predict({"x": image[:0], "town": np.zeros((0, 1), np.int32)})
    check({k: (v.shape, v.dtype) for k, v in none.items()} == {"p": ((0,), np.float32), "is": ((0,), np.bool_)}, none)
    check("x : f32[B, 8]" in repr(m) and "is : bool[B]" in repr(m), repr(m))


def test_training(folder):
    """Progress, its end by False or by an exception, checkpoints, and what a second session makes of them."""
    seen = []
    m = model()
    epochs = m.train(data, epochs=3, progress=seen.append, checkpoint=folder / "m.safetensors")
    check([e.epoch for e in epochs if e.epoch_end] == [0, 1, 2] and epochs[2].loss < epochs[0].loss, epochs)
    check(seen and seen[-1].total_steps == 21, seen[-1:])
    check(seen[-1].losses == {"loss": seen[-1].loss} and seen[-1].validation == {}, seen[-1].losses)
    refused(UserWarning, "count from the model's first", m.train, data, epochs=3)
    check(m.train(data, epochs=4)[-1].epoch == 3, "goes on")
    m.restore(folder / "m.safetensors")
    other = model()
    other.variables["h.bias"] = np.ones(16)
    other.restore(folder / "m.safetensors")
    check(equal(weights(m), weights(other)), "restored")
    p = other.predict({"image": image})["probability"]
    check(np.allclose(p.sum(axis=1), 1) and p.shape == (201, 3), "probabilities")
    check(np.isclose(m.evaluate(data)["accuracy"], np.mean(p.argmax(axis=1) == label)), "accuracy")
    partly = other.train(data, epochs=1000, progress=lambda now: False)
    check(len(partly) == 1 and partly[0].end, partly)
    refused(ZeroDivisionError, "by zero", other.train, data, epochs=1000, progress=lambda now: 1 / 0)

    def broken(first, count):
        raise OSError("the network is away")

    refused(OSError, "network", model().train, {"image": dgc.Source((201, 8), "f4", broken), "label": label})


def test_evaluating(folder):
    """Rows to evaluate on as it goes, in arrays or files: what evaluate() says of them, and another best than of the training's."""
    seen, rest = {k: v[:150] for k, v in data.items()}, {k: v[150:] for k, v in data.items()}
    np.save(folder / "rest.npy", rest["image"])
    files = {"image": folder / "rest.npy", "label": rest["label"]}
    ends = []
    for held in (rest, files):
        m = model()
        epochs = m.train(seen, epochs=3, eval_data=held, eval_every="1e", keep_best=folder / "best.safetensors", overwrite=True)
        now = m.evaluate()
        check(all(e.evaluated and set(e.validation) == {"val.loss", "val.accuracy"} for e in epochs), epochs)
        check({"val." + k: v for k, v in now.items()} == epochs[-1].validation, now, epochs[-1].validation)
        check(now == m.evaluate(rest) and now != m.evaluate(seen), now)
        best = min(epochs, key=lambda e: e.validation["val.loss"])
        m.restore(folder / "best.safetensors")
        check(m.evaluate(rest)["loss"] == best.validation["val.loss"], best.validation)
        ends.append([e.validation for e in epochs])
    check(ends[0] == ends[1], ends)
    plain = model()
    plain.train(seen, epochs=3)
    looks = model(eval_data=rest)
    check(looks.train(seen, epochs=3, eval_every="1e")[-1].evaluated, "eval_data of a model")
    check(equal(weights(plain), weights(looks)), "evaluating changes what is trained")
    impatient = model().train(seen, epochs=400, eval_data={"image": rest["image"], "label": (rest["label"] + 1) % 3}, patience=2)
    check(len(impatient) < 20 and impatient[-1].evaluated, len(impatient))
    refused(dgc.UsageError, "did you mean 'image'", model().train, data, eval_data={"imag": image})
    refused(TypeError, "no rows of complex64", model().train, data, eval_data={"image": image * 1j})
    refused(dgc.InputError, "label", model().train, data, epochs=1, eval_data={"image": image, "label": label + 3}, patience=1)


def test_refused_rows():
    """Rows that a call was refused for are not those of the next one, which has what the last good one had."""
    few = {"image": image, "label": label[:-1]}
    m = model()
    m.train(data, epochs=1)
    good = m.evaluate(data)
    refused(dgc.InputError, "label", m.evaluate, few)
    check(m.evaluate() == good, "rows to evaluate on come back")
    refused(dgc.InputError, "label", m.train, few, epochs=2)
    refused(dgc.InputError, "label", m.train, data, epochs=2, eval_data=few, eval_every="1e")
    check(len(m.train(epochs=2)) == 1, "rows to train on come back")
    fresh = model()
    refused(dgc.InputError, "label", fresh.evaluate, few)
    other = model()
    for each in (fresh, other):
        each.train(data, epochs=1)
    check(equal(weights(fresh), weights(other)), "what was refused stays")


def test_whole():
    """What a dict leaves out is not taken from an earlier one; nor is an option taken that is not one, whatever its value."""
    m = model()
    refused(dgc.UsageError, "no data for input label", m.evaluate, {"image": image})
    m.train(data, epochs=1)
    good = m.evaluate(data)
    alone = {"image": image[::-1].copy()}
    for call in m.evaluate, m.train:
        refused(TypeError, "image alone: it lacks label", call, alone)
    refused(TypeError, "eval_data has image alone", m.train, data, epochs=2, eval_data=alone, eval_every="1e")
    refused(TypeError, "data has nothing alone: it lacks image, label", m.train, {})
    refused(TypeError, "is a dict that has rows for each input, not tuple of ndarray, ndarray", m.evaluate, (image, label))
    check(m.evaluate() == good, "refused rows are read")
    check(m.predict({"image": image})["probability"].shape == (len(image), 3), "predict needs no label")
    refused(KeyError, "did you mean 'h.kernel'", m.variables.__getitem__, "h.kernal")
    refused(KeyError, "there is no variable 'q'", m.variables.__setitem__, "q", 1)
    for name in "callbacks", "batch_size", "sample_weight", "shuffle":
        for value in None, [], False:
            refused(dgc.UsageError, name, m.train, data, epochs=2, **{name: value})
    m.set(rows=[])
    check(len(m.train(data, epochs=2, keep_best=None)) == 1, "None and [] are refused")


def test_refused_options(root):
    """Options of a call that is refused go with it, and those before them come back; what was given can be taken back."""
    m = model(seed=3)
    m.train(data, epochs=1, rows="0:128")
    refused(dgc.InputError, "9999", m.train, data, epochs=5, rows="0:9999", patience=3, log_every=2)
    refused(dgc.UsageError, "nothing to evaluate on", m.train, data, epochs=5, patience=3)
    check(len(m.train(data, epochs=2)) == 1, "epochs, rows and patience stay")
    plain = model(seed=3)
    plain.train(data, epochs=2, rows="0:128")
    check(equal(weights(m), weights(plain)), "rows before do not come back")
    refused(dgc.UsageError, "expected an integer", m.set, eval_rows="0:3", epochs="many")
    check(m.evaluate(data) == plain.evaluate(data), "eval_rows stays")
    m.unset("rows", "epochs")
    plain.unset("rows")
    m.train(data, epochs=3)
    plain.train(data, epochs=3, rows=None)
    check(equal(weights(m), weights(plain)), "rows are not taken back")
    refused(dgc.UsageError, "no option 'epoch'\nhelp: did you mean 'epochs'", m.unset, "epoch")
    rows = re.findall(r'^    \{"([a-z-]+)", [A-Z]+, LIST,', (root / "session" / "option_table.c").read_text(), re.M)
    check(len(rows) > 3 and {r.encode() for r in rows} == dgc.options.LISTS, rows)


def test_refused_files(folder):
    """So are files."""
    np.save(folder / "x.npy", image)
    np.save(folder / "few.npy", label[:-1])
    m = model()
    refused(dgc.InputError, "few.npy", m.evaluate, {"image": folder / "x.npy", "label": folder / "few.npy"})
    refused(dgc.UsageError, "no data for input", m.evaluate, {"image": image})
    check(m.evaluate(data) == model().evaluate(data), "after files")
    check(m.evaluate({"image": folder / "x.npy", "label": label}) == m.evaluate(), "a file, and it stays")
    refused(dgc.InputError, "few.npy", m.evaluate, {"image": image, "label": folder / "few.npy"})
    check(m.evaluate() == model().evaluate(data), "what was given before comes back")


def test_words(folder):
    """Messages have Python's forms; what Keras and PyTorch call things gets an error that has the words of here."""
    m = model()
    m.train(data, epochs=1, checkpoint=folder / "word.safetensors")
    refused(dgc.UsageError, "help: model.restore(path) goes on from it, overwrite=True begins anew", model().train, data,
            checkpoint=folder / "word.safetensors")
    refused(dgc.UsageError, 'give eval_data={"NAME": FILE}, or cut the data: rows="0:A" eval_rows="A:B"', m.train, data, epochs=9, patience=3)
    refused(dgc.UsageError, "checkpoint_every: there is no checkpoint=FILE to save to", model().train, data, checkpoint_every=3)
    refused(dgc.UsageError, "help: it is 'towers' here: towers=N", m.set, num_replicas=3)
    for said, here in (("--rows 0:8 leaves them out", 'rows="0:8" leaves them out'), ("give --set heads=8, --seed 3", 'give set={"heads": 8}, seed=3'),
                       ("--checkpoint and --keep-best both name a.st", "checkpoint and keep_best both name a.st"),
                       ("--resume=a.st goes on", 'model.restore("a.st") goes on'), ("`dgc train --epochs 3`", "`dgc train --epochs 3`"),
                       ("  3 | x --rows 0:8", "  3 | x --rows 0:8"), ("--no-such 3", "--no-such 3")):
        check(dgc.options.in_python(said) == here, dgc.options.in_python(said))
    for name, here in (("fit", "model.train(data, epochs=N)"), ("get_weights", "model.variables"), ("summary", "model.variables")):
        refused(AttributeError, "a dgc.Model has no %s: " % name, getattr, m, name)
        refused(AttributeError, here, getattr, m, name)
    for name in ("optimizers", "layers", "Sequential", "losses"):
        refused(AttributeError, "dgc has no %s: " % name, getattr, dgc, name)
    refused(AttributeError, "a dgc.Model has no nonsense", getattr, m, "nonsense")
    check(not hasattr(m, "nonsense") and not hasattr(dgc, "nonsense") and not any(hasattr(dgc, w) for ws in dgc.words.MODULE for w in ws.split()),
          "what is here is said to be elsewhere")
    check(not any(hasattr(m, w) for ws in dgc.words.MODEL for w in ws.split()), "a Model has it")


def test_not_finite(folder):
    """What a step has left without numbers is saved where that is asked for, and the file stays good elsewhere."""
    m = model()
    m.train(data, epochs=1)
    m.save(folder / "good.safetensors")
    good = (folder / "good.safetensors").read_bytes()
    refused(dgc.MismatchError, "not a number", m.train, {"image": image * np.float32("nan"), "label": label}, epochs=2)
    refused(dgc.MismatchError, "no finite number", m.save, folder / "good.safetensors")
    check((folder / "good.safetensors").read_bytes() == good, "the file is another")
    m.set(allow_nan=True)
    m.save(folder / "odd.safetensors")
    m.restore(folder / "good.safetensors")
    m.set(allow_nan=False)
    m.save(folder / "again.safetensors")


def test_options(root):
    """Every option of the command line is one here, or is said to be none, with what to do; and what others call options."""
    own = re.search(r"own_options\[\] = \{(.*?)\n\};", (root / "tools" / "cli_options.c").read_text(), re.S)[1]
    names = re.findall(r'^    \{"([a-z-]+)",', own, re.M)
    check(len(names) > 20 and "resume" in names, names)
    said, page = 0, (root / "docs" / "python.md").read_text()
    for name in (n.replace("-", "_") for n in names):
        if name in ("emit", "checkpoint", "overwrite", "color"):
            continue  # the library has them, too
        said += 1
        refused(dgc.UsageError, "there is no option '%s': it is the command line's\nhelp: " % name, model, **{name: "x"})
        check("`%s`" % name in page, "docs/python.md does not say that there is no", name)
    check(said > 20, said)
    refused(dgc.UsageError, "help: write batch=N", model, batch_size=3)
    refused(dgc.UsageError, "help: write eval_data={", model().train, data, validation_data=data)
    refused(dgc.UsageError, "help: write rows=", model().train, data, validation_split=0.1)
    refused(dgc.UsageError, "did you mean 'eval_rows'", model().train, data, eval_row="0:3")
    refused(dgc.UsageError, "did you mean 'checkpoint_every'", model().train, data, checkpoint_evry=3)


def test_signals():
    """Signals that come all the time change no number; an exception in a handler ends the training."""
    large = random.normal(size=(4096, 8)).astype(np.float32)
    rows = {"image": large, "label": (large[:, 0] > 0).astype(np.int32)}
    quiet, disturbed, seen = model(set={"hidden": 256}), model(set={"hidden": 256}), []
    quiet.train(rows, epochs=20)
    before = signal.signal(signal.SIGALRM, lambda number, frame: seen.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    disturbed.train(rows, epochs=20)
    signal.setitimer(signal.ITIMER_REAL, 0)
    check(len(seen) > 1 and equal(weights(quiet), weights(disturbed)), "signals", len(seen))

    def interrupt(number, frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    refused(KeyboardInterrupt, "", quiet.train, rows, epochs=1000000)
    signal.signal(signal.SIGALRM, before)
    check(signal.pthread_sigmask(signal.SIG_BLOCK, []) == set(), "signals wait for ever")


def test_refusals(folder):
    refused(dgc.InputError, "<model>:1:", dgc.compile, "model m {")
    refused(dgc.InputError, "nowhere.dsl", dgc.load, folder / "nowhere.dsl")
    refused(dgc.UsageError, "did you mean 'batch'", dgc.compile, MODEL, batches=3)
    m = model()
    refused(ValueError, "a NUL character", m.save, str(folder / "nul\0zzz"))
    refused(ValueError, "a NUL character", dgc.load, "m.dsl\0zzz")
    check(not (folder / "nul").exists(), "a name that ends at NUL")
    refused(dgc.UsageError, "trace and checkpoint both name", model().train, {"image": image, "label": label}, checkpoint=folder / "two",
            trace=folder / "two")
    refused(dgc.InputError, "the array of image has 3", m.train, {"image": image[:3], "label": label})
    refused(dgc.UsageError, "did you mean 'image'", m.train, {"imag": image})
    refused(dgc.InputError, "row 0 of the array of label", m.train, {"image": image, "label": label + 3})
    refused(TypeError, "no rows of complex64", m.train, {"image": image * 1j})
    refused(TypeError, "an axis that counts its rows", m.train, {"image": np.float32(1)})
    refused(TypeError, "image, label", m.run, "train", {"image": image})
    for values in (image * 1j, image.astype(object), image.astype(str)):
        refused(TypeError, "no numbers that fit", m.predict, {"image": values})
    refused(TypeError, "an array with rows, not None", m.predict, {"image": None})
    refused(ValueError, "a row at least", m.predict, {"image": image}, batch=-1)
    refused(ValueError, "there are train, eval and predict", m.run, "trian", {"image": image})
    refused(ValueError, "is [4, 8], and this is [4, 3]", m.run, "predict", {"image": image[:4, :3]})
    refused(ValueError, "it lacks the axis of the rows", m.predict, {"image": image[0]})
    refused(TypeError, "arrays for image, and this is image, label", m.predict, {"image": image, "label": label})
    refused(TypeError, "arrays for image, and this is ndarray", m.predict, image)
    refused(TypeError, "without loss", m.run, "eval", {"image": image, "label": label * 1.5})
    refused(dgc.InputError, "label", m.run, "eval", {"image": image, "label": label + 3})
    refused(ValueError, "too large for that", m.run, "predict", {"image": image.astype("f8") * 1e300})
    refused(dgc.UsageError, "train", m.emit, "placed", "sleep")
    refused(KeyError, "w", lambda: m.variables["w"])
    refused(ValueError, "variable h.bias is [16]", m.variables.__setitem__, "h.bias", np.zeros(3))
    m.train(data, steps=1)  # none of that has left anything behind


def test_looks(root):
    m = dgc.load(root / "samples" / "linear.dsl")
    check("stage placed" in m.emit("placed"), "placed")
    check("&lt;" not in m.emit("graph") and "<pre" in m.emit("graph")._repr_html_(), "html")
    m = model()
    check(repr(m.inputs()) == "[image : f32[B, 8], label : i32[B]]", m.inputs())
    check([t.name for t in m.outputs("eval")] == ["loss", "accuracy"], m.outputs("eval"))
    check("h.kernel : f32[8, 16]" in repr(m.variables), m.variables)
    check("compute" in m.explain("h.matmul"), m.explain("h.matmul"))
    check(dgc.__version__[0].isdigit(), dgc.__version__)


def test_picture(folder):
    """What a notebook shows: a frame whose scripts run, answer clicks, and see nothing of the notebook."""
    m = model()
    frame = m._repr_html_()
    check(frame == m.emit("html")._repr_html_() and frame.startswith("<iframe sandbox='allow-scripts' "), frame[:200])
    check(str(m.emit("html")).startswith("<!"), "the text is the page")
    if not shutil.which("chromium"):
        print("chromium: not there, so no picture was looked at in a browser", file=sys.stderr)
        return
    # It tells by what it asks a server for, which also has the notebook: so nothing is waited for but that.
    tell = """<script>addEventListener('load', () => {
      let title = 'hidden'; try { title = parent.document.title } catch (e) {}
      show(view.graph.byName.get('h.matmul'));
      const heard = ['status', 'details'].map(id => document.getElementById(id).textContent);
      new Image().src = '%s/heard?' + encodeURIComponent([title, ...heard].join('|')) })</script>"""
    heard, cut = [], frame.rindex('"></iframe>')

    class Server(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path.startswith("/heard?"):
                heard.extend(urllib.parse.unquote(self.path.split("?", 1)[1]).split("|"))
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            script = html.escape(tell % ("http://127.0.0.1:%d" % server.server_port))
            self.wfile.write(("<title>notebook</title>" + frame[:cut] + script + frame[cut:]).encode())

        def log_message(self, *arguments):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Server) as server:
        browser = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--user-data-dir=%s" % (folder / "profile"), "http://127.0.0.1:%d" % server.server_port],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ, HOME=str(folder)), start_new_session=True)
        server.timeout, end = 1, time.monotonic() + 240
        while not heard and time.monotonic() < end:
            server.handle_request()
        os.killpg(browser.pid, signal.SIGKILL)
        browser.wait()
    check(len(heard) > 2 and heard[0] == "hidden" and re.search(r"\d+ nodes", heard[1]) and "f32[16,16]" in heard[2], heard)


root, folder = pathlib.Path(sys.argv[1]), pathlib.Path.cwd()
check(pathlib.Path(dgc.__file__).parent.parent == folder / "site", dgc.__file__)
test_line()
test_drawn()
test_sources(folder)
test_predictions(folder)
test_training(folder)
test_evaluating(folder)
test_refused_rows()
test_whole()
test_refused_options(root)
test_refused_files(folder)
test_words(folder)
test_not_finite(folder)
test_options(root)
test_signals()
test_refusals(folder)
test_looks(root)
test_picture(folder)
print("%d passed, 0 failed" % passed)
