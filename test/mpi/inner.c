/* SPDX-License-Identifier: BSD-3-Clause */
/* What a plain MPI program cannot bring about: no memory for a request, and a request that its own
 * completion starts again, as components of Open MPI do. It reads Open MPI's inner headers. */
#include "ompi_config.h"
#include "ompi/mca/pml/base/pml_base_sendreq.h"
#include "ompi/request/request.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGE = 1 << 20, ITEMS_MOST = 4096, ROUNDS = 3 };

static int rank, failures;

static void expect(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "inner: rank %d: %s\n", rank, what);
    failures++;
}

/* --- no request to be had -----------------------------------------------------------------------
 */

static opal_free_list_item_t *taken[ITEMS_MOST];

static int requests_take(size_t *most)
{
    opal_free_list_t *list = &mca_pml_base_send_requests;
    int count = 0;

    *most = list->fl_max_to_alloc;
    list->fl_max_to_alloc = list->fl_num_allocated;
    while (count < ITEMS_MOST && NULL != (taken[count] = opal_free_list_get(list)))
        count++;
    return count;
}

static void requests_return(int count, size_t most)
{
    while (count > 0)
        opal_free_list_return(&mca_pml_base_send_requests, taken[--count]);
    mca_pml_base_send_requests.fl_max_to_alloc = most;
}

/* The message that could not be sent leaves no gap: those that follow arrive. */
static void no_request(char *large)
{
    char small[8] = "follows";
    MPI_Request request;
    size_t most;

    if (0 == rank) {
        int count = requests_take(&most);
        int code = MPI_Isend(large, LARGE, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);

        requests_return(count, most);
        expect(MPI_SUCCESS != code, "a large send was begun without a request");
        MPI_Send(small, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Send(large, LARGE, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
    } else if (1 == rank) {
        MPI_Recv(small, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(large, LARGE, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* --- started again by its completion ------------------------------------------------------------
 */

static MPI_Request repeated;
static int starts;

static int start_again(ompi_request_t *request)
{
    if (++starts == ROUNDS)
        return 0;
    request->req_complete_cb = start_again; /* it was taken off, and is handed on by the start */
    /* As components do: MPI_Start itself refuses it from 5.0 on. */
    expect(OMPI_SUCCESS == repeated->req_start(1, &repeated),
           "a completion could not start its request again");
    return 0;
}

static void repeat(void)
{
    starts = 0;
    repeated->req_complete_cb = start_again;
    MPI_Start(&repeated);
    while (starts < ROUNDS && 0 == failures) {
        int flag;

        MPI_Test(&repeated, &flag, MPI_STATUS_IGNORE);
    }
    MPI_Wait(&repeated, MPI_STATUS_IGNORE);
    MPI_Request_free(&repeated);
}

static void restarted(char *bytes, int size)
{
    if (0 == rank)
        MPI_Send_init(bytes, size, MPI_BYTE, 1, 3, MPI_COMM_WORLD, &repeated);
    else
        MPI_Recv_init(bytes, size, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &repeated);
    if (rank < 2)
        repeat();
    else
        MPI_Request_free(&repeated);
}

int main(int argc, char **argv)
{
    char *large;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    large = calloc(1, LARGE);
    MPI_Barrier(MPI_COMM_WORLD);
    no_request(large);
    restarted(large, 8);
    restarted(large, LARGE);
    MPI_Barrier(MPI_COMM_WORLD);
    free(large);
    MPI_Finalize();
    if (0 == rank)
        printf("inner: %d failures\n", failures);
    return 0 != failures;
}
