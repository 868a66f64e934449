# SPDX-License-Identifier: BSD-3-Clause
"""Writes a cube's grid as a graph for Scotch: grid.py SIDE FILE."""
import sys

side = int(sys.argv[1])


def near(point):
    for step in (1, side, side * side):
        place = point // step % side
        yield from ([point - step] if place else []) + ([point + step] if place < side - 1 else [])


with open(sys.argv[2], "w", encoding="ascii") as file:
    print(f"0\n{side ** 3} {6 * side * side * (side - 1)}\n0 000", file=file)
    for point in range(side ** 3):
        neighbours = list(near(point))
        print(len(neighbours), *neighbours, file=file)
