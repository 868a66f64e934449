# SPDX-License-Identifier: BSD-3-Clause
# Sources of common/ring: the ring of slots between two processes.
