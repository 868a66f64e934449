/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that are being made, and what comes over them, over a device that exists in this
 * file. */
#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>

#include "btl/verbs/greeting.h"

#define PLACES 256
#define DEPTH  32u
#define PEERS  400u
#define TAG    77

#define BUFFERS_MOST 4096u

/* Nothing of Open MPI is started here, and its own starts something at the first line. */
void opal_output(int stream, const char *format, ...)
{
    (void) stream, (void) format;
}

/* --- a device -----------------------------------------------------------------------------------
 */

static struct {
    uint64_t now_ms;
    uint32_t last_qpn;
    struct ibv_wc done[PLACES], came[PLACES]; /* sends that ended, receives that were filled */
    int done_count, came_count;
    uint16_t dead_lids; /* up to this one no peer answers, which takes a second to find */
    unsigned dead_tried;
    struct ibv_recv_wr room; /* for the next datagram */
    struct ibv_sge room_part;
    unsigned char sent[256]; /* the last datagram */
    uint32_t sent_bytes;
    struct ibv_ah_attr path;      /* that was last made */
    struct ibv_async_event event; /* due, if it has a queue pair */
    unsigned unacknowledged;
    unsigned posted;                      /* messages and slots */
    unsigned greetings[1 + PEERS];        /* by the LID that they went to */
    uint32_t buffer_posted[BUFFERS_MOST]; /* of the shared receive queue */
    uint32_t buffers, buffers_most, limit;
    unsigned receive_doorbells;
    unsigned polls[2];   /* of receives, of sends */
    uint16_t pkey_index; /* that a pair was last given */
    unsigned greeting_buffers;
    bool has_no_limit;
    bool few_left;       /* an event that is due */
    bool is_full;        /* no queue pair is left */
    const char *changed; /* what of the port has changed */
    unsigned looks;      /* at that */
    bool is_down;        /* datagrams cannot be sent, */
    bool is_stuck;       /* and one that could not be stops those behind it */
    unsigned refusals;   /* so many resets fail */
    unsigned resets;     /* of the datagrams' queue pair */
} device;

/* Where a greeting goes. */
struct path {
    struct ibv_ah handle;
    uint16_t lid;
};

static struct ibv_cq send_queue, receive_queue;

static int device_poll(struct ibv_cq *queue, int most, struct ibv_wc *completions)
{
    bool sends = queue == &send_queue;

    device.polls[sends]++;
    struct ibv_wc *from = sends ? device.done : device.came;
    int *count = sends ? &device.done_count : &device.came_count;
    int taken = *count < most ? *count : most;

    memcpy(completions, from, (size_t) taken * sizeof(*from));
    *count -= taken;
    memmove(from, from + taken, (size_t) *count * sizeof(*from));
    return taken;
}

static int device_post(struct ibv_qp *qp, struct ibv_send_wr *request, struct ibv_send_wr **bad)
{
    (void) bad;
    CHECK(device.done_count < PLACES, "more than the completion queue holds");
    if (qp->qp_type == IBV_QPT_UD && (device.is_down || device.is_stuck)) {
        device.done[device.done_count++] =
            (struct ibv_wc){.wr_id = request->wr_id,
                            .qp_num = qp->qp_num,
                            .status = device.is_stuck ? IBV_WC_WR_FLUSH_ERR : IBV_WC_LOC_QP_OP_ERR};
        device.is_stuck = true;
        return 0;
    }
    if (qp->qp_type == IBV_QPT_UD) {
        device.greetings[((struct path *) request->wr.ud.ah)->lid]++;
        device.sent_bytes = request->sg_list->length;
        memcpy(device.sent, (void *) (uintptr_t) request->sg_list->addr, device.sent_bytes);
    } else {
        device.posted++;
    }
    if ((request->send_flags & IBV_SEND_SIGNALED) != 0)
        device.done[device.done_count++] =
            (struct ibv_wc){.wr_id = request->wr_id, .qp_num = qp->qp_num};
    return 0;
}

static int device_receive(struct ibv_qp *qp, struct ibv_recv_wr *request, struct ibv_recv_wr **bad)
{
    (void) qp, (void) bad;
    device.greeting_buffers++;
    device.room = *request;
    device.room_part = *request->sg_list;
    return 0;
}

/* Each call is one doorbell. */
static int device_receive_shared(struct ibv_srq *queue, struct ibv_recv_wr *request,
                                 struct ibv_recv_wr **bad)
{
    (void) queue;
    device.receive_doorbells++;
    for (; request; request = request->next) {
        if (device.buffers == device.buffers_most) {
            *bad = request;
            return ENOMEM;
        }
        device.buffer_posted[device.buffers++] = (uint32_t) (request->wr_id >> 8);
    }
    return 0;
}

