# SPDX-License-Identifier: BSD-3-Clause
# Sources of test/fake: stand-ins for hardware.
