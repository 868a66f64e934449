/* SPDX-License-Identifier: BSD-3-Clause */
/* Put, get and atomics by message, with a peer that keeps the rules and one that does not: what was
 * asked happens once and whole, and nothing happens to memory that was not given. */
#include "check.h"

#include <string.h>

#include "btl/shm/remote.h"

#define HOLDS(condition) CHECK(condition, "%s", __func__)
#define PIECE            ((size_t) 1000)
#define MESSAGES         16

/* Both ends are this process: what it sends waits here until it is handed to it. */
struct sent {
    size_t length;
    unsigned char bytes[sizeof(struct remote_message) + PIECE];
};
static struct sent wire[MESSAGES];
static unsigned wire_first, wire_end;
static unsigned sends_refused;
static shm_peer_t *peer;
static unsigned peers_failed;

int shm_send_remote(shm_peer_t *to, const void *header, size_t header_size, const void *data,
                    size_t size)
{
    struct sent *sent = &wire[wire_end % MESSAGES];

    HOLDS(to == peer && size <= PIECE && wire_end - wire_first < MESSAGES);
    if (sends_refused > 0) {
        sends_refused--;
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    memcpy(sent->bytes, header, header_size);
    if (size != 0)
        memcpy(sent->bytes + header_size, data, size);
    sent->length = header_size + size;
    wire_end++;
    return OPAL_SUCCESS;
}

/* Open MPI's needs it initialised. What is said is counted. */
static unsigned said;

void opal_output(int stream, const char *format, ...)
{
    (void) stream, (void) format;
    said++;
}

void shm_peer_fail(shm_peer_t *failed, const char *why)
{
    HOLDS(failed == peer && why);
    peers_failed++;
}

int shm_copy_from(mca_btl_base_module_t *btl, shm_peer_t *from, void *local,
                  uint64_t remote_address, size_t length)
{
    (void) btl, (void) from, (void) local, (void) remote_address, (void) length;
    return OPAL_ERR_NOT_SUPPORTED;
}

int shm_copy_to(mca_btl_base_module_t *btl, shm_peer_t *to, const void *local,
                uint64_t remote_address, size_t length)
{
    (void) btl, (void) to, (void) local, (void) remote_address, (void) length;
    return OPAL_ERR_NOT_SUPPORTED;
}

static struct sent *message_take(void)
{
    return wire_first == wire_end ? NULL : &wire[wire_first++ % MESSAGES];
}

static struct remote_message *message_of(struct sent *sent)
{
    return (struct remote_message *) sent->bytes;
}

static bool hand_over(const struct sent *sent)
{
    return shm_serve(peer, sent->bytes, sent->length);
}

/* Until nothing is left to hand over. */
static void converse(void)
{
    struct sent *sent;

    while ((sent = message_take()))
        CHECK(hand_over(sent), "operation %u", message_of(sent)->op);
}

static unsigned ended;
static int ended_status;

static void operation_ended(mca_btl_base_module_t *btl, shm_peer_t *with, void *local,
                            mca_btl_base_registration_handle_t *local_handle, void *context,
                            void *data, int status)
{
    (void) local, (void) local_handle, (void) data;
    HOLDS(btl == &shm_module && with == peer && context == &ended);
    ended++;
    ended_status = status;
}

_Alignas(8) static unsigned char there[5 * PIECE], here[5 * PIECE];
_Alignas(8) static uint64_t counter;

static mca_btl_base_registration_handle_t *given(void *base, size_t size, uint32_t flags)
{
    mca_btl_base_registration_handle_t *handle =
        registered_add(&shm_module, peer, base, size, flags);

    if (!handle)
        abort();
    ended = 0;
    ended_status = 1;
    return handle;
}

static void taken_back(mca_btl_base_registration_handle_t *handle)
{
    HOLDS(registered_remove(&shm_module, handle) == OPAL_SUCCESS);
}

static void fill(unsigned char *bytes, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char) (seed + 7 * i + i / 251);
}

static int put(mca_btl_base_registration_handle_t *handle, size_t at, size_t size)
{
    return shm_remote_put(&shm_module, peer, here, (uintptr_t) (there + at), NULL, handle, size, 0,
                          0, operation_ended, &ended, NULL);
}

