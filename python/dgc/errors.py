# SPDX-License-Identifier: Apache-2.0
"""What a call of the library may end with, as exceptions."""
import warnings

from .library import lib, text
from .options import in_python


class Error(Exception):
    """A call failed; the text is what `dgc` would print, with file, line and what to do, options as Python writes them."""


class InputError(Error):
    """The model, the data or a file is wrong."""


class UsageError(Error):
    """The call or an option is wrong."""


class DeviceError(Error):
    """A device, memory or the system failed."""


class MismatchError(Error):
    """Two things that should fit do not: a checkpoint and a model; or a loss is no number."""


class Stopped(Error):
    """The call was asked to end."""


_classes = {lib.DGC_INPUT: InputError, lib.DGC_USAGE: UsageError, lib.DGC_RUNTIME: DeviceError,
            lib.DGC_MISMATCH: MismatchError, lib.DGC_STOPPED: Stopped}


def check(session, status):
    """Raises what the status stands for; what a call that went well has to say is a warning."""
    message = in_python((text(lib.dgc_message(session)) or "").rstrip("\n"))
    if status != lib.DGC_OK:
        raise _classes.get(status, Error)(message)
    if "warning: " in message:
        warnings.warn(message, stacklevel=4)
