/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for the event library of Open MPI 4.1, which its headers name and Multilane does not
 * use. */
#ifndef MULTILANE_COMPAT_EVENT_H
#define MULTILANE_COMPAT_EVENT_H

typedef struct event opal_event_t;
typedef struct event_base opal_event_base_t;

#endif
