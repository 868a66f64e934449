/* SPDX-License-Identifier: BSD-3-Clause */
/* A message that comes in pieces is whole in the end, or its peer is told apart: one that breaks
 * the rules, and one for whose message there is no memory. */
#include "test/unit/check.h"

#include <string.h>

#include "btl/shm/shm.h"

/* local.mk gives pieces.c this one. */
void *malloc_at_times(size_t size);
static bool memory_is_out;

void *malloc_at_times(size_t size)
{
    return memory_is_out ? NULL : calloc(1, size);
}

static const char *failed_why;

void shm_peer_fail(shm_peer_t *failed, const char *why)
{
    (void) failed;
    failed_why = why;
}

static shm_peer_t peer;

/* `size` bytes of a message of `whole` bytes, from `offset` on. */
static bool add(uint32_t whole, uint32_t offset, uint32_t size, struct ring_message *message)
{
    unsigned char payload[sizeof(struct shm_piece) + 100];
    struct shm_piece piece = {.whole = whole, .offset = offset};
    struct ring_message in = {.payload = payload,
                              .length = (uint32_t) sizeof(piece) + size,
                              .tag = 7,
                              .kind = SHM_KIND_ACTIVE_PIECE};

    memcpy(payload, &piece, sizeof(piece));
    for (uint32_t i = 0; i < size; i++)
        payload[sizeof(piece) + i] = (unsigned char) (offset + i);
    failed_why = NULL;
    return shm_piece_add(&peer, &in, message);
}

static void pieces_make_a_message(void)
{
    struct ring_message message;

    CHECK(add(150, 0, 100, &message) && !message.payload, "the first piece");
    CHECK(add(150, 100, 50, &message) && message.payload && message.length == 150 &&
              message.tag == 7 && message.kind == SHM_KIND_ACTIVE,
          "the last piece");
    for (unsigned i = 0; i < 150; i++)
        CHECK(((unsigned char *) message.payload)[i] == i, "byte %u", i);
    free(message.payload);
}

static void rules_are_held(void)
{
    struct ring_message message;

    CHECK(!add(150, 50, 100, &message), "no first piece");
    CHECK(!add(UINT32_MAX, 0, 100, &message), "longer than any ring takes");
    CHECK(add(150, 0, 100, &message), "the first piece");
    CHECK(!add(150, 101, 40, &message), "a byte is left out");
    CHECK(!add(150, 100, 51, &message), "a byte too many");
    CHECK(!failed_why, "said: %s", failed_why);
    free(peer.in_whole);
    peer.in_whole = NULL;
}

static void lack_of_memory_is_said(void)
{
    struct ring_message message;

    memory_is_out = true;
    CHECK(!add(150, 0, 100, &message) && failed_why && strstr(failed_why, "no memory"), "said: %s",
          failed_why ? failed_why : "nothing");
}

int main(void)
{
    pieces_make_a_message();
    rules_are_held();
    lack_of_memory_is_said();
    return check_end();
}
