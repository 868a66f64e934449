# SPDX-License-Identifier: BSD-3-Clause
# Sources of common/lane: a lane's attributes and where they come from.
