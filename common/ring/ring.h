/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring for one sender and one receiver that share memory: messages of any length in order, found
 * by the receiver with one look at one cache line. */
#ifndef MULTILANE_RING_H
#define MULTILANE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* How it works.
 *
 * The ring is a power of two of 64-byte lines. A message takes as many consecutive lines as it
 * needs, and its first line begins with one word, the header: lap, tag, kind, where the payload
 * starts, its length. The header is the flag: the receiver polls the header of the line that it
 * expects next, and the message is there when the lap is the one expected. So a message that fits
 * one line moves one line, and both ends only wait on memory that lives with them: the lines are
 * the receiver's memory (the creator of the ring places them there), the counter of freed lines is
 * the sender's. Nothing is ever reset: positions count lines since the ring was made and only grow.
 *
 * What a line held a lap ago must not look like a header. A line that was a first line still holds
 * the header of the last lap, which has another lap number. A line that was in the middle of a
 * message, or was skipped at the end of the lap, holds anything: the sender remembers such lines as
 * stale in a private bitmap. Before it publishes a message it clears the header of the line that
 * follows, if that one is stale; the receiver looks there only after it has seen the message. (In a
 * full ring that line is the first of the oldest message, and so not stale.)
 *
 * A message does not wrap. One that does not fit before the end of the lap goes to the start of the
 * next, behind a header that says "skip".
 *
 * Memory order, all of it: the store-release of a header pairs with the receiver's load-acquire of
 * the same header (payload before, clearing of the following header before); the store-release of
 * `freed` pairs with the sender's load-acquire of it (the receiver's reads of payload before, the
 * sender's writes over it after). test/unit/ring_model.c walks all interleavings of small rings. */

#define RING_LINE_BYTES   64
#define RING_LINES_MIN    16u
#define RING_LINES_MAX    (1u << 20)
#define RING_HEADER_BYTES 8u
/* A sender asks for the line that it will write after so many more. Where the two processors share
 * no near cache each line takes longer on its way than a small message takes to be made. */
#define RING_WRITE_AHEAD 8u

struct ring_line {
    _Alignas(RING_LINE_BYTES) _Atomic uint64_t header;
    unsigned char payload[RING_LINE_BYTES - RING_HEADER_BYTES];
};

_Static_assert(sizeof(struct ring_line) == RING_LINE_BYTES, "a line is a cache line");

/* What the receiver writes and the sender waits on or looks at: the sender's memory. */
struct ring_feedback {
    /* Lines that the receiver has done with, since the ring was made. */
    _Alignas(RING_LINE_BYTES) _Atomic uint64_t freed;
    /* Not 0 while the receiver looks at this ring without being told to. Written seldom, read by
     * the sender with every message, hence on a line of its own. A hint: see ring_is_attended. */
    _Alignas(RING_LINE_BYTES) _Atomic uint32_t attended;
};

enum ring_kind {
    RING_KIND_SKIP = 0, /* nothing until the end of the lap */
    RING_KIND_FIRST = 1 /* this and all above, to 15: the user's */
};

/* Header word, from the lowest bit: lap 16, tag 8, kind 4, start of the payload in words 4, length
 * in bytes 32. */
static inline uint64_t ring_header(uint16_t lap, uint8_t tag, unsigned kind, unsigned start_bytes,
                                   uint32_t length)
{
    return (uint64_t) lap | (uint64_t) tag << 16 | (uint64_t) kind << 24 |
           (uint64_t) (start_bytes / 8) << 28 | (uint64_t) length << 32;
}

struct ring_sender {
    struct ring_line *lines;
    uint64_t head; /* position of the next message */
    uint64_t stop; /* a message that ends here or before needs no further check */
    uint32_t mask; /* lines - 1 */
    uint32_t shift;
    struct ring_feedback *feedback;
    uint64_t *stale; /* one bit a line */
    /* No message ends behind this position; RING_NO_LIMIT: anywhere. The owner of the ring sets it
     * to be asked, by a reservation that fails, after so many lines. */
    uint64_t limit;
};

#define RING_NO_LIMIT UINT64_MAX

struct ring_receiver {
    struct ring_line *lines;
    uint64_t tail; /* position of the next message */
    uint32_t mask;
    uint32_t shift;
    uint64_t freed; /* what the sender was told last */
    struct ring_feedback *feedback;
};

struct ring_message {
    void *payload;
    uint32_t length;
    uint8_t tag;
    uint8_t kind;
    uint32_t lines;
};

