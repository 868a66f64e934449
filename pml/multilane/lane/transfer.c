/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of the thread that owns a transfer. */
#include "lane/transfer.h"

#include "lane/lane.h"

/* More than the pieces that can be under way. */
#define TRANSFER_KICK 0x10000u

/* Starts pieces until `depth` are under way, none are left, or (false) the lanes have no room. */
static bool transfer_fill(struct transfer *transfer)
{
    while (transfer->next < transfer->end && transfer->in_flight < transfer->depth &&
           atomic_load_explicit(&transfer->status, memory_order_relaxed) == OMPI_SUCCESS) {
        size_t size = transfer->end - transfer->next;
        int rc = transfer->way->start(transfer, transfer->next, &size);
        if (rc == LANE_AGAIN)
            return false;
        if (rc != OMPI_SUCCESS) {
            atomic_store_explicit(&transfer->status, rc, memory_order_relaxed);
            break;
        }
        transfer->next += size;
        transfer->in_flight++;
    }
    return true;
}

/* True: no lane has room and no piece is under way, so the caller has to try again later. */
static bool transfer_event(struct transfer *transfer, uint32_t event)
{
    /* Acquire, against the release below: this thread sees what the last owner wrote. Release,
     * against the acquire of the owner: it sees what came before this event. */
    uint32_t seen = event;
    if (atomic_fetch_add_explicit(&transfer->guard, event, memory_order_acq_rel) != 0)
        return false;
    for (;;) {
        transfer->in_flight -= seen % TRANSFER_KICK;
        bool had_room = transfer_fill(transfer);
        int status = atomic_load_explicit(&transfer->status, memory_order_relaxed);
        if (transfer->in_flight == 0 &&
            (status != OMPI_SUCCESS || transfer->next == transfer->end)) {
            transfer->way->finish(transfer, status);
            return false;
        }
        /* While pieces are under way, the end of one makes its thread try again. */
        bool waits = !had_room && transfer->in_flight == 0;
        uint32_t left =
            atomic_fetch_sub_explicit(&transfer->guard, seen, memory_order_acq_rel) - seen;
        if (left == 0)
            return waits;
        seen = left;
    }
}

static int transfer_retry(struct pending *pending)
{
    struct transfer *transfer =
        (struct transfer *) ((char *) pending - offsetof(struct transfer, pending));
    return transfer_event(transfer, TRANSFER_KICK) ? LANE_AGAIN : OMPI_SUCCESS;
}

static void transfer_go(struct transfer *transfer, uint32_t event)
{
    if (transfer_event(transfer, event))
        pending_add(&transfer->pending);
}

void transfer_begin(struct transfer *transfer, const struct transfer_steps *way, size_t from,
                    size_t end, uint32_t depth)
{
    transfer->depth = depth;
    transfer->way = way;
    /* Relaxed: no other thread knows of the transfer yet. */
    atomic_store_explicit(&transfer->guard, 0, memory_order_relaxed);
    atomic_store_explicit(&transfer->status, OMPI_SUCCESS, memory_order_relaxed);
    transfer->in_flight = 0;
    transfer->next = from;
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