int ibv_modify_srq(struct ibv_srq *queue, struct ibv_srq_attr *attributes, int mask)
{
    (void) queue;
    CHECK(mask == IBV_SRQ_LIMIT && attributes->srq_limit < BUFFERS_MOST, "a limit of %u",
          attributes->srq_limit);
    device.limit = attributes->srq_limit;
    return device.has_no_limit ? EOPNOTSUPP : 0;
}

static struct ibv_context context = {.ops.post_send = device_post,
                                     .ops.post_recv = device_receive,
                                     .ops.post_srq_recv = device_receive_shared,
                                     .ops.poll_cq = device_poll};
static struct ibv_srq shared_queue = {.context = &context};
static struct ibv_cq send_queue = {.context = &context}, receive_queue = {.context = &context};
static struct ibv_pd domain = {.context = &context};
static struct verbs_module module;

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attributes)
{
    struct ibv_qp *qp = device.is_full ? NULL : calloc(1, sizeof(*qp));

    (void) pd;
    errno = ENOMEM;
    if (!qp)
        return NULL;
    qp->context = &context;
    qp->qp_num = ++device.last_qpn;
    qp->qp_type = attributes->qp_type;
    return qp;
}

/* A thread that breaks a queue pair holds a lock that a thread may hold that destroys it, for which
 * it waits until its events are acknowledged. */
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int mask)
{
    if (qp->qp_type == IBV_QPT_RC && (mask & IBV_QP_PKEY_INDEX))
        device.pkey_index = attributes->pkey_index;
    if (qp->qp_type == IBV_QPT_UD && attributes->qp_state == IBV_QPS_RESET) {
        device.resets++;
        if (device.refusals > 0) {
            device.refusals--;
            return EBUSY;
        }
        device.is_stuck = false;
        device.greeting_buffers = 0;
    }
    CHECK(attributes->qp_state != IBV_QPS_ERR || device.unacknowledged == 0,
          "%u events are not acknowledged", device.unacknowledged);
    return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    CHECK(device.unacknowledged == 0, "%u events are not acknowledged", device.unacknowledged);
    free(qp);
    return 0;
}

static struct ibv_mr *region_new(void)
{
    return calloc(1, sizeof(struct ibv_mr));
}

struct ibv_mr *(ibv_reg_mr) (struct ibv_pd *pd, void *base, size_t size, int access)
{
    (void) pd, (void) base, (void) size, (void) access;
    return region_new();
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *base, size_t size, uint64_t remote,
                                unsigned access)
{
    (void) pd, (void) base, (void) size, (void) remote, (void) access;
    return region_new();
}

int ibv_dereg_mr(struct ibv_mr *region)
{
    free(region);
    return 0;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attributes)
{
    struct path *path;

    (void) pd;
    if (attributes->dlid <= device.dead_lids) {
        device.dead_tried++;
        device.now_ms += 1000;
        return NULL;
    }
    path = calloc(1, sizeof(*path));
    path->lid = attributes->dlid;
    device.path = *attributes;
    return &path->handle;
}

int ibv_destroy_ah(struct ibv_ah *path)
{
    free((struct path *) path);
    return 0;
}

int ibv_get_async_event(struct ibv_context *of, struct ibv_async_event *event)
{
    (void) of;
    if (!device.event.element.qp && !device.few_left)
        return -1;
    *event = device.few_left ? (struct ibv_async_event){.event_type = IBV_EVENT_SRQ_LIMIT_REACHED}
                             : device.event;
    if (!device.few_left)
        device.event.element.qp = NULL;
    device.few_left = false;
    device.unacknowledged++;
    return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    (void) event;
    device.unacknowledged--;
}

const char *ibv_event_type_str(enum ibv_event_type type)
{
    (void) type;
    return "an event";
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    (void) status;
    return "a status";
}

/* --- the other files of btl/verbs ---------------------------------------------------------------
 */

uint64_t verbs_now_ms(void)
{
    return device.now_ms;
}

const char *verbs_device_refresh(struct verbs_module *it)
{
    device.looks++;
    it->look_due = device.looks < 3; /* as if its table could not be read */
    return it->look_due ? NULL : device.changed;
}

/* A kernel with other pages; 0: this one's. */
static long made_up_page;
long __real_sysconf(int name);
long __wrap_sysconf(int name);
long __wrap_sysconf(int name)
{
    return name == _SC_PAGESIZE && made_up_page ? made_up_page : __real_sysconf(name);
}

/* --- what cases need ----------------------------------------------------------------------------
 */

enum { BUFFERS = 256, BUFFER_BYTES = 4096 };

