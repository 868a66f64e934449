# SPDX-License-Identifier: BSD-3-Clause
"""What test/bench/run is made of: ways to send a message, parts to measure, figures and reports."""
