/* SPDX-License-Identifier: BSD-3-Clause */
/* An error that only the progress thread can meet: rank 1 sends to rank 0, past the PML, what is no
 * message, while rank 0 computes. Rank 0 computes on, hears of it in its next call of MPI, and the
 * job ends. Not a portable MPI program: it sends by Open MPI's own lanes. */
#include "ompi_config.h"
#include "ompi/communicator/communicator.h"
#include "ompi/mca/bml/base/base.h"
#include "ompi/mca/bml/bml.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire/wire.h"

enum { TAG_GO = 1, TAG_NEVER = 2 };
static const double most_s = 60;

static void fail(const char *what)
{
    fprintf(stderr, "thread_error: %s\n", what);
    exit(1);
}

static void sent(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                 mca_btl_base_descriptor_t *descriptor, int status)
{
    (void) btl;
    (void) endpoint;
    (void) descriptor;
    (void) status;
}

static void send_nonsense(int rank)
{
    mca_bml_base_endpoint_t *endpoint =
        mca_bml_base_get_endpoint(ompi_comm_peer_lookup(&ompi_mpi_comm_world.comm, rank));
    mca_bml_base_btl_t *lane =
        NULL == endpoint ? NULL : mca_bml_base_btl_array_get_index(&endpoint->btl_eager, 0);
    mca_btl_base_descriptor_t *descriptor = NULL;

    if (NULL != lane)
        mca_bml_base_alloc(lane, &descriptor, MCA_BTL_NO_ORDER, 1, MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);
    if (NULL == descriptor)
        fail("there is no lane, or no room on it");
    memset(descriptor->des_segments->seg_addr.pval, 0, 1);
    descriptor->des_cbfunc = sent;
    if (mca_bml_base_send(lane, descriptor, WIRE_TAG) < 0)
        fail("the lane does not send");
}

static int variable_open(const char *name, MPI_T_pvar_handle *handle, MPI_T_pvar_session *session)
{
    int index, values;

    return MPI_SUCCESS == MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) &&
           MPI_SUCCESS == MPI_T_pvar_session_create(session) &&
           MPI_SUCCESS == MPI_T_pvar_handle_alloc(*session, index, NULL, handle, &values);
}

/* MPI_T makes no progress, so what it counts here only the thread can have met. */
static void compute_until_met(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    double begin = MPI_Wtime();
    unsigned long long met = 0;

    while (0 == met) {
        if (MPI_Wtime() - begin > most_s)
            fail("the progress thread met nothing");
        MPI_T_pvar_read(session, handle, &met);
    }
    usleep(200000); /* in which the job must not end */
    fprintf(stderr, "rank 0 computed on\n");
}

int main(int argc, char **argv)
{
    int rank, provided;
    char byte = 0, never;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    MPI_Request request;

    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (0 == rank) {
        if (!variable_open("pml_multilane_bad_headers", &handle, &session))
            fail("there is no variable pml_multilane_bad_headers");
        /* Work under way, without which the thread sleeps. */
        MPI_Irecv(&never, 1, MPI_BYTE, 1, TAG_NEVER, MPI_COMM_WORLD, &request);
        MPI_Send(&byte, 1, MPI_BYTE, 1, TAG_GO, MPI_COMM_WORLD);
        compute_until_met(session, handle);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&byte, 1, MPI_BYTE, 0, TAG_GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        usleep(100000); /* rank 0 has left MPI */
        send_nonsense(0);
        MPI_Recv(&byte, 1, MPI_BYTE, 0, TAG_NEVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    fail("it went on as if nothing had happened");
}
