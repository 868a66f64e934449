#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds the table of doc/ledger.md against the source: each file of the product belongs to one row, each
pattern of a row names a file, and each number of lines is right within a tenth.

A line of code holds something else than space and comments. NAME.c and NAME.h are one file here.

    test/ledger.py           says what is wrong, and ends with 1
    test/ledger.py --write   puts today's numbers into the table
"""

import fnmatch
import os
import sys

import style

LEDGER = os.path.join(style.TOP, "doc", "ledger.md")
TESTS = "test/"


def text_or_empty_lines(found):
    return found.group() if found.group().startswith('"') else "\n" * found.group().count("\n")


def lines_of_code():
    """Lines of code of each file of the product, without .c and .h."""
    lines = {}
    for name in style.files():
        if name.endswith((".c", ".h")) and not name.startswith(TESTS):
            text = style.COMMENT_OR_TEXT.sub(text_or_empty_lines, style.read(name))
            stem = name[:-2]
            lines[stem] = lines.get(stem, 0) + sum(1 for line in text.split("\n") if line.strip())
    return lines


def cells_of(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def is_row(line):
    """Rows of mechanisms name their files in backquotes at the end."""
    return line.startswith("|") and line.rstrip().endswith("` |")


def patterns_of(line):
    return [pattern.strip("`") for pattern in cells_of(line)[-1].replace(",", " ").split()]


def with_lines(line, number):
    cells = cells_of(line)
    cells[1] = f"{number:,}"
    return "| " + " | ".join(cells) + " |"


def owners_of(stem, rows):
    return [row for row, patterns in rows.items()
            if any(fnmatch.fnmatch(stem, pattern) for pattern in patterns)]


def main():
    with open(LEDGER, encoding="utf-8") as file:
        text = file.read().split("\n")
    rows = {number: patterns_of(line) for number, line in enumerate(text) if is_row(line)}
    code = lines_of_code()
    wrong = []
    counted = dict.fromkeys(rows, 0)
    for stem, lines in code.items():
        owners = owners_of(stem, rows)
        if len(owners) == 1:
            counted[owners[0]] += lines
        else:
            wrong.append(f"{stem}: {len(owners)} rows of doc/ledger.md own it, must be one")
    for row, patterns in rows.items():
        wrong += [f"doc/ledger.md:{row + 1}: no file is called {pattern}" for pattern in patterns
                  if not fnmatch.filter(code, pattern)]

    if "--write" in sys.argv[1:]:
        text = [with_lines(line, counted[number]) if number in rows else line
                for number, line in enumerate(text)]
        total = f"| **all** | {sum(code.values()):,} | | | |"
        text = [total if line.startswith("| **all**") else line for line in text]
        with open(LEDGER, "w", encoding="utf-8") as file:
            file.write("\n".join(text))
    else:
        for row, lines in counted.items():
            written = cells_of(text[row])[1].replace(",", "")
            if not written.isdigit() or abs(int(written) - lines) * 10 > lines:
                wrong.append(f"doc/ledger.md:{row + 1}: {written} lines are written, {lines} are there; "
                             "test/ledger.py --write renews the numbers")
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
