/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring: every message arrives whole and in order, whatever its size, wherever the counters
 * stand, however the two ends are timed; and a header that cannot be is never believed. */
#include "common/ring/ring.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define SIZE_LARGEST 70000u

static int failures;

static void fail(const char *test, const char *what, unsigned long long a, unsigned long long b)
{
    fprintf(stderr, "%s: %s (%llu, %llu)\n", test, what, a, b);
    failures++;
}

/* A ring in memory of this process. */
struct fixture {
    struct ring_feedback *feedback;
    struct ring_line *lines;
    uint64_t *stale;
    struct ring_sender sender;
    struct ring_receiver receiver;
};

static void *memory_get(size_t bytes)
{
    void *memory = aligned_alloc(RING_LINE_BYTES, bytes);

    if (NULL == memory)
        abort();
    memset(memory, 0, bytes);
    return memory;
}

static void fixture_create(struct fixture *fixture, uint32_t lines)
{
    fixture->feedback = memory_get(sizeof(*fixture->feedback));
    fixture->lines = memory_get(ring_bytes(lines));
    fixture->stale = memory_get((ring_stale_words(lines) * 8 + 63) / 64 * 64);
    ring_sender_init(&fixture->sender, fixture->lines, lines, fixture->feedback, fixture->stale);
    ring_receiver_init(&fixture->receiver, fixture->lines, lines, fixture->feedback);
}

static void fixture_destroy(struct fixture *fixture)
{
    free(fixture->feedback);
    free(fixture->lines);
    free(fixture->stale);
}

/* What message `number` consists of: a piece of one text without period. */
#define TEXT_SHIFTS 251u

static unsigned char text[SIZE_LARGEST + TEXT_SHIFTS];

static void text_fill(void)
{
    uint32_t state = 99;

    for (size_t i = 0; i < sizeof(text); i++) {
        state = state * 1664525u + 1013904223u;
        text[i] = (unsigned char) (state >> 24);
    }
}

static const unsigned char *text_of(uint32_t number)
{
    return text + number % TEXT_SHIFTS;
}

/* Message `number`: its start in the first line and its tag follow from the number. */
static unsigned start_of(uint32_t number)
{
    return 8 * (1 + number % 8);
}

static bool send_one(struct ring_sender *sender, uint32_t number, uint32_t length)
{
    unsigned start = start_of(number);
    bool by_line = RING_HEADER_BYTES == start && length <= RING_LINE_PAYLOAD && 0 != number % 3;
    unsigned char *room = by_line ? ring_reserve_line(sender) : ring_reserve(sender, start, length);

    if (NULL == room)
        return false;
    memcpy(room, text_of(number), length);
    if (by_line)
        ring_publish_line(sender, (uint8_t) number, RING_KIND_FIRST + number % 15, length);
    else
        ring_publish(sender, (uint8_t) number, RING_KIND_FIRST + number % 15, start, length);
    return true;
}

static bool receive_one(struct ring_receiver *receiver, uint32_t number, uint32_t length,
                        const char *test)
{
    struct ring_message message;
    enum ring_result result = ring_peek(receiver, &message);

    if (RING_EMPTY == result)
        return false;
    if (RING_MESSAGE != result)
        fail(test, "a header is taken for broken", number, length);
    else if (message.length != length || message.tag != (uint8_t) number ||
             message.kind != RING_KIND_FIRST + number % 15)
        fail(test, "another message came", message.length, length);
    else if (0 != memcmp(message.payload, text_of(number), length))
        fail(test, "bytes are wrong", number, length);
    ring_release(receiver, &message);
    return true;
}

static void sizes_all(void)
{
    struct fixture fixture;
    uint32_t number = 0;

    fixture_create(&fixture, 8192);
    for (uint32_t length = 0; length <= SIZE_LARGEST && 0 == failures; length++, number++) {
        if (!send_one(&fixture.sender, number, length))
            fail("every size", "no room in an empty ring", length, number);
        else if (!receive_one(&fixture.receiver, number, length, "every size"))
            fail("every size", "nothing came", length, number);
    }
    fixture_destroy(&fixture);
}

