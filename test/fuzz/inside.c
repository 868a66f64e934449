/* SPDX-License-Identifier: BSD-3-Clause */
/* Arbitrary headers for the PML's receive callback: linked with the PML, so that it knows which
 * handles, numbers and messages the PML is waiting for, and can come as near to them as a broken or
 * malicious peer. Around every buffer, and in the gaps of datatypes, bytes are watched. */
#include "inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compat/btl.h"
#include "errors_standin.h"
#include "contact/contact.h"
#include "match/inbound.h"
#include "base/multilane.h"
#include "request/recv_request.h"
#include "test/unit/check.h"

#define SLOTS         48
#define SLOT_ROUNDS   4000
#define SENDS         16
#define SENDS_IN_ALL  500
#define ROOM_MAX      3000
#define TAGS          6
#define CANARY        ((unsigned char) 0x5a)
#define CANARY_BYTES  64
#define PAYLOAD_MAX   5000
#define SEGMENTS_MAX  20
#define LARGE_MESSAGE 100000

/* A receive whose surroundings are watched. Of a vector, every second 4 bytes are a gap. */
struct held {
    unsigned char *block;
    size_t bytes; /* between the canaries */
    bool has_gaps;
    uint64_t posted_at; /* round */
    MPI_Request request;
};

/* A message under construction. */
struct forged {
    unsigned char head[1024];
    size_t length;
    size_t payload;
    mca_btl_base_module_t *btl;
};

struct open_message { /* of which parts were sent */
    bool is_open;
    struct wire_match match;
    uint64_t size;
};

static struct {
    MPI_Comm comm;
    uint32_t context;
    int size;
    uint64_t chance;
    uint64_t round;
    MPI_Datatype vector;
    struct held slots[SLOTS];
    MPI_Request sends[SENDS];
    unsigned send_count;
    unsigned char message[LARGE_MESSAGE];
    struct open_message open[3];
    struct fuzz_report *report;
} fuzz;

static uint64_t below(uint64_t bound)
{
    return chance_below(&fuzz.chance, bound);
}

static bool one_in(uint64_t count)
{
    return below(count) == 0;
}

/* --- receives and sends of ours
 * --------------------------------------------------------------------- */

static void slot_post(struct held *slot)
{
    slot->posted_at = fuzz.round;
    slot->has_gaps = one_in(3);
    slot->bytes = one_in(4) ? below(20) : below(ROOM_MAX);
    if (slot->has_gaps)
        slot->bytes = slot->bytes / 8 * 8 + 8;
    slot->block = malloc(slot->bytes + 2 * CANARY_BYTES);
    memset(slot->block, CANARY, slot->bytes + 2 * CANARY_BYTES);
    int source = one_in(2) ? MPI_ANY_SOURCE : (int) below((uint64_t) fuzz.size);
    int tag = one_in(2) ? MPI_ANY_TAG : (int) below(TAGS);
    if (slot->has_gaps)
        MPI_Irecv(slot->block + CANARY_BYTES, (int) (slot->bytes / 8), fuzz.vector, source, tag,
                  fuzz.comm, &slot->request);
    else
        MPI_Irecv(slot->block + CANARY_BYTES, (int) slot->bytes, MPI_BYTE, source, tag, fuzz.comm,
                  &slot->request);
}

static void slot_check(const struct held *slot)
{
    size_t end = CANARY_BYTES + slot->bytes;
    for (size_t i = 0; i < end + CANARY_BYTES; i++) {
        bool is_outside = i < CANARY_BYTES || i >= end;
        bool is_gap = slot->has_gaps && (i - CANARY_BYTES) % 8 >= 4;
        if (is_outside || is_gap)
            CHECK(slot->block[i] == CANARY, "delivery %llu wrote at byte %ld of a buffer of %zu%s",
                  (unsigned long long) fuzz.report->delivered, (long) i - CANARY_BYTES, slot->bytes,
                  is_gap ? ", into a gap" : "");
    }
}

static void slot_turn(struct held *slot)
{
    int done = 0;
    MPI_Test(&slot->request, &done, MPI_STATUS_IGNORE);
    slot_check(slot);
    if (done) {
        fuzz.report->completed++;
        free(slot->block);
        slot_post(slot);
    } else if (fuzz.round - slot->posted_at > SLOT_ROUNDS) {
        /* It waits for parts that are not forged any more. It stays as it is, in case they come. */
        slot_post(slot);
    }
}

