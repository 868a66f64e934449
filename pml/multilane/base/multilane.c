/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared state. */
#include "base/multilane.h"

struct multilane multilane;
