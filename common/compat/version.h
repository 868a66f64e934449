/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the running Open MPI is laid out like the one this was built for. Open MPI's loader
 * does not ask: it loads any component whose framework version fits. */
#ifndef MULTILANE_COMPAT_VERSION_H
#define MULTILANE_COMPAT_VERSION_H

#include <stdbool.h>

/* The version compiled against, such as "4.1.4" or "6.0.0rc2". */
extern const char *const version_built;

/* True where structures compiled for `built` can be used in `running`. */
bool version_is_compatible(const char *built, const char *running);

/* Holds the running Open MPI, its version and its layouts, against the one built for, first thing
 * in a component's register function. False: register returns OPAL_ERR_NOT_AVAILABLE; one sentence
 * was said, naming what differs, if the job asked for this component. */
bool version_accepts_running(const char *framework, const char *component);

#endif