static void begin(void)
{
    uint32_t qpn;

    memset(&device, 0, sizeof(device));
    device.now_ms = 100000;
    memset(&module, 0, sizeof(module));
    module.context = &context;
    module.pd = &domain;
    module.send_cq = &send_queue;
    module.receive_cq = &receive_queue;
    module.port_number = 1;
    module.inline_max = 256;
    module.send_cq_size = PLACES;
    module.receive_bytes = BUFFER_BYTES;
    module.srq = &shared_queue;
    device.buffers_most = BUFFERS_MOST;
    atomic_init(&module.send_cq_room, PLACES);
    verbs_peers_open(&module);
    verbs.depth.requests = DEPTH;
    verbs.record = (struct verbs_record){.version = VERBS_RECORD_VERSION, .port_count = 1};
    verbs.modules[0] = &module;
    verbs.module_count = 1;
    CHECK(verbs_greeter_open(&module, &qpn) == OPAL_SUCCESS, "no greeter");
    CHECK(device.greeting_buffers >= 512, "%u greetings at once", device.greeting_buffers);
    CHECK(verbs_receives_open(&module, BUFFERS, BUFFERS_MOST) && device.buffers == BUFFERS,
          "%u buffers", device.buffers);
}

static void end(void)
{
    verbs_peers_close(&module);
    verbs_greeter_close(&module);
    verbs_receives_close(&module);
}

/* More rounds than lie between two looks at anything. */
static void progress(void)
{
    for (int i = 0; i < 4096; i++)
        (void) verbs_progress_module(&module);
}

/* One that has greeted, that our own queue pair is connected with, and that btl_add_procs was never
 * told of. */
static verbs_peer_t *peer_that_greeted(void)
{
    verbs_peer_t *peer =
        verbs_peer_create(&module, &(opal_process_name_t){.vpid = module.peer_count});

    CHECK(verbs_connect_begin(peer), "no queue pair");
    verbs_peer_state_set(peer, PEER_ANSWERED);
    return peer;
}

/* Into the buffer that was posted last. */
static void message_comes(const verbs_peer_t *peer, const char *text)
{
    uint32_t index = device.buffer_posted[--device.buffers];

    memcpy(module.receives.buffers[index].memory, text, strlen(text) + 1);
    device.came[device.came_count++] = (struct ibv_wc){
        .wr_id = (uint64_t) index << 8,
        .opcode = IBV_WC_RECV,
        .byte_len = (uint32_t) strlen(text) + 1,
        .wc_flags = IBV_WC_WITH_IMM,
        .imm_data = htonl(MESSAGE_WORD(peer->index, TAG)),
        .qp_num = peer->qp->qp_num,
    };
}

/* --- cases --------------------------------------------------------------------------------------
 */

static struct {
    unsigned messages;
    const verbs_peer_t *sender;
    bool answered;
} heard;

/* What Open MPI's active-message puts do: they answer by the endpoint that the message came from,
 * and end the program where there is none. */
COMPAT_RECEIVE_CALLBACK(message_heard)
{
    struct ibv_sge part = {.length = 8};

    heard.messages++;
    heard.sender = endpoint;
    heard.answered = endpoint && verbs_submit_inline(endpoint, &part, 1, TAG) == OPAL_SUCCESS;
    CHECK(btl == &module.super, "another module");
}

static void message_of_a_process_that_was_not_added_says_who_sent(void)
{
    verbs_peer_t *peer;

    begin();
    mca_btl_base_active_message_trigger[TAG].cbfunc = message_heard;
    peer = peer_that_greeted();
    message_comes(peer, "a put");
    memset(&heard, 0, sizeof(heard));
    progress();
    CHECK(heard.messages == 1 && peer->state == PEER_READY, "%u messages", heard.messages);
    if (COMPAT_SENDER_IS_KNOWN)
        CHECK(peer == heard.sender && heard.answered && device.posted == 1, "%u answers",
              device.posted);
    end();
}

/* Time goes by, with a few rounds of progress in each hundredth of a second. */
static void wait_ms(uint64_t ms)
{
    uint64_t end = device.now_ms + ms;

    while (device.now_ms < end) {
        device.now_ms += 10;
        for (int i = 0; i < 128; i++)
            (void) verbs_progress_module(&module);
    }
}

static verbs_peer_t *peer_named(const opal_process_name_t *name, uint16_t lid)
{
    verbs_peer_t *peer = verbs_peer_create(&module, name);

    peer->port.address.lid = lid;
    CHECK(verbs_connect_begin(peer), "no queue pair");
    return peer;
}

static verbs_peer_t *peer_to(uint16_t lid)
{
    return peer_named(&(opal_process_name_t){.vpid = lid}, lid);
}

