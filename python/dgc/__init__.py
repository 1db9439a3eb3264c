# SPDX-License-Identifier: Apache-2.0
"""dgc: compile a model, train it, evaluate it, predict with it.

    import dgc
    model = dgc.load("digits.dsl", devices="cpu:0-1", strategy="mirrored")
    model.train({"image": images, "label": labels}, epochs=3)
    print(model.evaluate({"image": test_images, "label": test_labels}))
    print(model.emit("placed"))
"""
from .errors import DeviceError, Error, InputError, MismatchError, Stopped, UsageError
from .library import lib as _lib, text as _text
from .model import Model, Picture, Progress, Source, Tensor, Text, Variables
from .words import MODULE as _MODULE, said as _said

__version__ = _text(_lib.dgc_version())
__all__ = ["compile", "load", "Model", "Picture", "Progress", "Source", "Tensor", "Text", "Variables", "Error", "InputError",
           "UsageError", "DeviceError", "MismatchError", "Stopped"]


def compile(source, **options):
    """A Model of the text `source`. Options are those of the command line, `-` being `_`: batch=128, devices="cpu:0-1",
    strategy="mirrored", seed=7, set={"hidden": 64} for parameters of the model, …"""
    return Model(None, source, options)


def load(path, **options):
    """A Model of the file at `path`; it may read files of that file's folder and below. Options as in compile()."""
    return Model(path, None, options)


def __getattr__(name):
    raise AttributeError(_said(_MODULE, "dgc", name))
