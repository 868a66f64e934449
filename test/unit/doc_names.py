#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""That doc/way-of-a-message.md names only files and functions that are there."""

import os
import re
import sys

TOP = os.environ.get("srcdir", os.path.join(os.path.dirname(__file__), "..", ".."))
FOLDERS = ("common", "pml", "btl", "include", "tools")


def sources():
    for folder in FOLDERS:
        for path, _, names in os.walk(os.path.join(TOP, folder)):
            for name in names:
                if name.endswith((".c", ".h")) or name == "local.mk":
                    yield os.path.join(path, name)


def main():
    with open(os.path.join(TOP, "doc", "way-of-a-message.md"), encoding="utf-8") as file:
        names = set(re.findall(r"`(?:struct )?([\w./-]+)`", file.read()))
    words = set()
    for path in sources():
        with open(path, encoding="utf-8") as file:
            words.update(re.findall(r"\w+", file.read()))
    programs = {"multilane-plan", "MPI_Send", "receive"}
    missing = [name for name in sorted(names)
               if name not in words and name not in programs
               and not ("/" in name and os.path.exists(os.path.join(TOP, name)))]
    for name in missing:
        print(f"doc/way-of-a-message.md names {name}, which is not there")
    if len(names) < 30:
        sys.exit(f"only {len(names)} names were found: is the document still the one it was?")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
