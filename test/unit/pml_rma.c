/* SPDX-License-Identifier: BSD-3-Clause */
/* Gets over several lanes that are none: keys reach the lanes they are for and no others, lanes
 * that refuse are left out, and every byte comes once over some lane. */
#include "check.h"

#include <string.h>

#include "lanes_standin.h"
#include "memory/rma.h"
#include "contact/peer_lanes.h"

#define LANES 4
#define M     ((size_t) 1 << 20)

/* A key says whose it is, which the other end's gets then check. */
struct mca_btl_base_registration_handle_t {
    const mca_btl_base_module_t *btl;
    const char *address;
};

static mca_btl_base_module_t *btls[LANES];
static unsigned registered;         /* now */
static unsigned refusing, key_size; /* bits of lanes that register nothing; bytes of a key */
static unsigned registered_device;  /* of all so far, those of device memory */

static mca_btl_base_registration_handle_t *memory_register(mca_btl_base_module_t *btl,
                                                           struct mca_btl_base_endpoint_t *endpoint,
                                                           void *base, size_t size, uint32_t flags)
{
    (void) endpoint;
    (void) size;
    registered_device += (flags & MULTILANE_REGISTER_DEVICE) != 0;
    for (unsigned i = 0; i < LANES; i++)
        if (btls[i] == btl && refusing >> i & 1)
            return NULL;
    mca_btl_base_registration_handle_t *handle = calloc(1, 300);
    handle->btl = btl;
    handle->address = base;
    registered++;
    return handle;
}

static int memory_deregister(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle)
{
    CHECK(handle->btl == btl, "another lane's registration is given back");
    free(handle);
    registered--;
    return OPAL_SUCCESS;
}

/* Gets wait here until the test lets them end. */
static struct piece {
    mca_btl_base_module_t *btl;
    mca_btl_base_rdma_completion_fn_t function;
    void *context, *data, *local;
    const void *from;
    size_t size;
    uint64_t ends_ns;
} pieces[1000];
static unsigned piece_count;
static double bytes_s[LANES];
static uint64_t busy_until_ns[LANES], bytes_over[LANES];

static int memory_get(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                      void *local, uint64_t remote,
                      mca_btl_base_registration_handle_t *local_handle,
                      mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
                      int order, mca_btl_base_rdma_completion_fn_t function, void *context,
                      void *data)
{
    unsigned index = 0;
    (void) endpoint;
    (void) flags;
    (void) order;
    while (btls[index] != btl)
        index++;
    CHECK(local_handle && local_handle->btl == btl, "lane %u: another's registration", index);
    CHECK(remote_handle && remote_handle->btl == btl, "lane %u: another's key", index);
    CHECK((const char *) remote >= remote_handle->address, "lane %u: another's address", index);
    uint64_t begins_ns =
        busy_until_ns[index] > standin_now_ns ? busy_until_ns[index] : standin_now_ns;
    busy_until_ns[index] = begins_ns + 1 + (uint64_t) ((double) size / bytes_s[index] * 1e9);
    bytes_over[index] += size;
    pieces[piece_count++] = (struct piece){
        btl, function, context, data, local, (const void *) remote, size, busy_until_ns[index]};
    return OPAL_SUCCESS;
}

/* Time goes on to the end of the next piece. */
static bool piece_end(void)
{
    unsigned next = 0;
    if (!piece_count)
        return false;
    for (unsigned i = 1; i < piece_count; i++)
        if (pieces[i].ends_ns < pieces[next].ends_ns)
            next = i;
    struct piece piece = pieces[next];
    pieces[next] = pieces[--piece_count];
    standin_now_ns = piece.ends_ns;
    memcpy(piece.local, piece.from, piece.size);
    piece.function(piece.btl, NULL, piece.local, NULL, piece.context, piece.data, OPAL_SUCCESS);
    return true;
}

static void btls_make(void)
{
    for (unsigned i = 0; i < LANES; i++) {
        btls[i] = standin_btl("openib", 10000);
        btls[i]->btl_flags |= MCA_BTL_FLAGS_GET | MCA_BTL_FLAGS_PUT;
        btls[i]->btl_get = memory_get;
        btls[i]->btl_get_limit = SIZE_MAX;
        btls[i]->btl_register_mem = memory_register;
        btls[i]->btl_deregister_mem = memory_deregister;
        bytes_s[i] = 1e9;
    }
}

static void keys_of(size_t size)
{
    key_size = (unsigned) size;
    for (unsigned i = 0; i < LANES; i++)
        btls[i]->btl_registration_handle_size = size;
}

/* The two ends of one connection; lane i of the one is lane `map` of the other. */
static struct peer *there, *here;

static void ends_make(void)
{
    there = standin_peer();
    here = standin_peer();
    for (unsigned i = 0; i < LANES; i++) {
        standin_reach(there, btls[i]);
        standin_reach(here, btls[LANES - 1 - i]);
    }
    CHECK(peer_take_lanes(there) && peer_take_lanes(here), "no lanes");
}