/* There are buffers for a few greetings, and each peer gets its share of them. */
static void many_peers_are_all_greeted_soon(void)
{
    begin();
    for (unsigned i = 0; i < PEERS; i++)
        (void) peer_to((uint16_t) (1 + i));
    wait_ms(1000);
    for (unsigned i = 0; i < PEERS; i++)
        CHECK(device.greetings[1 + i] >= 3 && device.greetings[1 + i] <= 6,
              "peer %u was greeted %u times in a second", i, device.greetings[1 + i]);
    end();
}

static void event_is_acknowledged_before_it_is_handled(void)
{
    verbs_peer_t *peers[3];

    begin();
    for (int i = 0; i < 3; i++)
        peers[i] = peer_that_greeted();
    device.event =
        (struct ibv_async_event){.event_type = IBV_EVENT_QP_ACCESS_ERR, .element.qp = peers[1]->qp};
    progress();
    CHECK(device.unacknowledged == 0 && !device.event.element.qp, "it was not read");
    CHECK(peers[1]->state == PEER_FAILED, "state %u", peers[1]->state);
    CHECK(peers[0]->state == PEER_ANSWERED && peers[2]->state == PEER_ANSWERED, "others failed");
    end();
}

/* As over virtual functions of InfiniBand. */
static void way_to_a_port_that_needs_a_route_has_one(void)
{
    for (uint32_t needed = 0; needed < 2; needed++) {
        verbs_peer_t *peer;

        begin();
        module.gid_index = 3;
        peer = verbs_peer_create(&module, &(opal_process_name_t){.vpid = 0});
        peer->port.address = (struct choice_address){.lid = 9, .gid = {[15] = 7}};
        peer->port.address.needs_route = needed;
        CHECK(verbs_connect_begin(peer), "no queue pair");
        CHECK(device.path.dlid == 9 && needed == device.path.is_global, "%u",
              device.path.is_global);
        if (needed)
            CHECK(device.path.grh.dgid.raw[15] == 7 && device.path.grh.sgid_index == 3, "to %u",
                  device.path.grh.dgid.raw[15]);
        end();
    }
}

static void greetings_leave_from_the_new_address(void)
{
    begin();
    verbs.record.ports[0].address.link = CHOICE_ROCE_V2;
    module.gid_index = 3;
    (void) peer_to(2);
    CHECK(device.path.grh.sgid_index == 3, "%u", device.path.grh.sgid_index);
    module.gid_index = 5;
    device.changed = "another GID";
    device.event = (struct ibv_async_event){.event_type = IBV_EVENT_GID_CHANGE,
                                            .element.port_num = (int) module.port_number};
    progress();
    CHECK(device.looks == 3, "%u looks", device.looks);
    unsigned before = device.greetings[2];
    wait_ms(2000);
    CHECK(device.greetings[2] > before && device.path.grh.sgid_index == 5, "%u greetings, index %u",
          device.greetings[2] - before, device.path.grh.sgid_index);
    end();
}

/* The lanes of other ports wait while this one looks for a path. */
static void dead_port_takes_little_time(void)
{
    begin();
    device.dead_lids = PEERS;
    for (unsigned i = 0; i < 50; i++)
        (void) peer_to((uint16_t) (1 + i));
    wait_ms(60000);
    CHECK(device.dead_tried >= 4 && device.dead_tried <= 8, "%u attempts in a minute",
          device.dead_tried);
    device.dead_lids = 0;
    wait_ms(33000);
    for (unsigned i = 0; i < 50; i++)
        CHECK(device.greetings[1 + i] != 0, "peer %u", i);
    end();
}

static void a_dead_peer_does_not_hold_up_others(void)
{
    begin();
    device.dead_lids = 1;
    for (unsigned i = 0; i < 50; i++)
        (void) peer_to((uint16_t) (1 + i));
    wait_ms(2500);
    for (unsigned i = 1; i < 50; i++)
        CHECK(device.greetings[1 + i] != 0, "peer %u", i);
    wait_ms(60000);
    CHECK(device.dead_tried >= 3 && device.dead_tried <= 6, "%u attempts in a minute",
          device.dead_tried);
    end();
}

/* A datagram that could not be sent breaks the queue pair of all others. */
static void port_that_was_down_greets_again(void)
{
    begin();
    device.is_down = true;
    for (unsigned i = 0; i < 50; i++)
        (void) peer_to((uint16_t) (1 + i));
    wait_ms(1000);
    device.is_down = false;
    wait_ms(5000);
    for (unsigned i = 0; i < 50; i++)
        CHECK(device.greetings[1 + i] != 0, "peer %u", i);
    CHECK(device.greeting_buffers >= 512, "%u buffers for greetings", device.greeting_buffers);
    end();
}

