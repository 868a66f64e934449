/* SPDX-License-Identifier: BSD-3-Clause */
/* The bias of this component's locks. */
#include "common/compat/threads.h"

struct bias component_bias;