static void send_turn(MPI_Request *request)
{
    int done = 0;
    MPI_Test(request, &done, MPI_STATUS_IGNORE);
    if (!done || fuzz.send_count == SENDS_IN_ALL)
        return;
    fuzz.send_count++;
    int to = 1 + (int) below((uint64_t) fuzz.size - 1);
    if (one_in(2))
        MPI_Issend(fuzz.message, 100, MPI_BYTE, to, 999, fuzz.comm, request);
    else
        MPI_Isend(fuzz.message, LARGE_MESSAGE, MPI_BYTE, to, 999, fuzz.comm, request);
}

/* --- delivery
 * --------------------------------------------------------------------------------------- */

static void segment_set(mca_btl_base_segment_t *segment, size_t length)
{
    memset(segment, 0, sizeof(*segment));
    segment->seg_addr.pval = malloc(length ? length : 1);
    segment->seg_len = length;
    memset(segment->seg_addr.pval, 0xa5, length);
}

/* Each segment is a block of its own, so that a checker sees a byte read behind it. */
static void deliver_in(const struct forged *forged, size_t count)
{
    mca_btl_base_segment_t segments[SEGMENTS_MAX];
    size_t left = forged->payload, here = count > 1 ? below(left + 1) : left;
    segment_set(&segments[0], forged->length + here);
    memcpy(segments[0].seg_addr.pval, forged->head, forged->length);
    left -= here;
    for (size_t i = 1; i < count; i++) {
        here = i + 1 < count ? below(left + 1) : left;
        segment_set(&segments[i], here);
        left -= here;
    }
    bool is_heard = compat_btl_deliver(forged->btl, NULL, WIRE_TAG, segments, count);
    CHECK(is_heard, "no function is registered for our tag");
    for (size_t i = 0; i < count; i++)
        free(segments[i].seg_addr.pval);
    fuzz.report->delivered++;
}

static struct peer *peer_of_rank(int rank)
{
    return multilane.local_peers[rank];
}

/* --- valid messages
 * --------------------------------------------------------------------------------- */

static void put(struct forged *forged, const void *bytes, size_t length)
{
    memcpy(forged->head + forged->length, bytes, length);
    forged->length += length;
}

static void forged_begin(struct forged *forged, int rank, uint8_t type, uint8_t flags)
{
    const struct wire_base base = {.type = type, .flags = flags, .from = (uint32_t) rank};
    forged->length = forged->payload = 0;
    forged->btl = peer_of_rank(rank)->lanes[0].btl;
    put(forged, &base, sizeof(base));
}

/* The only request of that kind. */
static struct wire_handle only_handle(enum handle_kind kind)
{
    const struct handle_table *table = &multilane.handles;
    for (uint32_t i = 0; i < table->size; i++)
        if (table->entries[i].kind == kind)
            return (struct wire_handle){i, table->entries[i].generation};
    return (struct wire_handle){0};
}

static struct wire_match match_next(int rank, int tag)
{
    return (struct wire_match){.sequence = peer_of_rank(rank)->next_receive_sequence,
                               .context = fuzz.context,
                               .source = rank,
                               .tag = tag};
}

static void forge_eager(struct forged *forged, int rank, const struct wire_match *match,
                        size_t payload)
{
    forged_begin(forged, rank, WIRE_EAGER, 0);
    put(forged, match, sizeof(*match));
    forged->payload = payload;
}

static void forge_part(struct forged *forged, int rank, const struct wire_match *match,
                       uint64_t size, uint64_t offset, size_t payload)
{
    const struct wire_part part = {*match, size, offset};
    forged_begin(forged, rank, WIRE_PART, 0);
    put(forged, &part, sizeof(part));
    forged->payload = payload;
}

static void forge_rts(struct forged *forged, int rank, const struct wire_rts *rts, size_t key)
{
    forged_begin(forged, rank, WIRE_RTS, 0);
    put(forged, rts, sizeof(*rts));
    memset(forged->head + forged->length, 0xc3, key);
    forged->length += key;
}

static void forge_control(struct forged *forged, int rank, uint8_t type, const void *body,
                          size_t length)
{
    forged_begin(forged, rank, type, 0);
    put(forged, body, length);
}

