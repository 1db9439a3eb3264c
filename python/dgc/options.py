# SPDX-License-Identifier: Apache-2.0
"""Options as Python writes them; those that a session has not: the command line's alone, and what other libraries call things."""
import re

from .library import ffi, lib, text

# Options that have all values that they are given, not the last one.
LISTS = {b"set", b"data", b"allow-path", b"eval-data", b"init-from", b"output"}

# What the tool does itself, and how it is done here.
OWN = {
    "log": "progress(p) is given what a line of it says",
    "log_dir": "progress(p) is given what such a file says, and model.variables what its histograms are made of",
    "receipt": "`dgc train` writes receipts",
    "resume": "model.restore(path), and then model.train(…) goes on",
    "json": "results and progress are Python's own values",
    "quiet": "nothing is printed: progress(p) tells how far it is",
    "entry": "it is an argument of model.run, model.emit and model.explain",
    "file": "model.emit(stage) returns the text",
    "help": "help(dgc.Model), or docs/python.md",
}
TOOL = ("passes list_passes dump_dir processes hosts restarts min_tasks jobs seconds filter define update junit markdown").split()

OTHERS = {
    "batch_size batchsize bs": "batch=N",
    "num_epochs max_epochs n_epochs nb_epoch": "epochs=N",
    "num_steps max_steps max_iters num_iters iterations": "steps=N",
    "lr learning_rate": 'set={"rate": X}, if the model has a parameter `rate`',
    "validation_data val_data test_data eval_set": 'eval_data={"x": x, …}',
    "validation_split val_split": 'rows="0:8000", eval_rows="8000:10000"',
    "validation_freq": 'eval_every="1e"',
    "early_stopping": "patience=N",
    "save_best": "keep_best=path",
    "callbacks callback verbose": "progress=function, which is called with a Progress",
    "shuffle": "nothing: rows are shuffled in each epoch, and no_shuffle=True keeps their order",
    "device": 'devices="cpu:0-1", or devices="gpu:0"',
    "gpus num_gpus": 'devices="gpu", or devices="gpu:0-3"',
    "workers num_workers": "threads=N",
    "weights load_weights pretrained": "init_from=path, or after it is compiled model.restore(path)",
    "optimizer": "the optimizer in the model: `train loss with adam(1e-3)`",
    "loss metrics": "losses and metrics in the model: `train mean(loss) with adam(1e-3)`, `metric accuracy = …`",
    "class_weight sample_weight": "weights in the model: `train weighted_mean(loss, weights) with adam(1e-3)`",
    "dtype precision": 'types in the model, or set={"precision": "bf16"}, if it has a parameter `precision`',
}


def _table():
    """By name whether an option takes a value, and the words that it may be."""
    o, all = ffi.new("struct dgc_option *"), {}
    o.size = ffi.sizeof("struct dgc_option")
    while lib.dgc_option(len(all), o):
        all[text(o.name)] = bool(o.value), (text(o.choices) or "").split()
    return all


TABLE = _table()


def _is_value(word, words):
    """Whether what follows an option in a sentence is its value: FILE, N, 0:100, val.loss:min, or a word that it may be."""
    return bool(re.fullmatch(r"[A-Z][A-Z0-9]*", word) or re.search(r"[0-9:=/]|\w\.\w", word) or word in words)


def _literal(value):
    return value if re.fullmatch(r"[A-Z][A-Z0-9]*|[0-9]+(\.[0-9]+)?(e-?[0-9]+)?", value) else '"%s"' % value


def _written(found):
    name, gap, word = found["name"], found["gap"] or "", found["word"] or ""
    command = re.search(r"\b(dgc [a-z]+|mpirun|srun)\b[^;`]*$", found.string[:found.start()])
    if command:
        return found[0]
    if name == "resume":
        given = gap == "=" and word
        return "model.restore(%s)" % (_literal(word) if given else "path") + ("" if given else gap + word)
    if name not in TABLE:
        return found[0]
    if name == "emit" and gap == " ":
        return 'model.emit("%s")' % word
    takes, words = TABLE[name]
    here = name.replace("-", "_")
    if not takes:
        return here + "=True" + gap + word
    value = word.strip('"')
    if not _is_value(value, words):
        return here + gap + word
    key, equals, rest = value.partition("=")
    if equals and name.encode() in LISTS:
        return '%s={"%s": %s}' % (here, key, _literal(rest))
    return "%s=%s" % (here, _literal(value))


def in_python(message):
    """A message of the library's, whose options are written as on the command line: as they are written here. Lines of the
    model that it shows stay."""
    lines = message.split("\n")
    for i, line in enumerate(lines):
        if re.match(r" *[0-9]* \| ", line):
            continue
        line = re.sub(r'--(?P<name>[a-z][a-z-]*[a-z])(?:(?P<gap>[ =])(?P<word>"[^"]*"|[^\s,;()`]*[^\s,;:.()`]))?', _written, line)
        lines[i] = re.sub(r"^((?:error|warning): )([a-z-]+)(?=: )",
                          lambda found: found[1] + (found[2].replace("-", "_") if found[2] in TABLE else found[2]), line)
    return "\n".join(lines)


def explained(name, message):
    """What is said of an option that there is not: with options as Python writes them."""
    message = re.sub(r"'[a-z0-9-]+'", lambda found: found[0].replace("-", "_"), message)
    first = message.split("\n")[0]
    if name in OWN:
        return "%s: it is the command line's\nhelp: %s" % (first, OWN[name])
    if name in TOOL:
        return "%s: it is the command line's\nhelp: dgc(1) says what it is for" % first
    here = next((here for words, here in OTHERS.items() if name.lower() in words.split()), None)
    return "%s\nhelp: write %s" % (first, here) if here else message
