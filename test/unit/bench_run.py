#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds test/bench/run to what it says: ratios, way names, samples, plots, and jobs that hang."""

import math
import os
import subprocess
import sys
import tempfile
import types
import unittest
from xml.etree import ElementTree

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "test", "bench"))
sys.dont_write_bytecode = True

from compare import measure, plot, report, summary, text, ways  # noqa: E402
from compare.measure import Failure, Sample  # noqa: E402


def samples_of(way, values, line_ns=100.0, figure="oneway_us", part="oneway"):
    """values: {size: [value of round 0, of round 1, ...]}"""
    return [Sample(part, way, 2, r, figure, size, value, line_ns)
            for size, rounds in values.items() for r, value in enumerate(rounds)]


def openmpi(series=(4, 1)):
    return types.SimpleNamespace(is_openmpi=True, series=series, shared_memory_btl="vader",
                                 components="/components", binds=[], launcher="mpirun",
                                 search_path={"PMIX_MCA_mca_base_component_path": "/pmix"},
                                 has_pml=lambda name: name == "ucx",
                                 inside=lambda command, binds: list(command))


class Ratios(unittest.TestCase):
    def test_is_the_median_of_the_rounds_ratios_not_the_ratio_of_medians(self):
        # Every round ours takes half; the machine became ten times slower in the second round.
        rows = summary.rows_of(samples_of("a", {8: [1, 10, 2]}) + samples_of("b", {8: [2, 20, 4]}),
                               ["a", "b"])
        self.assertEqual(rows[0].ratios, {"b": 0.5})
        self.assertEqual(rows[0].cells["a"].median, 2)
        self.assertEqual((rows[0].cells["a"].low, rows[0].cells["a"].high), (1, 10))

    def test_leaves_out_jobs_that_saw_another_machine(self):
        rows = summary.rows_of(samples_of("a", {8: [1.0]}, 60.0) + samples_of("b", {8: [2.0]}, 190.0),
                               ["a", "b"])
        self.assertTrue(math.isnan(rows[0].ratios["b"]))
        self.assertIn("changed", summary.line_remark(samples_of("a", {8: [1]}, 60.0)
                                                     + samples_of("b", {8: [1]}, 190.0)))

    def test_memory_does_not_depend_on_where_the_cores_are(self):
        kind = {"figure": "memory_before_KiB", "part": "memory"}
        rows = summary.rows_of(samples_of("a", {8: [1.0]}, 60.0, **kind)
                               + samples_of("b", {8: [2.0]}, 190.0, **kind), ["a", "b"])
        self.assertEqual(rows[0].ratios["b"], 0.5)

    def test_an_unknown_line_time_excludes_nothing(self):
        rows = summary.rows_of(samples_of("a", {8: [1.0]}, math.nan) + samples_of("b", {8: [2.0]}),
                               ["a", "b"])
        self.assertEqual(rows[0].ratios["b"], 0.5)

    def test_best_is_the_highest_rate_and_the_lowest_time(self):
        def best(figure, part):
            made = [s for way, value in (("a", 1.0), ("b", 2.0), ("c", 3.0))
                    for s in samples_of(way, {8: [value]}, figure=figure, part=part)]
            return summary.rows_of(made, ["a", "b", "c"])[0].best
        self.assertEqual(best("oneway_us", "oneway"), "b")
        self.assertEqual(best("rate_M_per_s", "rate"), "c")

    def test_an_advantage_is_above_one_for_times_and_for_rates(self):
        self.assertEqual(report.advantage(0.5, "oneway_us"), 2)
        self.assertEqual(report.advantage(2, "rate_M_per_s"), 2)


class Ways(unittest.TestCase):
    def setUp(self):
        self.here = {"ompi": openmpi(), "mpich": types.SimpleNamespace(is_openmpi=False)}

    def test_names_become_arguments(self):
        way = ways.way_parse("multilane+shm+tcp", self.here)
        self.assertEqual(way.choice(), ["--mca", "pml", "multilane", "--mca", "btl", "self,shm,tcp"])
        self.assertTrue(way.is_ours)
        self.assertFalse(ways.way_parse("ob1+vader", self.here).is_ours)
        self.assertTrue(ways.way_parse("ob1+shm", self.here).is_ours)
        self.assertIn("ucx", ways.way_parse("ucx", self.here).choice())
        self.assertEqual(ways.way_parse("mpich", self.here).choice(), [])

    def test_nonsense_is_refused_by_name(self):
        for name in ("multilane", "ob2+vader", "ob1+", "other:ob1+sm", ""):
            with self.assertRaisesRegex(ways.Problem, f'way "{name}'.replace("+", r"\+")):
                ways.way_parse(name, self.here)

    def test_more_ranks_than_cores_are_not_bound(self):
        way = ways.way_parse("ob1+vader", self.here)
        self.assertIn("core", way.placement(2, 2))
        self.assertIn("--oversubscribe", way.placement(3, 2))
        newer = ways.Way("x", openmpi((5, 0)), "ob1", ["sm"])
        self.assertIn(":OVERSUBSCRIBE", newer.placement(3, 2))

    def test_ranks_are_bound_to_the_cores_that_are_asked_for(self):
        way, newer = ways.way_parse("ob1+vader", self.here), ways.Way("x", openmpi((5, 0)), "ob1", ["sm"])
        way.cores = newer.cores = [0, 8]
        self.assertEqual(way.placement(2, 16), ["--cpu-list", "0,8", "--bind-to", "cpu-list:ordered"])
        self.assertEqual(newer.placement(2, 16), ["--map-by", "pe-list=0,8:ordered"])

    def test_components_are_named_only_to_ways_that_are_ours(self):
        path = "OMPI_MCA_mca_base_component_path"
        self.assertIn("/components", ways.way_parse("multilane+vader", self.here).environment()[path])
        self.assertNotEqual(ways.way_parse("ob1+vader", self.here).environment().get(path, "")[:11],
                            "/components")
        pmix = "PMIX_MCA_mca_base_component_path"  # without it Debian 13's find none
        self.assertEqual(ways.way_parse("multilane+vader", self.here).environment()[pmix], "/pmix")
        self.assertNotEqual(ways.way_parse("ob1+vader", self.here).environment().get(pmix), "/pmix")

    def test_the_default_begins_with_multilane_and_names_all_others(self):
        self.assertEqual(ways.ways_default(self.here),
                         ["multilane+shm", "ob1+vader", "ucx", "mpich"])