/* What a device refuses for a while is tried again, now and then. */
static void port_that_is_not_reset_at_once_greets_again(void)
{
    begin();
    device.is_down = true;
    device.refusals = 3;
    (void) peer_to(1);
    wait_ms(1000);
    device.is_down = false;
    wait_ms(30000);
    CHECK(device.resets == 4 && device.greetings[1] != 0, "%u resets", device.resets);
    end();
}

/* A datagram's buffer comes back with an error: the queue pair takes no more. */
static void port_that_hears_nothing_is_reset(void)
{
    begin();
    device.came[device.came_count++] =
        (struct ibv_wc){.wr_id = device.room.wr_id, .status = IBV_WC_WR_FLUSH_ERR};
    progress();
    CHECK(device.resets == 1 && device.greeting_buffers >= 512, "%u resets, %u buffers",
          device.resets, device.greeting_buffers);
    end();
}

#define ROUTE_BYTES 40u

/* What was sent last comes back. */
static void greeting_comes(void)
{
    memcpy((unsigned char *) (uintptr_t) device.room_part.addr + ROUTE_BYTES, device.sent,
           device.sent_bytes);
    device.came[device.came_count++] =
        (struct ibv_wc){.wr_id = device.room.wr_id, .byte_len = ROUTE_BYTES + device.sent_bytes};
}

/* With a port that greetings can name. What is sent is what the other process would send. */
static void begin_as(uint64_t nonce)
{
    begin();
    verbs.record.ports[0].address.lid = 1;
    verbs.record.ports[0].mtu = IBV_MTU_1024;
    verbs.record.nonce = nonce;
}

/* Who was heard of can mostly be reached. The pair that waited for it takes the place where the
 * port's partition is by now. */
static void dead_peer_that_greets_is_answered_at_once(void)
{
    const uint64_t our_nonce = 7, their_nonce = 8;
    verbs_peer_t *peer;

    begin_as(their_nonce);
    peer_to(2)->nonce = our_nonce;
    device.dead_lids = 1;
    peer = peer_named(&opal_proc_local_get()->proc_name, 1);
    wait_ms(20000);
    CHECK(device.greetings[1] == 0 && peer->state == PEER_GREETING, "state %u", peer->state);
    device.dead_lids = 0;
    module.pkey_index = 5;
    verbs.record.nonce = our_nonce;
    greeting_comes();
    (void) verbs_progress_module(&module);
    CHECK(device.pkey_index == 5, "a partition at %u", device.pkey_index);
    CHECK(peer->state == PEER_ANSWERED && device.greetings[1] == 1, "state %u, %u greetings",
          peer->state, device.greetings[1]);
    end();
}

/* Of two ends one gets no queue pair: who has greeted it is told, instead of waiting for ever. */
static void end_without_a_queue_pair_says_so(void)
{
    const uint64_t our_nonce = 7, their_nonce = 8;
    verbs_peer_t *peer;

    begin_as(their_nonce);
    peer = peer_named(&opal_proc_local_get()->proc_name, 1);
    peer->nonce = our_nonce;
    wait_ms(100);
    /* The hello that the other process sent comes, and there is no queue pair for it. */
    verbs.record.nonce = our_nonce;
    verbs_peer_state_set(peer, PEER_IDLE);
    device.is_full = true;
    greeting_comes();
    unsigned before = device.greetings[1];
    (void) verbs_progress_module(&module);
    CHECK(peer->state == PEER_IDLE && device.greetings[1] == before + 1, "state %u, %u answers",
          peer->state, device.greetings[1] - before);
    /* The answer comes back to who greeted. */
    verbs.record.nonce = their_nonce;
    peer->nonce = our_nonce;
    verbs_peer_state_set(peer, PEER_GREETING);
    greeting_comes();
    (void) verbs_progress_module(&module);
    CHECK(peer->state == PEER_FAILED, "state %u", peer->state);
    end();
}

/* A port without connections, then one that receives and posts nothing, then a report that is due.
 */
