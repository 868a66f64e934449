/* SPDX-License-Identifier: BSD-3-Clause */
/* One lane of btl/verbs by itself, the last of those between two ranks, as a PML uses it: messages
 * in order, puts, gets and atomics, a fence, and the lane's return. What MPI itself has to
 * say goes over the other lanes (run it with pml_multilane_eager_lanes and rndv_lanes 1). */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/compat/btl.h"
#include "common/compat/pml.h"
#include "multilane/extension.h"

#define TAG      0x60 /* the first that Open MPI leaves to others */
#define MESSAGES 400u
#define BYTES    ((size_t) 300000)
#define ADDS     50u
#define LIMIT_S  60

static int rank;
static unsigned failures;

#define HOLDS(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: rank %d: does not hold: %s\n", __FILE__, __LINE__, rank,       \
                    #condition);                                                                   \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

static mca_btl_base_module_t *btl;
static struct mca_btl_base_endpoint_t *endpoint;
static const struct multilane_extension *extension;

/* --- waiting --- */

static time_t give_up;

/* Makes progress until the number is reached; false: not in time. */
static bool reaches(_Atomic unsigned *number, unsigned wanted)
{
    while (atomic_load(number) < wanted) {
        opal_progress();
        if (time(NULL) > give_up)
            return false;
    }
    return true;
}

/* --- messages --- */

static _Atomic unsigned messages_right, messages_wrong, errors_told;

static unsigned char byte_of(unsigned number, size_t at)
{
    return (unsigned char) (number * 31 + at * 7);
}

/* From one byte to the longest, inline and copied ones in turn. */
static size_t size_of(unsigned number)
{
    size_t size = sizeof(unsigned) + (number % 2 == 0 ? number % 100 : number * 97);

    return size < btl->btl_max_send_size ? size : btl->btl_max_send_size;
}

COMPAT_RECEIVE_CALLBACK(message_came)
{
    unsigned expected = atomic_load(&messages_right) + atomic_load(&messages_wrong), number;
    const unsigned char *bytes = segments[0].seg_addr.pval;
    bool right = segment_count == 1 && size_of(expected) == segments[0].seg_len;

    (void) btl;
    memcpy(&number, bytes, sizeof(number));
    right = right && number == expected;
    for (size_t i = sizeof(number); right && i < segments[0].seg_len; i++)
        right = byte_of(number, i) == bytes[i];
    atomic_fetch_add(right ? &messages_right : &messages_wrong, 1);
}

static void error_told(mca_btl_base_module_t *module, int32_t flags, opal_proc_t *proc, char *info)
{
    (void) module;
    (void) flags;
    (void) proc;
    (void) info;
    atomic_fetch_add(&errors_told, 1);
}

static _Atomic unsigned sends_ended, sends_failed;

static void send_ended(mca_btl_base_module_t *module, struct mca_btl_base_endpoint_t *peer,
                       mca_btl_base_descriptor_t *descriptor, int status)
{
    (void) module;
    (void) peer;
    (void) descriptor;
    atomic_fetch_add(status == OPAL_SUCCESS ? &sends_ended : &sends_failed, 1);
}

/* By send-immediate where that is possible, by a descriptor else. */
static int message_send(unsigned number)
{
    static unsigned char bytes[1 << 20];
    size_t size = size_of(number);
    mca_btl_base_descriptor_t *descriptor = NULL;
    int status;

    for (size_t i = 0; i < size; i++)
        bytes[i] = byte_of(number, i);
    memcpy(bytes, &number, sizeof(number));
    if (number % 3 == 0 &&
        btl->btl_sendi(btl, endpoint, NULL, bytes, size, 0, MCA_BTL_NO_ORDER,
                       MCA_BTL_DES_FLAGS_BTL_OWNERSHIP, TAG, NULL) == OPAL_SUCCESS) {
        atomic_fetch_add(&sends_ended, 1);
        return OPAL_SUCCESS;
    }
    descriptor = btl->btl_alloc(btl, endpoint, MCA_BTL_NO_ORDER, size,
                                MCA_BTL_DES_FLAGS_BTL_OWNERSHIP | MCA_BTL_DES_SEND_ALWAYS_CALLBACK);
    if (!descriptor)
        return OPAL_ERR_OUT_OF_RESOURCE;
    memcpy(descriptor->des_segments[0].seg_addr.pval, bytes, size);
    descriptor->des_cbfunc = send_ended;
    status = btl->btl_send(btl, endpoint, descriptor, TAG);
    if (status < 0)
        btl->btl_free(btl, descriptor);
    return status;
}