class Samples(unittest.TestCase):
    def test_come_back_as_they_were_written_and_append_numbers_rounds_on(self):
        made = samples_of("a", {8: [1.5, 2.5]})
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "samples.csv")
            measure.samples_write(path, made, False)
            self.assertEqual(measure.samples_read(path), made)
            measure.samples_write(path, made, True)
            self.assertEqual([s.round for s in measure.samples_read(path)], [0, 1, 2, 3])

    def test_a_job_that_fails_says_why(self):
        output, _, why = measure.job_run(["sh", "-c", "echo no such thing; echo ----; exit 3"],
                                         None, 10)
        self.assertIn("no such thing", why)
        self.assertIn("3", why)
        self.assertIn("no such thing", output)

    def test_a_job_that_hangs_is_ended_with_all_its_processes(self):
        # Its child has a session of its own and ignores polite signals, as a rank may.
        with tempfile.TemporaryDirectory() as folder:
            note = os.path.join(folder, "pid")
            child = f"trap '' TERM; echo $$ >{note}; while :; do sleep 1; done"
            script = f"setsid sh -c \"{child.replace('$', chr(92) + '$')}\" & trap '' TERM; wait; wait"
            why = measure.job_run(["sh", "-c", script], None, 1)[2]
            self.assertIn("did not end", why)
            with open(note, encoding="utf-8") as file:
                pid = int(file.read())
            with self.assertRaises(ProcessLookupError):
                # It may be a zombie of init's for a moment.
                for _ in range(200):
                    os.kill(pid, 0)
                    subprocess.run(["sleep", "0.05"], check=True)


class Output(unittest.TestCase):
    def setUp(self):
        self.made = (samples_of("ours<&>", {0: [0.1, 0.2], 65536: [5, 6]})
                     + samples_of("theirs", {0: [0.2, 0.3], 65536: [4, 6]}))
        self.ways = ["ours<&>", "theirs"]
        self.rows = summary.rows_of(self.made, self.ways)

    def test_the_table_names_ways_sizes_and_failures(self):
        table = text.table_text(self.rows, self.ways, [Failure("rate", "theirs", 2, "it broke")])
        for word in ("ours<&>", "theirs", "64K", "to theirs", "it broke"):
            self.assertIn(word, table)

    def test_plots_are_svg_with_a_line_for_each_way(self):
        svg = ElementTree.fromstring(plot.svg_of(self.rows, self.ways))
        lines = svg.findall("{http://www.w3.org/2000/svg}polyline")
        self.assertEqual(len(lines), 2)

    def test_one_size_or_a_zero_is_not_drawn(self):
        self.assertIsNone(plot.svg_of(self.rows[:1], self.ways))
        zeros = summary.rows_of(samples_of("a", {8: [0], 16: [1]}), ["a"])
        self.assertIsNone(plot.svg_of(zeros, ["a"]))

    def test_the_report_holds_every_figure(self):
        with tempfile.TemporaryDirectory() as folder:
            report.report_write(folder, self.rows, self.ways, ["2 cores"], [], "steady")
            with open(os.path.join(folder, "report.html"), encoding="utf-8") as file:
                page = file.read()
            self.assertTrue(os.path.exists(os.path.join(folder, "oneway_us-2.svg")))
        self.assertIn("ours&lt;&amp;&gt;", page)
        self.assertNotIn("ours<&>", page)
        self.assertIn("<svg", page)


class CommandLine(unittest.TestCase):
    def refused(self, *arguments):
        done = subprocess.run([sys.executable, os.path.join(TOP, "test", "bench", "run"), *arguments],
                              capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def test_bad_options_are_refused_before_anything_runs(self):
        self.assertIn('"8x" is not a size', self.refused("--sizes", "8x"))
        self.assertIn("counts", self.refused("--runs", "0"))


if __name__ == "__main__":
    unittest.main()
