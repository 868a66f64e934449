# SPDX-License-Identifier: BSD-3-Clause
"""Line plots as SVG, drawn without any library: a figure over its sizes, a line for each way."""

import math
from html import escape

from .parts import FIGURES, HIGHER
from .text import number_text, size_text

WIDTH, HEIGHT = 640, 380
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 40, 76
# Distinguishable without colour vision as well (Okabe and Ito's palette), ours first.
COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
STYLE = ("text{font:12px sans-serif;fill:#222}.title{font-size:14px;font-weight:bold}"
         ".axis{stroke:#555;fill:none}.grid{stroke:#ddd}.spread{fill-opacity:.15;stroke:none}"
         ".line{fill:none;stroke-width:2}.ours{stroke-width:3}")


def ticks_of(low, high):
    """1, 2 and 5 times powers of ten around [low, high]; only the powers where they are many."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first <= 3 else (1,)
    return [step * 10.0 ** power for power in range(first, last + 1) for step in steps
            if low * 0.999 <= step * 10.0 ** power <= high * 1.001]


class Frame:
    """Where a size (by its place in the list) and a value (logarithmic) lie on the page."""

    def __init__(self, sizes, low, high):
        self.sizes = sizes
        self.low, self.high = math.log10(low), math.log10(high)

    def x(self, size):
        step = (WIDTH - LEFT - RIGHT) / max(1, len(self.sizes) - 1)
        return LEFT + self.sizes.index(size) * step

    def y(self, value):
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def grid(frame, axis, low, high):
    out = []
    for tick in ticks_of(low, high):
        y = frame.y(tick)
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        text = f"{tick:g}" if tick < 1e6 else number_text(tick)
        out.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    every = math.ceil(len(frame.sizes) / 11)
    for i, size in enumerate(frame.sizes):
        if i % every == 0:
            out.append(f'<text x="{frame.x(size):.1f}" y="{HEIGHT - BOTTOM + 18}" '
                       f'text-anchor="middle">{size_text(size, axis)}</text>')
    out.append(f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - BOTTOM + 36}" '
               f'text-anchor="middle">{escape(axis)}</text>')
    return out


def way_drawn(frame, points, colour, is_ours):
    """The medians as a line, the extremes as a band behind it."""
    line = " ".join(f"{frame.x(size):.1f},{frame.y(cell.median):.1f}" for size, cell in points)
    upper = [f"{frame.x(size):.1f},{frame.y(cell.high):.1f}" for size, cell in points]
    lower = [f"{frame.x(size):.1f},{frame.y(cell.low):.1f}" for size, cell in reversed(points)]
    marks = "".join(f'<circle cx="{frame.x(size):.1f}" cy="{frame.y(cell.median):.1f}" r="3" '
                    f'fill="{colour}"/>' for size, cell in points)
    return [f'<polygon class="spread" fill="{colour}" points="{" ".join(upper + lower)}"/>',
            f'<polyline class="line{" ours" if is_ours else ""}" stroke="{colour}" '
            f'points="{line}"/>', marks]


def legend(ways):
    out, x = [], LEFT
    for i, way in enumerate(ways):
        colour = COLOURS[i % len(COLOURS)]
        out.append(f'<rect x="{x}" y="{HEIGHT - 24}" width="14" height="4" fill="{colour}"/>')
        out.append(f'<text x="{x + 18}" y="{HEIGHT - 18}">{escape(way)}</text>')
        x += 34 + 7 * len(way)
    return out


def svg_of(group, ways):
    """The SVG of one figure, or None where one size or a zero leaves nothing to draw."""
    figure = FIGURES[group[0].figure]
    sizes = [row.size for row in group]
    values = [value for row in group for cell in row.cells.values()
              for value in (cell.low, cell.high)]
    if len(sizes) < 2 or not values or min(values) <= 0:
        return None
    low, high = min(values) / 1.1, max(values) * 1.1
    frame = Frame(sizes, low, high)
    ranks = "" if figure.axis == "ranks" else f", {group[0].ranks} ranks"
    better = "more is better" if figure.better == HIGHER else "less is better"
    present = [way for way in ways if any(way in row.cells for row in group)]
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           f'width="{WIDTH}" height="{HEIGHT}" role="img"><style>{STYLE}</style>',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text class="title" x="{LEFT}" y="24">{escape(figure.title)}{ranks} '
           f'[{escape(figure.unit)}], {better}</text>']
    out += grid(frame, figure.axis, low, high)
    # Ours is drawn last, on top.
    for way in reversed(present):
        points = [(row.size, row.cells[way]) for row in group if way in row.cells]
        colour = COLOURS[present.index(way) % len(COLOURS)]
        out += way_drawn(frame, points, colour, way == ways[0])
    return "\n".join(out + legend(present) + ["</svg>"]) + "\n"
