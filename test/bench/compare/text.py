# SPDX-License-Identifier: BSD-3-Clause
"""The table for the terminal, and the same numbers as CSV."""

import csv
import itertools
import math

from .parts import FIGURES, HIGHER


def size_text(size, axis):
    if axis == "bytes":
        for power, letter in ((30, "G"), (20, "M"), (10, "K")):
            if size >= 1 << power and size % (1 << power) == 0:
                return f"{size >> power}{letter}"
    return str(size)


def number_text(value):
    if not math.isfinite(value):
        return "-"
    if value != 0 and abs(value) < 10:
        return f"{value:.3f}" if abs(value) >= 1 else f"{value:.4f}"
    return f"{value:,.1f}" if abs(value) < 1000 else f"{value:,.0f}"


def ratio_text(value):
    return f"{value:.2f}" if math.isfinite(value) else "-"


def spread_text(cell):
    """Half the distance between the extremes, in percent of the median."""
    return f"{(cell.high - cell.low) / 2 / cell.median * 100:.0f}%" if cell.median else "0%"


def group_title(rows):
    figure = FIGURES[rows[0].figure]
    better = "more is better" if figure.better == HIGHER else "less is better"
    ranks = "" if figure.axis == "ranks" else f", {rows[0].ranks} ranks"
    return f"{figure.title} [{figure.unit}]{ranks}, medians of " \
           f"{max(c.rounds for r in rows for c in r.cells.values())} runs, {better}"


def groups_of(rows):
    """Rows of one figure together; of one number of ranks as well, unless that is the axis."""
    def key(row):
        return row.figure, None if FIGURES[row.figure].axis == "ranks" else row.ranks
    return [list(group) for _, group in itertools.groupby(rows, key)]


def group_lines(rows, ways):
    axis = FIGURES[rows[0].figure].axis
    present = [way for way in ways if any(way in row.cells for row in rows)]
    others = [way for way in present if way != ways[0]] if ways[0] in present else []
    lines = [[axis] + [text for way in present for text in (way, "+-")]
             + [f"to {way}" for way in others] + (["to best"] if len(others) > 1 else [])]
    for row in rows:
        line = [size_text(row.size, axis)]
        for way in present:
            cell = row.cells.get(way)
            line += [number_text(cell.median), spread_text(cell)] if cell else ["-", ""]
        line += [ratio_text(row.ratios.get(way, math.nan)) for way in others]
        if len(others) > 1:
            line.append(ratio_text(row.ratios.get(row.best, math.nan)))
        lines.append(line)
    return lines


def table_text(rows, ways, failures=()):
    out = []
    for group in groups_of(rows):
        lines = group_lines(group, ways)
        widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
        out.append(group_title(group))
        out += ["  " + "  ".join(word.rjust(width) for word, width in zip(line, widths))
                for line in lines]
        out.append("")
    if failures:
        out.append("What could not be measured")
        out += [f"  {f.part}, {f.way}, {f.ranks} ranks: {f.why}" for f in failures]
        out.append("")
    return "\n".join(out)


def table_csv(path, rows, ways):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("part", "figure", "unit", "ranks", "size", "way", "median", "low", "high",
                         "runs", f"ratio of {ways[0]} to it"))
        for row in rows:
            for way, cell in row.cells.items():
                ratio = row.ratios.get(way, math.nan)
                writer.writerow((row.part, row.figure, FIGURES[row.figure].unit, row.ranks,
                                 row.size, way, f"{cell.median:.6g}", f"{cell.low:.6g}",
                                 f"{cell.high:.6g}", cell.rounds,
                                 f"{ratio:.4f}" if math.isfinite(ratio) else ""))
