/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of the thread that owns a transfer. */
#include "lane/transfer.h"

#include "lane/lane.h"

/* More than the pieces that can be under way. */
#define TRANSFER_KICK 0x10000u

/* Starts pieces until `depth` are under way, none are left, or (false) the lanes have no room or
 * what is left of the turn is used up. */
static bool transfer_fill(struct transfer *transfer, size_t *turn_left)
{
    while (transfer->next < transfer->end && transfer->in_flight < transfer->depth &&
           atomic_load_explicit(&transfer->status, memory_order_relaxed) == OMPI_SUCCESS) {
        size_t size = transfer->end - transfer->next;
        if (size > TRANSFER_TURN_BYTES)
            size = TRANSFER_TURN_BYTES;
        int rc =
            *turn_left == 0 ? LANE_AGAIN : transfer->way->start(transfer, transfer->next, &size);
        if (rc == LANE_AGAIN)
            return false;
        if (rc != OMPI_SUCCESS) {
            atomic_store_explicit(&transfer->status, rc, memory_order_relaxed);
            break;
        }
        transfer->next += size;
        transfer->in_flight++;
        *turn_left -= size < *turn_left ? size : *turn_left;
    }
    return true;
}

/* Why the caller has to try again later: no piece is under way, and */
enum pause {
    PAUSE_NONE,
    PAUSE_FOR_ROOM,  /* no lane has room, or */
    PAUSE_FOR_OTHERS /* the turn is over */
};

static enum pause transfer_event(struct transfer *transfer, uint32_t event)
{
    size_t turn_left = TRANSFER_TURN_BYTES;
    /* Acquire, against the release below: this thread sees what the last owner wrote. Release,
     * against the acquire of the owner: it sees what came before this event. */
    uint32_t seen = event;
    if (atomic_fetch_add_explicit(&transfer->guard, event, memory_order_acq_rel) != 0)
        return PAUSE_NONE;
    for (;;) {
        transfer->in_flight -= seen % TRANSFER_KICK;
        bool had_room = transfer_fill(transfer, &turn_left);
        int status = atomic_load_explicit(&transfer->status, memory_order_relaxed);
        if (transfer->in_flight == 0 &&
            (status != OMPI_SUCCESS || transfer->next == transfer->end)) {
            transfer->way->finish(transfer, status);
            return PAUSE_NONE;
        }
        /* While pieces are under way, the end of one makes its thread try again. */
        bool waits = !had_room && transfer->in_flight == 0;
        uint32_t left =
            atomic_fetch_sub_explicit(&transfer->guard, seen, memory_order_acq_rel) - seen;
        if (left == 0)
            return !waits ? PAUSE_NONE : turn_left == 0 ? PAUSE_FOR_OTHERS : PAUSE_FOR_ROOM;
        seen = left;
    }
}

static int transfer_retry(struct pending *pending)
{
    struct transfer *transfer =
        (struct transfer *) ((char *) pending - offsetof(struct transfer, pending));
    enum pause pause = transfer_event(transfer, TRANSFER_KICK);
    if (pause == PAUSE_FOR_OTHERS)
        pending_add(pending); /* something was done: its process need not yield */
    return pause == PAUSE_FOR_ROOM ? LANE_AGAIN : OMPI_SUCCESS;
}

static void transfer_go(struct transfer *transfer, uint32_t event)
{
    if (transfer_event(transfer, event) != PAUSE_NONE)
        pending_add(&transfer->pending);
}

void transfer_begin(struct transfer *transfer, const struct transfer_steps *way, size_t end,
                    uint32_t depth)
{
    transfer->depth = depth;
    transfer->way = way;
    /* Relaxed: no other thread knows of the transfer yet. */
    atomic_store_explicit(&transfer->guard, 0, memory_order_relaxed);
    atomic_store_explicit(&transfer->status, OMPI_SUCCESS, memory_order_relaxed);
    transfer->in_flight = 0;
    transfer->next = 0;
    transfer->end = end;
    transfer->pending = (struct pending){.retry = transfer_retry, .is_unsent = true};
    transfer_go(transfer, TRANSFER_KICK);
}

void transfer_piece_done(struct transfer *transfer, int status)
{
    if (OPAL_UNLIKELY(status != OMPI_SUCCESS)) {
        int none = OMPI_SUCCESS;
        atomic_compare_exchange_strong_explicit(&transfer->status, &none, status,
                                                memory_order_relaxed, memory_order_relaxed);
    }
    transfer_go(transfer, 1);
}
