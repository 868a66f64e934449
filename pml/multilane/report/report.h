/* SPDX-License-Identifier: BSD-3-Clause */
/* What this process shows of itself: counters, the explain report, its page and that of the job. */
#ifndef MULTILANE_REPORT_H
#define MULTILANE_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/compat/pml.h"
#include "multilane/service.h"
#include "peer/peer.h"
#include "multilane/page.h"

struct json;
struct lane;
struct wait_story;

/* shown.c: MPI_T variables named pml_multilane_*. */
/* Registers the variables that need no job: those of each protocol, of unexpected and early
 * messages. */
int counters_register(const mca_base_component_t *component);
/* Registers the variables of each BTL that the job has opened. */
int counters_register_lanes(const mca_base_component_t *component);
/* From here on they read nothing of MPI, which ends. */
void counters_end(void);

/* shown.c: the lanes to a rank, for Open MPI's ompi_display_comm (5.0 and later); the caller
 * frees both parts. Null: no lane, or no memory. */
mca_pml_transports_t *transports_of_rank(ompi_communicator_t *comm, int rank);

/* explain.c: how this process's collective operations went, as coll/node counts it. Empty, as a job
 * begins. */
struct multilane_calls *collectives_begin(void);

/* explain.c: writes the report of the plans and their use, if pml_multilane_explain asks for it.
 * Call before classes_fini. */
void explain_write(void);

/* --- page_fill.c ------------------------------------------------------------------------------ */

/* Keeps this process's page: fills it from the structures of the PML, by the clock. */

/* What is wrong with a lane: an enum page_trouble_kind, and why, which begins with a verb. False:
 * nothing. */
bool lane_trouble(const struct lane *lane, uint32_t *kind, const char **why);

/* All that changes, with the waits of all threads. With the lock of wait_stories held, between
 * own_page_change and own_page_changed. Of the locks that messages need it takes each only if it
 * is free, for the copy of a row. */
void page_fill(uint64_t now);

/* Makes the page and begins to keep it. OMPI_ERR_OUT_OF_RESOURCE: no memory. */
int page_keeper_begin(void);
void page_keeper_end(void);

/* --- job_pages.c ------------------------------------------------------------------------------ */

/* Brings the pages of all processes of the job together where a tool asks one of them. */

/* While there are lanes: before, and once they go, nothing is asked or answered. */
void job_pages_begin(void);
void job_pages_end(void);

/* Asks, and answers, what there is; after page_fill, with no lock held. */
void job_pages_look(void);

/* The peer wants this process's page. */
void job_pages_asked(struct peer *peer, const struct wire_page_ask *ask);
/* A part of the peer's page. False: it breaks the rules. */
bool job_pages_came(struct peer *peer, const struct wire_page *part);

/* --- wait_rows.c ------------------------------------------------------------------------------ */

/* Requests, communicators and processes in the words of the page; how long this process has
 * waited, in what, and for whom. */

/* What a wait waits for: its requests that are not complete, or its probe. */
void wait_rows_fill(const struct wait_story *story, struct page_wait *to);

/* Describes a communicator. */
void page_comm_of(const ompi_communicator_t *comm, struct page_comm *to);

/* A number that distinguishes communicators, alike in all their processes. */
uint32_t page_comm_number(const ompi_communicator_t *comm);

/* The process of a rank; PAGE_ANY and what is no rank: any. */
struct page_process page_process_of(const ompi_communicator_t *comm, int rank);

/* So much longer the process waits for what `wait` says: its first request. This and the next one
 * with the lock of wait_stories held. */
void waited_add(const struct page_wait *wait, uint64_t ns);
void waited_fill(struct page *page);

/* For explain, when nothing waits any more. */
void waited_print(FILE *file);
void waited_json(struct json *json);

void waited_forget(void);

#endif
