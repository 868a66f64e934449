/* SPDX-License-Identifier: BSD-3-Clause */
/* The FIFO of btl/verbs' slots, with a thread for the device that writes it: every slot is taken
 * once, in order and whole, wherever the numbers stand, in whatever order a device writes it. */
#include "btl/verbs/slot_ring.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "test/unit/check.h"

#define HOLDS(condition) CHECK(condition, "%s", __func__)

static struct slot_ring *ring_new(uint32_t depth)
{
    size_t bytes = slot_ring_bytes(depth);
    struct slot_ring *ring = aligned_alloc(SLOT_BYTES, bytes);

    if (!ring)
        abort();
    memset(ring, 0, bytes);
    return ring;
}

/* Where the peer's device is told to write. */
static struct slot *place_of(struct slot_ring *ring, uint32_t number, uint32_t depth)
{
    return (struct slot *) ((unsigned char *) ring + slot_offset(number, depth));
}

static size_t length_of(uint32_t number)
{
    return number % (SLOT_MESSAGE_MAX + 1);
}

static void slot_make(struct slot *slot, uint32_t number, uint32_t depth)
{
    unsigned char message[SLOT_MESSAGE_MAX];

    for (size_t i = 0; i < sizeof(message); i++)
        message[i] = (unsigned char) (7 * number + 13 * i);
    verbs_slot_fill(slot, number, depth, message, length_of(number), (uint8_t) number);
}

/* As a device does: the lap last. */
static void slot_write(struct slot_ring *ring, uint32_t number, uint32_t depth)
{
    struct slot *place = place_of(ring, number, depth), slot;

    slot_make(&slot, number, depth);
    memcpy(place, &slot, offsetof(struct slot, lap));
    /* Release: pairs with verbs_slot_take. */
    atomic_store_explicit(&place->lap, atomic_load_explicit(&slot.lap, memory_order_relaxed),
                          memory_order_release);
}

static bool is_right(const struct slot *taken, uint32_t number, uint32_t depth)
{
    struct slot slot;

    slot_make(&slot, number, depth);
    return memcmp(taken, &slot, offsetof(struct slot, check)) == 0;
}

/* --- */

static void writer_and_reader_mean_the_same_place(void)
{
    struct slot_ring *ring = ring_new(16);

    for (uint32_t i = 0; i < 40; i++)
        HOLDS(place_of(ring, i, 16) == &ring->slots[i % 16]);
    HOLDS(slot_ring_bytes(16) ==
          (size_t) ((unsigned char *) &ring->slots[16] - (unsigned char *) ring));
    free(ring);
}

static void nothing_is_taken_that_was_not_written(void)
{
    struct slot_ring *ring = ring_new(16);
    struct slot taken;

    HOLDS(verbs_slot_take(ring, 0, 16, &taken) == SLOT_EMPTY);
    slot_write(ring, 1, 16); /* out of order */
    HOLDS(verbs_slot_take(ring, 0, 16, &taken) == SLOT_EMPTY);
    slot_write(ring, 0, 16);
    HOLDS(verbs_slot_take(ring, 0, 16, &taken) == SLOT_WHOLE && is_right(&taken, 0, 16));
    HOLDS(verbs_slot_take(ring, 1, 16, &taken) == SLOT_WHOLE && is_right(&taken, 1, 16));
    HOLDS(verbs_slot_take(ring, 16, 16, &taken) == SLOT_EMPTY); /* the same place, a lap later */
    free(ring);
}

/* The number goes round after 2^32 slots; the lap that follows is one that was there long ago. */
static void numbers_may_go_round(void)
{
    const uint32_t depth = 16;
    struct slot_ring *ring = ring_new(depth);
    struct slot taken;

    for (uint32_t number = UINT32_MAX - 3 * depth + 1; number != 3 * depth; number++) {
        HOLDS(verbs_slot_take(ring, number, depth, &taken) == SLOT_EMPTY);
        slot_write(ring, number, depth);
        HOLDS(verbs_slot_take(ring, number, depth, &taken) == SLOT_WHOLE);
        HOLDS(is_right(&taken, number, depth));
    }
    free(ring);
}

