# SPDX-License-Identifier: BSD-3-Clause
"""The report that one would forward: what was measured, how, the gist first, every plot and table."""

import math
import os
import time
from html import escape

from .parts import BY_NAME, FIGURES, HIGHER
from .plot import svg_of
from .summary import geometric_mean
from .text import group_lines, group_title, groups_of, ratio_text

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body{{font:15px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}}
table{{border-collapse:collapse;font-size:13px;margin:.5em 0 1.5em}}
th,td{{padding:2px 9px;text-align:right;border-bottom:1px solid #ddd}}
th{{background:#f4f4f4}} svg{{max-width:100%;height:auto}}
.good{{color:#00703c;font-weight:bold}} .bad{{color:#b00020;font-weight:bold}}
details{{margin-bottom:2em}}
</style></head><body>
{body}
</body></html>
"""

HOW = """<p>Every number is the median of the runs given with it; the +- beside it is half the
distance between the extremes, in percent. The ways were run in turn, round after round, so that
what else the machine did fell on all of them; a ratio is the median, over the rounds, of what both
ways measured in the same round. Ranks were bound to cores wherever there were cores enough.
A ratio below 1 is good for a time and bad for a rate; good ones are green.</p>"""


def advantage(ratio, figure):
    """How many times better ours is: above 1 is good, whatever the figure."""
    return ratio if FIGURES[figure].better == HIGHER else 1 / ratio if ratio else math.nan


def verdict(row):
    ratio = row.ratios.get(row.best, math.nan)
    return advantage(ratio, row.figure) if math.isfinite(ratio) else math.nan


def coloured(ratio, figure):
    if not math.isfinite(ratio) or ratio <= 0:
        return "-"
    gain = advantage(ratio, figure)
    word = "good" if gain >= 1.02 else "bad" if gain <= 0.98 else ""
    return f'<span class="{word}">{ratio_text(ratio)}</span>' if word else ratio_text(ratio)


def gist_rows(groups, ways):
    """For each figure: how many times better than each other way, as a geometric mean."""
    for group in groups:
        gains = {}
        for way in ways[1:]:
            values = [advantage(row.ratios[way], row.figure) for row in group
                      if math.isfinite(row.ratios.get(way, math.nan)) and row.ratios[way] > 0]
            gains[way] = geometric_mean(values)
        usable = [(verdict(row), row) for row in group if math.isfinite(verdict(row))]
        worst = min(usable, key=lambda pair: pair[0], default=(math.nan, None))
        yield group, gains, worst


def gist(groups, ways):
    others = ways[1:]
    out = ["<h2>In short</h2>",
           f"<p>How many times better <b>{escape(ways[0])}</b> is than each other way, as the "
           "geometric mean over the sizes (2.00: half the time, or twice the rate), and where it "
           "does worst against the best of them.</p>",
           "<table><tr><th>figure</th>"
           + "".join(f"<th>{escape(way)}</th>" for way in others) + "<th>worst</th></tr>"]
    for group, gains, (worst, row) in gist_rows(groups, ways):
        figure = FIGURES[group[0].figure]
        ranks = "" if figure.axis == "ranks" else f", {group[0].ranks} ranks"
        cells = "".join(f"<td>{gain_text(gains[way])}</td>" for way in others)
        at = f" at {row.size:,} {figure.axis}" if row is not None and figure.axis else ""
        out.append(f'<tr><th style="text-align:left">{escape(figure.title)}{ranks}</th>{cells}'
                   f"<td>{gain_text(worst)}{escape(at)}</td></tr>")
    return out + ["</table>"]


def gain_text(gain):
    if not math.isfinite(gain):
        return "-"
    word = "good" if gain >= 1.02 else "bad" if gain <= 0.98 else ""
    return f'<span class="{word}">{gain:.2f}</span>'


def table_html(group, ways):
    lines = group_lines(group, ways)
    ratios_from = next((i for i, word in enumerate(lines[0]) if word.startswith("to ")),
                       len(lines[0]))
    out = ["<table><tr>" + "".join(f"<th>{escape(word)}</th>" for word in lines[0]) + "</tr>"]
    for row, line in zip(group, lines[1:]):
        cells = [escape(word) for word in line[:ratios_from]]
        for title, word in zip(lines[0][ratios_from:], line[ratios_from:]):
            way = row.best if title == "to best" else title[3:]
            cells.append(coloured(row.ratios.get(way, math.nan), row.figure) if word != "-" else "-")
        out.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return out + ["</table>"]


def plot_name(group):
    ranks = "" if FIGURES[group[0].figure].axis == "ranks" else f"-{group[0].ranks}"
    return f"{group[0].figure}{ranks}.svg"


def report_write(folder, rows, ways, facts, failures, remark):
    """report.html with the plots inside it, and each plot as a file."""
    groups = groups_of(rows)
    title = f"Multilane beside {', '.join(ways[1:])}" if len(ways) > 1 else "Multilane, measured"
    body = [f"<h1>{escape(title)}</h1>", f"<p>{time.strftime('%Y-%m-%d')}. "
            + "; ".join(escape(fact) for fact in facts) + ".</p>"]
    if len(ways) > 1:
        body += gist(groups, ways)
    body += ["<h2>How it was measured</h2>", HOW, f"<p>{escape(remark)}</p>", "<h2>Figures</h2>"]
    for group in groups:
        body.append(f"<h3>{escape(group_title(group))}</h3>"
                    f"<p>{escape(BY_NAME[group[0].part].about.capitalize())}.</p>")
        svg = svg_of(group, ways)
        table = table_html(group, ways)
        if svg is None:
            body += table
            continue
        with open(os.path.join(folder, plot_name(group)), "w", encoding="utf-8") as file:
            file.write(svg)
        body += [svg, "<details><summary>Numbers</summary>", *table, "</details>"]
    if failures:
        body += ["<h2>What could not be measured</h2><ul>"]
        body += [f"<li>{escape(f.part)}, {escape(f.way)}, {f.ranks} ranks: {escape(f.why)}</li>"
                 for f in failures] + ["</ul>"]
    with open(os.path.join(folder, "report.html"), "w", encoding="utf-8") as file:
        file.write(PAGE.format(title=escape(title), body="\n".join(body)))
