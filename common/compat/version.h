/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the running Open MPI is laid out like the one this was built for. Open MPI's loader
 * does not ask: it loads any component whose framework version fits. */
#ifndef MULTILANE_COMPAT_VERSION_H
#define MULTILANE_COMPAT_VERSION_H

#include <stdbool.h>

/* The version compiled against, such as "4.1.4" or "6.0.0rc2". */
extern const char version_built[];

enum version_relation {
    VERSION_CHECKED,   /* the very same, or known to be alike */
    VERSION_OF_SERIES, /* another release of the series: the layouts decide */
    VERSION_FOREIGN    /* another series, or a pre-release of any */
};

/* What the version `running` is to what was built for the version `built`. */
enum version_relation version_compare(const char *built, const char *running);

/* Holds the running Open MPI, its version and its layouts, against the one built for, first thing
 * in a component's register function. False: register returns OPAL_ERR_NOT_AVAILABLE; one sentence
 * was said, naming what differs, if the job asked for this component. */
bool version_accepts_running(const char *framework, const char *component);

/* Says one sentence where the running release is used though it was not checked. For one process of
 * a job that uses it. */
void version_say_unchecked(void);

#endif