/* --- what must be refused, one by one
 * --------------------------------------------------------------- */

static void refused(const char *what, const struct forged *forged, size_t segments)
{
    uint64_t before = multilane.bad_headers;
    deliver_in(forged, segments);
    CHECK(multilane.bad_headers == before + 1, "%s: counted %llu times", what,
          (unsigned long long) (multilane.bad_headers - before));
}

static void bases_are_refused(void)
{
    static const uint8_t types[] = {0, WIRE_TYPES, WIRE_TYPES + 1, 255};
    struct wire_match match = match_next(1, 0);
    struct forged forged;
    for (size_t length = 0; length < sizeof(struct wire_base); length++) {
        forge_eager(&forged, 1, &match, 0);
        forged.length = length;
        refused("a part of a base", &forged, 1);
    }
    for (size_t i = 0; i < sizeof(types); i++) {
        forge_eager(&forged, 1, &match, 50);
        forged.head[0] = types[i];
        refused("a type that there is not", &forged, 1);
    }
    for (unsigned flag = WIRE_FLAGS + 1; flag < 256; flag <<= 1) {
        forge_eager(&forged, 1, &match, 50);
        forged.head[1] = (unsigned char) flag;
        refused("a flag that there is not", &forged, 1);
    }
    forge_eager(&forged, 1, &match, 50);
    const uint32_t ranks[] = {(uint32_t) fuzz.size, 1u << 20, UINT32_MAX};
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        memcpy(forged.head + offsetof(struct wire_base, from), &ranks[i], sizeof(ranks[i]));
        refused("a rank that there is not", &forged, 1);
    }
    forge_eager(&forged, 0, &match, 50);
    forged.btl = peer_of_rank(1)->lanes[0].btl;
    refused("our own rank over another's lane", &forged, 1);
    forged_begin(&forged, 1, WIRE_EAGER, WIRE_NAMED);
    refused("a name that is missing", &forged, 1);
    const struct wire_name stranger = {multilane.me.jobid + 77, 3};
    put(&forged, &stranger, sizeof(stranger));
    put(&forged, &match, sizeof(match));
    refused("a process of a job that we have nothing to do with", &forged, 1);
}

static void messages_are_refused(void)
{
    struct wire_match match = match_next(1, 0);
    struct forged forged;
    for (size_t cut = 1; cut <= sizeof(match); cut++) {
        forge_eager(&forged, 1, &match, 0);
        forged.length -= cut;
        refused("a part of a match", &forged, 1);
    }
    forge_eager(&forged, 1, &match, 100);
    refused("more segments than there can be", &forged, MCA_BTL_DES_MAX_SEGMENTS + 1);
    struct wire_match wrong = match;
    wrong.source = -1;
    forge_eager(&forged, 1, &wrong, 8);
    refused("source -1", &forged, 1);
    wrong = match;
    wrong.tag = MATCH_ANY;
    forge_eager(&forged, 1, &wrong, 8);
    refused("tag -1", &forged, 1);
    wrong = match;
    wrong.context = COMPAT_MAX_CONTEXT + 1;
    forge_eager(&forged, 1, &wrong, 8);
    refused("a context beyond all", &forged, 1);
    wrong = match;
    wrong.sequence += 1u << 25;
    forge_eager(&forged, 1, &wrong, 8);
    refused("a number far ahead", &forged, 1);
    forge_part(&forged, 1, &wrong, 100, 0, 50);
    refused("a part far ahead", &forged, 1);
    wrong = match_next(1, 0);
    wrong.source = fuzz.size;
    forge_eager(&forged, 1, &wrong, 8);
    refused("a source outside the communicator", &forged, 1);
}

