/* SPDX-License-Identifier: BSD-3-Clause */
/* Areas of communicators on a node, and levels of those over several (coll/node/area.c, levels.c):
 * their sizes and order, that memory comes back, and that a process which has none, for itself or
 * for an area, still takes part in the agreement, so that no other one waits for it. The other
 * processes are played. */
#include "check.h"

#include <string.h>

#include "coll/node/levels.h"
#include "coll/node/node.h"
#include "common/memory/driver.h"

#define PART_BYTES ((size_t) 8 << 20)
#define RANKS_MAX  20000u

int node_bytes_max = 4096;
int node_looking_ranks = 2;
bool across_always, driver_is_loaded, device_memory_possible;

static _Alignas(4096) unsigned char memory[PART_BYTES];
static bool this_shares, others_share, others_refuse, this_records, memory_is_there;
static size_t reserved, reserved_at;
static unsigned agreements, gathers, failing_calloc; /* 0: none fails */
static uint32_t agreed_why, others_why;
static const uint32_t *leaders; /* null: all say the same */
static ompi_communicator_t comm, inner;
static ompi_group_t group;

/* --- around them --- */

bool driver_load(void)
{
    return false;
}

bool node_shares(void)
{
    return this_shares;
}

bool node_records(void)
{
    return this_records;
}

static bool reserve(void *at, size_t bytes)
{
    reserved = bytes;
    reserved_at = (size_t) ((unsigned char *) at - memory);
    return memory_is_there;
}

bool node_services_find(struct multilane_commons *commons)
{
    *commons =
        (struct multilane_commons){.memory = memory, .bytes = PART_BYTES, .reserve = reserve};
    return true;
}

void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes)
{
    return failing_calloc && --failing_calloc == 0 ? NULL : __real_calloc(count, bytes);
}

int __wrap_ompi_comm_split(ompi_communicator_t *of, int color, int key, ompi_communicator_t **to,
                           bool pass_on_topo);
int __wrap_ompi_comm_split(ompi_communicator_t *of, int color, int key, ompi_communicator_t **to,
                           bool pass_on_topo)
{
    (void) of, (void) color, (void) key, (void) pass_on_topo;
    *to = &inner;
    return OMPI_SUCCESS;
}

int __wrap_ompi_comm_free(ompi_communicator_t **which);
int __wrap_ompi_comm_free(ompi_communicator_t **which)
{
    *which = NULL;
    return OMPI_SUCCESS;
}

/* --- the other processes --- */

static int play_allreduce(const void *from, void *to, compat_count count, ompi_datatype_t *type,
                          ompi_op_t *op, ompi_communicator_t *of, mca_coll_base_module_t *module)
{
    (void) count, (void) type, (void) op, (void) of, (void) module;
    memcpy(to, from, 3 * sizeof(uint32_t));
    ((uint32_t *) to)[1] |= others_share;
    ((uint32_t *) to)[2] |= others_refuse;
    agreements++;
    agreed_why = *(const uint32_t *) from;
    if (agreed_why < others_why)
        *(uint32_t *) to = others_why;
    return OMPI_SUCCESS;
}

static bool gather_fails;

static int play_allgather(const void *from, compat_count from_count, ompi_datatype_t *from_type,
                          void *to, compat_count count, ompi_datatype_t *type,
                          ompi_communicator_t *of, mca_coll_base_module_t *module)
{
    size_t each = (size_t) count;
    (void) from_count, (void) from_type, (void) type, (void) module;
    gathers++;
    if (gather_fails)
        return MPI_ERR_OTHER;
    for (int rank = 0; rank < ompi_comm_size(of); rank++)
        memcpy((char *) to + (size_t) rank * each, leaders ? (const void *) &leaders[rank] : from,
               each);
    return OMPI_SUCCESS;
}

static void begin(struct entry *entry, uint32_t ranks)
{
    comm.c_local_group = &group;
    group.grp_proc_count = (int) ranks;
    entry->comm = &comm;
    entry->without = MULTILANE_FIRST;
    entry->below.coll_allreduce = play_allreduce;
    entry->below.coll_allgather = play_allgather;
    agreements = gathers = failing_calloc = 0;
    agreed_why = others_why = MULTILANE_BY_NODE;
    reserved = 0;
    this_shares = memory_is_there = true;
    this_records = others_share = others_refuse = false;
    device_memory_possible = gather_fails = false;
    leaders = NULL;
}

