/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for Open MPI's prefetch.h, which Debian 13 does not install: the three hints that the
 * other headers use. */
#ifndef MULTILANE_COMPAT_PREFETCH_H
#define MULTILANE_COMPAT_PREFETCH_H

#define OPAL_LIKELY(condition)                  __builtin_expect((condition) ? 1 : 0, 1)
#define OPAL_UNLIKELY(condition)                __builtin_expect((condition) ? 1 : 0, 0)
#define OPAL_PREFETCH(address, write, locality) __builtin_prefetch((address), (write), (locality))

#endif