static void parts_are_refused(void)
{
    static const struct {
        const char *what;
        uint64_t size, offset;
        size_t payload;
    } cases[] = {
        {"a part that is longer than its message", 10, 0, 11},
        {"a part beyond its message", 10, 11, 1},
        {"a part that ends beyond its message", 10, 5, 6},
        {"a part with nothing in it", 10, 0, 0},
        {"a part whose end overflows", UINT64_MAX, UINT64_MAX - 3, 8},
        {"a part of nothing", 0, 0, 1},
    };
    struct forged forged;
    struct wire_match match = match_next(1, 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        forge_part(&forged, 1, &match, cases[i].size, cases[i].offset, cases[i].payload);
        refused(cases[i].what, &forged, 1);
    }
    /* No receive is posted for this tag. */
    match = match_next(1, 500);
    forge_part(&forged, 1, &match, UINT64_MAX / 2, 0, 8);
    refused("a part of a message that is too long to come unasked", &forged, 1);
    match = match_next(1, 501);
    uint64_t before = multilane.bad_headers;
    forge_part(&forged, 1, &match, 100, 0, 8);
    deliver_in(&forged, 2);
    CHECK(multilane.bad_headers == before, "a good part is refused");
    forge_part(&forged, 1, &match, 101, 8, 8);
    refused("a part of another size", &forged, 1);
    match.tag++;
    forge_part(&forged, 1, &match, 100, 8, 8);
    refused("a part of another tag", &forged, 1);
    match.sequence++;
    forge_part(&forged, 1, &match, 50, 0, 50); /* whole: it would else stay */
    deliver_in(&forged, 1);
    match = match_next(1, 502);
    match.sequence++;
    forge_eager(&forged, 1, &match, 8);
    deliver_in(&forged, 1);
    forge_part(&forged, 1, &match, 50, 0, 8);
    refused("a part of a message that came whole, early", &forged, 1);
    match.sequence--;
    forge_eager(&forged, 1, &match, 8);
    deliver_in(&forged, 1);
    CHECK(multilane.bad_headers == before + 3, "a good message is refused");
}

static void control_is_refused(void)
{
    const struct wire_handle unknown = {7, 12345};
    struct forged forged;
    struct wire_rts rts = {.match = match_next(1, 0), .size = 100, .method = WIRE_METHODS};
    forge_rts(&forged, 1, &rts, 0);
    refused("a way that there is not", &forged, 1);
    rts.method = 0;
    forge_rts(&forged, 1, &rts, 0);
    refused("no way", &forged, 1);
    rts.method = WIRE_BY_GET;
    rts.key.length = WIRE_KEY_MAX + 1;
    forge_rts(&forged, 1, &rts, WIRE_KEY_MAX + 1);
    refused("a key that is too long", &forged, 1);
    rts.key.length = UINT32_MAX;
    forge_rts(&forged, 1, &rts, 16);
    refused("a key of 4 GiB", &forged, 1);
    rts.key.length = 17;
    forge_rts(&forged, 1, &rts, 16);
    refused("a key that is not all there", &forged, 1);
    rts.key.length = 8;
    rts.key.more = 9;
    forge_rts(&forged, 1, &rts, 16);
    refused("keys for other lanes that are not all there", &forged, 1);
    rts.key.more = UINT32_MAX - 7;
    forge_rts(&forged, 1, &rts, 16);
    refused("keys whose length overflows", &forged, 1);
    const struct wire_lane nowhere = {UINT8_MAX};
    forge_control(&forged, 1, WIRE_LANE, &nowhere, sizeof(nowhere));
    refused("a lane of a number that there is not", &forged, 1);

    const struct wire_rtr rtr = {
        .sender = unknown, .receiver = unknown, .size = 8, .method = WIRE_BY_SEND};
    forge_control(&forged, 1, WIRE_RTR, &rtr, sizeof(rtr));
    refused("a RTR for no request", &forged, 1);
    forge_control(&forged, 1, WIRE_RTR, &rtr, sizeof(rtr) - 1);
    refused("a part of a RTR", &forged, 1);
    const struct wire_ack ack = {unknown};
    forge_control(&forged, 1, WIRE_ACK, &ack, sizeof(ack));
    refused("an ACK for no request", &forged, 1);
    forge_control(&forged, 1, WIRE_NACK, &ack, sizeof(ack));
    refused("a NACK for no request", &forged, 1);
    const struct wire_fin fin = {unknown, 8};
    forge_control(&forged, 1, WIRE_FIN, &fin, sizeof(fin));
    refused("a FIN for no request", &forged, 1);
    const struct wire_fin_summed summed = {.fin = fin};
    forge_control(&forged, 1, WIRE_FIN_SUMMED, &summed, sizeof(summed));
    refused("a FIN with a sum for no request", &forged, 1);
    const struct wire_data data = {unknown, 0};
    forge_control(&forged, 1, WIRE_DATA, &data, sizeof(data));
    forged.payload = 8;
    refused("data for no request", &forged, 1);
}