/* --- areas --- */

static node_module_t node_of(uint32_t ranks)
{
    node_module_t node = {.turns.ranks = ranks};
    begin(&node.entry, ranks);
    return node;
}

/* This process, and then all others, leave. */
static void leave(node_module_t *node)
{
    struct area *area = node->turns.area;
    uint32_t others = node->turns.ranks - 1;
    area_leave(node);
    CHECK(!node->turns.area && !node->parts, "it has left");
    if (area)
        area->left += others;
}

static void area_fits(uint32_t ranks)
{
    node_module_t node = node_of(ranks);
    struct turns *turns = &node.turns;
    CHECK(area_obtain(&node) == OMPI_SUCCESS && turns->area, "%u ranks", ranks);
    if (!turns->area)
        return;
    size_t slots = area_slots(ranks);
    CHECK((unsigned char *) turns->area == memory + reserved_at, "%u ranks", ranks);
    size_t end = (size_t) ((unsigned char *) turn_slot_at(turns, slots) - memory) - reserved_at;
    CHECK(end <= reserved && reserved <= PART_BYTES / 2 && reserved % 4096 == 0,
          "%u ranks: %zu of %zu bytes", ranks, end, reserved);
    CHECK(turns->slot_stride % AREA_ALIGN == 0 && turns->slot_bytes <= 65536 &&
              turns->slot_bytes + SLOT_HEAD_BYTES <= turns->slot_stride && turns->slot_bytes > 0,
          "%u ranks: slots of %u bytes", ranks, turns->slot_bytes);
    for (size_t i = 0; i < slots; i++)
        CHECK(turn_slot_at(turns, i)->number == (i == TURN_RESULTS - 1), "slot %zu of %u ranks", i,
              ranks);
    CHECK(node.bytes_max >= lesser((size_t) node_bytes_max, turns->slot_bytes) &&
              node.bytes_max <= (uint64_t) node_bytes_max && gathers == 1,
          "%u ranks", ranks);
    memset(turn_slot_at(turns, 0), 255, end - sizeof(struct area)); /* for the next one */
    leave(&node);
}

static void none_for(uint32_t ranks, enum multilane_way why, const char *what)
{
    node_module_t node = node_of(ranks);
    memory_is_there = why != MULTILANE_NO_MEMORY;
    this_shares = why != MULTILANE_UNSHARED;
    this_records = why == MULTILANE_RECORDED;
    device_memory_possible = why == MULTILANE_DEVICE;
    others_why = why == MULTILANE_NO_SHM ? MULTILANE_NO_SHM : MULTILANE_BY_NODE;
    CHECK(area_obtain(&node) == OMPI_SUCCESS && !node.turns.area, "%s", what);
    CHECK(node.entry.without == why, "%s: %u", what, (unsigned) node.entry.without);
    /* Where there is room is seen with rank 0's answer. */
    CHECK(agreements == 1 && gathers == (why == MULTILANE_NO_MEMORY), "%s: %u, %u", what,
          agreements, gathers);
    leave(&node);
}

/* Each has its processor. */
static void two_look(void)
{
    node_module_t node = node_of(2);
    this_shares = false;
    CHECK(area_obtain(&node) == OMPI_SUCCESS && node.turns.area && node.turns.looks, "they look");
    CHECK(node.bytes_max == node.turns.slot_bytes && node.turns.slot_bytes <= 4096 &&
              reserved <= 65536,
          "%u in a slot, %zu reserved", node.turns.slot_bytes, reserved);
    leave(&node);
    node = node_of(2);
    this_shares = false;
    others_refuse = true;
    CHECK(area_obtain(&node) == OMPI_SUCCESS && !node.turns.area &&
              node.entry.without == MULTILANE_UNSHARED,
          "the other one has a lower coll_node_looking_ranks");
    leave(&node);
    for (int which = 0; which < 2; which++) {
        node = node_of(2);
        this_shares = which == 0;
        others_share = !this_shares;
        CHECK(area_obtain(&node) == OMPI_SUCCESS && node.turns.area && !node.turns.looks,
              "one of them shares its processor, and both count");
        CHECK(node.turns.slot_bytes == 65536, "slots of %u bytes", node.turns.slot_bytes);
        leave(&node);
    }
}

