/* SPDX-License-Identifier: BSD-3-Clause */
/* Holds the shared state of multilane.h. */
#include "base/multilane.h"

struct multilane multilane;