static void only_queues_in_use_are_polled(void)
{
    verbs_peer_t *peer;

    begin();
    progress();
    CHECK(device.polls[0] == 4096 / 16 && device.polls[1] == 4096 / 64, "%u and %u polls",
          device.polls[0], device.polls[1]);
    peer = peer_that_greeted();
    verbs_peer_state_set(peer, PEER_READY);
    progress(); /* its greeting is reported */
    memset(device.polls, 0, sizeof(device.polls));
    progress();
    CHECK(device.polls[0] == 4096 && device.polls[1] == 4096 / 64, "%u and %u polls",
          device.polls[0], device.polls[1]);
    for (uint32_t i = 0; i <= INLINE_UNSIGNALED_MAX; i++) {
        struct ibv_sge part = {.length = 8};

        CHECK(module.reports_due == 0, "message %u is reported", i);
        CHECK(verbs_submit_inline(peer, &part, 1, TAG) == OPAL_SUCCESS, "message %u", i);
    }
    CHECK(module.reports_due == 1 && device.done_count == 1, "%u", module.reports_due);
    (void) verbs_progress_module(&module);
    CHECK(module.reports_due == 0 && device.done_count == 0, "%u", module.reports_due);
    end();
}

/* Each buffer is posted once. */
static void buffers_are_whole(uint32_t count)
{
    static bool posted[BUFFERS_MOST];

    memset(posted, 0, sizeof(posted));
    CHECK(device.buffers == count, "%u of %u buffers", device.buffers, count);
    for (uint32_t i = 0; i < device.buffers; i++) {
        CHECK(!posted[device.buffer_posted[i]], "buffer %u twice", device.buffer_posted[i]);
        posted[device.buffer_posted[i]] = true;
    }
}

/* Their sender has heard that they are there. */
static void messages_before_the_end_of_a_device_are_heard(void)
{
    verbs_peer_t *peer;

    begin();
    mca_btl_base_active_message_trigger[TAG].cbfunc = message_heard;
    peer = peer_that_greeted();
    memset(&heard, 0, sizeof(heard));
    for (int i = 0; i < 40; i++)
        message_comes(peer, "one of many");
    device.event =
        (struct ibv_async_event){.event_type = IBV_EVENT_DEVICE_FATAL, .element.qp = peer->qp};
    (void) verbs_progress_module(&module);
    CHECK(module.dead && peer->state == PEER_FAILED, "state %u", peer->state);
    CHECK(heard.messages == 40, "%u messages", heard.messages);
    end();
}

/* A child of fork() may miss all of a page of which some is registered. */
static void registered_memory_shares_no_page(void)
{
    struct verbs_memory memory;

    for (made_up_page = 4096; made_up_page <= 65536; made_up_page *= 4) {
        CHECK(verbs_memory_make(&memory, &domain, 100, IBV_ACCESS_LOCAL_WRITE), "no memory");
        CHECK((uintptr_t) memory.bytes % (uintptr_t) made_up_page == 0 &&
                  malloc_usable_size(memory.bytes) >= (size_t) made_up_page,
              "%zu bytes at %p with pages of %ld", malloc_usable_size(memory.bytes),
              (void *) memory.bytes, made_up_page);
        verbs_memory_free(&memory);
    }
    made_up_page = 0;
}

static void buffers_are_posted_together(void)
{
    verbs_peer_t *peer;

    begin();
    mca_btl_base_active_message_trigger[TAG].cbfunc = message_heard;
    peer = peer_that_greeted();
    memset(&heard, 0, sizeof(heard));
    device.receive_doorbells = 0;
    for (int i = 0; i < 64; i++)
        message_comes(peer, "one of many");
    progress();
    CHECK(heard.messages == 64 && device.receive_doorbells == 4, "%u messages, %u doorbells",
          heard.messages, device.receive_doorbells);
    message_comes(peer, "a single one");
    progress();
    CHECK(heard.messages == 65 && device.receive_doorbells == 5, "%u messages, %u doorbells",
          heard.messages, device.receive_doorbells);
    buffers_are_whole(BUFFERS);
    end();
}

/* Until all that may be had are there. */
static void buffers_grow_when_few_are_left(void)
{
    verbs_peer_t *peer;

    begin();
    mca_btl_base_active_message_trigger[TAG].cbfunc = message_heard;
    peer = peer_that_greeted();
    for (uint32_t count = BUFFERS; count < BUFFERS_MOST; count *= 2) {
        CHECK(device.limit == count / 4, "a limit of %u for %u", device.limit, count);
        message_comes(peer, "few are left");
        device.few_left = true;
        device.limit = 0;
        progress();
        buffers_are_whole(2 * count);
    }
    CHECK(device.limit == 0, "it may still grow");
    end();
}

/* A device that tells nothing, or takes no more. */
static void buffers_stay_where_a_device_cannot(void)
{
    verbs_peer_t *peer;

    begin();
    mca_btl_base_active_message_trigger[TAG].cbfunc = message_heard;
    peer = peer_that_greeted();
    device.has_no_limit = true;
    verbs_receives_grow(&module);
    CHECK(module.receives.most == 2 * BUFFERS, "it may grow to %u", module.receives.most);
    /* What the queue refuses is posted later, and not lost. */
    device.buffers_most = 2 * BUFFERS - 8;
    for (int i = 0; i < 40; i++)
        message_comes(peer, "a message");
    progress();
    CHECK(device.buffers == 2 * BUFFERS - 8, "%u", device.buffers);
    device.buffers_most = BUFFERS_MOST;
    progress();
    buffers_are_whole(2 * BUFFERS);
    end();
}