/* After 2^31 broadcasts, which a process has only read, it still knows who is missing. */
static void numbers_go_round(void)
{
    node_module_t node = node_of(2);
    struct turns *turns = &node.turns;
    const _Atomic uint32_t *word;
    uint32_t seen;
    this_shares = false;
    CHECK(area_obtain(&node) == OMPI_SUCCESS && turns->looks, "they look");
    for (uint64_t at = 0; at < UINT64_C(1) << 33; at += 1 << 20) {
        turns->turn = (uint32_t) at;
        turn_slot(turns, 1)->number = turns->turn - 1; /* as two turns before */
        turn_arrive(turns, 0);
        CHECK(!turn_all_arrived(turns, turns->turn, &word, &seen) &&
                  word == &turn_slot(turns, 1)->number,
              "turn %u: the other one is not there", turns->turn);
        turn_slot(turns, 1)->number = turns->turn + 1;
        if (at >> 20 == 5000) /* one look */
            CHECK(turn_all_arrived(turns, turns->turn, &word, &seen), "turn %u: it is",
                  turns->turn);
    }
    leave(&node);
}

/* Nor is the first result of a kind there before it is told, in whatever turn. */
static void no_result_is_there(void)
{
    node_module_t node = node_of(4);
    struct turns *turns = &node.turns;
    const _Atomic uint32_t *word;
    uint32_t seen;
    CHECK(area_obtain(&node) == OMPI_SUCCESS && turns->area, "an area");
    for (int is_short = 0; is_short < 2; is_short++)
        for (uint32_t at = 0; at < 4 * TURN_SHORTS; at++) {
            turns->is_short = is_short;
            turns->turn = UINT32_MAX - 2 * TURN_SHORTS + at;
            CHECK(!turn_has_result(turns, &word, &seen), "turn %u, short: %d", turns->turn,
                  is_short);
        }
    leave(&node);
}

static void area_without_memory(unsigned nth)
{
    node_module_t node = node_of(4);
    failing_calloc = nth;
    CHECK(area_obtain(&node) == OMPI_SUCCESS && !node.turns.area, "the %u. fails", nth);
    CHECK(agreements == 1 && agreed_why == MULTILANE_NO_MEMORY && gathers == 0,
          "the %u. fails: %u agreements, %u, %u gathers", nth, agreements, agreed_why, gathers);
    leave(&node);
}

/* What is left for the later ones has smaller slots, for shorter operations. */
static void later_areas_are_smaller(void)
{
    enum { MOST = 40 };
    static node_module_t nodes[MOST];
    unsigned count = 0;
    for (uint32_t before = UINT32_MAX; count < MOST; count++) {
        struct turns *turns = &nodes[count].turns;
        nodes[count] = node_of(16);
        CHECK(area_obtain(&nodes[count]) == OMPI_SUCCESS, "%u", count);
        if (!turns->area)
            break;
        CHECK(turns->slot_bytes <= before, "%u: %u after %u", count, turns->slot_bytes, before);
        CHECK(nodes[count].bytes_max <= (uint64_t) node_bytes_max &&
                  (turns->slot_bytes >= 1024 || nodes[count].bytes_max == turns->slot_bytes),
              "%u: slots of %u, operations up to %llu", count, turns->slot_bytes,
              (unsigned long long) nodes[count].bytes_max);
        before = turns->slot_bytes;
    }
    CHECK(nodes[0].turns.slot_bytes == 65536 && count >= 6 && count < MOST, "%u fit, of %u bytes",
          count, nodes[0].turns.slot_bytes);
    for (unsigned i = 0; i <= count && i < MOST; i++)
        leave(&nodes[i]);
}

