# SPDX-License-Identifier: BSD-3-Clause
# Sources of common/model: arithmetic of costs and plans.
