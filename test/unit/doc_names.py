#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""That README.md and doc/ name only files, headings, functions, parameters and layers that are there; that man pages
name only options that their programs have, and CHANGELOG.md and a man page today's versions of formats."""

import os
import re
import sys

TOP = os.environ.get("srcdir", os.path.join(os.path.dirname(__file__), "..", ".."))
SOURCES = ("common", "pml", "btl", "coll/multilane", "coll/node", "osc/multilane", "include", "tools")
FOLDERS = SOURCES + ("doc", "test")
BUILT = {"multilane-plan", "multilane-top", "MPI_Send"}
# Where the options of a man page's program are, and those that a page names of mpirun and srun.
PROGRAMS = {"calibrate": "tools/calibrate/calibrate.c", "doctor": "tools/multilane-doctor",
            "plan": "tools/multilane_plan.c", "top": "tools/top/multilane_top.c"}
OF_LAUNCHERS = {"host", "hostfile", "map-by", "mca", "ntasks-per-node", "overlap"}
problems = []


def read(*name):
    with open(os.path.join(TOP, *name), encoding="utf-8") as file:
        return file.read()


def words_of_sources():
    """All words, and those that are texts of their own."""
    words, quoted = set(), set()
    for folder in SOURCES:
        for path, _, names in os.walk(os.path.join(TOP, folder)):
            for name in names:
                if name.endswith((".c", ".h")) or name == "local.mk":
                    text = read(os.path.relpath(path, TOP), name)
                    words.update(re.findall(r"\w+", text))
                    quoted.update(re.findall(r'"(\w+)"', text))
    return words, quoted


def is_path(name):
    """A file, a folder, or a program that a build makes of the file."""
    return any(os.path.exists(os.path.join(TOP, name + end)) for end in ("", ".c"))


def check_paths(document, text):
    """What looks like a path of the project, in any kind of quotation, and links."""
    for name in sorted(set(re.findall(r"[`( ]((?:%s)/[\w./-]*\w)" % "|".join(FOLDERS), text))):
        if not is_path(name):
            problems.append(f"{document} names {name}, which is not there")
    for name in sorted(set(re.findall(r"\]\(([^)#:]+)", text))):
        if not os.path.exists(os.path.join(TOP, os.path.dirname(document), name)):
            problems.append(f"{document} links to {name}, which is not there")


def anchors_of(document):
    """GitHub's names of the headings of a document."""
    titles = re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```$", "", read(document), flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w -]", "", re.sub(r"\]\([^)]*\)", "", title)).lower().replace(" ", "-") for title in titles}


def check_anchors(document, text):
    for name, anchor in sorted(set(re.findall(r"\]\(([^)#:]*\.md|)#([^)]+)\)", text))):
        target = os.path.join(os.path.dirname(document), name) if name else document
        if os.path.exists(os.path.join(TOP, target)) and anchor not in anchors_of(target):
            problems.append(f"{document} links to {name}#{anchor}, a heading that is not there")


def check_man_pages():
    for page, program in sorted(PROGRAMS.items()):
        document = f"doc/multilane-{page}.1"
        known = set(re.findall(r'\{"([a-z-]+)", OPTION_|^(?:-\w \| )?--([a-z-]+)\)', read(program), re.M))
        known = {name for names in known for name in names} | OF_LAUNCHERS
        named = set(re.findall(r"(?<![\w-])--([a-z][a-z-]*)", read(document).replace("\\-", "-")))
        problems.extend(f"{document} names --{name}, which {program} does not take" for name in sorted(named - known))


def check_versions():
    """A number that a document repeats."""
    for document, said, source, defined in (
            ("doc/multilane-plan.1", r"^\.B schema\n\((\d+)\)", "common/lane/lane_file.h", "LANE_FILE_SCHEMA"),
            ("CHANGELOG.md", r"The wire version is (\d+)", "pml/multilane/wire/wire.h", "WIRE_VERSION")):
        number = re.search(rf"\b{defined}\s*=?\s*(\d+)", read(source)).group(1)
        problems.extend(f"{document} says {other}, but {defined} is {number}"
                        for other in re.findall(said, read(document), re.M)[:1] if other != number)


def check_parameters(document, text, words, quoted):
    """Parameters and counters; a BTL's module has those that Open MPI registers as its fields."""
    for prefix, name in sorted(set(re.findall(r"\b(pml_multilane|btl_(?:shm|sock|verbs|cuda))_(\w+)",
                                              text))):
        if not {name, name.removeprefix("lane_")} & quoted and "btl_" + name not in words:
            problems.append(f"{document} names {prefix}_{name}, which no component registers")


def check_functions(document, text):
    """file:function, of the PML where the path has no folder of the top: the file defines it."""
    for name, function in sorted(set(re.findall(r"`([\w/]+\.[ch]):(\w+)`", text))):
        path = name if name.startswith(SOURCES) else "pml/multilane/" + name
        if not os.path.exists(os.path.join(TOP, path)):
            problems.append(f"{document} names {name}, which is not there")
        elif not re.search(rf"^\w[^;{{}}=]*\b{function}(?:\([^;{{}}]*)?\)\s*\{{", read(path), re.M):
            problems.append(f"{document}: {name} does not define {function}")


def check_architecture(words):
    document = "doc/architecture.md"
    text = read("doc", "architecture.md")
    names = set(re.findall(r"`(?:struct )?([\w./-]+)`", text))
    for name in sorted(names - words - BUILT):
        if not is_path(name) and not name.startswith("pml_multilane_"):
            problems.append(f"{document} names {name}, which is not there")
    if len(names) < 30:
        problems.append(f"{document} names only {len(names)} things: is it still what it was?")
    table = re.search(r"^component pml/multilane$(.*?)(?=^component |\Z)", read("test", "layers"),
                      re.S | re.M).group(1)
    layers = re.findall(r"^([a-z]+):", table, re.M)[::-1]
    picture = re.findall(r"^    \| ([a-z]+) +\|", text, re.M)
    if picture != layers:
        problems.append(f"{document} draws the layers {', '.join(picture)}; from the top, "
                        f"test/layers has {', '.join(layers)}")


def main():
    words, quoted = words_of_sources()
    documents = ["README.md"] + sorted("doc/" + name for name in os.listdir(os.path.join(TOP, "doc"))
                                       if name.endswith(".md"))
    for document in documents:
        # The patterns of files that end a row of the ledger: test/ledger.py holds them.
        text = re.sub(r"\| `[^|]*` \|$", "|", read(document), flags=re.M)
        check_paths(document, text)
        check_anchors(document, text)
        check_parameters(document, text, words, quoted)
        check_functions(document, text)
    check_architecture(words)
    check_man_pages()
    check_versions()
    if read("README.md").count("\n") > 150:
        problems.append("README.md has more than 150 lines: what belongs into a document of doc/?")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
