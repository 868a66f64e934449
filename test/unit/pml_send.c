/* SPDX-License-Identifier: BSD-3-Clause */
/* Large sends whose receiver is lost at any moment of their start: each ends once, and none waits
 * for an answer that cannot come. */
#include "check.h"

#include <pthread.h>
#include <string.h>

#include "match/credit.h"
#include "request/device_memory.h"
#include "base/multilane.h"
#include "protocol/common.h"
#include "progress_standin.h"

static ompi_communicator_t communicator;
static struct mca_pml_comm_t comm = {.ompi = &communicator};
static ompi_proc_t process;
static struct lane lane;
static struct peer peer = {.proc = &process, .lanes = &lane, .lane_count = 1};
static struct send_request request;
static bool has_room;             /* does the lane take messages now? */
static bool is_lost_before_start; /* the receiver, when the send has looked whether it is */
static bool is_refused;           /* the request, by the lane: it is tried again */
static struct wire_handle announced;

/* What lost_end does about sends. */
static void receiver_is_lost(void)
{
    struct send_request *send;
    struct wire_handle handle;
    uint32_t at = 0;
    peer.lost = true;
    while ((send = handle_next(&multilane.handles, HANDLE_SEND, &at, &handle)))
        send_request_lost(send, handle);
}

/* --- what lies around --------------------------------------------------------------------------
 */

int lane_send_copy(struct lane *to, const void *bytes, size_t length)
{
    struct wire_rts rts;
    CHECK(to == &lane && length == sizeof(struct wire_base) + sizeof(rts), "%zu bytes", length);
    memcpy(&rts, (const struct wire_base *) bytes + 1, sizeof(rts));
    announced = rts.sender;
    return has_room ? OMPI_SUCCESS : LANE_AGAIN;
}

enum flow_way send_queue_admit(struct send_request *admitted)
{
    CHECK(admitted == &request, "another request");
    if (is_lost_before_start)
        receiver_is_lost();
    return FLOW_GO;
}

void send_queue_await_lane(struct send_request *refused)
{
    CHECK(refused == &request, "another request");
    is_refused = true;
}

/* What credit.c does from progress. */
static void progress(void)
{
    if (is_refused)
        is_refused = send_request_try(&request) == LANE_AGAIN;
}

bool send_queue_withdraw(struct send_request *withdrawn)
{
    (void) withdrawn;
    return false;
}

static int announce(struct send_request *started)
{
    return rndv_announce(started, &lane, NULL, NULL);
}

const struct protocol rndv_am = {.name = "rndv-am", .method = WIRE_BY_SEND, .start = announce};
const struct protocol eager_short, eager_copy, eager_zcopy;
const struct protocol rndv_get, rndv_put, rndv_both, rndv_staged, rndv_device, rndv_ring;

void rndv_ring_stop(struct peer *stopped, bool sends)
{
    (void) stopped;
    (void) sends;
}

int device_send_begin(struct send_request *begun)
{
    (void) begun;
    return OMPI_SUCCESS;
}

void device_send_end(struct send_request *ended)
{
    (void) ended;
}

char *view_contiguous(const struct view *view)
{
    (void) view;
    abort();
}

size_t comm_write_extended(const struct mca_pml_comm_t *of, const struct peer *to, void *at,
                           uint8_t type, uint32_t sequence, int tag, struct wire_handle synchronous)
{
    (void) of;
    (void) to;
    (void) at;
    (void) type;
    (void) sequence;
    (void) tag;
    (void) synchronous;
    abort();
}

int lane_send_control(struct lane *to, const void *bytes, size_t length)
{
    (void) to;
    (void) bytes;
    (void) length;
    abort();
}

void lane_send_owned(struct lane *to, const void *bytes, size_t length, uint64_t patience_ns,
                     lane_left left, void *owner)
{
    (void) to;
    (void) bytes;
    (void) length;
    (void) patience_ns;
    (void) left;
    (void) owner;
    abort();
}

void lane_expect(struct lane *expecting, bool expects)
{
    (void) expecting;
    (void) expects;
}

void lane_failed(struct lane *failed, const char *what, int rc)
{
    CHECK(false, "lane %d %s: %d", failed->index, what, rc);
}

void rma_release(struct rma *rma)
{
    (void) rma;
}

int module_start(size_t count, ompi_request_t **requests)
{
    (void) count;
    (void) requests;
    abort();
}

/* --- the tests ---------------------------------------------------------------------------------
 */

static void begin(void)
{
    static const struct route route = {.protocol = &rndv_am, .lane_count = 1};
    OBJ_CONSTRUCT(&request, send_request_t);
    peer.lost = is_lost_before_start = is_refused = false;
    has_room = true;
    handle_table_init(&multilane.handles);
    request.base.req_base.req_comm = &communicator;
    request.base.req_base.req_proc = &process;
    request.out = (struct outgoing){.comm = &comm,
                                    .peer = &peer,
                                    .size = 1 << 20,
                                    .route = &route,
                                    .memory = {.kind = MEMORY_HOST}};
}

static void start(void)
{
    CHECK(send_request_start(&request, true) == OMPI_SUCCESS, "it starts");
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
    check_goes_on("nobody has acknowledged it");
    CHECK(send_request_acknowledged(&peer, announced, true), "it was announced");
    CHECK(!send_request_acknowledged(&peer, announced, true), "it was acknowledged before");
    check_ended(OMPI_SUCCESS);
}

static void test_lost_while_it_waits_for_an_answer(void)
{
    begin();
    start();
    check_goes_on("nobody has acknowledged it");
    receiver_is_lost();
    CHECK(!send_request_acknowledged(&peer, announced, true), "too late");
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
        send_request_acknowledged(&peer, announced, true);
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
    memset(&process, true, sizeof(process)); /* it lives, where Open MPI knows: see lost_or_dead */
    pending_open();
    test_acknowledged();
    test_lost_while_it_waits_for_an_answer();
    test_lost_before_it_could_be_found();
    test_lost_while_it_waits_for_room();
    test_answer_and_loss_at_once();
    return check_end();
}