static int get(mca_btl_base_registration_handle_t *handle, size_t at, size_t size)
{
    return shm_remote_get(&shm_module, peer, here, (uintptr_t) (there + at), NULL, handle, size, 0,
                          0, operation_ended, &ended, NULL);
}

static void transfers_are_whole(void)
{
    mca_btl_base_registration_handle_t *handle =
        given(there, sizeof(there), MCA_BTL_REG_FLAG_REMOTE_WRITE | MCA_BTL_REG_FLAG_REMOTE_READ);

    for (size_t size = 0; size <= 5 * PIECE; size += 1 + size / 3) {
        ended = 0;
        fill(here, size, 3);
        memset(there, 0, sizeof(there));
        HOLDS(put(handle, 0, size) == OPAL_SUCCESS);
        converse();
        CHECK(ended == 1 && ended_status == OPAL_SUCCESS && memcmp(here, there, size) == 0,
              "a put of %zu bytes", size);
        fill(there, size, 9);
        HOLDS(get(handle, 0, size) == OPAL_SUCCESS);
        converse();
        CHECK(ended == 2 && ended_status == OPAL_SUCCESS && memcmp(here, there, size) == 0,
              "a get of %zu bytes", size);
    }
    taken_back(handle);
}

/* The value that was there, after `op` made `after` of it. */
static uint64_t fetch(mca_btl_base_registration_handle_t *handle, int op, uint64_t operand,
                      int flags)
{
    uint64_t before = UINT64_C(0x5555555555555555);

    ended = 0;
    HOLDS(shm_remote_fetch_atomic(&shm_module, peer, &before, (uintptr_t) &counter, NULL, handle,
                                  (mca_btl_base_atomic_op_t) op, operand, flags, 0, operation_ended,
                                  &ended, NULL) == OPAL_SUCCESS);
    converse();
    HOLDS(ended == 1 && ended_status == OPAL_SUCCESS);
    return before;
}

static void atomics_count(void)
{
    static const struct {
        int op;
        uint64_t before, operand, after;
    } cases[] = {{MCA_BTL_ATOMIC_ADD, 40, 2, 42},   {MCA_BTL_ATOMIC_AND, 12, 10, 8},
                 {MCA_BTL_ATOMIC_OR, 12, 10, 14},   {MCA_BTL_ATOMIC_XOR, 12, 10, 6},
                 {MCA_BTL_ATOMIC_SWAP, 12, 10, 10}, {MCA_BTL_ATOMIC_LAND, 12, 3, 1},
                 {MCA_BTL_ATOMIC_LAND, 12, 0, 0},   {MCA_BTL_ATOMIC_LOR, 0, 0, 0},
                 {MCA_BTL_ATOMIC_LOR, 0, 10, 1},    {MCA_BTL_ATOMIC_LXOR, 12, 10, 0},
                 {MCA_BTL_ATOMIC_LXOR, 12, 0, 1}};
    mca_btl_base_registration_handle_t *handle =
        given(&counter, sizeof(counter), MCA_BTL_REG_FLAG_REMOTE_ATOMIC);
    uint64_t found;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        counter = cases[i].before;
        found = fetch(handle, cases[i].op, cases[i].operand, 0);
        CHECK(cases[i].before == found && cases[i].after == counter, "case %zu", i);
        counter = UINT64_C(0x7700000000) | cases[i].before;
        found = fetch(handle, cases[i].op, UINT64_C(0x9900000000) | cases[i].operand,
                      MCA_BTL_ATOMIC_FLAG_32BIT);
        CHECK((uint32_t) cases[i].before == (uint32_t) found &&
                  found >> 32 == UINT64_C(0x55555555) &&
                  (UINT64_C(0x7700000000) | (uint32_t) cases[i].after) == counter,
              "case %zu in 32 bits", i);
    }
    counter = 5;
    for (uint64_t expected = 4; expected <= 5; expected++) {
        HOLDS(shm_remote_compare_swap(&shm_module, peer, &found, (uintptr_t) &counter, NULL, handle,
                                      expected, 9, 0, 0, operation_ended, &ended,
                                      NULL) == OPAL_SUCCESS);
        converse();
        HOLDS(found == 5 && (expected == 4 ? 5 : 9) == counter);
    }
    taken_back(handle);
}

/* Of an atomic operation that is not done as asked, the caller is told at once: osc/rdma looks at
 * no status later, and does by other means what is refused now. */
