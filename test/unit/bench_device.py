#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds test/bench/device to what it says, with a stand-in for mpirun whose times are known."""

import os
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MPIRUN = """#!/bin/sh
[ "$(echo run >>{dir}/jobs; wc -l <{dir}/jobs)" = {fails} ] && {{ echo no device left >&2; exit 3; }}
from_device="device-device device-pinned device-pageable" from_host="pinned-device pageable-device"
case "$*" in
    *rndv-get*"--from device") took=4 from_host= ;;
    *rndv-put*"--from host") took=6 from_device= ;;
    *cuda*) took=5 ;;
    *) took=10 ;;
esac
for size in 8 16; do
    for figure in $from_device $from_host; do
        echo $figure $size $took
        echo plain-$figure $size 3
    done
done
"""


def bench(mpirun, has_program=True, **words):
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, "test", "bench"))
        if has_program:
            os.symlink("/bin/true", os.path.join(folder, "test", "bench", "device_messages"))
        launcher = os.path.join(folder, "mpirun")
        with open(launcher, "w", encoding="utf-8") as file:
            file.write(mpirun.format(dir=folder, **words))
        os.chmod(launcher, 0o755)
        os.makedirs(os.path.join(folder, "tools"))
        with open(os.path.join(folder, "tools", "env.sh"), "w", encoding="utf-8") as file:
            file.write("export OMPI_MCA_mca_base_component_path=/components\n")
        with open(os.path.join(folder, "test", "build-env"), "w", encoding="utf-8") as file:
            file.write(f"mpirun={launcher}\ncomponent_dir=/components\nompi_version=4.1.4\n")
        done = subprocess.run([os.path.join(TOP, "test", "bench", "device"), "--build", folder,
                               "--runs", "2"], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


class Tables(unittest.TestCase):
    def test_between_devices_the_plan_is_held_against_copies_and_the_other_ways(self):
        status, out, err = bench(MPIRUN, fails=0)
        self.assertEqual((status, err), (0, ""))
        row = next(line.split() for line in out.splitlines() if line.split()[:2] == ["16", "B"])
        # plain, planned, direct, staged; of a plain copy, over the fastest, of the slower stage
        self.assertEqual(row[2:], ["3.00", "5.00", "4.00", "10.00", "0.60", "+25", "%", "0.30"])
        self.assertIn("half of a plain copy's full rate from 16 B on", out)

    def test_a_program_that_is_not_built_is_named_with_what_builds_it(self):
        status, out, err = bench(MPIRUN, fails=0, has_program=False)
        self.assertEqual((status, out), (1, ""))
        self.assertRegex(err, "bench/device_messages is not there; run: make -C .* check TESTS=")

    def test_to_the_host_and_from_there_each_way_has_its_column(self):
        out = bench(MPIRUN, fails=0)[1]
        for title, direct, chosen in (("device to pinned host memory", "4.00", "+25"),
                                      ("pageable host memory to device", "6.00", "+0")):
            row = out.split(f"{title}, microseconds\n")[1].splitlines()[1].split()
            self.assertEqual(row, ["8", "B", "3.00", "5.00", direct, "10.00", "0.60", chosen, "%"])

    def test_without_a_gpu_it_says_so_and_measures_nothing(self):
        status, out, _ = bench("#!/bin/sh\necho device_messages: nothing measured: no device\n")
        self.assertEqual((status, out), (0, "device_messages: nothing measured: no device\n"))

    def test_a_job_that_fails_ends_it_with_its_words(self):
        status, _, err = bench(MPIRUN, fails=3)
        self.assertEqual(status, 1)
        self.assertIn("no device left", err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