/* --- what both ends have counted --- */

enum { OUR_NONCE = 7, THEIR_NONCE = 8 };

static void connected(verbs_peer_t *peer, uint32_t theirs)
{
    if (peer->state == PEER_IDLE)
        CHECK(verbs_connect_begin(peer), "no queue pair");
    CHECK(verbs_pair_connect(peer, &(struct verbs_end){.qpn = theirs}), "no connection");
    peer->their_qpn = theirs;
    verbs_peer_state_set(peer, PEER_READY);
}

/* The queue pair has used its last buffer, and all that came is polled. */
static void last_buffer(const verbs_peer_t *peer)
{
    device.event = (struct ibv_async_event){.event_type = IBV_EVENT_QP_LAST_WQE_REACHED,
                                            .element.qp = peer->qp};
    progress();
}

/* The other end asks about the connection of these two queue pairs. False: it is not answered. */
static bool fence_asked(const verbs_peer_t *peer, uint32_t ours, uint32_t theirs, uint64_t *count)
{
    unsigned before = device.greetings[2];
    struct greeting answer;

    verbs_fence_heard(&(struct greeting){.kind = GREETING_FENCE,
                                         .from = peer->name,
                                         .from_nonce = peer->nonce,
                                         .end.qpn = theirs,
                                         .heard_qpn = ours,
                                         .received = COUNT_UNKNOWN});
    memcpy(&answer, device.sent, sizeof(answer));
    *count = answer.received;
    return device.greetings[2] > before && answer.kind == GREETING_FENCED;
}

/* None that comes later is taken in: it is sent by another lane. */
static void count_is_told_when_it_is_final(void)
{
    unsigned char note[MULTILANE_FENCE_BYTES];
    verbs_peer_t *peer;
    uint64_t count;

    begin();
    mca_btl_base_active_message_trigger[TAG].cbfunc = message_heard;
    memset(&heard, 0, sizeof(heard));
    peer = peer_to(2);
    peer->nonce = THEIR_NONCE;
    connected(peer, 100);
    uint32_t first = peer->qpn;
    message_comes(peer, "one");
    progress();
    message_comes(peer, "two");
    CHECK(verbs_fence_message(&module.super, peer, note) == 0, "nothing is broken");
    CHECK(!fence_asked(peer, first, 100, &count), "while a message waits to be polled");
    CHECK(peer->state == PEER_FAILED, "state %u", peer->state);
    progress();
    CHECK(heard.messages == 2 && !fence_asked(peer, first, 100, &count), "more may come");
    last_buffer(peer);
    CHECK(fence_asked(peer, first, 100, &count) && count == 2, "%u", (unsigned) count);
    message_comes(peer, "three");
    progress();
    CHECK(heard.messages == 2, "it is handed out, and sent again");
    /* It begins anew before the other end has heard the answer. */
    CHECK(verbs_peer_renew(peer) && verbs_connect_begin(peer), "state %u", peer->state);
    CHECK(fence_asked(peer, first, 100, &count) && count == 2, "%u", (unsigned) count);
    connected(peer, 101);
    message_comes(peer, "four");
    progress();
    CHECK(heard.messages == 3 && peer->received == 1, "%u messages", heard.messages);
    CHECK(fence_asked(peer, first, 100, &count) && count == COUNT_UNKNOWN &&
              peer->state == PEER_READY,
          "state %u", peer->state);
    end();
}

/* The end that asks, and the one that is asked. */
static void note_and_its_answer_carry_counts(void)
{
    unsigned char note[MULTILANE_FENCE_BYTES], answer[MULTILANE_FENCE_BYTES];
    verbs_peer_t *peer;

    begin_as(OUR_NONCE);
    peer = peer_named(&opal_proc_local_get()->proc_name, 1);
    peer->nonce = THEIR_NONCE;
    connected(peer, peer->qpn); /* it is both ends */
    peer->sent = 5;
    peer->received = 2;
    verbs_peer_fail(peer, "it is cut");
    last_buffer(peer);
    size_t length = verbs_fence_message(&module.super, peer, note);
    verbs.record.nonce = THEIR_NONCE;
    peer->nonce = OUR_NONCE;
    length = verbs_fence_message_heard(note, length, answer);
    CHECK(length != 0 && peer->returns.arrived == 2 && peer->fence_confirmed, "%u",
          (unsigned) peer->returns.arrived);
    peer->returns.arrived = COUNT_UNKNOWN;
    verbs.record.nonce = OUR_NONCE;
    peer->nonce = THEIR_NONCE;
    CHECK(verbs_fence_message_heard(answer, length, note) == 0 && peer->returns.arrived == 2, "%u",
          (unsigned) peer->returns.arrived);
    end();
}