static void atomics_are_refused_at_once(void)
{
    /* Of the least and the greatest, nothing says whether the values have a sign. */
    static const struct {
        int op;
        size_t off;
        int flags;
    } cases[] = {{MCA_BTL_ATOMIC_MIN, 0, 0},
                 {MCA_BTL_ATOMIC_MAX, 0, MCA_BTL_ATOMIC_FLAG_32BIT},
                 {77, 0, 0},
                 {MCA_BTL_ATOMIC_ADD, 4, 0},
                 {MCA_BTL_ATOMIC_ADD, 2, MCA_BTL_ATOMIC_FLAG_32BIT}};
    mca_btl_base_registration_handle_t *handle = given(there, 64, MCA_BTL_REG_FLAG_REMOTE_ATOMIC);

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        CHECK(shm_remote_atomic(&shm_module, peer, (uintptr_t) (there + cases[i].off), handle,
                                (mca_btl_base_atomic_op_t) cases[i].op, 1, cases[i].flags, 0,
                                operation_ended, &ended, NULL) == OPAL_ERR_NOT_SUPPORTED,
              "case %zu", i);
    HOLDS(shm_remote_compare_swap(&shm_module, peer, here, (uintptr_t) there + 1, NULL, handle, 0,
                                  0, 0, 0, operation_ended, &ended,
                                  NULL) == OPAL_ERR_NOT_SUPPORTED);
    HOLDS(ended == 0 && wire_first == wire_end && opal_list_is_empty(&peer->remote_operations));
    /* And from a peer that asks nevertheless. */
    struct remote_message request = {
        .op = REMOTE_ATOMIC, .atomic = 77, .address = (uintptr_t) there, .handle = *handle};
    HOLDS(shm_serve(peer, &request, sizeof(request)));
    HOLDS(message_of(message_take())->status == OPAL_ERR_NOT_SUPPORTED);
    taken_back(handle);
}

/* A put is asked of memory as `bend` makes the request say; the owner refuses it and says so. */
static void refused(mca_btl_base_registration_handle_t *handle,
                    void (*bend)(struct remote_message *request), const char *what)
{
    struct sent *request;

    ended = said = 0;
    fill(here, 8, 1);
    memset(there, 0, sizeof(there));
    HOLDS(put(handle, 100, 8) == OPAL_SUCCESS);
    request = message_take();
    bend(message_of(request));
    HOLDS(hand_over(request));
    converse();
    CHECK(ended == 1 && ended_status == OPAL_ERR_BAD_PARAM, "%s", what);
    CHECK(said == 1, "%s: said %u times", what, said);
    for (size_t i = 0; i < sizeof(there); i++)
        CHECK(there[i] == 0, "%s: byte %zu was written", what, i);
}

static void bend_not(struct remote_message *request)
{
    (void) request;
}

static void bend_before(struct remote_message *request)
{
    request->address -= 1;
}

static void bend_behind(struct remote_message *request)
{
    request->address += 1;
}

static void bend_around(struct remote_message *request)
{
    request->address = UINT64_MAX - 3;
}

static int32_t index_bent;

static void bend_index(struct remote_message *request)
{
    request->handle.slot = (uint32_t) index_bent;
}

static void bend_generation(struct remote_message *request)
{
    request->handle.key--;
}

static void memory_not_given_is_left_alone(void)
{
    mca_btl_base_registration_handle_t *handle =
        given(there + 100, 8, MCA_BTL_REG_FLAG_REMOTE_WRITE);

    refused(handle, bend_before, "a byte before");
    refused(handle, bend_behind, "a byte behind");
    refused(handle, bend_around, "around the end of memory");
    index_bent = -1;
    refused(handle, bend_index, "a registration below the first");
    index_bent = INT32_MAX;
    refused(handle, bend_index, "a registration behind the last");
    refused(handle, bend_generation, "a former registration");
    mca_btl_base_registration_handle_t copy = *handle; /* as a peer has it */
    taken_back(handle);
    refused(&copy, bend_not, "taken back");
    handle = given(there + 100, 8, MCA_BTL_REG_FLAG_REMOTE_READ);
    refused(handle, bend_not, "to be read only");
    taken_back(handle);
}

/* A request that no peer of ours makes. */
static bool understood(struct remote_message request, size_t data_bytes)
{
    struct sent sent = {.length = sizeof(request) + data_bytes};

    memcpy(sent.bytes, &request, sizeof(request));
    return hand_over(&sent);
}