enum ring_result {
    RING_EMPTY = 0,
    RING_MESSAGE = 1,
    RING_BROKEN = -1 /* the header breaks the rules: the sender's memory is not to be trusted */
};

/* Between two looks in vain: leaves the core to its other thread, and the line that both look at to
 * the one that is about to write it. */
static inline void ring_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Asks for a line before it is needed, to be read or to be written. */
static inline void ring_fetch(const struct ring_line *line)
{
    __builtin_prefetch(line, 0);
}

static inline void ring_fetch_to_write(struct ring_line *line)
{
#if defined(__x86_64__) || defined(__i386__)
    /* Compilers take the instruction for reading unless they build for a newer processor. */
    __asm__ volatile("prefetchw %0" : : "m"(*line));
#else
    __builtin_prefetch(line, 1);
#endif
}

static inline size_t ring_bytes(uint32_t lines)
{
    return (size_t) lines * RING_LINE_BYTES;
}

static inline bool ring_lines_valid(uint64_t lines)
{
    return lines >= RING_LINES_MIN && lines <= RING_LINES_MAX && (lines & (lines - 1)) == 0;
}

/* Words of the bitmap that a sender needs. */
static inline size_t ring_stale_words(uint32_t lines)
{
    return (lines + 63) / 64;
}

/* The longest message: a quarter of the ring, so that it always fits in the end, although up to its
 * own length may be skipped before it and a quarter be freed but not yet reported. */
static inline uint32_t ring_length_max(uint32_t lines)
{
    return lines / 4 * RING_LINE_BYTES - RING_LINE_BYTES;
}

/* Lines, feedback and bitmap are cleared memory, or are as this ring left them. */
void ring_sender_init(struct ring_sender *sender, struct ring_line *lines, uint32_t line_count,
                      struct ring_feedback *feedback, uint64_t *stale);
void ring_receiver_init(struct ring_receiver *receiver, struct ring_line *lines,
                        uint32_t line_count, struct ring_feedback *feedback);

/* Makes room when the short check failed: learns what was freed, skips the rest of a lap. */
bool ring_make_room(struct ring_sender *sender, uint32_t line_count);

/* How many lines the receiver has freed and no message takes. */
uint64_t ring_free_lines(const struct ring_sender *sender);

/* Remembers as stale the lines of a message but its first. */
void ring_mark_stale(struct ring_sender *sender, uint32_t first, uint32_t line_count);

/* From 1 to 2^15 and again: never 0, which is what a cleared line holds. */
static inline uint16_t ring_lap(uint64_t position, uint32_t shift)
{
    return (uint16_t) ((position >> shift & 0x7fff) + 1);
}

static inline uint32_t ring_lines_of(unsigned start_bytes, size_t length)
{
    return (uint32_t) ((start_bytes + length + RING_LINE_BYTES - 1) / RING_LINE_BYTES);
}

static inline void *ring_reserve_lines(struct ring_sender *sender, unsigned start_bytes,
                                       uint32_t lines)
{
    if (__builtin_expect(sender->head + lines > sender->stop, 0) && !ring_make_room(sender, lines))
        return NULL;
    return (unsigned char *) &sender->lines[sender->head & sender->mask] + start_bytes;
}

/* Room for a message whose payload starts `start_bytes` (a multiple of 8, from 8 to 64) into its
 * first line. Returns where the payload goes, or NULL while the ring is full. `length` is at most
 * ring_length_max. Nothing is sent before ring_publish, and a reservation may simply be dropped. */
static inline void *ring_reserve(struct ring_sender *sender, unsigned start_bytes, size_t length)
{
    return ring_reserve_lines(sender, start_bytes, ring_lines_of(start_bytes, length));
}

/* Clears what might be mistaken for a header where the next message will begin. */
static inline void ring_clear_stale(struct ring_sender *sender, uint64_t position)
{
    uint32_t line = (uint32_t) position & sender->mask;
    uint64_t bit = UINT64_C(1) << (line & 63);

    if (__builtin_expect((sender->stale[line / 64] & bit) != 0, 0)) {
        sender->stale[line / 64] &= ~bit;
        /* Relaxed: the store-release of the header before it makes it visible in time. */
        atomic_store_explicit(&sender->lines[line].header, 0, memory_order_relaxed);
    }
}

