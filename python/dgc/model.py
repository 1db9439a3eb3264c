# SPDX-License-Identifier: Apache-2.0
"""A model: compiled, trained, evaluated, run, looked at."""
import collections.abc
import contextlib
import difflib
import html
import os
import shutil
import signal
import tempfile
import threading
import warnings
import weakref

import numpy as np

from .arrays import DTYPES, NAMES, Tensor, converted, description, rows_of
from .errors import Stopped, UsageError, check
from .library import ffi, lib, text
from .options import LISTS, TABLE, explained
from .words import MODEL, said

# All but those that a mistake of this thread's own causes.
WAITING = signal.valid_signals() - {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP}


class Progress:
    """How far a training is, as `struct dgc_progress` says it: epoch, step, loss, seconds, …"""

    def __init__(self, c):
        for field, kind in ffi.typeof("struct dgc_progress").fields:
            value = getattr(c, field)
            if kind.type.kind == "pointer":  # losses, metrics, validation, rates: by name
                value = {text(value[i].name): value[i].value for i in range(getattr(c, "n" + field))}
            setattr(self, field, value)

    def __repr__(self):
        return "epoch %d, step %d of %d, loss %.6g" % (self.epoch + 1, self.step, self.steps, self.loss)


class Source:
    """Rows that a function makes, for data that is no array: `read(first, count)` returns the rows from `first` to before
    `first + count`, which must be the same whenever they are asked for."""

    def __init__(self, shape, dtype, read):
        self.shape, self.dtype, self.read = tuple(shape), np.dtype(DTYPES.get(dtype, dtype)), read
        if self.dtype not in NAMES:
            raise TypeError("there are no rows of %s; there are %s" % (self.dtype, ", ".join(DTYPES)))


class Text(str):
    """A text of the compiler's; a notebook shows it as it is."""

    def _repr_html_(self):
        return "<pre style='line-height: 1.2; white-space: pre; overflow-x: auto'>%s</pre>" % html.escape(self)


class Picture(Text):
    """A graph as a page of HTML; a notebook shows it in a frame of its own, whose scripts see nothing of the notebook."""

    def _repr_html_(self):
        return ("<iframe sandbox='allow-scripts' style='width: 100%%; height: 640px; border: 1px solid #ccc' "
                "srcdoc=\"%s\"></iframe>" % html.escape(self))


class Variables(collections.abc.Mapping):
    """The model's variables by name: reading gives a copy, assigning replaces the value on all devices."""

    def __init__(self, model):
        self._model = model

    def _all(self):
        return {t.name: t for t in self._model._list(lib.dgc_variable)}

    def _named(self, name):
        all = self._all()
        if name not in all:
            near = difflib.get_close_matches(str(name), all, 1)
            raise KeyError("there is no variable %r%s" % (name, "; did you mean %r?" % near[0] if near else "; there are " + ", ".join(all)))
        return all[name]

    def __getitem__(self, name):
        t = self._named(name)
        out = np.empty(t.shape, DTYPES[t.dtype])
        self._model._call(lib.dgc_read, name.encode(), ffi.from_buffer(out), out.nbytes)
        return out

    def __setitem__(self, name, value):
        t = self._named(name)
        data = converted("variable " + name, value, DTYPES[t.dtype], t.shape)
        self._model._call(lib.dgc_write, name.encode(), ffi.from_buffer(data), data.nbytes)

    def __iter__(self):
        return iter(self._all())

    def __len__(self):
        return len(self._all())

    def __repr__(self):
        return "\n".join(map(repr, self._all().values()))