/* --- a record that a peer published --- */

static struct verbs_record published;
static unsigned routes_asked;

void *__wrap_component_record_of(const mca_btl_base_component_t *component, const opal_proc_t *proc,
                                 bool (*fits)(const void *record, size_t bytes));
void *__wrap_component_record_of(const mca_btl_base_component_t *component, const opal_proc_t *proc,
                                 bool (*fits)(const void *record, size_t bytes))
{
    struct verbs_record *copy = malloc(sizeof(*copy));

    (void) component, (void) proc;
    *copy = published;
    CHECK(fits(copy, VERBS_RECORD_BYTES(copy->port_count)), "the record does not fit");
    return copy;
}

static bool route_asked(const struct choice_address *mine, const struct choice_address *theirs)
{
    routes_asked++;
    return mine->gid[15] == theirs->gid[15];
}

static void port_of_subnet(struct verbs_port *port, unsigned subnet, unsigned host)
{
    *port =
        (struct verbs_port){.address = {.link = CHOICE_ROCE_V2,
                                        .megabits = 100000,
                                        .subnet_bits = 128,
                                        .pkey = 0xffff,
                                        .gid = {[14] = (uint8_t) host, [15] = (uint8_t) subnet}},
                            .greeting_qpn = 1,
                            .mtu = IBV_MTU_1024};
}

/* Each port of either end in a subnet of its own, and the kernel is asked for routes: once for each
 * pair of ports, however many of them are lanes. */
static void routes_to_a_process_are_asked_for_once(void)
{
    enum { PORTS = 4 };
    struct verbs_module others[PORTS - 1];
    opal_proc_t proc = {.proc_name = {.vpid = 7}};
    verbs_peer_t *peers[PORTS] = {NULL};
    opal_proc_t *procs[] = {&proc};

    begin();
    published =
        (struct verbs_record){.version = VERBS_RECORD_VERSION, .port_count = PORTS, .nonce = 7};
    verbs.record.port_count = PORTS;
    verbs.pair_rule = (struct choice_rule){.pairing = PAIR_ROUTE, .routes = route_asked};
    OBJ_CONSTRUCT(&verbs.record_lock, opal_mutex_t);
    for (unsigned i = 0; i < PORTS; i++) {
        port_of_subnet(&verbs.record.ports[i], i, 1);
        port_of_subnet(&published.ports[i], PORTS - 1 - i, 2);
    }
    for (unsigned i = 0; i < PORTS; i++) {
        struct verbs_module *it = i == 0 ? &module : &others[i - 1];

        if (i != 0) {
            memset(it, 0, sizeof(*it));
            verbs_peers_open(it);
        }
        it->port_index = i;
        CHECK(verbs_add_procs(&it->super, 1, procs, &peers[i], NULL) == OPAL_SUCCESS && peers[i] &&
                  peers[i]->their_port == PORTS - 1 - i,
              "port %u has no lane to its partner", i);
    }
    CHECK(routes_asked == PORTS * PORTS, "%u questions for %d pairs", routes_asked, PORTS * PORTS);
    for (unsigned i = 0; i < PORTS - 1; i++)
        verbs_peers_close(&others[i]);
    end();
}

int main(void)
{
    dead_port_takes_little_time();
    a_dead_peer_does_not_hold_up_others();
    port_that_was_down_greets_again();
    port_that_is_not_reset_at_once_greets_again();
    port_that_hears_nothing_is_reset();
    dead_peer_that_greets_is_answered_at_once();
    end_without_a_queue_pair_says_so();
    way_to_a_port_that_needs_a_route_has_one();
    event_is_acknowledged_before_it_is_handled();
    greetings_leave_from_the_new_address();
    many_peers_are_all_greeted_soon();
    message_of_a_process_that_was_not_added_says_who_sent();
    only_queues_in_use_are_polled();
    messages_before_the_end_of_a_device_are_heard();
    registered_memory_shares_no_page();
    buffers_are_posted_together();
    buffers_grow_when_few_are_left();
    buffers_stay_where_a_device_cannot();
    count_is_told_when_it_is_final();
    note_and_its_answer_carry_counts();
    routes_to_a_process_are_asked_for_once();
    return check_end();
}