static uint32_t random_next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Fills and empties by chance, so that every fill level meets every place in the lap. */
static void levels_all(uint32_t lines, uint32_t steps, uint32_t seed)
{
    struct fixture fixture;
    uint32_t sent = 0, received = 0, choice = seed, out = seed, in = seed;
    uint32_t next_length, longest = ring_length_max(lines) - 64 + 8;
    struct ring_message message;

    fixture_create(&fixture, lines);
    next_length = random_next(&out) % longest;
    uint32_t expected_length = random_next(&in) % longest;
    for (uint32_t step = 0; step < steps && 0 == failures; step++) {
        uint32_t burst = random_next(&choice) % 24;

        if (random_next(&choice) % 2)
            for (; burst > 0 && send_one(&fixture.sender, sent, next_length); burst--, sent++)
                next_length = random_next(&out) % longest;
        else
            for (; burst > 0 && received < sent; burst--, received++) {
                if (!receive_one(&fixture.receiver, received, expected_length, "every level"))
                    fail("every level", "a message is missing", received, sent);
                expected_length = random_next(&in) % longest;
            }
        if (received == sent && RING_EMPTY != ring_peek(&fixture.receiver, &message))
            fail("every level", "a message that was not sent", received, step);
    }
    fixture_destroy(&fixture);
}

/* An emptied ring always takes the longest message, wherever it stands: the sender never waits for
 * a receiver that has nothing to read. */
static void longest_always_fits(void)
{
    for (uint32_t lines = RING_LINES_MIN; lines <= 64; lines *= 2)
        for (uint32_t filler = 0; filler <= ring_length_max(lines); filler += 8) {
            struct fixture fixture;
            uint32_t number = 0;

            fixture_create(&fixture, lines);
            for (int i = 0; i < 200 && 0 == failures; i++) {
                uint32_t length = i % 3 ? filler : ring_length_max(lines);

                if (!send_one(&fixture.sender, number, length))
                    fail("longest message", "no room in an empty ring", length, number);
                else
                    receive_one(&fixture.receiver, number, length, "longest message");
                number++;
            }
            fixture_destroy(&fixture);
        }
}

/* Moves both ends to `position`, as if that many lines had passed with nothing left in the ring. */
static void fixture_move(struct fixture *fixture, uint64_t position)
{
    uint32_t lines = fixture->sender.mask + 1;

    fixture->sender.head = fixture->receiver.tail = fixture->receiver.freed = position;
    atomic_store_explicit(&fixture->feedback->freed, position, memory_order_relaxed);
    fixture->sender.stop = position;
    /* What lies there could be anything. */
    ring_mark_stale(&fixture->sender, UINT32_MAX, lines + 1);
    for (uint32_t i = 0; i < lines; i++)
        atomic_store_explicit(&fixture->lines[i].header, 0, memory_order_relaxed);
}

/* Positions pass 2^32 lines, laps pass 2^16: nothing is special there. */
static void counters_wrap(void)
{
    static const uint64_t around[] = {UINT64_C(1) << 16, UINT64_C(1) << 20, UINT64_C(1) << 32,
                                      UINT64_C(1) << 48, UINT64_C(1) << 63};
    uint32_t lines = 16;

    for (size_t i = 0; i < sizeof(around) / sizeof(around[0]); i++) {
        struct fixture fixture;

        fixture_create(&fixture, lines);
        fixture_move(&fixture, around[i] - 5 * lines);
        for (uint32_t number = 0; number < 40 * lines && 0 == failures; number++) {
            uint32_t length = number % ring_length_max(lines);

            if (!send_one(&fixture.sender, number, length))
                fail("counters", "no room in an empty ring", around[i], number);
            else
                receive_one(&fixture.receiver, number, length, "counters");
        }
        fixture_destroy(&fixture);
    }
}

/* 2^16 laps one after the other, for the lap in the header. A receiver that looks before a message
 * is there sees nothing, in no lap: the line may be one that the sender has cleared. */