/* What was said on the lanes of one end arrives at the other. */
static void introductions_arrive(void)
{
    for (unsigned i = 0; i < LANES; i++)
        peer_lane_of(here, there->lanes[i].btl)->remote_index =
            standin_introduced(&there->lanes[i]);
}

static const struct route all_lanes = {.lane_count = LANES, .lanes = {0, 1, 2, 3}};

static void only_known_lanes_are_used(void)
{
    static char memory[1000];
    struct rma offered = {0}, taken = {0};
    struct wire_key key;
    unsigned char bytes[WIRE_KEY_MAX];
    keys_of(16);
    ends_make();
    CHECK(rma_offer(&offered, &all_lanes, there, memory, sizeof(memory), 0), "nothing is offered");
    CHECK(offered.count == LANES && registered == LANES, "%u lanes", offered.count);
    rma_write_keys(&offered, &key, bytes);
    CHECK(standin_introduced(&there->lanes[0]) == 0, "the lane of the message needs no name");
    struct lane *first = peer_lane_of(here, there->lanes[0].btl);
    rma_read_keys(&taken, here, first, &key, bytes);
    CHECK(taken.count == 1 && taken.lanes[0].lane == first, "%u lanes before they are known",
          taken.count);
    introductions_arrive();
    rma_read_keys(&taken, here, first, &key, bytes);
    CHECK(taken.count == LANES, "%u lanes", taken.count);
    rma_read_keys(&taken, here, NULL, &key, bytes);
    CHECK(taken.count == LANES - 1, "%u lanes but for the unknown first", taken.count);
    for (uint32_t i = 0; i < taken.count; i++) {
        const struct mca_btl_base_registration_handle_t *handle =
            (const void *) (taken.keys + taken.lanes[i].key_at);
        CHECK(handle->btl == taken.lanes[i].lane->btl, "lane %u has another's key", i);
        CHECK(taken.lanes[i].key_at % 8 == 0, "a key at %u", taken.lanes[i].key_at);
    }
    rma_release(&offered);
    CHECK(registered == 0 && offered.count == 0, "%u registrations are left", registered);
}

static void lanes_that_refuse_or_have_no_room_drop_out(void)
{
    static char memory[1000];
    struct rma offered = {0}, taken = {0};
    struct wire_key key;
    unsigned char bytes[WIRE_KEY_MAX];
    for (refusing = 0; refusing < 1u << LANES; refusing++) {
        bool any = rma_offer(&offered, &all_lanes, there, memory, sizeof(memory), 0);
        unsigned refused = (unsigned) __builtin_popcount(refusing);
        CHECK(offered.count == LANES - refused && any == (refused < LANES), "%u lanes of %x",
              offered.count, refusing);
        if (any) {
            rma_write_keys(&offered, &key, bytes);
            introductions_arrive();
            rma_read_keys(&taken, here, peer_lane_of(here, offered.lanes[0].lane->btl), &key,
                          bytes);
            CHECK(taken.count == offered.count, "%u lanes", taken.count);
            CHECK(rma_can_get(&taken, memory, sizeof(memory)), "cannot get");
            rma_release(&taken);
        }
        rma_release(&offered);
    }
    refusing = 0;
    keys_of(100);
    CHECK(rma_offer(&offered, &all_lanes, there, memory, sizeof(memory), 0) && offered.count == 2,
          "%u keys of 100 bytes", offered.count);
    rma_write_keys(&offered, &key, bytes);
    CHECK(wire_keys_length(&key) <= WIRE_KEY_MAX, "%llu bytes",
          (unsigned long long) wire_keys_length(&key));
    rma_release(&offered);
    keys_of(16);
    there->lanes[2].lost = true;
    CHECK(rma_offer(&offered, &all_lanes, there, memory, sizeof(memory), 0) && offered.count == 3,
          "%u lanes of which one is lost", offered.count);
    there->lanes[2].lost = false;
    rma_release(&offered);
    CHECK(registered == 0, "%u registrations are left", registered);
}

/* By those lanes alone that take it, told what it is; and always registered, as no processor can
 * copy it, however short it is. */
static void device_memory_goes_by_lanes_that_take_it(void)
{
    static char memory[1000];
    struct rma offered = {.is_device = true}, taken = {.is_device = true};
    struct wire_key key;
    unsigned char bytes[WIRE_KEY_MAX];
    CHECK(registered_device == 0, "%u of the host's as a device's", registered_device);
    CHECK(!rma_offer(&offered, &all_lanes, there, memory, 8, 0), "by lanes that cannot");
    for (unsigned i = 1; i < 3; i++) {
        there->lanes[i].takes_device = true;
        peer_lane_of(here, there->lanes[i].btl)->takes_device = true;
        there->lanes[i].btl->btl_get_local_registration_threshold = SIZE_MAX;
    }
    CHECK(rma_offer(&offered, &all_lanes, there, memory, 8, 0) && offered.count == 2, "%u lanes",
          offered.count);
    CHECK(registered_device == 2, "%u", registered_device);
    rma_write_keys(&offered, &key, bytes);
    introductions_arrive();
    rma_read_keys(&taken, here, peer_lane_of(here, offered.lanes[0].lane->btl), &key, bytes);
    CHECK(rma_can_get(&taken, memory, 8) && taken.count == 2, "%u lanes", taken.count);
    CHECK(registered_device == 4, "%u", registered_device);
    rma_release(&taken);
    taken.is_device = false;
    rma_read_keys(&taken, here, peer_lane_of(here, offered.lanes[0].lane->btl), &key, bytes);
    CHECK(rma_can_get(&taken, memory, 8) && registered == 2, "%u registered", registered);
    rma_release(&taken);
    rma_release(&offered);
    CHECK(registered == 0, "%u registrations are left", registered);
    for (unsigned i = 1; i < 3; i++)
        there->lanes[i].btl->btl_get_local_registration_threshold = 0;
}