static void messages_keep_their_order(void)
{
    for (unsigned i = 0; i < MESSAGES; i++)
        HOLDS(message_send(i) >= 0);
    HOLDS(reaches(&sends_ended, MESSAGES));
    HOLDS(reaches(&messages_right, MESSAGES));
    HOLDS(messages_wrong == 0 && sends_failed == 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* --- puts, gets, atomics --- */

static _Atomic unsigned copies_ended, copies_failed;

static void copy_ended(mca_btl_base_module_t *module, struct mca_btl_base_endpoint_t *peer,
                       void *local, mca_btl_base_registration_handle_t *handle, void *context,
                       void *data, int status)
{
    (void) module;
    (void) peer;
    (void) local;
    (void) handle;
    (void) context;
    (void) data;
    atomic_fetch_add(status == OPAL_SUCCESS ? &copies_ended : &copies_failed, 1);
}

/* Memory of this rank and where that of the other is. */
static unsigned char *mine;
static mca_btl_base_registration_handle_t *my_handle;
static uint64_t their_address;
static unsigned char their_handle[64];
#define THEIRS ((mca_btl_base_registration_handle_t *) (void *) their_handle)

/* The first part is the peer's to write, the second ours to read into; a counter behind them. */
#define COUNTER_AT (2 * BYTES)
#define RESULT_AT  (2 * BYTES + 64)
#define ALL_BYTES  (2 * BYTES + 128)

static void memory_meet(void)
{
    uint64_t address;

    if (posix_memalign((void **) &mine, 4096, ALL_BYTES) != 0)
        abort();
    memset(mine, 0, ALL_BYTES);
    my_handle = btl->btl_register_mem(btl, endpoint, mine, ALL_BYTES, MCA_BTL_REG_FLAG_ACCESS_ANY);
    HOLDS(my_handle && btl->btl_registration_handle_size <= sizeof(their_handle));
    address = (uint64_t) (uintptr_t) mine;
    MPI_Sendrecv(&address, 8, MPI_BYTE, 1 - rank, 1, &their_address, 8, MPI_BYTE, 1 - rank, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(my_handle, (int) btl->btl_registration_handle_size, MPI_BYTE, 1 - rank, 2,
                 their_handle, (int) btl->btl_registration_handle_size, MPI_BYTE, 1 - rank, 2,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int copy(bool put, void *local, uint64_t remote, size_t size)
{
    return (put ? btl->btl_put : btl->btl_get)(btl, endpoint, local, remote, my_handle, THEIRS,
                                               size, 0, MCA_BTL_NO_ORDER, copy_ended, NULL, NULL);
}

static void puts_and_gets_move_every_byte(void)
{
    static const size_t sizes[] = {1, 64, 4096, 65537, BYTES};
    unsigned char *second = mine + BYTES;

    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t wrong = 0;
        unsigned ended = atomic_load(&copies_ended);

        for (size_t at = 0; at < sizes[i]; at++)
            second[at] = byte_of(i + (unsigned) rank, at);
        MPI_Barrier(MPI_COMM_WORLD);
        HOLDS(copy(true, second, their_address, sizes[i]) == OPAL_SUCCESS);
        HOLDS(reaches(&copies_ended, ended + 1));
        MPI_Barrier(MPI_COMM_WORLD);
        for (size_t at = 0; at < sizes[i]; at++)
            wrong += mine[at] != byte_of(i + 1u - (unsigned) rank, at);
        HOLDS(wrong == 0);
        /* Back again: what the other now has is what we put there. */
        memset(second, 0, sizes[i]);
        MPI_Barrier(MPI_COMM_WORLD);
        HOLDS(copy(false, second, their_address, sizes[i]) == OPAL_SUCCESS);
        HOLDS(reaches(&copies_ended, ended + 2));
        for (size_t at = 0; at < sizes[i]; at++)
            wrong += second[at] != byte_of(i + (unsigned) rank, at);
        HOLDS(wrong == 0 && copies_failed == 0);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void atomics_lose_nothing(void)
{
    uint64_t *counter = (void *) (mine + COUNTER_AT), *result = (void *) (mine + RESULT_AT);
    unsigned ended = atomic_load(&copies_ended);

    if (!btl->btl_atomic_fop)
        return;
    /* Each adds to the other's counter. */
    for (unsigned i = 0; i < ADDS; i++) {
        HOLDS(btl->btl_atomic_fop(btl, endpoint, result, their_address + COUNTER_AT, my_handle,
                                  THEIRS, MCA_BTL_ATOMIC_ADD, 3, 0, MCA_BTL_NO_ORDER, copy_ended,
                                  NULL, NULL) == OPAL_SUCCESS);
        HOLDS(reaches(&copies_ended, ended + i + 1));
        HOLDS(3 * i == *result);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    HOLDS(3 * ADDS == *counter);
    MPI_Barrier(MPI_COMM_WORLD);
    HOLDS(btl->btl_atomic_cswap(btl, endpoint, result, their_address + COUNTER_AT, my_handle,
                                THEIRS, 3 * ADDS, 99, 0, MCA_BTL_NO_ORDER, copy_ended, NULL,
                                NULL) == OPAL_SUCCESS);
    HOLDS(reaches(&copies_ended, ended + ADDS + 1));
    MPI_Barrier(MPI_COMM_WORLD);
    HOLDS(*counter == 99 && 3 * ADDS == *result);
    HOLDS(btl->btl_atomic_fop(btl, endpoint, result, their_address + COUNTER_AT, my_handle, THEIRS,
                              MCA_BTL_ATOMIC_XOR, 1, 0, MCA_BTL_NO_ORDER, copy_ended, NULL,
                              NULL) == OPAL_ERR_NOT_SUPPORTED);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* --- the lane's end and return --- */

static void a_fence_ends_both_ends(void)
{
    struct multilane_lane_attributes attributes;

    HOLDS(extension->attributes(btl, endpoint, &attributes) == OPAL_SUCCESS);
    HOLDS((attributes.capabilities & MULTILANE_CAN_FENCE) != 0);
    HOLDS((attributes.capabilities & MULTILANE_CAN_DELIVER) != 0);
    if (rank == 0) {
        unsigned before = atomic_load(&copies_ended) + atomic_load(&copies_failed);
        int status = OPAL_ERR_RESOURCE_BUSY;

        /* Under way when the fence comes: each ends, one way or the other. */
        for (int i = 0; i < 20; i++)
            HOLDS(copy(true, mine + BYTES, their_address, BYTES) == OPAL_SUCCESS);
        while (status == OPAL_ERR_RESOURCE_BUSY && time(NULL) < give_up) {
            status = extension->fence(btl, endpoint);
            opal_progress();
        }
        HOLDS(status == OPAL_SUCCESS);
        HOLDS(before + 20 == atomic_load(&copies_ended) + atomic_load(&copies_failed));
        HOLDS(message_send(0) < 0);
        HOLDS(copy(true, mine, their_address, 8) < 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    HOLDS(reaches(&errors_told, 1));
    HOLDS(errors_told == 1);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void a_lane_that_is_added_anew_works_again(opal_proc_t *proc)
{
    unsigned right = atomic_load(&messages_right), ended = atomic_load(&sends_ended);

    atomic_store(&sends_failed, 0);
    do { /* not before it is known that both halves are over */
        HOLDS(btl->btl_add_procs(btl, 1, &proc, &endpoint, NULL) == OPAL_SUCCESS);
        opal_progress();
    } while (!endpoint && time(NULL) < give_up);
    if (!endpoint) {
        fprintf(stderr, "verbs_lane: rank %d: the lane is not made anew\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (unsigned i = 0; i < 20; i++)
        HOLDS(message_send(MESSAGES + i) >= 0);
    HOLDS(reaches(&sends_ended, ended + 20));
    HOLDS(reaches(&messages_right, right + 20));
    HOLDS(messages_wrong == 0 && sends_failed == 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* --- finding it --- */

static void lane_find(ompi_proc_t *proc)
{
    mca_bml_base_endpoint_t *bml = mca_bml_base_get_endpoint(proc);

    for (size_t i = 0; bml && i < mca_bml_base_btl_array_get_size(&bml->btl_send); i++) {
        mca_bml_base_btl_t *found = mca_bml_base_btl_array_get_index(&bml->btl_send, i);

        if (strcmp(found->btl->btl_component->btl_version.mca_component_name, "verbs") == 0) {
            btl = found->btl;
            endpoint = found->btl_endpoint;
        }
    }
    extension = dlsym(RTLD_DEFAULT, "mca_btl_verbs_multilane_v5");
}

int main(int argc, char **argv)
{
    opal_proc_t *proc;
    unsigned all = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    give_up = time(NULL) + LIMIT_S;
    proc = &ompi_comm_peer_lookup(&ompi_mpi_comm_world.comm, 1 - rank)->super;
    lane_find((ompi_proc_t *) proc);
    if (!btl || !extension) {
        fprintf(stderr, "verbs_lane: rank %d has no lane of btl/verbs to the other\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    mca_btl_base_active_message_trigger[TAG].cbfunc = message_came;
    btl->btl_register_error(btl, error_told);
    MPI_Barrier(MPI_COMM_WORLD);
    /* The PML knows the process by now, and would have another lane carry what this one does not.
     */
    extension->return_to(btl, endpoint, NULL, NULL);
    messages_keep_their_order();
    memory_meet();
    puts_and_gets_move_every_byte();
    atomics_lose_nothing();
    a_fence_ends_both_ends();
    a_lane_that_is_added_anew_works_again(proc);
    btl->btl_deregister_mem(btl, my_handle);
    free(mine);
    MPI_Allreduce(&failures, &all, 1, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0 && all == 0)
        printf("verbs_lane: all holds\n");
    return all != 0;
}