class Model:
    """See compile() and load(), which make one."""

    def __init__(self, path, source, options):
        self._lock = threading.RLock()
        self._session = ffi.gc(lib.dgc_create(), lib.dgc_destroy)
        if self._session == ffi.NULL:
            raise MemoryError("dgc: no memory for a session")
        self._kept = {}      # arrays and functions that the session reads, by option and input
        self._given = {}     # what they were made of, or the path of a file
        self._options = {}   # all values that each option was given, in their order, by its name
        self._raised = None  # in a function that the library has called
        self._tensors = {}   # inputs and outputs of entries, which only options change
        self._folder = None  # where predictions of what is no array go
        self.set(**options)
        if path is None:
            data = source.encode()
            self._call(lib.dgc_load_text, b"<model>", data, len(data))
        else:
            self._call(lib.dgc_load, os.fsencode(path))
        self.variables = Variables(self)

    def __getattr__(self, name):
        raise AttributeError(said(MODEL, "a dgc.Model", name))

    # --- calls ---

    def _call(self, function, *arguments):
        """Signals wait: the library's products keep numbers below the stack pointer, where a handler's frame would be."""
        if function != lib.dgc_load_text and any(isinstance(a, bytes) and 0 in a for a in arguments):
            raise ValueError("a name or value has a NUL character, where it would end")
        with self._lock:
            self._raised = None
            self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
            try:
                signal.pthread_sigmask(signal.SIG_BLOCK, WAITING)
                status = function(self._session, *arguments)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            try:
                check(self._session, status)
            finally:
                raised, self._raised = self._raised, None
                if raised:
                    raise raised
        return None

    def _list(self, function, *arguments):
        out, all = ffi.new("struct dgc_tensor *"), []
        with self._lock:
            while function(self._session, *arguments, len(all), out):
                all.append(Tensor(out))
        return all

    def _listed(self, function, entry):
        if (function, entry) not in self._tensors:
            self._tensors[function, entry] = self._list(function, entry.encode())
        return list(self._tensors[function, entry])

    def _text(self, function, *arguments):
        out = ffi.new("const char **")
        with self._lock:
            self._call(function, *arguments, out)
            return Text(text(out[0]))

    def _callback(self, type, function):
        """A function of the caller's for the library to call: what it raises comes out of the call that led there."""

        def keep(kind, error, trace):
            self._raised = self._raised or error

        return ffi.callback(type, function, error=False, onerror=keep)

    def set(self, **options):
        """Options of the command line by name, `-` being `_`: batch=128, devices="cpu:0-1", set={"hidden": 64}. data and
        eval_data may be a dict that has an array, a file or a Source for each input."""
        with self._trying():
            self._set(options)

    def unset(self, *names):
        """Takes options back: it is as if they had never been given."""
        for name in names:
            self._restore_option(name.replace("_", "-").encode(), [])

    def _set(self, options):
        self._tensors = {}
        for name, value in options.items():
            known = name.replace("_", "-") in TABLE
            if value is None and known:
                continue
            if isinstance(value, (list, tuple)) and not value and known:
                self.unset(name)
            if name in ("data", "eval_data") and isinstance(value, collections.abc.Mapping):
                with self._lock:
                    self._give(name.replace("_", "-").encode(), value, "train" if name == "data" else "eval")
                continue
            values = [value]
            if isinstance(value, dict):
                values = ["%s=%s" % (k, _word(v)) for k, v in value.items()]
            elif isinstance(value, (list, tuple)) and known:
                values = value
            for v in values:
                try:
                    self._set_option(name.replace("_", "-").encode(), _word(v).encode())
                except UsageError as error:
                    if "there is no option" not in str(error):
                        raise
                    raise UsageError(explained(name, str(error))) from None

    def _set_option(self, option, value):
        self._call(lib.dgc_set, option, value)
        self._options[option] = [*(self._options.get(option, ()) if option in LISTS else ()), value]

    def _restore_option(self, option, values):
        """These values are the option's, in the place of those that it has."""
        self._tensors = {}
        self._call(lib.dgc_unset, option)
        self._options.pop(option, None)
        for value in values:
            self._set_option(option, value)

    # --- data ---

    def _give(self, option, data, entry):
        """A dict is whole: what it leaves out is not taken from an earlier one."""
        if data is None:
            return
        if not isinstance(data, collections.abc.Mapping):
            raise TypeError("%s is a dict that has rows for each input, not %s" % (option.decode().replace("-", "_"), _said(data)))
        before = {name for kind, name in self._given if kind in (option, b"data")}
        missing = [t.name for t in self.inputs(entry) if t.name in before and t.name not in data]
        if missing:
            raise TypeError("%s has %s alone: it lacks %s, and rows of an earlier call do not take the place of those" % (
                option.decode().replace("-", "_"), ", ".join(map(str, data)) or "nothing", ", ".join(missing)))
        self._give_each(option, data)

    def _give_each(self, option, data):
        for name, value in data.items():
            if isinstance(value, (str, os.PathLike)):
                self._take(option, name)
                others = [v for v in self._options.get(option, ()) if not v.startswith(name.encode() + b"=")]
                self._restore_option(option, [*others, name.encode() + b"=" + os.fsencode(value)])
                self._given[option, name] = value
            elif isinstance(value, Source):
                self._give_source(option, name, value)
            else:
                array = rows_of(name, value)
                t, keep = description(name, NAMES[array.dtype], array.shape)
                self._call(lib.dgc_set_rows, option, t, ffi.from_buffer(array))
                self._kept[option, name] = array
                self._given[option, name] = value

    def _give_source(self, option, name, source):
        def read(user, first, count, out):
            rows = converted("rows of " + name, source.read(first, count), source.dtype,
                             (count,) + source.shape[1:])
            ffi.memmove(out, ffi.from_buffer(rows), rows.nbytes)
            return True

        function = self._callback("dgc_rows_fn", read)
        t, keep = description(name, NAMES[source.dtype], source.shape)
        self._call(lib.dgc_set_source, option, t, function, ffi.NULL)
        self._kept[option, name] = function
        self._given[option, name] = source

    def _take(self, option, name):
        t, keep = description(name, "f32", (1,))
        self._call(lib.dgc_set_rows, option, t, ffi.NULL)
        self._kept.pop((option, name), None)
        self._given.pop((option, name), None)

    @contextlib.contextmanager
    def _trying(self):
        """Options and rows that are given inside go again if a call there fails, and those before them come back; but for
        options that are settled for good by what has run since."""
        with self._lock:
            before, options = dict(self._given), dict(self._options)
            try:
                yield
            except Exception:
                for option in [o for o in {**options, **self._options} if options.get(o) != self._options.get(o)]:
                    with contextlib.suppress(UsageError):
                        self._restore_option(option, options.get(option, []))
                for (option, name), value in list(self._given.items()):
                    if before.get((option, name)) is not value:
                        self._take(option, name)
                for (option, name), value in before.items():
                    if self._given.get((option, name)) is not value:
                        self._give_each(option, {name: value})
                raise

    # --- the model's work ---

    def train(self, data=None, *, progress=None, **options):
        """Trains on `data`, which has for each input an array, a Source, or the path of a file (else on what the model
        declares), as the options say: epochs=3, steps=100, checkpoint="m.safetensors", …; with eval_data={…}, which is given
        as `data` is, and eval_every="1e", patience=3 or keep_best="m.safetensors" it evaluates as it goes.

        `progress` is called with a Progress a few times a second and at the end of each epoch; False stops the training.
        Returns the Progress at the end of each epoch, and that of a part of one at the end. Epochs and steps count from the
        model's first: a training that goes on has more of them."""
        epochs = []

        def listen(user, p):
            mask = self._mask
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)  # those that have waited come now
            try:
                now = Progress(p)
                if now.epoch_end or now.end:
                    epochs.append(now)
                return progress(now) is not False if progress else True
            finally:
                signal.pthread_sigmask(signal.SIG_BLOCK, WAITING)
                self._mask = mask

        with self._trying():
            self._set(options)
            self._give(b"data", data, "train")
            function = self._callback("dgc_progress_fn", listen)
            lib.dgc_on_progress(self._session, function, ffi.NULL)
            try:
                self._call(lib.dgc_train)
            except Stopped:
                pass
            finally:
                lib.dgc_on_progress(self._session, ffi.NULL, ffi.NULL)
            if not epochs and "nothing is left to do" in self.message:
                warnings.warn("nothing is left to do: epochs and steps count from the model's first", stacklevel=2)
        return epochs

    def evaluate(self, data=None, **options):
        """Loss and metrics over all rows of `data`, as train() takes it, by name."""
        metrics, count, rows = ffi.new("const struct dgc_metric **"), ffi.new("int *"), ffi.new("int64_t *")
        with self._trying():
            self._set(options)
            self._give(b"eval-data", data, "eval")
            self._call(lib.dgc_evaluate, metrics, count, rows)
            return {text(metrics[0][i].name): metrics[0][i].value for i in range(count[0])}

    def run(self, entry, batch, first=0):
        """Runs "train", "eval" or "predict" once on a batch: an array for each input. One training step, say. Returns
        what the entry gives, by name. `first`: the number of its first row among those of several batches, which eval
        and predict draw by."""
        with self._lock:
            inputs, outputs = self.inputs(entry), self.outputs(entry)
            rows = _rows(entry, inputs, batch)
            given = [converted("input " + t.name, batch[t.name], DTYPES[t.dtype], t.shape_of(rows)) for t in inputs]
            out = {t.name: np.empty(t.shape_of(rows), DTYPES[t.dtype]) for t in outputs}
            self._call(lib.dgc_run_from, entry.encode(), first, rows, _pointers(given), _pointers(out.values()))
        return out

    def predict(self, data, batch=256):
        """The predictions for all rows of `data`, as train() takes it, by name. Arrays go through the model `batch` rows at a
        time; where one is a file or a Source, as many as the model's batch has."""
        if hasattr(data, "values") and any(isinstance(v, (str, os.PathLike, Source)) for v in data.values()):
            return self._predict_rows(data)
        if batch < 1:
            raise ValueError("batch=%r: a batch has a row at least" % batch)
        with self._lock:
            inputs = self.inputs("predict")
            rows = _rows("predict", inputs, data)
            arrays = {t.name: np.asarray(data[t.name]) for t in inputs}
            each = {t.name: -t.shape[0] if t.shape and t.shape[0] < 0 else 1 for t in inputs}
            parts = [self.run("predict", {name: a[i * each[name]:(i + batch) * each[name]] for name, a in arrays.items()}, i)
                     for i in range(0, rows, batch)]
        empty = {t.name: np.empty(t.shape_of(0), DTYPES[t.dtype]) for t in self.outputs("predict")}
        return {name: np.concatenate([e, *(p[name] for p in parts)]) for name, e in empty.items()}

    def _predict_rows(self, data):
        rows = ffi.new("int64_t *")
        with self._lock:
            outputs = self.outputs("predict")
            made = self._folder is None
            if made:
                self._folder = tempfile.mkdtemp(prefix="dgc-")
                weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
            paths = [os.path.join(self._folder, "%d.npy" % i) for i in range(len(outputs))]
            for t, path in zip(outputs if made else [], paths):
                self.set(output={t.name: path})
            with self._trying():
                self._give(b"eval-data", data, "predict")
                self._call(lib.dgc_predict, rows)
            return {t.name: np.load(path) for t, path in zip(outputs, paths)}

    def save(self, path):
        """Writes variables, the optimizer's state and the position in the data as safetensors."""
        self._call(lib.dgc_save, os.fsencode(path))

    def restore(self, path):
        """Reads what save() or `dgc train --checkpoint` wrote, or the variables alone, as other programs write them."""
        self._call(lib.dgc_restore, os.fsencode(path))

    # --- looking at it ---

    def inputs(self, entry="train"):
        return self._listed(lib.dgc_input, entry)

    def outputs(self, entry="train"):
        return self._listed(lib.dgc_output, entry)

    def emit(self, stage="placed", entry=None):
        """What the compiler makes of an entry ("train", "eval", "predict"; None: the first there is) at a stage, as text:
        graph, grad, replicated, placed, fused, plan, memory, traffic, llvm, stablehlo, dot, json, …; html is a Picture."""
        made = self._text(lib.dgc_emit, entry.encode() if entry else ffi.NULL, stage.encode())
        return Picture(made) if stage == "html" else made

    def __repr__(self):
        entry = next((e for e in ("predict", "train", "eval") if self.outputs(e)), "train")
        return "<dgc.Model: %s of (%s) gives (%s)>" % (entry, ", ".join(map(repr, self.inputs(entry))),
                                                      ", ".join(map(repr, self.outputs(entry))))

    def _repr_html_(self):
        return self.emit("html")._repr_html_()

    def explain(self, node, entry=None):
        """Why a node of the placed graph is where it is."""
        return self._text(lib.dgc_explain, entry.encode() if entry else ffi.NULL, node.encode(), False)

    @property
    def message(self):
        """Errors, warnings and notes of the last call."""
        return Text(text(lib.dgc_message(self._session)) or "")


def _word(value):
    return str(value).lower() if isinstance(value, bool) else os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _said(value):
    return "%s of %s" % (type(value).__name__, ", ".join(type(v).__name__ for v in value)) if isinstance(value, (tuple, list)) else type(value).__name__


def _pointers(arrays):
    return [ffi.cast("void *", ffi.from_buffer(a)) for a in arrays] or ffi.NULL


def _rows(entry, inputs, batch):
    """How many rows a batch has, which must name each of the inputs."""
    if entry not in ("train", "eval", "predict"):
        raise ValueError("there is no entry %r; there are train, eval and predict" % (entry,))
    wanted = [t.name for t in inputs]
    if not hasattr(batch, "keys") or set(batch) != set(wanted):
        given = ", ".join(map(str, batch)) if hasattr(batch, "keys") else type(batch).__name__
        raise TypeError("%s wants a dict with arrays for %s, and this is %s" % (
            entry, ", ".join(wanted) or "no input", given or "empty"))
    for t in inputs:
        if t.shape and t.shape[0] < 0:
            if not hasattr(batch[t.name], "__len__"):
                raise TypeError("input %s is an array with rows, not %r" % (t.name, batch[t.name]))
            return len(batch[t.name]) // -t.shape[0]
    return 1