/* Where many look, each has at least a byte of its slot for each other one in MPI_Alltoall. */
static void later_ones_that_look_are_for_less(void)
{
    enum { MOST = 40, RANKS = 200 };
    static node_module_t nodes[MOST];
    int looking = node_looking_ranks;
    unsigned count = 0;
    node_looking_ranks = RANKS;
    for (; count < MOST; count++) {
        nodes[count] = node_of(RANKS);
        this_shares = false;
        CHECK(area_obtain(&nodes[count]) == OMPI_SUCCESS, "%u", count);
        if (!nodes[count].turns.area)
            break;
        CHECK(nodes[count].turns.slot_bytes >= RANKS ||
                  nodes[count].bytes_max <= nodes[count].turns.slot_bytes,
              "%u: slots of %u, operations up to %llu", count, nodes[count].turns.slot_bytes,
              (unsigned long long) nodes[count].bytes_max);
    }
    CHECK(count > 1 && nodes[count - 1].turns.slot_bytes < RANKS, "%u fit, slots of %u", count,
          nodes[count - 1].turns.slot_bytes);
    for (unsigned i = 0; i <= count && i < MOST; i++)
        leave(&nodes[i]);
    node_looking_ranks = looking;
}

/* Others may have learned where it is, and use it. */
static void an_area_stays_whose_place_was_told_in_part(void)
{
    node_module_t node = node_of(4);
    gather_fails = true;
    CHECK(area_obtain(&node) == MPI_ERR_OTHER && !node.turns.area, "an error");
    size_t taken = reserved_at;
    leave(&node);
    node = node_of(4);
    CHECK(area_obtain(&node) == OMPI_SUCCESS && node.turns.area && reserved_at != taken,
          "the next one is at %zu", reserved_at);
    leave(&node);
}

/* They do not lie on each other, and the first one's memory is the next one's. */
static void areas_share_a_part(void)
{
    enum { MOST = 64 };
    static node_module_t nodes[MOST];
    size_t end = 0, first = 0;
    unsigned count = 0;
    for (; count < MOST; count++) {
        nodes[count] = node_of(100);
        CHECK(area_obtain(&nodes[count]) == OMPI_SUCCESS, "%u", count);
        if (!nodes[count].turns.area)
            break;
        CHECK(reserved_at >= end && reserved_at + reserved <= PART_BYTES, "%u: at %zu", count,
              reserved_at);
        end = reserved_at + reserved;
        first = count ? first : reserved_at;
    }
    CHECK(count >= 3 && count < MOST, "%u fit", count);
    CHECK(nodes[count].entry.without == MULTILANE_NO_MEMORY, "none for the last one");
    leave(&nodes[count]);
    leave(&nodes[0]);
    nodes[0] = node_of(100);
    CHECK(area_obtain(&nodes[0]) == OMPI_SUCCESS && nodes[0].turns.area && reserved_at == first,
          "at %zu, not %zu", reserved_at, first);
    for (unsigned i = 0; i < count; i++)
        leave(&nodes[i]);
}

/* --- levels --- */

static across_module_t levels_of(const uint32_t *of, uint32_t ranks)
{
    across_module_t across = {.is_busy = false};
    begin(&across.entry, ranks);
    leaders = of;
    return across;
}

static bool is(const uint32_t *numbers, const uint32_t *wanted, size_t count)
{
    return numbers && memcmp(numbers, wanted, count * sizeof(*numbers)) == 0;
}

static void levels_are(const char *what, uint32_t ranks, const uint32_t *of, uint32_t nodes,
                       const uint32_t *node_of_rank, const uint32_t *places, const uint32_t *first,
                       bool in_order, bool is_even)
{
    across_module_t across = levels_of(of, ranks);
    const struct levels *levels = &across.levels;
    CHECK(levels_make(&across) == OMPI_SUCCESS && levels->node && !across.is_busy, "%s", what);
    CHECK(levels->nodes == nodes && levels->my_node == 0, "%s: %u nodes", what, levels->nodes);
    CHECK(is(levels->node_of, node_of_rank, ranks), "%s", what);
    CHECK(is(levels->place_of, places, ranks), "%s", what);
    CHECK(is(levels->first, first, nodes + 1), "%s", what);
    CHECK(levels->in_order == in_order && levels->is_even == is_even, "%s", what);
    levels_free(&across);
    CHECK(!levels->node && !levels->nodes, "%s", what);
}

