#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A header with a hash of files: stamp.py HEADER NAME FILE..."""
import hashlib
import sys

digest = hashlib.sha256()
for path in sys.argv[3:]:
    with open(path, "rb") as f:
        digest.update(hashlib.sha256(f.read()).digest())
with open(sys.argv[1], "w") as f:
    f.write('#define %s "%s"\n' % (sys.argv[2], digest.hexdigest()))