static void broken_requests_are_seen(void)
{
    uint64_t aligned = (uintptr_t) &counter;

    HOLDS(!understood((struct remote_message){.op = 0}, 0));
    HOLDS(!understood((struct remote_message){.op = REMOTE_ANSWER + 1}, 0));
    HOLDS(!understood((struct remote_message){.op = REMOTE_PUT, .piece.size = 9}, 8));
    HOLDS(!understood((struct remote_message){.op = REMOTE_GET, .piece.size = UINT32_MAX}, 0));
    HOLDS(!understood((struct remote_message){.op = REMOTE_GET, .piece.size = 8}, 8));
    HOLDS(!understood((struct remote_message){.op = REMOTE_ATOMIC, .address = aligned + 4}, 0));
    HOLDS(!understood((struct remote_message){.op = REMOTE_SWAP_IF, .address = aligned}, 8));
    HOLDS(!shm_serve(peer, "short", 5));
    peer->known = false;
    HOLDS(!understood((struct remote_message){.op = REMOTE_PUT}, 0));
    peer->known = true;
    HOLDS(wire_first == wire_end);
}

/* Of a get of 8 bytes; `good` is its right answer, handed over in the end. */
static void broken_answers_are_seen(void)
{
    mca_btl_base_registration_handle_t *handle = given(there, 64, MCA_BTL_REG_FLAG_REMOTE_READ);
    struct sent good, bent;

    fill(there, 64, 5);
    memset(here, 0, 64);
    HOLDS(get(handle, 0, 8) == OPAL_SUCCESS);
    HOLDS(hand_over(message_take()));
    good = *message_take();
    bent = good;
    message_of(&bent)->id++;
    HOLDS(!hand_over(&bent));
    bent = good;
    message_of(&bent)->piece.size = 16;
    bent.length += 8;
    HOLDS(!hand_over(&bent));
    bent = good;
    message_of(&bent)->piece.offset = 1;
    HOLDS(!hand_over(&bent));
    bent = good;
    message_of(&bent)->piece.offset = UINT64_MAX - 7;
    HOLDS(!hand_over(&bent));
    bent = good;
    bent.length -= 1;
    HOLDS(!hand_over(&bent));
    HOLDS(ended == 0 && here[0] == 0 && here[8] == 0);
    HOLDS(hand_over(&good));
    HOLDS(ended == 1 && ended_status == OPAL_SUCCESS && memcmp(here, there, 8) == 0);
    HOLDS(!hand_over(&good));
    HOLDS(ended == 1);
    taken_back(handle);
}

static void refusals_to_send_are_told(void)
{
    mca_btl_base_registration_handle_t *handle =
        given(there, sizeof(there), MCA_BTL_REG_FLAG_REMOTE_WRITE);

    sends_refused = 1;
    HOLDS(put(handle, 0, 8) == OPAL_ERR_OUT_OF_RESOURCE);
    HOLDS(ended == 0 && opal_list_is_empty(&peer->remote_operations));
    HOLDS(put(handle, 0, 8) == OPAL_SUCCESS);
    sends_refused = 1;
    HOLDS(hand_over(message_take()));
    HOLDS(peers_failed == 1);
    shm_remote_fail(peer);
    HOLDS(ended == 1 && ended_status == OPAL_ERR_UNREACH);
    HOLDS(opal_list_is_empty(&peer->remote_operations));
    taken_back(handle);
}

int main(void)
{
    peer = aligned_alloc(RING_LINE_BYTES, sizeof(*peer));
    if (!peer)
        abort();
    memset(peer, 0, sizeof(*peer));
    peer->known = true;
    OBJ_CONSTRUCT(&peer->remote_operations, opal_list_t);
    shm_module.btl_max_send_size = sizeof(struct remote_message) + PIECE;
    registered_init();
    if (shm_remote_init() != OPAL_SUCCESS)
        abort();
    transfers_are_whole();
    atomics_count();
    atomics_are_refused_at_once();
    memory_not_given_is_left_alone();
    broken_requests_are_seen();
    broken_answers_are_seen();
    refusals_to_send_are_told();
    shm_remote_finish();
    registered_finish();
    OBJ_DESTRUCT(&peer->remote_operations);
    free(peer);
    return check_end();
}
