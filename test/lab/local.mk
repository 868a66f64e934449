# SPDX-License-Identifier: BSD-3-Clause
# Sources of test/lab: labs: several hosts or devices on one machine.
