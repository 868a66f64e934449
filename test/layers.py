#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds the source against test/layers: a file uses what lies in its layer or below it, and no files
use each other in a circle. And each function of the product is called by the product, not by tests alone,
and has a name of its own for linker and debugger.

A file uses another one if it includes it, or names a function that the other one defines. NAME.c and
NAME.h are one file here.

    test/layers.py           says what is wrong, and ends with 1
    test/layers.py --write   puts what is wrong today into the table, as "not yet"
"""

import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = os.path.join(TOP, "test", "layers")


# --- the table --------------------------------------------------------------

class Component:
    def __init__(self, folder):
        self.folder = folder
        self.layers = []  # (name, [file or folder/])
        self.not_yet = []  # (from, to)

    def layer_of(self, name):
        for height, (_, files) in enumerate(self.layers):
            if name in files or any(f.endswith("/") and name.startswith(f) for f in files):
                return height
        return None


def table_read():
    components = []
    with open(TABLE, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.split("#")[0].strip()
            if not line:
                continue
            if line.startswith("component "):
                components.append(Component(line.split()[1]))
            elif line.startswith("not yet:"):
                components[-1].not_yet.append(tuple(line[len("not yet:"):].split(" -> ")))
                components[-1].not_yet[-1] = tuple(n.strip() for n in components[-1].not_yet[-1])
            elif ":" in line:
                name, files = line.split(":")
                components[-1].layers.append((name, files.split()))
            else:
                sys.exit(f"test/layers:{number}: \"{line}\" is neither a layer nor a component")
    return components


# --- the source -------------------------------------------------------------

def code_of(text):
    """Without comments, texts and lines of the preprocessor."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r'"(\\.|[^"\\\n])*"', '""', text)
    return re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", text, flags=re.M)


def bodies(code):
    """What stands before each block at the outermost level."""
    head, depth = "", 0
    for char in code:
        if char == "{":
            if depth == 0:
                yield head
            depth += 1
        elif char == "}":
            depth -= 1
            head = ""
        elif depth == 0:
            head = "" if char == ";" else head + char


def functions_of(code):
    """The functions that others can call."""
    for head in bodies(code):
        head = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", head)
        found = re.search(r"([A-Za-z_]\w*)\s*\(", head)
        if found and found.group(1) != "main" and "=" not in head and "static" not in head.split():
            yield found.group(1)


def names_in(path, code):
    """What it may call: of a header the prototypes are no calls."""
    if path.endswith(".h"):
        code = re.sub(r"[^{};]*\([^{};]*\)\s*;", ";", code) if "{" not in code else \
            re.sub(r"^[^{};\n][^{};]*\([^{};]*\)\s*;", "", code, flags=re.M)
    return set(re.findall(r"\b[a-z_]\w+\b", code))


def unit(path):
    return re.sub(r"\.[ch]$", "", path)


def uses_of(component):
    """{(from, to): why}"""
    folder = os.path.join(TOP, component.folder)
    texts = {}
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith((".c", ".h")):
                path = os.path.relpath(os.path.join(place, name), folder)
                with open(os.path.join(folder, path), encoding="utf-8") as file:
                    texts[path] = file.read()
    codes = {path: code_of(text) for path, text in texts.items()}
    defined = {}
    for path, code in codes.items():
        if path.endswith(".c"):
            defined.update((name, unit(path)) for name in functions_of(code))
    uses = {}
    for path, text in texts.items():
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, flags=re.M):
            near = os.path.normpath(os.path.join(os.path.dirname(path), name))
            far = os.path.relpath(name, component.folder)
            for other in (near, far, name):
                if other in texts and unit(other) != unit(path):
                    uses.setdefault((unit(path), unit(other)), f"includes {other}")
        for name in names_in(path, codes[path]):
            if name in defined and defined[name] != unit(path):
                uses.setdefault((unit(path), defined[name]), f"uses {name}")
    return sorted({unit(path) for path in texts}), uses


# --- circles ----------------------------------------------------------------

def circles(nodes, uses):
    """The groups of files each of which uses each other one, by detours."""
    after = {node: [] for node in nodes}
    for start, end in uses:
        after[start].append(end)
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in after[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = []
            while not group or group[-1] != node:
                group.append(stack.pop())
            if len(group) > 1:
                found.append(sorted(group))

    for node in nodes:
        if node not in index:
            visit(node)
    return found


# --- functions without a caller, or of one name -----------------------------

def wrong_functions(folders):
    """What is wrong, as sentences: no file of these folders names it but to define or declare it."""
    defined, named = {}, {}
    for folder in folders:
        for place, _, names in os.walk(os.path.join(TOP, folder)):
            for path in [os.path.join(place, name) for name in names if name.endswith((".c", ".h"))]:
                with open(path, encoding="utf-8") as file:
                    text = file.read()
                code = code_of(text)
                if path.endswith(".c"):
                    for name in filter(str.islower, functions_of(code)):
                        defined.setdefault(name, []).append(path)
                # Macros, in lines of the preprocessor, call as well.
                macros = " ".join(re.findall(r"^[ \t]*#[ \t]*define(?:.*\\\n)*.*$", text, flags=re.M))
                for name in re.findall(r"\b[a-z_]\w+\b", code + macros):
                    named.setdefault(name, []).append(path)
    for name, (path, *others) in sorted(defined.items()):
        for other in set(others) - {path}:
            yield f"{name} is defined in {os.path.relpath(path, TOP)} and {os.path.relpath(other, TOP)}"
        if named[name].count(path) == 1 and all(
                other == path or other.endswith(".h") and is_only_declared(name, other)
                for other in named[name]):
            yield f"{os.path.relpath(path, TOP)}: no product code calls {name}"


def is_only_declared(name, path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return len(re.findall(rf"\b{name}\b", re.sub(r"/\*.*?\*/", "", text, flags=re.S))) == 1 and \
        re.search(rf"^\w[^;{{}}=#]*\b{name}(?:\([^;{{}}]*)?\);", text, re.M) is not None


# --- the check --------------------------------------------------------------

def wrong_in(component):
    """(sentences, uses that are to be excepted)"""
    nodes, uses = uses_of(component)
    sentences, bad = [], []
    for node in nodes:
        if component.layer_of(node) is None:
            sentences.append(f"{component.folder}/{node} is in no layer of test/layers")
    if sentences:
        return sentences, bad
    for use in component.not_yet:
        if use not in uses:
            sentences.append(f"{component.folder}: {use[0]} -> {use[1]} is not so any more: "
                             "take it out of test/layers")
    left = {use: why for use, why in uses.items() if use not in component.not_yet}
    below = {use for use in left if component.layer_of(use[1]) <= component.layer_of(use[0])}
    for use in component.not_yet:
        goes_up = component.layer_of(use[1]) > component.layer_of(use[0])
        goes_round = any(set(use) <= set(group) for group in circles(nodes, below | {use}))
        if use in uses and not goes_up and not goes_round:
            sentences.append(f"{component.folder}: {use[0]} -> {use[1]} goes neither up nor round: "
                             "take it out of test/layers")
    for (start, end), why in sorted(left.items()):
        if component.layer_of(end) > component.layer_of(start):
            sentences.append(f"{component.folder}/{start} {why}, which is above it ({end})")
            bad.append((start, end))
    left = {use: why for use, why in left.items() if use not in bad}
    while True:
        groups = circles(nodes, left)
        if not groups:
            return sentences, bad
        sentences += [f"{component.folder}: a circle of {len(g)}: {' '.join(g)}" for g in groups]
        for group in groups:  # the files that use the fewest are the ones to use none
            inside = [use for use in left if use[0] in group and use[1] in group]
            count = {n: sum(u[0] == n for u in inside) - sum(u[1] == n for u in inside)
                     for n in group}
            lowest = min(group, key=lambda n: (count[n], n))
            for use in [use for use in inside if use[0] == lowest]:
                bad.append(use)
                del left[use]


def main():
    sys.setrecursionlimit(10000)
    total, lines = 0, []
    for component in table_read():
        sentences, bad = wrong_in(component)
        total += len(sentences)
        print("\n".join(sentences), end="\n" if sentences else "")
        lines += [f"{component.folder} {start} -> {end}" for start, end in bad]
    for sentence in wrong_functions(("pml", "btl", "common", "coll", "osc", "tools")):
        total += 1
        print(sentence)
    if "--write" in sys.argv:
        print("\n".join(lines))
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
