/* SPDX-License-Identifier: BSD-3-Clause */
/* Edges from a rank that waits to those that it waits for. */
#ifndef TOOLS_TOP_EDGES_H
#define TOOLS_TOP_EDGES_H

#include "common/report/page_text.h"
#include "tools/top/rank.h"

/* What is known of each rank, by its index. */
struct standing {
    enum activity *activities;
    bool *goes_on;
};

struct edge {
    int from, to; /* indices; `to` below 0: any rank, or one that is not among them */
    const struct page_request *row;
    bool is_any;                /* any other rank of the job would do */
    uint32_t wait, index, part; /* of the wait the request, and of that the edge that follows */
};

/* The next edge of a rank; the first one where only `from` is set. False: there is no other. */
bool edge_next(const struct ranks *ranks, struct edge *edge);

/* By what is known of the ranks so far. */
bool edge_can_come(const struct ranks *ranks, const struct standing *standing,
                   const struct edge *edge);

/* Finds out which ranks go on: goes_on, from the activities. */
void edges_settle(const struct ranks *ranks, struct standing *standing);

enum mismatch { MISMATCH_NONE, MISMATCH_TAG, MISMATCH_COMM };

/* Would the message be what the request waits for, but for its tag or its communicator? */
enum mismatch edge_mismatch(const struct page_request *row, const struct page_message *message);

/* Does the message of this send wait at the receiver for a receive? */
bool edge_is_unexpected(const struct page *receiver, const struct page *sender,
                        const struct page_request *row);

/* Does the send wait because the receiver keeps as much as it promised to? Beyond that an eager
 * message is announced as a large one is, while there is room for announcements. */
bool edge_lacks_credit(const struct rank *receiver, const struct rank *sender,
                       const struct page_request *row);

/* Has the rank that is waited for sent messages that did not come? */
bool edge_has_lost(const struct ranks *ranks, const struct edge *edge, uint32_t *sent,
                   uint32_t *come);

/* Is the rank itself in a send, and in nothing else? */
bool rank_only_sends(const struct rank *rank, enum activity activity);

bool page_comm_is(const struct page_comm *one, const struct page_comm *other);

/* The ranks that the wait of this one names, at most `most`; how many. */
uint32_t rank_targets(const struct ranks *ranks, int rank, int *targets, uint32_t most);

/* "rank 3", or "rank 3 of job 12" where there are several. */
struct words rank_name(const struct ranks *ranks, const struct page_process *name);

#endif
