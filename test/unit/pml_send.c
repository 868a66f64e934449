/* SPDX-License-Identifier: BSD-3-Clause */
/* Large sends whose receiver is lost at any moment of their start: each ends once, and none waits
 * for an answer that cannot come. */
#include "check.h"

#include <pthread.h>
#include <string.h>

#include "lanes_standin.h"
#include "contact/peer_lanes.h"
#include "progress_standin.h"
#include "protocol/common.h"
#include "request/send_request.h"

static ompi_communicator_t communicator;
static struct mca_pml_comm_t comm = {.ompi = &communicator};
static struct peer *peer;
static struct send_request request;
static bool has_room;             /* does the lane take messages now? */
static bool is_lost_before_start; /* the receiver, when the send has looked whether it is */
static struct wire_handle announced;

/* What lost_end does about sends that wait for an answer. */
static void receiver_is_lost(void)
{
    struct send_request *send;
    struct wire_handle handle;
    uint32_t at = 0;
    peer->lost = true;
    while ((send = handle_next(&multilane.handles, HANDLE_SEND, &at, &handle)))
        send_request_lost(send, handle);
}

/* --- what lies around --------------------------------------------------------------------------
 */

static bool rts_taken(const mca_btl_base_module_t *btl,
                      const struct mca_btl_base_endpoint_t *endpoint, const unsigned char *bytes,
                      size_t length)
{
    struct wire_rts rts;
    CHECK(btl == peer->lanes[0].btl && endpoint == peer->lanes[0].endpoint &&
              length == sizeof(struct wire_base) + sizeof(rts),
          "%zu bytes", length);
    memcpy(&rts, bytes + sizeof(struct wire_base), sizeof(rts));
    announced = rts.sender;
    return has_room;
}

static void progress(void)
{
    progress_standin_run();
}

static int announce(struct send_request *started)
{
    if (is_lost_before_start)
        receiver_is_lost();
    return rndv_announce(started, &peer->lanes[0], NULL, NULL);
}

static const struct protocol rndv = {.name = "rndv", .method = WIRE_BY_SEND, .start = announce};

/* --- the tests ---------------------------------------------------------------------------------
 */

static void begin(void)
{
    static const struct route route = {.protocol = &rndv, .lane_count = 1};
    OBJ_CONSTRUCT(&request, send_request_t);
    peer->lost = is_lost_before_start = false;
    has_room = true;
    handle_table_init(&multilane.handles);
    request.base.req_base.req_comm = &communicator;
    request.base.req_base.req_proc = peer->proc;
    request.out = (struct outgoing){.comm = &comm,
                                    .peer = peer,
                                    .size = 1 << 20,
                                    .route = &route,
                                    .memory = {.kind = MEMORY_HOST}};
}

static void start(void)
{
    CHECK(send_request_start(&request, true, false) == OMPI_SUCCESS, "it starts");
}

/* The PML is done with it, once; its user is not. */
static void check_ended(int mpi_error)
{
    struct wire_handle handle;
    uint32_t at = 0;
    int error = request.base.req_base.req_ompi.req_status.MPI_ERROR;
    CHECK(request.ends == 1, "it has ended %u times", request.ends);
    CHECK(error == mpi_error, "MPI_ERROR is %d", error);
    CHECK(!handle_next(&multilane.handles, HANDLE_SEND, &at, &handle), "its handle names it");
    handle_table_fini(&multilane.handles);
}

static void check_goes_on(const char *what)
{
    CHECK(request.ends == 0, "it has ended, and %s", what);
}

static void test_acknowledged(void)
{
    begin();
    has_room = false;
    start();
    has_room = true;
    progress();
    check_goes_on("it is not acknowledged");
    CHECK(send_request_acknowledged(peer, announced, true), "it was announced");
    CHECK(!send_request_acknowledged(peer, announced, true), "it was acknowledged before");
    check_ended(OMPI_SUCCESS);
}

static void test_lost_while_it_waits_for_an_answer(void)
{
    begin();
    start();
    check_goes_on("it is not acknowledged");
    receiver_is_lost();
    CHECK(!send_request_acknowledged(peer, announced, true), "too late");
    check_ended(COMPAT_ERR_PROC_FAILED);
}

static void test_lost_while_it_waits_for_room(void)
{
    begin();
    has_room = false;
    start();
    progress();
    receiver_is_lost();
    check_goes_on("is to be tried again");
    if (request.ends == 0)
        progress();
    check_ended(COMPAT_ERR_PROC_FAILED);
}

static void test_lost_before_it_could_be_found(void)
{
    begin();
    is_lost_before_start = true;
    start();
    check_ended(COMPAT_ERR_PROC_FAILED);
}

/* --- threads -----------------------------------------------------------------------------------
 */

#define ROUNDS 20000

static pthread_barrier_t barrier;

static void *lose(void *unused)
{
    (void) unused;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&barrier);
        send_request_lost(&request, announced);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

/* The answer comes in the moment that the receiver counts as lost. */
static void test_answer_and_loss_at_once(void)
{
    pthread_t thread;
    unsigned twice = 0;
    pthread_barrier_init(&barrier, NULL, 2);
    opal_set_using_threads(true);
    pthread_create(&thread, NULL, lose, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        begin();
        start();
        request.unfinished = 3; /* so that it does not end here */
        pthread_barrier_wait(&barrier);
        send_request_acknowledged(peer, announced, true);
        pthread_barrier_wait(&barrier);
        twice += request.unfinished != 2;
        handle_table_fini(&multilane.handles);
    }
    pthread_join(thread, NULL);
    opal_set_using_threads(false);
    pthread_barrier_destroy(&barrier);
    CHECK(twice == 0, "%u of %d counted both", twice, ROUNDS);
}

int main(void)
{
    standin_begin();
    standin_takes = rts_taken;
    peer = standin_peer();
    standin_reach(peer, standin_btl("tcp", 1000));
    CHECK(peer_take_lanes(peer), "no lanes");
    protocols =
        (struct protocols){.of_model[MODEL_RNDV_AM] = &rndv, .of_method[WIRE_BY_SEND] = &rndv};
    send_queue_begin(peer, 1 << 20);
    test_acknowledged();
    test_lost_while_it_waits_for_an_answer();
    test_lost_before_it_could_be_found();
    test_lost_while_it_waits_for_room();
    test_answer_and_loss_at_once();
    return check_end();
}