/* A BTL that is no lane to the sender: its keys are for other lanes, so nothing is got or put. */
static void no_key_is_used_on_another_lane(void)
{
    static unsigned char source[1000];
    unsigned char buffer[1000];
    struct forged forged;
    MPI_Request request;
    struct wire_rts rts = {.match = match_next(1, 600),
                           .size = sizeof(source),
                           .sender = {3, 3},
                           .method = WIRE_BY_GET,
                           .key = {.address = (uintptr_t) source}};
    uint64_t before = multilane.bad_headers;
    memset(source, 1, sizeof(source));
    memset(buffer, 2, sizeof(buffer));
    MPI_Irecv(buffer, sizeof(buffer), MPI_BYTE, 1, 600, fuzz.comm, &request);
    forge_rts(&forged, 1, &rts, 0);
    forged.btl = peer_of_rank(0)->lanes[0].btl; /* over self, all of this memory could be got */
    deliver_in(&forged, 1);
    CHECK(multilane.bad_headers == before, "a message over a lane that is not known is refused");
    CHECK(buffer[0] == 2 && buffer[sizeof(buffer) - 1] == 2, "it was got by another lane's key");
    const struct wire_data data = {only_handle(HANDLE_RECEIVE), 0};
    forge_control(&forged, 1, WIRE_DATA, &data, sizeof(data));
    forged.payload = sizeof(buffer);
    deliver_in(&forged, 1);
    int done = 0;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    CHECK(done && buffer[0] == 0xa5, "it does not come by messages");
}

static void credit_is_refused(void)
{
    struct forged forged;
    uint32_t drawn = (uint32_t) (peer_of_rank(1)->drawn >> 32);
    const struct wire_credit far = {.limit = drawn + (UINT32_C(1) << 30) + 1, .headers = drawn};
    const struct wire_credit further = {.limit = drawn, .headers = drawn + INT32_MAX};
    forge_control(&forged, 1, WIRE_CREDIT, &far, sizeof(far));
    refused("more credit than anybody has", &forged, 1);
    forge_control(&forged, 1, WIRE_CREDIT, &further, sizeof(further));
    refused("more credit for headers than anybody has", &forged, 1);
    forge_control(&forged, 1, WIRE_CREDIT, &far, sizeof(far) - 1);
    refused("half of a credit", &forged, 1);
}

static void answers_are_refused(void)
{
    struct forged forged;
    const struct wire_ask answer = {.number = 1};
    forge_control(&forged, 1, WIRE_ALIVE, &answer, sizeof(answer));
    refused("an answer to no question", &forged, 1);
    forge_control(&forged, 1, WIRE_ASK, &answer, sizeof(answer) - 1);
    refused("a part of a question", &forged, 1);
}

/* --- anything at all
 * -------------------------------------------------------------------------------- */

static uint64_t any_size(void)
{
    if (one_in(40))
        return UINT64_MAX >> below(16); /* no memory holds it */
    return below(one_in(4) ? 30 : ROOM_MAX);
}

/* One that is in use, if any is found, or was, or never. */
static struct wire_handle any_handle(enum handle_kind kind)
{
    const struct handle_table *table = &multilane.handles;
    struct wire_handle handle = {(uint32_t) chance_next(&fuzz.chance), (uint32_t) below(1000)};
    if (table->size == 0 || one_in(10))
        return handle;
    handle.index = (uint32_t) below(table->size);
    for (uint32_t i = 0; i < table->size; i++) {
        uint32_t index = (handle.index + i) % table->size;
        if (table->entries[index].kind == kind) {
            handle.index = index;
            break;
        }
    }
    handle.generation = table->entries[handle.index].generation;
    if (one_in(8))
        handle.generation--;
    return handle;
}

/* Not one that this or another process has memory at. */
static uint64_t any_address(void)
{
    return one_in(2) ? below(4096) : UINT64_C(0xdead) << 48 | chance_next(&fuzz.chance) >> 20;
}

static struct wire_match any_match(int rank)
{
    struct wire_match match =
        match_next(rank, one_in(20) ? -2 - (int) below(5) : (int) below(TAGS));
    if (one_in(4))
        match.sequence += (uint32_t) (one_in(12) ? chance_next(&fuzz.chance) : below(6));
    if (one_in(10))
        match.sequence -= (uint32_t) below(6);
    if (one_in(40))
        match.context = (uint32_t) (one_in(2) ? below(60) : chance_next(&fuzz.chance));
    if (one_in(20))
        match.source = (int32_t) (one_in(2) ? below(6) : chance_next(&fuzz.chance));
    return match;
}