static inline void ring_publish_lines(struct ring_sender *sender, uint8_t tag, unsigned kind,
                                      unsigned start_bytes, size_t length, uint32_t lines)
{
    uint32_t first = (uint32_t) sender->head & sender->mask;
    uint16_t lap = ring_lap(sender->head, sender->shift);

    if (lines > 1)
        ring_mark_stale(sender, first, lines);
    sender->head += lines;
    ring_clear_stale(sender, sender->head);
    /* Release: payload and clearing are seen by a receiver that sees this header (ring_peek). */
    atomic_store_explicit(&sender->lines[first].header,
                          ring_header(lap, tag, kind, start_bytes, (uint32_t) length),
                          memory_order_release);
    ring_fetch_to_write(&sender->lines[(sender->head + RING_WRITE_AHEAD) & sender->mask]);
}

/* Sends what was reserved last, with the same start and length. */
static inline void ring_publish(struct ring_sender *sender, uint8_t tag, unsigned kind,
                                unsigned start_bytes, size_t length)
{
    ring_publish_lines(sender, tag, kind, start_bytes, length, ring_lines_of(start_bytes, length));
}

/* Both for a message of one line, as most are, whose payload starts behind the header: less than
 * half of the work. */
#define RING_LINE_PAYLOAD (RING_LINE_BYTES - RING_HEADER_BYTES)

static inline void *ring_reserve_line(struct ring_sender *sender)
{
    return ring_reserve_lines(sender, RING_HEADER_BYTES, 1);
}

static inline void ring_publish_line(struct ring_sender *sender, uint8_t tag, unsigned kind,
                                     size_t length)
{
    ring_publish_lines(sender, tag, kind, RING_HEADER_BYTES, length, 1);
}

/* Whether the receiver looks at this ring by itself; if not, the sender has to tell it that a
 * message came. Relaxed and without a fence after the publishing, which would cost more than the
 * message: a receiver that turns away at this very moment may miss the message, so it must still
 * look at rings it does not attend now and then. */
static inline bool ring_is_attended(const struct ring_sender *sender)
{
    return atomic_load_explicit(&sender->feedback->attended, memory_order_relaxed) != 0;
}

static inline void ring_attend(struct ring_receiver *receiver, bool attended)
{
    atomic_store_explicit(&receiver->feedback->attended, attended, memory_order_relaxed);
}

/* Whether anything waits: for deciding where to look. */
static inline bool ring_has_message(const struct ring_receiver *receiver)
{
    uint64_t header = atomic_load_explicit(&receiver->lines[receiver->tail & receiver->mask].header,
                                           memory_order_relaxed);

    return (uint16_t) header == ring_lap(receiver->tail, receiver->shift);
}

/* Tells the sender what it may write again. Release: after the last read of the payload. */
static inline void ring_report_freed(struct ring_receiver *receiver)
{
    receiver->freed = receiver->tail;
    atomic_store_explicit(&receiver->feedback->freed, receiver->tail, memory_order_release);
}

/* The message that comes next. It stays where it is until ring_release. */
static inline enum ring_result ring_peek(struct ring_receiver *receiver,
                                         struct ring_message *message)
{
    for (;;) {
        uint64_t tail = receiver->tail;
        uint32_t mask = receiver->mask, first = (uint32_t) tail & mask;
        /* Acquire: the partner is the store-release in ring_publish. */
        uint64_t header =
            atomic_load_explicit(&receiver->lines[first].header, memory_order_acquire);
        unsigned start = (unsigned) (header >> 28 & 15) * 8;

        if ((uint16_t) header != ring_lap(tail, receiver->shift))
            return RING_EMPTY;
        message->length = (uint32_t) (header >> 32);
        message->kind = header >> 24 & 15;
        message->tag = (uint8_t) (header >> 16);
        message->payload = (unsigned char *) &receiver->lines[first] + start;
        if (__builtin_expect(message->kind == RING_KIND_SKIP, 0)) {
            receiver->tail = tail + mask + 1 - first;
            continue;
        }
        message->lines = ring_lines_of(start, message->length);
        if (__builtin_expect(start - 8 > RING_LINE_BYTES - 8 || first + message->lines > mask + 1,
                             0))
            return RING_BROKEN;
        ring_fetch(&receiver->lines[(first + message->lines) & mask]);
        return RING_MESSAGE;
    }
}

/* Done with the message that ring_peek returned. The sender is told a quarter of a ring at a time.
 */
static inline void ring_release(struct ring_receiver *receiver, const struct ring_message *message)
{
    receiver->tail += message->lines;
    if (__builtin_expect(receiver->tail - receiver->freed > receiver->mask / 4, 0))
        ring_report_freed(receiver);
}

#endif
