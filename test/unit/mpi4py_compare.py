#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test/mpi/mpi4py_compare waits for ranks and ends the rest where mpirun does neither, with a
stand-in for one."""

import argparse
import importlib.machinery
import importlib.util
import os
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(TOP, "test", "mpi", "mpi4py_compare")
MPIRUN = """#!/bin/sh
setsid sleep 300 &
echo $! >{folder}/pid
(sleep 0.5; printf 'passed late.test\\nend of the list\\n' >{folder}/control.1/0) &
"""


def program():
    loader = importlib.machinery.SourceFileLoader("mpi4py_compare", PROGRAM)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Orphans(unittest.TestCase):
    def test_ranks_are_waited_for_and_what_else_is_left_is_ended(self):
        compare = program()
        with tempfile.TemporaryDirectory() as folder:
            launcher = os.path.join(folder, "mpirun")
            with open(launcher, "w", encoding="utf-8") as file:
                file.write(MPIRUN.format(folder=folder))
            os.chmod(launcher, 0o755)
            compare.adopt_orphans()
            found = compare.run(argparse.Namespace(folder=folder, ranks=1, mpirun=launcher,
                                                   seconds=60, exclude=[]), "", folder, "control")
            self.assertEqual(found, ({(0, "late.test"): "passed"}, True))
            with open(os.path.join(folder, "pid"), encoding="ascii") as file:
                pid = int(file.read())
            self.assertFalse(os.path.exists(f"/proc/{pid}"), f"process {pid} is still there")


class Breaks(unittest.TestCase):
    def test_what_follows_a_break_of_the_control_is_not_compared(self):
        control = {(0, "a.one"): "passed", (0, "b.one"): "passed", (0, "c.one"): "passed",
                   (1, "a.one"): "passed", (1, "b.one"): "unfinished"}
        kept, broken = program().until_broken(control)
        self.assertEqual(broken, "b")
        self.assertEqual(kept, {(0, "a.one"): "passed", (1, "a.one"): "passed"})
        self.assertEqual(program().compare(kept, {(0, "a.one"): "passed"}),
                         ["rank 1 a.one: passes in the control, was not reached"])

    def test_a_control_that_comes_to_its_end_counts_whole(self):
        control = {(0, "a.one"): "passed", (0, "b.one"): "failed"}
        self.assertEqual(program().until_broken(control), (control, None))


class Asked(unittest.TestCase):
    def test_the_control_is_asked_for_what_did_not_pass_or_for_all(self):
        to_ask = program().to_ask
        self.assertEqual(to_ask({(0, "a.one"): "passed", (1, "a.one"): "passed"}, True), set())
        self.assertEqual(to_ask({(0, "a.one"): "passed", (0, "a.two"): "skipped"}, True), {"a.two"})
        self.assertEqual(to_ask({(0, "a.one"): "failed", (1, "a.one"): "passed"}, True), {"a.one"})
        self.assertIsNone(to_ask({(0, "a.one"): "passed"}, False))
        self.assertIsNone(to_ask({}, True))
        self.assertIsNone(to_ask({(0, "setUpClass (a.Those)"): "skipped"}, True))


if __name__ == "__main__":
    unittest.main()
