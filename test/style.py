#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the layout of every C file and the rules of the project that a program can check."""

import argparse
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CODE = (".c", ".h", ".cu", ".cuh")
SCRIPT = (".py", ".sh", ".ac", ".am", ".mk")
# Files whose format leaves no room for a comment in the first line.
NO_SPDX = {"LICENSE", "README.md", "MANIFEST"}
# In two parts, or REUSE's own check would take it for this file's license.
SPDX_LINE = "SPDX-License-" "Identifier: BSD-3-Clause"
# A constant on the left of a comparison: NULL == x, 0 < x, OPAL_SUCCESS != f(). Two constants, as
# assertions compare, are fine.
YODA = re.compile(r"(?:[(!?:,;=]|&&|\|\||\breturn)\s*-?(?:NULL|\d[\w.]*|'(?:\\.|[^'\\])+'|"
                  r"U?INT(?:32|64)_C\(\w+\)|[A-Z][A-Z0-9_]{2,})\s*(?:[=!]=|[<>]=?(?![<>]))\s(?![A-Z\d])")
YODA_ALLOWED = ("test/",)
# Compilers' atomics, where C11 has its own.
BUILTIN_ATOMIC = re.compile(r"\b__(?:atomic|sync)_\w+\s*\(")
BUILTIN_ATOMIC_ALLOWED = (
    "common/compat/pml.h",  # a member of Open MPI's struct, which is not _Atomic
    "test/")
# Words that leave open who is meant. A reader wants "no peer", "the caller". The user `nobody` is one.
RIDDLE = re.compile(r"\b(?:nobody|whoever|somebody|whomever|everybody)\b", re.I)
RIDDLE_ALLOWED = ("test/style.py",)
COMMENT_OR_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
VERSION_TEST = re.compile(r"^\s*#\s*(el)?if.*(OMPI|OPAL|COMPAT)_(MAJOR|MINOR|RELEASE|SERIES)")


def files():
    """Every file of the project: git's list, or the tarball's, which may lie in another checkout."""
    if os.path.exists(os.path.join(TOP, ".git")):
        listed = subprocess.run(["git", "-C", TOP, "-c", "safe.directory=*", "ls-files"],
                                capture_output=True, text=True, check=True).stdout.split("\n")
    else:
        with open(os.path.join(TOP, "MANIFEST"), encoding="utf-8") as manifest:
            listed = manifest.read().split("\n")
    return [name for name in listed if name and os.path.isfile(os.path.join(TOP, name))]


def read(name):
    with open(os.path.join(TOP, name), encoding="utf-8", errors="replace") as file:
        return file.read()


def is_script(name, text):
    return name.endswith(SCRIPT) or text.startswith("#!")


def without_comments(text):
    """The code alone, in as many lines."""
    return COMMENT_OR_TEXT.sub(lambda found: '""' + "\n" * found.group().count("\n"), text)


def dialect(name, text):
    """Where C is written in another way than ours, as (line, sentence)."""
    code = without_comments(text)
    for pattern, allowed, sentence in (
            (YODA, YODA_ALLOWED, "a comparison with the constant on its left"),
            (BUILTIN_ATOMIC, BUILTIN_ATOMIC_ALLOWED, "a builtin of the compiler where C11 has "
                                                     "<stdatomic.h>")):
        if not name.startswith(allowed):
            for found in pattern.finditer(code):
                yield code.count("\n", 0, found.end() - 1) + 1, sentence


def problems(name, text):
    """What is wrong with one file, as (line, sentence)."""
    lines = text.split("\n")
    code = name.endswith(CODE)
    if (code or is_script(name, text)) and os.path.basename(name) not in NO_SPDX:
        head = lines[1:2] if text.startswith("#!") else lines[:1]
        if not head or SPDX_LINE not in head[0]:
            yield 1, "the first line is not the SPDX line"
    # In a comment of its own, or in the one that the SPDX line begins.
    if code and not re.match(r"(/\*[^*]*(\*/\s*/\*|\n \*)|//.*\n//)\s*\w", text):
        yield 2, "no comment that says what the file is for after the SPDX line"
    if code:
        yield from dialect(name, text)
    # A test may ask what the MPI it is compiled with can do; the product asks only common/compat.
    compat = name.startswith(("common/compat/", "include/compat/", "test/"))
    for number, line in enumerate(lines, 1):
        if code and "\t" in line:
            yield number, "a tab"
        if name not in RIDDLE_ALLOWED and RIDDLE.search(line):
            yield number, "a word that leaves open who is meant"
        if line.endswith((" ", "\t")) and not name.endswith(".md"):
            yield number, "blanks at the end of the line"
        if code and not compat and VERSION_TEST.match(line):
            yield number, "an #if on a version outside common/compat"
        if code and re.match(r'\s*#\s*include\s+"(\.\./)*pml/', line) \
                and name.startswith(("btl/", "common/")):
            yield number, "a BTL or common code includes a header of the PML"
        if code and re.match(r'\s*#\s*include\s+"(\.\./)*btl/', line) \
                and name.startswith(("pml/", "common/")):
            yield number, "the PML or common code includes a header of a BTL"
    if text and not text.endswith("\n"):
        yield len(lines), "no newline at the end of the file"


def rules(names):
    bad = 0
    for name in names:
        for line, sentence in problems(name, read(name)):
            print(f"{name}:{line}: {sentence}")
            bad += 1
        if name.endswith(".py"):
            try:
                compile(read(name), name, "exec")
            except SyntaxError as error:
                print(f"{name}:{error.lineno}: {error.msg}")
                bad += 1
        elif read(name).startswith("#!/usr/bin/env bash") or name.endswith(".sh"):
            done = subprocess.run(["bash", "-n", os.path.join(TOP, name)], capture_output=True,
                                  text=True, check=False)
            if done.returncode:
                print(done.stderr, end="")
                bad += 1
    return bad


def layout(names, tool):
    if not tool:
        print("make style needs clang-format (Debian's package of that name); configure found none.")
        return 1
    wanted = [name for name in names if name.endswith(CODE)]
    done = subprocess.run([tool, "--dry-run", "-Werror", *wanted], cwd=TOP, check=False)
    return done.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rules", action="store_true", help="the project's rules")
    parser.add_argument("--format", metavar="TOOL", help="the layout, by this clang-format")
    options = parser.parse_args()
    names = files()
    bad = rules(names) if options.rules else 0
    if options.format is not None:
        bad += layout(names, options.format)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
