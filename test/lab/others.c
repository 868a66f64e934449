/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that are not the PML's, by one lane, as Open MPI's osc/rdma sends them from 5.0 on:
 * others SECONDS [LANE]. It keeps to the lane that it chose, and cannot send again what that loses;
 * so each message comes once while that lane comes and goes beside others. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compat/btl.h"
#include "common/compat/pml.h"

#define TAG        0x60 /* the first that Open MPI leaves to others */
#define UNDER_WAY  32u
#define MOST       10000000u
#define LONGEST    8000u
#define PATIENCE_S 20

static int rank;
static unsigned char *came; /* by number, how often */
static _Atomic unsigned came_count, wrong, sends_ended, sends_failed;
static mca_btl_base_module_t *btl;
static struct mca_btl_base_endpoint_t *endpoint;

static unsigned size_of(unsigned number)
{
    return (unsigned) sizeof(number) + number * 97 % LONGEST;
}

static unsigned char byte_of(unsigned number, size_t at)
{
    return (unsigned char) (number * 31 + at * 7);
}

COMPAT_RECEIVE_CALLBACK(message_came)
{
    const unsigned char *bytes = segments[0].seg_addr.pval;
    unsigned number = MOST;
    bool right = segment_count == 1 && segments[0].seg_len >= sizeof(number);

    (void) btl;
    if (right)
        memcpy(&number, bytes, sizeof(number));
    right = right && number < MOST && segments[0].seg_len == size_of(number);
    for (size_t i = sizeof(number); right && i < segments[0].seg_len; i++)
        right = byte_of(number, i) == bytes[i];
    if (!right || came[number]++)
        atomic_fetch_add(&wrong, 1);
    else
        atomic_fetch_add(&came_count, 1);
}

static void send_ended(mca_btl_base_module_t *module, struct mca_btl_base_endpoint_t *peer,
                       mca_btl_base_descriptor_t *descriptor, int status)
{
    (void) module, (void) peer, (void) descriptor;
    atomic_fetch_add(status == OPAL_SUCCESS ? &sends_ended : &sends_failed, 1);
}

static bool message_send(unsigned number)
{
    size_t size = size_of(number);
    mca_btl_base_descriptor_t *descriptor =
        btl->btl_alloc(btl, endpoint, MCA_BTL_NO_ORDER, size,
                       MCA_BTL_DES_FLAGS_BTL_OWNERSHIP | MCA_BTL_DES_SEND_ALWAYS_CALLBACK);

    if (!descriptor)
        return false;
    unsigned char *bytes = descriptor->des_segments[0].seg_addr.pval;
    for (size_t i = sizeof(number); i < size; i++)
        bytes[i] = byte_of(number, i);
    memcpy(bytes, &number, sizeof(number));
    descriptor->des_cbfunc = send_ended;
    int status = btl->btl_send(btl, endpoint, descriptor, TAG);
    if (status < 0)
        btl->btl_free(btl, descriptor);
    return status >= 0;
}

/* Returns how many were sent. */
static unsigned messages_send(double seconds, unsigned *refused)
{
    double begin = MPI_Wtime();
    unsigned sent = 0;

    while (MPI_Wtime() - begin < seconds && sent < MOST) {
        if (sent - atomic_load(&sends_ended) - atomic_load(&sends_failed) < UNDER_WAY &&
            message_send(sent))
            sent++;
        else
            *refused += sent - atomic_load(&sends_ended) < UNDER_WAY;
        opal_progress();
    }
    return sent;
}

static void messages_await(unsigned count)
{
    double begin = MPI_Wtime();

    while (atomic_load(&came_count) < count && MPI_Wtime() - begin < PATIENCE_S)
        opal_progress();
}

int main(int argc, char **argv)
{
    unsigned sent, theirs, refused = 0, none = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    came = calloc(MOST, 1);
    mca_bml.bml_register(TAG, message_came, NULL);
    mca_bml_base_endpoint_t *peer =
        mca_bml_base_get_endpoint(ompi_comm_peer_lookup(MPI_COMM_WORLD, 1 - rank));
    mca_bml_base_btl_t *lane =
        mca_bml_base_btl_array_get_index(&peer->btl_send, argc > 2 ? (size_t) atoi(argv[2]) : 0);
    btl = lane->btl;
    endpoint = lane->btl_endpoint;
    MPI_Sendrecv(&none, 1, MPI_UNSIGNED, 1 - rank, 0, &theirs, 1, MPI_UNSIGNED, 1 - rank, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("others begin\n"), fflush(stdout);
    sent = messages_send(seconds, &refused);
    MPI_Sendrecv(&sent, 1, MPI_UNSIGNED, 1 - rank, 0, &theirs, 1, MPI_UNSIGNED, 1 - rank, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    messages_await(theirs);
    MPI_Barrier(MPI_COMM_WORLD);
    printf(
        "others: %u messages to rank %d, of which %u came, %u wrong, %u failed, refused %u times\n",
        theirs, rank, atomic_load(&came_count), atomic_load(&wrong), atomic_load(&sends_failed),
        refused);
    bool is_right = atomic_load(&came_count) == theirs && atomic_load(&wrong) == 0;
    MPI_Finalize();
    return !is_right;
}
