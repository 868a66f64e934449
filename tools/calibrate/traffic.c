/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends and receives messages in the order that rank 0 gives. */
#include "traffic.h"

#include <mpi.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "common/lock/clock.h"

#define ORDER_TAG 1
#define DATA_TAG  2
#define READY_TAG 3

enum order_kind { ORDER_FORCE, ORDER_SEND, ORDER_END };

struct order {
    enum order_kind kind;
    int protocol; /* ORDER_FORCE: as in `force` */
    uint32_t lanes;
    int count; /* of messages of so many bytes */
    uint64_t bytes;
};

char *memory_new(size_t bytes)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    return memset(memory, 1, bytes); /* no page fault is to be timed */
}

void memory_free(char *memory, size_t bytes)
{
    munmap(memory, bytes);
}

bool traffic_begin(struct traffic *traffic, uint64_t most_bytes, struct error_text *error)
{
    traffic->most_bytes = most_bytes;
    traffic->memory = memory_new(most_bytes);
    return traffic->memory || fail_with(error, "no memory for a message of %llu bytes",
                                        (unsigned long long) most_bytes);
}

/* An empty message, which is not timed: all is ready for what comes next. */
static void ready_to(int peer)
{
    MPI_Send(NULL, 0, MPI_BYTE, peer, READY_TAG, MPI_COMM_WORLD);
}

static void ready_from(int peer)
{
    MPI_Recv(NULL, 0, MPI_BYTE, peer, READY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Blocking, as most programs do: faster than a posted one, and posted soon enough. */
static void one_receive(const struct traffic *traffic, const struct order *order)
{
    ready_to(0);
    MPI_Recv(traffic->memory, (int) order->bytes, MPI_BYTE, 0, DATA_TAG, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
}

/* Spins while orders come thick, naps while another rank is measured: that may need the processor.
 */
static void order_wait(struct order *order)
{
    const struct timespec nap = {0, 500000};
    double since = clock_exact_s();
    for (int is_here = 0; !is_here;) {
        MPI_Iprobe(0, ORDER_TAG, MPI_COMM_WORLD, &is_here, MPI_STATUS_IGNORE);
        if (!is_here && clock_exact_s() - since > 0.01)
            nanosleep(&nap, NULL);
    }
    MPI_Recv(order, sizeof(*order), MPI_BYTE, 0, ORDER_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void traffic_obey(struct traffic *traffic)
{
    struct order order;
    for (order_wait(&order); order.kind != ORDER_END; order_wait(&order)) {
        /* Rank 0 has asked the same of its own plans, which are like ours, and was not refused. */
        if (order.kind == ORDER_FORCE)
            traffic->pml->force(0, order.protocol, order.lanes);
        for (int i = 0; order.kind == ORDER_SEND && i < order.count; i++)
            one_receive(traffic, &order);
        ready_to(0);
    }
}

static void order_give(const struct order *order, int peer)
{
    MPI_Send(order, sizeof(*order), MPI_BYTE, peer, ORDER_TAG, MPI_COMM_WORLD);
}

void traffic_dismiss(struct traffic *traffic)
{
    for (int rank = 1; rank < traffic->ranks; rank++)
        order_give(&(struct order){.kind = ORDER_END}, rank);
}

bool traffic_force(struct traffic *traffic, int peer, int protocol, uint32_t lanes)
{
    if (traffic->pml->force(peer, protocol, lanes) != 0)
        return false;
    order_give(&(struct order){.kind = ORDER_FORCE, .protocol = protocol, .lanes = lanes}, peer);
    ready_from(peer);
    return true;
}

bool traffic_send(struct traffic *traffic, int peer, uint64_t bytes, int count,
                  struct multilane_times *times)
{
    order_give(&(struct order){.kind = ORDER_SEND, .bytes = bytes, .count = count}, peer);
    for (int i = 0; i < count; i++) {
        ready_from(peer);
        MPI_Send(traffic->memory, (int) bytes, MPI_BYTE, peer, DATA_TAG, MPI_COMM_WORLD);
    }
    ready_from(peer);
    return traffic->pml->times(peer, bytes, times) == 0 && times->seconds > 0;
}
