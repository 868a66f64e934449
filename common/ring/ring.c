/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the ring that are not needed with every message. */
#include "common/ring/ring.h"

static uint32_t log2_of(uint32_t power_of_two)
{
    uint32_t shift = 0;

    while ((UINT32_C(1) << shift) < power_of_two)
        shift++;
    return shift;
}

/* The end of the lap, the last position that may be written or the limit, whichever comes first.
 * The line behind a message must be free too, because its header may have to be cleared. */
static uint64_t stop_of(const struct ring_sender *sender, uint64_t freed)
{
    uint64_t lines = (uint64_t) sender->mask + 1;
    uint64_t lap_end = (sender->head | sender->mask) + 1;
    uint64_t last = freed + lines < sender->limit ? freed + lines : sender->limit;

    return lap_end < last ? lap_end : last;
}

void ring_sender_init(struct ring_sender *sender, struct ring_line *lines, uint32_t line_count,
                      struct ring_feedback *feedback, uint64_t *stale)
{
    sender->lines = lines;
    sender->head = 0;
    sender->mask = line_count - 1;
    sender->shift = log2_of(line_count);
    sender->feedback = feedback;
    sender->stale = stale;
    sender->limit = RING_NO_LIMIT;
    sender->stop = stop_of(sender, 0);
}

void ring_receiver_init(struct ring_receiver *receiver, struct ring_line *lines,
                        uint32_t line_count, struct ring_feedback *feedback)
{
    receiver->lines = lines;
    receiver->tail = 0;
    receiver->mask = line_count - 1;
    receiver->shift = log2_of(line_count);
    receiver->freed = 0;
    receiver->feedback = feedback;
}

/* What the receiver reports is memory that it can write at will: a value that cannot be is no room.
 */
static uint64_t freed_load(const struct ring_sender *sender)
{
    /* Acquire: the partner is the store-release in ring_report_freed. */
    uint64_t freed = atomic_load_explicit(&sender->feedback->freed, memory_order_acquire);
    uint64_t lines = (uint64_t) sender->mask + 1;

    if (freed > sender->head)
        return sender->head > lines ? sender->head - lines : 0;
    return freed;
}

uint64_t ring_free_lines(const struct ring_sender *sender)
{
    return (uint64_t) sender->mask + 1 - (sender->head - freed_load(sender));
}

void ring_mark_stale(struct ring_sender *sender, uint32_t first, uint32_t line_count)
{
    uint32_t line = first + 1;
    uint32_t end = first + line_count;

    while (line < end) {
        uint32_t bit = line & 63;
        uint32_t count = end - line < 64 - bit ? end - line : 64 - bit;
        uint64_t bits = count == 64 ? ~UINT64_C(0) : ((UINT64_C(1) << count) - 1) << bit;

        sender->stale[line / 64] |= bits;
        line += count;
    }
}

/* Leaves out the lines up to the end of the lap. They and the first line of the next lap are free.
 */
static void lap_skip(struct ring_sender *sender)
{
    uint32_t first = (uint32_t) sender->head & sender->mask;
    uint16_t lap = ring_lap(sender->head, sender->shift);

    ring_mark_stale(sender, first, sender->mask + 1 - first);
    sender->head += sender->mask + 1 - first;
    ring_clear_stale(sender, sender->head);
    /* Release: the clearing is seen first, as in ring_publish. */
    atomic_store_explicit(&sender->lines[first].header, ring_header(lap, 0, RING_KIND_SKIP, 0, 0),
                          memory_order_release);
}

bool ring_make_room(struct ring_sender *sender, uint32_t line_count)
{
    uint64_t freed = freed_load(sender);
    uint64_t lap_end = (sender->head | sender->mask) + 1;

    if (sender->head + line_count > lap_end) {
        if (lap_end > freed + sender->mask + 1)
            return false;
        lap_skip(sender);
    }
    sender->stop = stop_of(sender, freed);
    return sender->head + line_count <= sender->stop;
}