static void a_slot_that_is_ready_too_early_is_not_taken(void)
{
    const uint32_t depth = 16;
    struct slot_ring *ring = ring_new(depth);
    struct slot slot, taken;
    unsigned torn = 0;

    for (uint32_t number = 0; number < 4 * depth; number++) {
        struct slot *place = place_of(ring, number, depth);
        uint32_t lap;

        slot_make(&slot, number, depth);
        lap = atomic_load_explicit(&slot.lap, memory_order_relaxed);
        atomic_store_explicit(&place->lap, lap, memory_order_relaxed);
        /* The rest word by word, from the end. */
        for (size_t at = offsetof(struct slot, lap); at > 0; at -= 4) {
            enum slot_state state = verbs_slot_take(ring, number, depth, &taken);

            torn += state == SLOT_TORN;
            /* What is still missing may be the same as before. */
            HOLDS(state == SLOT_TORN || (state == SLOT_WHOLE && is_right(&taken, number, depth)));
            memcpy((unsigned char *) place + at - 4, (unsigned char *) &slot + at - 4, 4);
        }
        HOLDS(verbs_slot_take(ring, number, depth, &taken) == SLOT_WHOLE &&
              is_right(&taken, number, depth));
    }
    HOLDS(torn > 4 * depth);
    free(ring);
}

/* --- two ends at once --- */

#define SLOTS 200000u

struct writer {
    struct slot_ring *ring;
    uint32_t depth;
};

static void *writer_run(void *context)
{
    struct writer *writer = context;

    for (uint32_t number = 0; number < SLOTS; number++) {
        /* Acquire: pairs with the reader's release; what it has read may be written again. */
        while (number - atomic_load_explicit(&writer->ring->freed, memory_order_acquire) >=
               writer->depth)
            sched_yield();
        slot_write(writer->ring, number, writer->depth);
    }
    return NULL;
}

static void slots_of_a_running_writer_come_in_order(uint32_t depth)
{
    struct writer writer = {.ring = ring_new(depth), .depth = depth};
    struct slot taken;
    pthread_t thread;

    if (pthread_create(&thread, NULL, writer_run, &writer) != 0)
        abort();
    for (uint32_t number = 0; number < SLOTS; number++) {
        enum slot_state state;

        while ((state = verbs_slot_take(writer.ring, number, depth, &taken)) == SLOT_EMPTY)
            sched_yield();
        if (state != SLOT_WHOLE || !is_right(&taken, number, depth))
            CHECK(false, "slot %u of a FIFO of %u", number, depth);
        if ((number + 1) % (depth / 2) == 0)
            /* Release: pairs with the writer's acquire. */
            atomic_store_explicit(&writer.ring->freed, number + 1, memory_order_release);
    }
    pthread_join(thread, NULL);
    HOLDS(verbs_slot_take(writer.ring, SLOTS, depth, &taken) == SLOT_EMPTY);
    free(writer.ring);
}

/* --- */

static void the_depth_follows_what_is_in_flight(void)
{
    HOLDS(verbs_slot_ring_depth(0, 12288) == SLOTS_DEPTH_LEAST);
    HOLDS(verbs_slot_ring_depth(16 * 12288, 12288) == SLOTS_DEPTH_LEAST);
    HOLDS(verbs_slot_ring_depth(16 * 12288 + 1, 12288) == 32);
    HOLDS(verbs_slot_ring_depth(100, 1) == 128);
    HOLDS(verbs_slot_ring_depth(1e12, 12288) == SLOTS_DEPTH_MOST);
    HOLDS(verbs_slot_ring_depth(1e300 * 1e300, 12288) == SLOTS_DEPTH_MOST);
}

int main(void)
{
    writer_and_reader_mean_the_same_place();
    nothing_is_taken_that_was_not_written();
    numbers_may_go_round();
    a_slot_that_is_ready_too_early_is_not_taken();
    slots_of_a_running_writer_come_in_order(16);
    slots_of_a_running_writer_come_in_order(256);
    the_depth_follows_what_is_in_flight();
    return check_end();
}
