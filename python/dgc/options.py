# SPDX-License-Identifier: Apache-2.0
"""Options that a session has not: those that are the command line's alone, and what other libraries call things."""
import re

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
