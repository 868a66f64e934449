#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds test/lab/fabric.py to what it says of devices, with a kernel's files that are made up, and
test/lab/real to its cuts, limits and ports."""

import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "test", "lab"))
sys.dont_write_bytecode = True

import fabric  # noqa: E402

LOADER = importlib.machinery.SourceFileLoader("real", os.path.join(TOP, "test", "lab", "real"))
real = importlib.util.module_from_spec(importlib.util.spec_from_loader("real", LOADER))
LOADER.exec_module(real)

EMPTY_GID = ":".join(["0000"] * 8)
GID = "0000:0000:0000:0000:0000:ffff:0a4d:0001"
RESOURCE_INFINITY = fabric.resource.RLIM_INFINITY


class Host(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text + "\n")

    def port(self, device="mlx5_0", number=1, state="4: ACTIVE", link="Ethernet", kind="1: CA",
             gids=(("RoCE v1", GID), ("RoCE v2", GID), (None, EMPTY_GID))):
        top = f"sys/class/infiniband/{device}"
        port = f"{top}/ports/{number}"
        self.write(f"{top}/fw_ver", "22.31.1014")
        self.write(f"{top}/board_id", "MT_0000000359")
        self.write(f"{top}/node_type", kind)
        for name, text in (("state", state), ("phys_state", "5: LinkUp"), ("link_layer", link),
                           ("rate", "100 Gb/sec (4X EDR)"), ("lid", "0x0"), ("pkeys/0", "0xffff")):
            self.write(f"{port}/{name}", text)
        for index, (gid_kind, gid) in enumerate(gids):
            self.write(f"{port}/gids/{index}", gid)
            if gid_kind:
                self.write(f"{port}/gid_attrs/types/{index}", gid_kind)
                self.write(f"{port}/gid_attrs/ndevs/{index}", "ens1f0")
        self.write("dev/infiniband/uverbs0", "")

    def problems(self, memlock=RESOURCE_INFINITY, user=1000):
        with mock.patch("os.geteuid", lambda: user):
            return fabric.problems_of(self.root, fabric.ports_of(self.root), memlock)

    def test_an_active_port_is_described_and_has_no_problem(self):
        self.port()
        line, *gids = fabric.port_facts(fabric.ports_of(self.root)[0])
        for word in ("mlx5_0:1 ACTIVE Ethernet, 100 Gb/sec (4X EDR)", "firmware 22.31.1014",
                     "board MT_0000000359", "P_Key 0xffff", "PCIe unknown"):
            self.assertIn(word, line)
        self.assertEqual(gids, [f"mlx5_0:1 GID 0 RoCE v1 ens1f0 {GID}", f"mlx5_0:1 GID 1 RoCE v2 ens1f0 {GID}"])
        self.assertEqual(self.problems(), [])

    def test_ports_come_in_their_order(self):
        for device, number in (("mlx5_10", 1), ("mlx5_2", 2), ("mlx5_2", 1)):
            self.port(device, number)
        self.assertEqual([f"{port['device']}:{port['port']}" for port in fabric.ports_of(self.root)],
                         ["mlx5_2:1", "mlx5_2:2", "mlx5_10:1"])

    def test_without_a_device_one_sentence_says_what_to_do(self):
        problem, = self.problems()
        self.assertIn("no RDMA device", problem)
        self.assertIn("rdma link add", problem)

    def test_each_port_that_can_be_no_lane_has_its_sentence(self):
        for words, regex in (({"state": "1: DOWN"}, "mlx5_0 port 1 is DOWN .LinkUp.: check the cable"),
                             ({"state": "2: INIT", "link": "InfiniBand"}, "no subnet manager"),
                             ({"kind": "4: RNIC"}, "iWARP.* use tcp"),
                             ({"gids": ((None, EMPTY_GID),)}, "no GID .*ip address add"),
                             ({"gids": (("RoCE v1", GID),)}, "RoCE v1 only")):
            with self.subTest(words):
                self.port(**words)
                problem, = self.problems()
                self.assertRegex(problem, regex)
                self.setUp()

    def test_little_memory_that_may_be_locked_is_named_but_not_to_root(self):
        self.port()
        self.assertRegex(self.problems(memlock=65536)[0], "may lock 65536 bytes.*limits.conf")
        self.assertEqual(self.problems(memlock=65536, user=0), [])

    def test_a_device_that_may_not_be_opened_is_named(self):
        self.port()
        with mock.patch("os.access", lambda *_: False):
            self.assertRegex(self.problems()[0], "may not open /dev/infiniband/uverbs0")
        os.unlink(os.path.join(self.root, "dev/infiniband/uverbs0"))
        self.assertRegex(self.problems()[0], "load the module ib_uverbs")


class Command(unittest.TestCase):
    def test_a_job_that_does_not_end_is_ended_with_its_children(self):
        start = time.monotonic()
        self.assertEqual(real.command_run(["sh", "-c", "echo begun; sleep 60 & wait"], 0.3), (None, "begun\n"))
        self.assertLess(time.monotonic() - start, 5)

    def test_a_program_that_is_missing_is_an_answer(self):
        self.assertEqual(real.command_run(["no-such-program"], 5),
                         (127, "no-such-program cannot be run: No such file or directory\n"))

    def test_even_and_odd_ranks_have_as_many_ports(self):
        for ports, sides in ((["a:1"], ("a:1", "a:1")), (["a:1", "b:1"], ("a:1", "b:1")),
                             (["a:1", "b:1", "c:1"], ("a:1", "b:1")),
                             (["a:1", "a:2", "b:1", "b:2"], ("a:1,a:2", "b:1,b:2"))):
            self.assertEqual(real.sides_of(ports), sides)

    def test_a_cut_begins_with_traffic_is_seen_and_is_repaired(self):
        links = []

        def run(words, _limit):
            links.append(words)
            return 0, ""

        with mock.patch.multiple(real, command_run=run, CUT_AFTER_S=0, CUT_FOR_S=0.2,
                                 ports_down=lambda: {"old:1", "mlx5_0:1"} if links else {"old:1"}):
            cut = real.Cut(types.SimpleNamespace(cut="eth7"))
            cut.watch("other words\n")
            self.assertIsNone(cut.thread)
            cut.watch("mix begins\n")
            cut.thread.join()
        self.assertEqual(links, [["ip", "link", "set", "eth7", state] for state in ("down", "up")])
        self.assertEqual(cut.seen, {"mlx5_0:1"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
