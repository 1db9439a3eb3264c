# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel of the package dgc, as PEP 517 asks for it: Meson builds libdgc, which goes into the package.

  pip install ./python                                     builds libdgc in a folder of its own
  pip install ./python --config-settings build=FOLDER    takes it from a build folder that is there

It needs what the build of dgc needs (tools/deps.sh build) and nothing from the network. The wheel is for this kind of
machine and this system only: it loads the LLVM and oneDNN that libdgc was built with.
"""
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent.parent
ROOT = HERE.parent
# What a library built here has to bring: itself, and what it loads where a launcher has started several processes.
LIBRARIES = ["libdgc.so.0", "dgc-mpi.so", "dgc-mpi-abi.so"]
# Files of one content have one time, so that two builds of one source are one wheel.
TIME = (1980, 1, 1, 0, 0, 0)


def version():
    return re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text()).group(1)


def name():
    return "dgc-" + version()


def tag():
    return "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())


def metadata():
    project = (HERE / "pyproject.toml").read_text()
    value = lambda key: re.search(r'^%s = "(.+)"$' % key, project, re.M).group(1)
    needs = re.findall(r'"([^"]+)"', re.search(r"^dependencies = \[(.*)\]$", project, re.M).group(1))
    return "".join(line + "\n" for line in [
        "Metadata-Version: 2.1", "Name: dgc", "Version: " + version(), "Summary: " + value("description"),
        "License: Apache-2.0", "Requires-Python: " + value("requires-python")] + ["Requires-Dist: " + n for n in needs])


def information():
    """The files of the folder that says what the package is."""
    return {"METADATA": metadata().encode(),
            "WHEEL": ("Wheel-Version: 1.0\nGenerator: dgc\nRoot-Is-Purelib: false\nTag: %s\n" % tag()).encode()}


def built(folder):
    """Configures and builds the library in `folder`."""
    if not (folder / "build.ninja").exists():
        subprocess.run(["meson", "setup", str(folder), str(ROOT), "--buildtype=release", "-Db_ndebug=true",
                        "-Dtests=false"], check=True, stdout=sys.stderr)
    subprocess.run(["ninja", "-C", str(folder), "all"], check=True, stdout=sys.stderr)
    return folder


def package(folder):
    """What the package has: path in the wheel and content."""
    files = {"dgc/" + p.name: p.read_bytes() for p in sorted((HERE / "dgc").glob("*.py"))}
    files["dgc/dgc.h"] = (ROOT / "include" / "dgc.h").read_bytes()
    for library in LIBRARIES:
        if (folder / library).exists():
            files["dgc/" + library] = (folder / library).read_bytes()
    if "dgc/libdgc.so.0" not in files:
        raise SystemExit("dgc: there is no libdgc.so.0 in %s: build it first (ninja -C %s)" % (folder, folder))
    return files


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def write_wheel(path, files):
    record = name() + ".dist-info/RECORD"
    lines = ["%s,%s,%d\n" % (f, digest(data), len(data)) for f, data in files.items()] + [record + ",,\n"]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for f, data in list(files.items()) + [(record, "".join(lines).encode())]:
            entry = zipfile.ZipInfo(f, TIME)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)


# --- what PEP 517 calls ---


def get_requires_for_build_wheel(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    folder = pathlib.Path(metadata_directory) / (name() + ".dist-info")
    folder.mkdir()
    for file, data in information().items():
        (folder / file).write_bytes(data)
    return folder.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    given = (config_settings or {}).get("build")
    with tempfile.TemporaryDirectory() as temporary:
        files = package(pathlib.Path(os.path.abspath(given)) if given else built(pathlib.Path(temporary) / "build"))
    files.update({"%s.dist-info/%s" % (name(), f): data for f, data in information().items()})
    wheel = "%s-%s.whl" % (name(), tag())
    write_wheel(pathlib.Path(wheel_directory) / wheel, files)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("dgc: the source archive of the whole project is made by `meson dist`")
