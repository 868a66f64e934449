/* SPDX-License-Identifier: BSD-3-Clause */
/* Brings the pages of all processes of the job together where a tool asks one of them. */
#ifndef MULTILANE_JOB_PAGES_H
#define MULTILANE_JOB_PAGES_H

#include <stdbool.h>

#include "peer/peer.h"

/* While there are lanes: before, and once they go, nothing is asked or answered. */
void job_pages_begin(void);
void job_pages_end(void);

/* Asks, and answers, what there is; after page_fill, with no lock held. */
void job_pages_look(void);

/* The peer wants this process's page. False: that is not possible. */
bool job_pages_asked(struct peer *peer, const struct wire_page_ask *ask);
/* A part of the peer's page. False: it breaks the rules. */
bool job_pages_came(struct peer *peer, const struct wire_page *part);

#endif
