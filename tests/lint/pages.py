#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages lead somewhere: pages.py SOURCE. Each link of a page is to a file, or a heading, that is there; docs/README.md names each
page of docs/, and each picture there is in one of them."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
pages = [*root.glob("*.md"), *(root / "docs").glob("*.md"), root / "tests/README.md"]
wrong, linked = [], {}
for page in pages:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, heading = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        linked.setdefault(page, set()).add(file)
        there = file.exists()
        if there and heading:
            titles = re.findall(r"^#+ (.*)$", file.read_text(), re.M)
            there = heading in [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
        if not there:
            wrong.append("%s: there is no %s" % (page.relative_to(root), target))
for page in (root / "docs").glob("*.md"):
    if page.name != "README.md" and page.resolve() not in linked[root / "docs/README.md"]:
        wrong.append("docs/README.md does not name " + page.name)
for picture in (root / "docs/pictures").glob("*"):
    if not any(picture.resolve() in files for files in linked.values()):
        wrong.append("docs/pictures/%s is on no page" % picture.name)
print("\n".join(wrong))
sys.exit(1 if wrong or len(pages) < 15 else 0)