static void any_part(struct forged *forged, int rank)
{
    struct open_message *open = &fuzz.open[rank];
    if (!open->is_open || one_in(8)) {
        *open = (struct open_message){true, any_match(rank), any_size()};
        open->size += open->size == 0;
    }
    uint64_t offset = one_in(4) ? 0 : below(open->size);
    size_t payload = (size_t) below(1 + (open->size < PAYLOAD_MAX ? open->size : PAYLOAD_MAX));
    if (!one_in(8) && payload > open->size - offset)
        payload = (size_t) (open->size - offset);
    if (one_in(4) && open->size <= PAYLOAD_MAX) { /* all of it, what is there and what is not */
        offset = 0;
        payload = (size_t) open->size;
        open->is_open = false;
    }
    forge_part(forged, rank, &open->match, open->size, offset, payload);
}

static void any_rts(struct forged *forged, int rank)
{
    struct wire_rts rts = {.match = any_match(rank),
                           .size = any_size(),
                           .sender = {(uint32_t) below(100), 1 + (uint32_t) below(100)},
                           .method = 1 + (uint32_t) below(3),
                           .key = {.address = any_address()}};
    if (rank == 0)
        rts.method = WIRE_BY_SEND; /* this process reads its own memory without asking */
    if (one_in(8))
        rts.key.length = (uint32_t) below(WIRE_KEY_MAX + 10);
    if (one_in(8))
        rts.key.more = (uint32_t) below(WIRE_KEY_MAX + 10);
    size_t keys = (size_t) wire_keys_length(&rts.key);
    forge_rts(forged, rank, &rts, keys < 2 * WIRE_KEY_MAX ? keys : 0);
}

static void any_data(struct forged *forged, int rank)
{
    struct wire_data data = {any_handle(HANDLE_RECEIVE), any_size()};
    struct recv_request *request = handle_find(&multilane.handles, HANDLE_RECEIVE, data.receiver);
    size_t payload = (size_t) below(100);
    if (request && !one_in(8)) {
        rank = request->peer ? (int) request->peer->name.vpid : rank;
        data.offset = one_in(3) ? 0 : below(request->wanted + 1);
        payload = (size_t) below(request->wanted - data.offset + 2);
        if (one_in(3)) {
            data.offset = 0;
            payload = request->wanted;
        }
    }
    forge_control(forged, rank, WIRE_DATA, &data, sizeof(data));
    forged->payload = payload;
}

static void any_control(struct forged *forged, int rank)
{
    union {
        struct wire_rtr rtr;
        struct wire_fin fin;
        struct wire_fin_summed summed;
        struct wire_ack ack;
        struct wire_ask ask;
        unsigned char bytes[64];
    } body;
    uint8_t type = (uint8_t) (WIRE_RTR + below(WIRE_TYPES - WIRE_RTR));
    size_t length = sizeof(body.ack);
    memset(&body, (int) below(256), sizeof(body));
    if (type == WIRE_RTR) {
        body.rtr = (struct wire_rtr){.sender = any_handle(HANDLE_SEND),
                                     .receiver = {(uint32_t) below(50), 1 + (uint32_t) below(50)},
                                     .size = one_in(2) ? any_size() : below(LARGE_MESSAGE + 10),
                                     .method = (uint32_t) below(WIRE_METHODS + 1),
                                     .key = {.address = any_address()}};
        length = sizeof(body.rtr);
    } else if (type == WIRE_FIN || type == WIRE_CANCEL || type == WIRE_SO_FAR) {
        body.fin = (struct wire_fin){any_handle(HANDLE_RECEIVE), any_size()};
        length = sizeof(body.fin);
    } else if (type == WIRE_FIN_SUMMED) {
        body.summed.fin = (struct wire_fin){any_handle(HANDLE_RECEIVE), any_size()};
        length = sizeof(body.summed);
    } else if (type == WIRE_ACK || type == WIRE_NACK) {
        body.ack.sender = any_handle(HANDLE_SEND);
    } else if (type == WIRE_ALIVE) {
        body.ask.number = (uint32_t) (one_in(2) ? 0 : chance_next(&fuzz.chance));
        length = sizeof(body.ask);
    }
    forge_control(forged, rank, type, &body, length);
    if (one_in(6))
        forged->payload = (size_t) below(60);
}