static void laps_wrap(void)
{
    struct fixture fixture;
    struct ring_message message;
    uint32_t number = 0;

    fixture_create(&fixture, RING_LINES_MIN);
    for (; fixture.sender.head < 70000u * RING_LINES_MIN && 0 == failures; number++)
        if (RING_EMPTY != ring_peek(&fixture.receiver, &message) ||
            !send_one(&fixture.sender, number, number % 5 ? 8 : 100) ||
            !receive_one(&fixture.receiver, number, number % 5 ? 8 : 100, "laps"))
            fail("laps", "a message did not pass", number, 0);
    fixture_destroy(&fixture);
}

/* Whatever stands in the lines, a receiver stays within them. */
static void headers_checked(void)
{
    struct fixture fixture;
    uint32_t state = 1, broken = 0;
    const uint32_t lines = 64;
    unsigned char *begin;

    fixture_create(&fixture, lines);
    begin = (unsigned char *) fixture.lines;
    for (int i = 0; i < 200000; i++) {
        struct ring_message message;
        uint32_t first = (uint32_t) fixture.receiver.tail & (lines - 1);
        uint64_t header = (uint64_t) random_next(&state) << 40 ^ (uint64_t) random_next(&state)
                                                                     << 16;

        if (random_next(&state) % 2)
            header &= UINT64_C(0x00000fffffffffff); /* small enough to be believed at times */
        header &= ~UINT64_C(0xffff);
        header |= ring_lap(fixture.receiver.tail, fixture.receiver.shift);
        atomic_store_explicit(&fixture.lines[first].header, header, memory_order_relaxed);
        enum ring_result result = ring_peek(&fixture.receiver, &message);
        unsigned char *data = message.payload;

        if (RING_BROKEN == result) {
            broken++;
        } else if (RING_MESSAGE == result) {
            if (data < begin || data + message.length > begin + ring_bytes(lines))
                fail("bad headers", "payload outside of the ring", header, message.length);
            ring_release(&fixture.receiver, &message);
        }
    }
    if (0 == broken)
        fail("bad headers", "none was refused", 0, 0);
    fixture_destroy(&fixture);
}

/* A receiver that reports what cannot be gives no room. */
static void feedback_checked(void)
{
    struct fixture fixture;
    uint32_t number = 0;

    fixture_create(&fixture, RING_LINES_MIN);
    while (send_one(&fixture.sender, number, 8))
        number++;
    atomic_store_explicit(&fixture.feedback->freed, UINT64_MAX - 3, memory_order_relaxed);
    if (NULL != ring_reserve(&fixture.sender, 8, 8))
        fail("bad feedback", "room where there is none", number, 0);
    fixture_destroy(&fixture);
}

/* Two threads. */
struct stream {
    struct fixture fixture;
    uint32_t count;
    uint32_t longest;
};

static void *stream_send(void *argument)
{
    struct stream *stream = argument;
    uint32_t state = 7;

    for (uint32_t number = 0; number < stream->count; number++) {
        uint32_t length = random_next(&state) % (stream->longest + 1);

        while (!send_one(&stream->fixture.sender, number, length))
            sched_yield();
    }
    return NULL;
}

static void stream_run(uint32_t lines, uint32_t count, uint32_t longest)
{
    struct stream stream = {.count = count, .longest = longest};
    uint32_t state = 7;
    pthread_t thread;

    fixture_create(&stream.fixture, lines);
    if (0 != pthread_create(&thread, NULL, stream_send, &stream))
        abort();
    for (uint32_t number = 0; number < count; number++) {
        uint32_t length = random_next(&state) % (longest + 1);

        while (!receive_one(&stream.fixture.receiver, number, length, "two threads"))
            sched_yield();
    }
    pthread_join(thread, NULL);
    fixture_destroy(&stream.fixture);
}

int main(void)
{
    text_fill();
    sizes_all();
    for (uint32_t lines = RING_LINES_MIN; lines <= 256; lines *= 2)
        levels_all(lines, 20000, lines);
    longest_always_fits();
    counters_wrap();
    laps_wrap();
    headers_checked();
    feedback_checked();
    stream_run(16, 30000, 128);
    stream_run(64, 30000, 56);
    stream_run(1024, 10000, 8192);
    if (0 == failures)
        printf("the ring holds\n");
    return 0 != failures;
}
