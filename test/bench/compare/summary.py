# SPDX-License-Identifier: BSD-3-Clause
"""From samples to medians, spreads and ratios."""

import math
import statistics
from dataclasses import dataclass

from .parts import FIGURES, HIGHER, PARTS


@dataclass(frozen=True)
class Cell:
    """One way's figure at one size over all rounds."""
    median: float
    low: float
    high: float
    rounds: int


@dataclass(frozen=True)
class Row:
    """One size of a figure, every way's cell, and the first way's ratio to each other one."""
    part: str
    figure: str
    ranks: int
    size: int
    cells: dict
    ratios: dict
    # the best of the other ways, by median
    best: str


# Two jobs saw the same machine if a bare cache line took as long, but for this factor.
SAME_LINE = 1.5


def same_machine(one, other):
    """Unknown line times count as the same: a machine of one core has none."""
    if not (math.isfinite(one) and math.isfinite(other)):
        return True
    return max(one, other) <= SAME_LINE * min(one, other)


def ratio_of_rounds(ours, theirs, figure):
    """The median over the rounds of what both measured in the same round on the same machine: a
    host that moves the cores between two jobs leaves nothing to compare."""
    both = [ours[r].value / theirs[r].value for r in ours
            if r in theirs and theirs[r].value > 0
            and (not FIGURES[figure].depends_on_placement
                 or same_machine(ours[r].line_ns, theirs[r].line_ns))]
    return statistics.median(both) if both else math.nan


def line_remark(samples):
    """One sentence about the machine's steadiness."""
    times = [s.line_ns for s in samples if math.isfinite(s.line_ns)]
    if not times:
        return "How long a bare cache line takes between two cores could not be measured."
    low, middle, high = min(times), statistics.median(times), max(times)
    sentence = f"A bare cache line took {middle:.0f} ns from core to core " \
               f"(median of all jobs; {low:.0f} to {high:.0f})."
    if high > SAME_LINE * low:
        sentence += " The machine changed under the measurements, as virtual ones do; ratios are " \
                    "of jobs that saw it alike, but medians mix what was and what became."
    return sentence


def cell_of(values):
    return Cell(statistics.median(values), min(values), max(values), len(values))


def rows_of(samples, ways):
    """All rows in the order of the parts; `ways` is in the order of the columns, ours first."""
    values = {}
    for s in samples:
        values.setdefault((s.part, s.figure, s.ranks, s.size), {}) \
              .setdefault(s.way, {})[s.round] = s
    part_order = {part.name: i for i, part in enumerate(PARTS)}
    figure_order = {name: i for i, name in enumerate(FIGURES)}
    rows = []
    for key in sorted(values, key=lambda k: (part_order[k[0]], figure_order[k[1]], k[2], k[3])):
        part, figure, ranks, size = key
        cells = {way: cell_of([s.value for s in by_round.values()])
                 for way, by_round in values[key].items() if way in ways}
        first = ways[0]
        others = [way for way in ways[1:] if way in cells]
        ratios = {way: ratio_of_rounds(values[key][first], values[key][way], figure)
                  for way in others if first in cells}
        pick = max if FIGURES[figure].better == HIGHER else min
        best = pick(others, key=lambda way: cells[way].median) if others else ""
        rows.append(Row(part, figure, ranks, size, cells, ratios, best))
    return rows


def ways_of(samples):
    """The ways in the order in which they first appear."""
    return list(dict.fromkeys(sample.way for sample in samples))


def geometric_mean(values):
    usable = [value for value in values if value > 0 and math.isfinite(value)]
    return math.exp(sum(map(math.log, usable)) / len(usable)) if usable else math.nan
