# SPDX-License-Identifier: BSD-3-Clause
# Sources of common/report: tables for people.
