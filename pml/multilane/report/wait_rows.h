/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests, communicators and processes in the words of the page. */
#ifndef MULTILANE_WAIT_ROWS_H
#define MULTILANE_WAIT_ROWS_H

#include "common/compat/pml.h"

#include "multilane/page.h"

struct wait_story;

/* What a wait waits for: its requests that are not complete, or its probe. */
void wait_rows_fill(const struct wait_story *story, struct page_wait *to);

/* Describes a communicator. */
void page_comm_of(const ompi_communicator_t *comm, struct page_comm *to);

/* A number that tells communicators apart, alike in all their processes. */
uint32_t page_comm_number(const ompi_communicator_t *comm);

/* The process of a rank; PAGE_ANY and what is no rank: any. */
struct page_process page_process_of(const ompi_communicator_t *comm, int rank);

#endif
