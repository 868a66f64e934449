/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ranks of multilane-calibrate do together: rank 0 sends an order, both do it. */
#include "session.h"

#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define ORDER_TAG 1
#define DATA_TAG  2
#define COUNT_TAG 3
#define DONE_TAG  4

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

static void nap(double seconds)
{
    struct timespec length = {(time_t) seconds, (long) (fmod(seconds, 1) * 1e9)};
    nanosleep(&length, NULL);
}

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

/* Rank 0 learns which ranks share a node, by the names of their hosts. */
static bool nodes_gather(struct session *session)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "", *names = NULL;
    int length;
    MPI_Get_processor_name(name, &length);
    if (session->rank == 0) {
        names = calloc((size_t) session->ranks, sizeof(name));
        session->nodes = calloc((size_t) session->ranks, sizeof(*session->nodes));
    }
    int is_good = session->rank != 0 || (names && session->nodes);
    MPI_Bcast(&is_good, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (is_good)
        MPI_Gather(name, sizeof(name), MPI_CHAR, names, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int rank = 0; is_good && session->rank == 0 && rank < session->ranks; rank++)
        while (strncmp(names + (size_t) session->nodes[rank] * sizeof(name),
                       names + (size_t) rank * sizeof(name), sizeof(name)) != 0)
            session->nodes[rank]++;
    free(names);
    return is_good;
}

bool session_begin(struct session *session, uint64_t buffer_bytes, struct model_error *error)
{
    session->buffer_bytes = buffer_bytes;
    session->send = memory_new(buffer_bytes);
    session->receive = memory_new(buffer_bytes);
    if (!session->send || !session->receive)
        return model_fail(error, "no memory for two messages of %llu bytes",
                          (unsigned long long) buffer_bytes);
    if (!nodes_gather(session))
        return model_fail(error, "no memory for the hosts of %d processes", session->ranks);
    return true;
}

void session_end(struct session *session)
{
    memory_free(session->send, session->buffer_bytes);
    memory_free(session->receive, session->buffer_bytes);
    free(session->nodes);
    session->nodes = NULL;
}

/* --- both ends' parts ------------------------------------------------------------------------- */

/* Where the order's message i lies, in the memory it is sent from or received into. */
static char *message_at(const struct session *session, char *memory, const struct order *order,
                        int i)
{
    uint64_t messages = order->walks ? session->buffer_bytes / order->bytes : 0;
    return messages ? memory + (order->at / order->bytes + (uint64_t) i) % messages * order->bytes
                    : memory;
}

static void send_from(const struct session *session, char *memory, int peer,
                      const struct order *order, int i)
{
    MPI_Send(message_at(session, memory, order, i), (int) order->bytes, MPI_BYTE, peer, DATA_TAG,
             MPI_COMM_WORLD);
}

static void send_to(const struct session *session, int peer, const struct order *order, int i)
{
    send_from(session, session->send, peer, order, i);
}