static void no_levels(const char *what, uint32_t ranks, const uint32_t *of, enum multilane_way why)
{
    across_module_t across = levels_of(of, ranks);
    this_shares = why != MULTILANE_UNSHARED;
    this_records = why == MULTILANE_RECORDED;
    device_memory_possible = why == MULTILANE_DEVICE;
    failing_calloc = why == MULTILANE_NO_MEMORY ? 2 : 0;
    CHECK(levels_make(&across) == OMPI_SUCCESS && !across.levels.node, "%s", what);
    CHECK(across.entry.without == why && agreements == 1, "%s: %u", what,
          (unsigned) across.entry.without);
    CHECK(!across.levels.node_of && !across.is_busy, "%s: nothing is kept", what);
}

static void levels_are_bounded(void)
{
    enum { MOST = 64 };
    static const uint32_t of[] = {0, 0, 2};
    static across_module_t all[MOST];
    for (int i = 0; i < MOST; i++) {
        all[i] = levels_of(of, 3);
        CHECK(levels_make(&all[i]) == OMPI_SUCCESS && all[i].levels.node, "%d", i);
    }
    no_levels("one more than may be", 3, of, MULTILANE_MANY);
    levels_free(&all[0]);
    all[0] = levels_of(of, 3);
    CHECK(levels_make(&all[0]) == OMPI_SUCCESS && all[0].levels.node, "one was given back");
    for (int i = 0; i < MOST; i++)
        levels_free(&all[i]);
}

#define N(...) ((const uint32_t[]){__VA_ARGS__})

int main(void)
{
    static const uint32_t counts[] = {2, 3, 4, 9, 27, 28, 64, 256, 1000, 3900};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        area_fits(counts[i]);
    none_for(RANKS_MAX, MULTILANE_NO_MEMORY, "more ranks than a slot each has room for");
    none_for(4, MULTILANE_NO_MEMORY, "the node is full");
    none_for(4, MULTILANE_UNSHARED, "a processor each");
    none_for(4, MULTILANE_DEVICE, "a GPU");
    none_for(2, MULTILANE_RECORDED, "messages are recorded");
    none_for(4, MULTILANE_NO_SHM, "another one cannot");
    two_look();
    numbers_go_round();
    no_result_is_there();
    for (unsigned nth = 1; nth <= 2; nth++)
        area_without_memory(nth);
    later_areas_are_smaller();
    areas_share_a_part();

    levels_are("in order", 4, N(0, 0, 2, 2), 2, N(0, 0, 1, 1), N(0, 1, 2, 3), N(0, 2, 4), true,
               true);
    levels_are("in turn", 6, N(0, 1, 2, 0, 1, 2), 3, N(0, 1, 2, 0, 1, 2), N(0, 2, 4, 1, 3, 5),
               N(0, 2, 4, 6), false, true);
    levels_are("unlike", 6, N(0, 0, 0, 3, 4, 4), 3, N(0, 0, 0, 1, 2, 2), N(0, 1, 2, 3, 4, 5),
               N(0, 3, 4, 6), true, false);
    levels_are("unlike, in turn", 5, N(0, 1, 0, 1, 0), 2, N(0, 1, 0, 1, 0), N(0, 3, 1, 4, 2),
               N(0, 3, 5), false, false);
    no_levels("one node", 3, N(0, 0, 0), MULTILANE_APART);
    no_levels("one rank a node", 3, N(0, 1, 2), MULTILANE_APART);
    no_levels("they see unlike leaders", 4, N(0, 0, 1, 1), MULTILANE_APART);
    no_levels("a leader behind", 4, N(0, 3, 3, 3), MULTILANE_APART);
    no_levels("a processor each", 4, N(0, 0, 2, 2), MULTILANE_UNSHARED);
    no_levels("messages are recorded", 4, N(0, 0, 2, 2), MULTILANE_RECORDED);
    no_levels("a GPU", 4, N(0, 0, 2, 2), MULTILANE_DEVICE);
    no_levels("no memory", 4, N(0, 0, 2, 2), MULTILANE_NO_MEMORY);
    levels_are_bounded();
    later_ones_that_look_are_for_less();
    an_area_stays_whose_place_was_told_in_part(); /* the last: it takes room */
    return check_end();
}