static void any_keys_are_harmless(void)
{
    uint64_t chance = 99;
    for (int round = 0; round < 100000; round++) {
        struct rma taken = {0};
        struct wire_key key = {.length = (uint32_t) chance_below(&chance, 40)};
        key.more = (uint32_t) chance_below(&chance, 100);
        size_t length = (size_t) wire_keys_length(&key);
        unsigned char *bytes = malloc(length ? length : 1); /* a checker sees a byte behind it */
        for (size_t i = 0; i < length; i++)
            bytes[i] = (unsigned char) (chance_below(&chance, 3) ? chance_below(&chance, 20)
                                                                 : chance_next(&chance));
        rma_read_keys(&taken, here, chance_below(&chance, 2) ? &here->lanes[0] : NULL, &key, bytes);
        CHECK(taken.count <= LANES, "%u lanes", taken.count);
        for (uint32_t i = 0; i < taken.count; i++)
            CHECK(taken.lanes[i].key_length == 16, "a key of %u bytes", taken.lanes[i].key_length);
        free(bytes);
    }
}

/* --- data ---------------------------------------------------------------------------------------
 */

static char source[16 << 20], target[sizeof(source)];
static struct rma working;
static bool is_finished;
static size_t wanted;

static int get_piece(struct transfer *transfer, size_t offset, size_t *size)
{
    (void) transfer;
    return rma_get(&working, target, offset, wanted, size);
}

static void get_finish(struct transfer *transfer, int status)
{
    (void) transfer;
    CHECK(status == OMPI_SUCCESS, "%d", status);
    is_finished = true;
}

static double get_s(size_t size)
{
    static const struct transfer_steps way = {get_piece, get_finish};
    static struct transfer transfer;
    struct rma offered = {0};
    struct wire_key key;
    unsigned char bytes[WIRE_KEY_MAX];
    wanted = size;
    memset(target, 0, size);
    rma_offer(&offered, &all_lanes, there, source, size, 0);
    rma_write_keys(&offered, &key, bytes);
    introductions_arrive();
    rma_read_keys(&working, here, peer_lane_of(here, offered.lanes[0].lane->btl), &key, bytes);
    CHECK(rma_can_get(&working, target, size), "cannot get");
    working.transfer = &transfer;
    is_finished = false;
    uint64_t began_ns = standin_now_ns;
    transfer_begin(&transfer, &way, size, 8 * working.count);
    while (!is_finished && piece_end())
        ;
    CHECK(is_finished, "it never ends");
    CHECK(memcmp(source, target, size) == 0, "other bytes");
    rma_release(&working);
    rma_release(&offered);
    CHECK(registered == 0, "%u registrations are left", registered);
    return (double) (standin_now_ns - began_ns) * 1e-9;
}

static void lanes_of_different_speed_finish_together(void)
{
    static const double speeds[][LANES] = {
        {1e9, 1e9, 1e9, 1e9}, {1e9, 2e9, 4e9, 8e9}, {1e8, 1e9, 1e10, 1e10}};
    for (size_t i = 0; i < sizeof(source); i++)
        source[i] = (char) (i * 31 + i / 4096);
    for (size_t s = 0; s < sizeof(speeds) / sizeof(speeds[0]); s++) {
        double sum = 0;
        ends_make();
        for (unsigned i = 0; i < LANES; i++) {
            bytes_s[i] = speeds[s][i];
            sum += bytes_s[i];
        }
        for (size_t size = 1; size < sizeof(source); size = size * 5 + 1)
            get_s(size);
        double took_s = 0;
        for (int i = 0; i < 10; i++)
            took_s += get_s(sizeof(source));
        double part = 10 * sizeof(source) / took_s / sum;
        CHECK(part > 0.85, "set %zu: %.3f of the sum of the lanes", s, part);
    }
}

int main(void)
{
    standin_begin();
    btls_make();
    only_known_lanes_are_used();
    lanes_that_refuse_or_have_no_room_drop_out();
    device_memory_goes_by_lanes_that_take_it();
    any_keys_are_harmless();
    lanes_of_different_speed_finish_together();
    return check_end();
}
