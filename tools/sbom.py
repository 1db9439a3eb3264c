#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes dgc.spdx.json, what dgc is made of, as SPDX 2.3: sbom.py dgc=VERSION [ROLE:NAME=VERSION]...

`meson dist` runs it (MESON_DIST_ROOT is where it writes) with what Meson has found. ROLE is what a part is for dgc:
linked, loaded (while it runs, if it is there) or build. A part without a version was not found, and is not in it. The date
and the name of the document are the commit's, so that one commit makes one text."""
import datetime
import json
import os
import subprocess
import sys

# What it is called elsewhere, its license, and who makes it; MPI is whichever library there is.
PARTS = {
    "LLVM": ("Apache-2.0 WITH LLVM-exception", "https://llvm.org", "pkg:generic/llvm@"),
    "oneDNN": ("Apache-2.0", "https://github.com/oneapi-src/oneDNN", "pkg:github/oneapi-src/oneDNN@v"),
    "zlib": ("Zlib", "https://zlib.net", "pkg:generic/zlib@"),
    "libpng": ("libpng-2.0", "http://www.libpng.org", "pkg:generic/libpng@"),
    "libjpeg-turbo": ("IJG AND BSD-3-Clause AND Zlib", "https://libjpeg-turbo.org", "pkg:generic/libjpeg-turbo@"),
    "MPI": ("NOASSERTION", "https://www.mpi-forum.org", None),
    "meson": ("Apache-2.0", "https://mesonbuild.com", "pkg:pypi/meson@"),
    "gcc": ("GPL-3.0-or-later WITH GCC-exception-3.1", "https://gcc.gnu.org", "pkg:generic/gcc@"),
    "clang": ("Apache-2.0 WITH LLVM-exception", "https://clang.llvm.org", "pkg:generic/clang@"),
    "flex": ("BSD-3-Clause", "https://github.com/westes/flex", "pkg:generic/flex@"),
    "bison": ("GPL-3.0-or-later WITH Bison-exception-2.2", "https://www.gnu.org/software/bison", "pkg:generic/bison@"),
}
ROLES = {"linked": "DYNAMIC_LINK", "loaded": "RUNTIME_DEPENDENCY_OF", "build": "BUILD_TOOL_OF"}


def commit(source, what):
    run = subprocess.run(["git", "-C", source, "log", "-1", "--format=" + what], capture_output=True, text=True)
    return run.stdout.strip() if run.returncode == 0 else ""


def package(name, version, license, home, purl):
    it = {"SPDXID": "SPDXRef-" + name, "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
          "filesAnalyzed": False, "homepage": home, "licenseConcluded": license, "licenseDeclared": license,
          "copyrightText": "NOASSERTION"}
    if not home:
        del it["homepage"]
    if purl:
        it["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                               "referenceLocator": purl + version}]
    return it


def relation(role, name):
    """A tool and what is loaded are of dgc; dgc links the rest."""
    if role == "linked":
        return {"spdxElementId": "SPDXRef-dgc", "relationshipType": ROLES[role], "relatedSpdxElement": "SPDXRef-" + name}
    return {"spdxElementId": "SPDXRef-" + name, "relationshipType": ROLES[role], "relatedSpdxElement": "SPDXRef-dgc"}


def document(version, parts, when, hash):
    packages = [package("dgc", version, "Apache-2.0", None, "pkg:generic/dgc@")]
    packages += [package(name, v, *PARTS[name]) for _, name, v in parts]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                  "relatedSpdxElement": "SPDXRef-dgc"}] + [relation(role, name) for role, name, _ in parts]
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "dgc-" + version,
            "documentNamespace": "https://spdx.org/spdxdocs/dgc-%s-%s" % (version, hash),
            "creationInfo": {"created": when, "creators": ["Tool: dgc-tools/sbom.py"]},
            "packages": packages, "relationships": relations}


def main(own, *others):
    source = os.environ.get("MESON_SOURCE_ROOT", os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    seconds = int(commit(source, "%ct") or os.environ.get("SOURCE_DATE_EPOCH", 0))
    when = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    parts = []
    for other in others:
        role, _, rest = other.partition(":")
        name, _, version = rest.partition("=")
        if version and version not in ("unknown", "undefined"):
            parts.append((role, name, version))
    text = json.dumps(document(own.partition("=")[2], parts, when, commit(source, "%H") or "without-git"), indent=1)
    with open(os.path.join(os.environ["MESON_DIST_ROOT"], "dgc.spdx.json"), "w") as f:
        f.write(text + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