static void mutate(struct forged *forged)
{
    switch (below(4)) {
    case 0:
        forged->length = (size_t) below(forged->length + 1);
        forged->payload = one_in(2) ? 0 : forged->payload;
        return;
    case 1:
        for (size_t i = 0; i < forged->length; i++)
            forged->head[i] = (unsigned char) chance_next(&fuzz.chance);
        return;
    default:
        for (uint64_t i = 1 + below(3); i > 0; i--)
            forged->head[below(forged->length)] ^= (unsigned char) (1u << below(8));
        return;
    }
}

/* What lies in a mutated message must not make this process read or write memory by an address that
 * happens to be good. */
static bool is_dangerous(const struct forged *forged)
{
    return forged->btl == peer_of_rank(0)->lanes[0].btl;
}

static void any_message(void)
{
    struct forged forged;
    int rank = one_in(16) ? 0 : 1 + (int) below((uint64_t) fuzz.size - 1);
    struct wire_match match = any_match(rank);
    switch (below(8)) {
    case 0:
    case 1:
        forge_eager(&forged, rank, &match, (size_t) below(one_in(4) ? PAYLOAD_MAX : 200));
        break;
    case 2:
    case 3:
        any_part(&forged, rank);
        break;
    case 4:
        any_rts(&forged, rank);
        break;
    case 5:
        any_control(&forged, rank);
        break;
    default:
        any_data(&forged, rank);
        break;
    }
    if (one_in(4) && !is_dangerous(&forged))
        mutate(&forged);
    deliver_in(&forged, one_in(3) ? 1 + (size_t) below(SEGMENTS_MAX - 1) : 1);
}

/* --- all of it
 * -------------------------------------------------------------------------------------- */

static void fuzz_begin(MPI_Comm comm, uint64_t seed)
{
    MPI_Comm_size(comm, &fuzz.size);
    fuzz.comm = comm;
    fuzz.context = compat_comm_index(comm);
    fuzz.chance = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    MPI_Type_vector(1, 4, 8, MPI_BYTE, &fuzz.vector);
    MPI_Datatype tight = fuzz.vector;
    MPI_Type_create_resized(tight, 0, 8, &fuzz.vector);
    MPI_Type_free(&tight);
    MPI_Type_commit(&fuzz.vector);
    for (int i = 0; i < SENDS; i++)
        fuzz.sends[i] = MPI_REQUEST_NULL;
    for (int rank = 0; rank < fuzz.size; rank++) {
        const opal_process_name_t name = {.jobid = multilane.me.jobid, .vpid = (uint32_t) rank};
        struct peer *peer = peer_contact(name, NULL);
        CHECK(peer && peer->reachable, "rank %d", rank);
    }
}

static void fuzz_end(void)
{
    for (int i = 0; i < SLOTS; i++) {
        MPI_Cancel(&fuzz.slots[i].request);
        slot_check(&fuzz.slots[i]);
    }
    if (multilane.bad_headers)
        CHECK(errors_standin_count >= 1, "no lane was given up");
}

__attribute__((visibility("default"))) void
multilane_fuzz(MPI_Comm comm, uint64_t seed, uint64_t rounds, struct fuzz_report *report)
{
    fuzz.report = report;
    fuzz_begin(comm, seed);
    if (check_failures == 0) {
        bases_are_refused();
        messages_are_refused();
        parts_are_refused();
        control_is_refused();
        no_key_is_used_on_another_lane();
        credit_is_refused();
        answers_are_refused();
        for (int i = 0; i < SLOTS; i++)
            slot_post(&fuzz.slots[i]);
        for (fuzz.round = 0; fuzz.round < rounds; fuzz.round++) {
            any_message();
            slot_turn(&fuzz.slots[below(SLOTS)]);
            if (fuzz.round % 64 == 0) {
                send_turn(&fuzz.sends[below(SENDS)]);
                for (int i = 0; i < SLOTS; i++)
                    slot_check(&fuzz.slots[i]);
            }
        }
        fuzz_end();
    }
    report->rejected = multilane.bad_headers;
    report->failures = check_failures;
}