static void receive_from(const struct session *session, int peer, const struct order *order, int i)
{
    MPI_Recv(message_at(session, session->receive, order, i), (int) order->bytes, MPI_BYTE, peer,
             DATA_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void done_to(int peer)
{
    MPI_Send(NULL, 0, MPI_BYTE, peer, DONE_TAG, MPI_COMM_WORLD);
}

static void done_from(int peer)
{
    MPI_Recv(NULL, 0, MPI_BYTE, peer, DONE_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send_block(const struct session *session, int peer, const struct order *order)
{
    for (int i = 0; i < order->count; i++)
        send_to(session, peer, order, i);
}

static void receive_block(const struct session *session, int peer, const struct order *order)
{
    for (int i = 0; i < order->count; i++)
        receive_from(session, peer, order, i);
}

/* The peer begins the first one a latency later, and is by as much ahead of us in the next one and
 * behind in the one after: only two in a row take the time of two. */
#define EXCHANGES 3

static void exchange_with(const struct session *session, int peer, const struct order *order)
{
    MPI_Request requests[2 * SESSION_BLOCK_MOST];
    int count = order->count < SESSION_BLOCK_MOST ? order->count : SESSION_BLOCK_MOST, bytes;
    bytes = (int) order->bytes;
    for (int i = 0; i < count; i++)
        MPI_Irecv(message_at(session, session->receive, order, i), bytes, MPI_BYTE, peer, DATA_TAG,
                  MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < count; i++)
        MPI_Isend(message_at(session, session->send, order, i), bytes, MPI_BYTE, peer, DATA_TAG,
                  MPI_COMM_WORLD, &requests[count + i]);
    MPI_Waitall(2 * count, requests, MPI_STATUSES_IGNORE);
}

/* A packet goes to the children as soon as it is here; children of the larger subtrees first. */
static void broadcast_part(const struct session *session, const struct order *order)
{
    int rank = session->rank, lowest = 1;
    while (lowest < session->ranks && !(rank & lowest))
        lowest *= 2;
    for (int i = 0; i < order->count; i++) {
        if (rank)
            receive_from(session, rank - lowest, order, i);
        for (int step = lowest / 2; step; step /= 2)
            if (rank + step < session->ranks)
                send_from(session, rank ? session->receive : session->send, rank + step, order, i);
    }
    if (rank)
        done_to(0);
}

static void pair_part(const struct session *session, const struct order *order)
{
    for (int i = 0; i < order->count; i++) {
        if (session->rank < order->partner)
            send_to(session, order->partner, order, i);
        receive_from(session, order->partner, order, i);
        if (session->rank > order->partner)
            send_to(session, order->partner, order, i);
    }
    done_to(0);
}

/* --- the part of the other ranks
 * ------------------------------------------------------------------
 */

/* Spins while orders come thick, naps while others are at it: they may need the processor. */
static void order_wait(struct order *order)
{
    double since = seconds_now();
    for (int is_here = 0; !is_here;) {
        MPI_Iprobe(0, ORDER_TAG, MPI_COMM_WORLD, &is_here, MPI_STATUS_IGNORE);
        if (!is_here && seconds_now() - since > 0.01)
            nap(0.0005);
    }
    MPI_Recv(order, sizeof(*order), MPI_BYTE, 0, ORDER_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void obey_deaf(const struct session *session, const struct order *order)
{
    int count = 0;
    nap(0.02);
    MPI_Recv(&count, 1, MPI_INT, 0, COUNT_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++)
        receive_from(session, 0, order, i);
    done_to(0);
}

static void obey(const struct session *session, const struct order *order)
{
    switch (order->kind) {
    case ORDER_TRIPS:
        for (int i = 0; i < order->count; i++) {
            receive_from(session, 0, order, i);
            send_to(session, 0, order, i);
        }
        break;
    case ORDER_STREAM:
        receive_block(session, 0, order);
        done_to(0);
        break;
    case ORDER_STREAM_IN:
        send_block(session, 0, order);
        break;
    case ORDER_BLOCKS:
        receive_block(session, 0, order);
        send_block(session, 0, order);
        break;
    case ORDER_EXCHANGE:
        for (int i = 0; i < EXCHANGES; i++)
            exchange_with(session, 0, order);
        break;
    case ORDER_DEAF:
        obey_deaf(session, order);
        break;
    case ORDER_PAIR:
        pair_part(session, order);
        break;
    default:
        broadcast_part(session, order);
    }
}

void session_obey(struct session *session)
{
    for (;;) {
        struct order order;
        order_wait(&order);
        if (order.kind == ORDER_END)
            return;
        /* Rank 0 has asked the same of its own plans, which are like ours, and was not refused. */
        if (session->pml)
            session->pml->force(0, order.protocol, order.lanes);
        obey(session, &order);
    }
}

/* --- rank 0's part ---------------------------------------------------------------------------- */

/* Sends the order and forces what it says on this side too. */
static bool order_give(struct session *session, int peer, const struct order *order, int kind)
{
    struct order copy = *order;
    copy.kind = kind;
    if (session->pml && session->pml->force(peer, order->protocol, order->lanes) != 0)
        return false;
    MPI_Send(&copy, sizeof(copy), MPI_BYTE, peer, ORDER_TAG, MPI_COMM_WORLD);
    return true;
}

void session_dismiss(struct session *session)
{
    struct order order = {.protocol = MULTILANE_MEASURE_PLANNED};
    for (int rank = 1; rank < session->ranks; rank++)
        order_give(session, rank, &order, ORDER_END);
}

/* Waits without calling MPI, so that what arrives meanwhile is met by the next call. */
static void wait_idle(double seconds)
{
    double until = seconds_now() + seconds;
    while (seconds_now() < until)
        ;
}

/* Of order->count trips the first one warms up, unless it is the only one. */
double session_trips(struct session *session, int peer, const struct order *order)
{
    double start = 0;
    if (!order_give(session, peer, order, ORDER_TRIPS))
        return -1;
    for (int i = 0; i < order->count; i++) {
        if (i == 1 || order->count == 1)
            start = seconds_now();
        send_to(session, peer, order, i);
        receive_from(session, peer, order, i);
    }
    return (seconds_now() - start) / (order->count > 1 ? order->count - 1 : 1) / 2;
}

/* The others go on for longer than the trips that are timed. */
#define BESIDE_LONGER 4

double session_trips_beside(struct session *session, int peer, const struct order *order,
                            const struct session_pair *pairs, int count)
{
    for (int i = 0; i < 2 * count; i++) {
        struct order beside = *order;
        int rank = i % 2 ? pairs[i / 2].other : pairs[i / 2].one;
        beside.partner = i % 2 ? pairs[i / 2].one : pairs[i / 2].other;
        beside.count = BESIDE_LONGER * order->count;
        order_give(session, rank, &beside, ORDER_PAIR);
    }
    nap(0.001); /* they have read it: the idle ones look every half a millisecond */
    double trip_s = session_trips(session, peer, order);
    for (int i = 0; i < 2 * count; i++)
        done_from(i % 2 ? pairs[i / 2].other : pairs[i / 2].one);
    return trip_s;
}

double session_block(struct session *session, int peer, const struct order *order)
{
    if (!order_give(session, peer, order, ORDER_BLOCKS))
        return -1;
    wait_idle(50e-6); /* the peer has read the order */
    double start = seconds_now();
    send_block(session, peer, order);
    receive_block(session, peer, order);
    return (seconds_now() - start) / 2;
}

double session_exchange(struct session *session, int peer, const struct order *order)
{
    if (!order_give(session, peer, order, ORDER_EXCHANGE))
        return -1;
    exchange_with(session, peer, order);
    double start = seconds_now();
    for (int i = 1; i < EXCHANGES; i++)
        exchange_with(session, peer, order);
    return (seconds_now() - start) / (EXCHANGES - 1);
}

double session_stream(struct session *session, int peer, const struct order *order)
{
    if (!order_give(session, peer, order, ORDER_STREAM))
        return -1;
    double start = seconds_now();
    send_block(session, peer, order);
    double end = seconds_now();
    done_from(peer);
    return end - start;
}

double session_gap_in(struct session *session, int peer, const struct order *order)
{
    int steady = order->count * 3 / 4;
    double start = 0;
    if (!order_give(session, peer, order, ORDER_STREAM_IN))
        return -1;
    for (int i = 0; i < order->count; i++) {
        receive_from(session, peer, order, i);
        if (i == steady)
            start = seconds_now();
    }
    return (seconds_now() - start) / (order->count - 1 - steady);
}

void order_walk(struct session *session, struct order *order)
{
    order->walks = true;
    order->at = session->walked;
    session->walked += order->bytes * (uint64_t) order->count;
}

static bool broadcast_give(struct session *session, struct order *order)
{
    order_walk(session, order);
    for (int rank = 1; rank < session->ranks; rank++)
        if (!order_give(session, rank, order, ORDER_BROADCAST))
            return false;
    return true;
}

static double broadcast_time(const struct session *session, const struct order *order)
{
    double start = seconds_now();
    broadcast_part(session, order);
    for (int rank = 1; rank < session->ranks; rank++)
        done_from(rank);
    return seconds_now() - start;
}

double session_broadcast(struct session *session, uint64_t packet_bytes, int packets)
{
    struct order order = {
        .protocol = MULTILANE_MEASURE_PLANNED, .count = packets, .bytes = packet_bytes};
    if (!broadcast_give(session, &order))
        return -1;
    nap(0.003); /* the idle ones wake; what slept is slow at first, and that is not meant here */
    broadcast_time(session, &order);
    if (!broadcast_give(session, &order))
        return -1;
    wait_idle(50e-6); /* all have read the order */
    return broadcast_time(session, &order);
}

bool session_overheads(struct session *session, int peer, const struct order *order,
                       struct session_overheads *out)
{
    struct order one = *order;
    MPI_Request request;
    int is_here = 0;
    one.count = 1;
    order_walk(session, &one);
    /* O_s: until the send returns. */
    if (!order_give(session, peer, &one, ORDER_STREAM))
        return false;
    wait_idle(20e-6);
    double start = seconds_now();
    send_to(session, peer, &one, 0);
    out->send_s = seconds_now() - start;
    done_from(peer);
    /* O_r: until the library has put a message that came by itself where it belongs; U_r: until the
     * receiver has been told. */
    MPI_Irecv(message_at(session, session->receive, &one, 0), (int) one.bytes, MPI_BYTE, peer,
              DATA_TAG, MPI_COMM_WORLD, &request);
    if (!order_give(session, peer, &one, ORDER_STREAM_IN)) {
        MPI_Cancel(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return false;
    }
    wait_idle(order->count * 1e-6);
    start = seconds_now();
    MPI_Request_get_status(request, &is_here, MPI_STATUS_IGNORE);
    double arrived = seconds_now();
    bool came_late = !is_here; /* this one tells nothing */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    out->receive_s = seconds_now() - arrived;
    out->arrive_s = arrived - start;
    return !came_late;
}

uint64_t session_in_flight(struct session *session, int peer, const struct order *order,
                           uint64_t most_bytes)
{
    int most = (int) (most_bytes / order->bytes), count = 0, complete = 1;
    MPI_Request *requests = malloc((size_t) most * sizeof *requests);
    if (!requests || !order_give(session, peer, order, ORDER_DEAF)) {
        free(requests);
        return 0;
    }
    wait_idle(0.002); /* it sleeps by now */
    while (complete && count < most) {
        MPI_Isend(session->send, (int) order->bytes, MPI_BYTE, peer, DATA_TAG, MPI_COMM_WORLD,
                  &requests[count]);
        MPI_Test(&requests[count++], &complete, MPI_STATUS_IGNORE);
    }
    MPI_Send(&count, 1, MPI_INT, peer, COUNT_TAG, MPI_COMM_WORLD);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    done_from(peer);
    free(requests);
    return (uint64_t) (complete ? count : count - 1) * order->bytes;
}
