/* SPDX-License-Identifier: BSD-3-Clause */
/* A stand-in for lanes that break and give back what they carried: a BTL between processes of one
 * node that, by a seed, delays messages, says that it is busy, fails, and loses all from some
 * message on. It offers what btl/sock does (multilane/extension.h): it keeps each message until the
 * other end has it, says for how long it is quiet, is fenced by notes, and is made anew.
 *
 * Each lane is a module with a datagram socket of its own, for which the kernel keeps ten messages
 * that were not read. One that it has no room for waits in order, and has not left before its
 * callback: its sender may never call progress again. Faults happen where a message is sent, so the
 * receiver needs no knowledge of them. The last lane never dies and never fails, unless a test
 * wants that: something has to carry the job on.
 *
 * Messages are counted in sessions. Where one was lost, nothing of its session gets through any
 * more; a lane that broke is in none until it was fenced and made anew.
 *
 * A test program can have one fault at an exact call instead: see btl_flaky.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "btl_flaky.h"
#include "common/compat/btl.h"
#include "common/compat/modex.h"
#include "common/compat/param.h"
#include "multilane/extension.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/btl/base/base.h"
#include "opal/util/output.h"

#define LANES_MAX    4
#define FRAGMENT_MAX ((size_t) 32 << 10)
#define EAGER_MAX    ((size_t) 4 << 10)
#define COPY_MAX     ((size_t) 64 << 10)
#define RECEIVES_MAX 16 /* a turn */
#define GREET_TURNS  16 /* between greetings of a new session */

/* Faults are parts of 10,000 messages; turns are calls of progress. */
static struct {
    int seed, lanes, delay, busy, fail, die;
    int sleep_turns, lost_ms, spared, rma, goodbye, flip;
} faults = {.seed = 1, .lanes = 2, .sleep_turns = 20000, .spared = 1};

static const struct param params[] = {
    {"seed", PARAM_INT, &faults.seed, NULL, "of the faults; 0: none happens"},
    {"lanes", PARAM_INT, &faults.lanes, NULL, "how many lanes (1 to 4)"},
    {"delay", PARAM_INT, &faults.delay, NULL, "of 10000 messages, how many are held for a while"},
    {"busy", PARAM_INT, &faults.busy, NULL, "how often a lane has no room"},
    {"fail", PARAM_INT, &faults.fail, NULL, "how many break their lane, which says so"},
    {"die", PARAM_INT, &faults.die, NULL,
     "after how many a lane loses all, until it is made anew and sleep_turns are over"},
    {"flip", PARAM_INT, &faults.flip, NULL,
     "how many arrive with a wrong bit; of gets and puts, how many copy one"},
    {"lost_ms", PARAM_INT, &faults.lost_ms, NULL,
     "after so long a lane that loses all breaks by itself; 0: never"},
    {"rma", PARAM_INT, &faults.rma, NULL, "1: gets and puts as well"},
    {"goodbye", PARAM_INT, &faults.goodbye, NULL,
     "1: it closes like btl/tcp whose peer has closed first, with SIGPIPE"},
    {"spared", PARAM_INT, &faults.spared, NULL, "so many of the last lanes never fail or die"},
    {"sleep_turns", PARAM_INT, &faults.sleep_turns, NULL, "calls of progress until it comes back"},
    {.name = NULL}};

struct packet {
    pid_t from;
    uint32_t session;
    uint32_t have;   /* messages of that session that its sender has received */
    uint32_t again;  /* and it wants those behind them again */
    uint32_t tag;    /* 0: no message, only the above */
    uint32_t number; /* of the message in the session */
};

/* Kept until the other end has it. */
struct message {
    opal_list_item_t super;
    uint64_t due;                          /* turn in which it may be sent */
    mca_btl_base_descriptor_t *descriptor; /* whose callback comes when it is sent; null: none */
    size_t length;
    uint32_t tag;
    unsigned char bytes[]; /* a packet, and `length` more */
};

/* A get or put. */
struct copied {
    struct copied *next;
    uint64_t due; /* turn in which the kernel copies, and the callback comes */
    bool gets;
    void *local;
    uint64_t remote;
    size_t size;
    mca_btl_base_rdma_completion_fn_t callback; /* null: it was called */
    void *context, *data;
};

struct fragment {
    mca_btl_base_descriptor_t super;
    mca_btl_base_segment_t segments[2];
    unsigned char bytes[];
};

/* BTLs choose what it is. Stays until the lane closes; its lane's lock guards it. */
struct mca_btl_base_endpoint_t {
    struct mca_btl_base_endpoint_t *next;
    struct flaky *lane;
    opal_proc_t *proc; /* null: Open MPI has not named it, or not any more */
    struct sockaddr_un to;
    socklen_t to_length;
    pid_t pid;
    uint32_t session;
    uint32_t acknowledged, have, told; /* messages of the session */
    bool wants_again;                  /* the last that came was wrong */
    bool is_linked;                    /* the other end is in the session, too */
    bool is_cut;                       /* a message was lost */
    bool is_broken, tells;             /* `tells`: and the PML is to hear of it */
    bool is_fenced;                    /* the other end's is broken, and it has `their_have` */
    uint32_t their_have;
    uint32_t past_session, past_have; /* the same of ours, of the last session that was linked */
    opal_list_t sent, waiting;        /* struct message */
    struct copied *copied;
    uint64_t since_ms; /* something is under way, and nothing of it has arrived */
    multilane_returned returned;
    void *returned_context;
};

struct flaky {
    mca_btl_base_module_t super;
    int index;
    int fd;
    opal_mutex_t receiving; /* one thread at a time; taken before the lock */
    opal_mutex_t lock;      /* guards what follows */
    uint64_t chance;
    uint64_t turn;
    uint64_t awake_turn; /* until then all is lost */
    bool is_cut;
    uint64_t connected_turn; /* what is sent before is held until then */
    struct mca_btl_base_endpoint_t *endpoints;
    mca_btl_base_module_error_cb_fn_t error_callback;
};

static int flaky_register(void);
static mca_btl_base_module_t **flaky_init(int *count, bool progress_threads, bool mpi_threads);
static int flaky_progress(void);

__attribute__((visibility("default"))) mca_btl_base_component_3_0_0_t mca_btl_flaky_component = {
    .btl_version =
        {
            MCA_BTL_DEFAULT_VERSION("flaky"),
            .mca_register_component_params = flaky_register,
        },
    .btl_data = {.param_field = MCA_BASE_METADATA_PARAM_NONE},
    .btl_init = flaky_init,
    .btl_progress = flaky_progress,
};

static struct flaky lanes[LANES_MAX];

static uint64_t chance_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* With the lane's lock held. */
static bool happens(struct flaky *lane, int parts)
{
    return faults.seed && parts > 0 && chance_next(&lane->chance) % 10000 < (uint64_t) parts;
}

/* --- one fault at an exact call -----------------------------------------------------------------
 */

/* Of one thread. */
static struct {
    enum flaky_fault fault;
    int lane;
    unsigned at, rounds, calls;
} plan = {.fault = FLAKY_NONE};

void mca_btl_flaky_plan(enum flaky_fault fault, int lane, unsigned call, unsigned rounds)
{
    plan.fault = fault;
    plan.lane = lane;
    plan.at = call;
    plan.rounds = rounds;
    plan.calls = 0;
}

unsigned mca_btl_flaky_end(void)
{
    plan.fault = FLAKY_NONE;
    for (int i = 0; i < LANES_MAX; i++)
        lanes[i].is_cut = false;
    return plan.calls;
}

int mca_btl_flaky_is_whole(void)
{
    for (int i = 0; i < LANES_MAX; i++)
        for (const struct mca_btl_base_endpoint_t *at = lanes[i].endpoints; at; at = at->next)
            if (at->is_cut || at->is_broken || !at->is_linked)
                return 0;
    return 1;
}

/* Nothing is received any more, so that what is counted stays. */
static void lane_break(struct mca_btl_base_endpoint_t *endpoint)
{
    endpoint->tells |= !endpoint->is_broken;
    endpoint->is_broken = true;
}

/* Counts a call, or a message that has come where that can be the fault's. */
static enum flaky_fault fault_now(struct mca_btl_base_endpoint_t *endpoint)
{
    struct flaky *lane = endpoint->lane;
    if (plan.fault == FLAKY_NONE || (plan.lane >= 0 && lane->index != plan.lane) ||
        ++plan.calls != plan.at)
        return FLAKY_NONE;
    if (plan.fault == FLAKY_CUT)
        lane->is_cut = true;
    if (plan.fault == FLAKY_BREAK)
        lane_break(endpoint);
    if (plan.fault == FLAKY_UNCONNECTED)
        lane->connected_turn = lane->turn + plan.rounds;
    return plan.fault;
}

/* --- wrong bits ---------------------------------------------------------------------------------
 */

static bool (*is_right)(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                        uint8_t tag, const void *bytes, size_t length);
static _Atomic unsigned flips;

unsigned mca_btl_flaky_flips(void)
{
    return atomic_load_explicit(&flips, memory_order_relaxed);
}

static void flip(struct flaky *lane, void *bytes, size_t length)
{
    uint64_t bit = length > 0 ? chance_next(&lane->chance) % (8 * length) : 0;
    if (length == 0)
        return;
    ((unsigned char *) bytes)[bit / 8] ^= (unsigned char) (1u << bit % 8);
    atomic_fetch_add_explicit(&flips, 1, memory_order_relaxed);
}

/* --- messages -----------------------------------------------------------------------------------
 */

static struct message *message_take(opal_list_t *list)
{
    return (struct message *) opal_list_remove_first(list);
}

static unsigned char *message_bytes(struct message *message)
{
    return message->bytes + sizeof(struct packet);
}

static struct message *message_new(mca_btl_base_tag_t tag, size_t length)
{
    struct message *message = malloc(sizeof(*message) + sizeof(struct packet) + length);
    if (!message)
        abort();
    OBJ_CONSTRUCT(&message->super, opal_list_item_t);
    message->due = 0;
    message->descriptor = NULL;
    message->length = length;
    message->tag = tag;
    return message;
}

static void descriptor_end(struct mca_btl_base_endpoint_t *endpoint,
                           mca_btl_base_descriptor_t *descriptor, int status)
{
    bool is_ours = descriptor->des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
    if (status != OPAL_SUCCESS || descriptor->des_flags & MCA_BTL_DES_SEND_ALWAYS_CALLBACK)
        descriptor->des_cbfunc(&endpoint->lane->super, endpoint, descriptor, status);
    if (is_ours)
        free(descriptor);
}

/* --- sessions; with the lane's lock held --------------------------------------------------------
 */

static void session_begin(struct mca_btl_base_endpoint_t *endpoint, uint32_t session)
{
    if (endpoint->is_linked) {
        endpoint->past_session = endpoint->session;
        endpoint->past_have = endpoint->have;
    }
    endpoint->session = session;
    endpoint->acknowledged = endpoint->have = endpoint->told = endpoint->their_have = 0;
    endpoint->is_linked = session == 1;
    endpoint->wants_again = false;
    endpoint->is_cut = endpoint->is_broken = endpoint->tells = endpoint->is_fenced = false;
}

/* In the abstract namespace of the node. */
static socklen_t address_of(pid_t pid, int index, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
                          "multilane-flaky-%d-%d", (int) pid, index);
    return (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) length);
}

/* A message may come from a process before Open MPI names it. */
static struct mca_btl_base_endpoint_t *endpoint_of(struct flaky *lane, pid_t pid)
{
    struct mca_btl_base_endpoint_t *at = lane->endpoints;
    while (at && at->pid != pid)
        at = at->next;
    if (at)
        return at;
    at = calloc(1, sizeof(*at));
    if (!at)
        abort();
    at->lane = lane;
    at->pid = pid;
    at->to_length = address_of(pid, lane->index, &at->to);
    OBJ_CONSTRUCT(&at->sent, opal_list_t);
    OBJ_CONSTRUCT(&at->waiting, opal_list_t);
    session_begin(at, 1);
    at->next = lane->endpoints;
    lane->endpoints = at;
    return at;
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

static bool is_under_way(struct mca_btl_base_endpoint_t *endpoint)
{
    return !opal_list_is_empty(&endpoint->sent) || !opal_list_is_empty(&endpoint->waiting) ||
           endpoint->copied;
}

/* Something will be under way. */
static void quiet_begins(struct mca_btl_base_endpoint_t *endpoint)
{
    if (!is_under_way(endpoint))
        endpoint->since_ms = now_ms();
}

static uint64_t quiet_for_ms(struct mca_btl_base_endpoint_t *endpoint)
{
    return endpoint->is_broken || !is_under_way(endpoint) ? 0 : now_ms() - endpoint->since_ms;
}

static void acknowledge(struct mca_btl_base_endpoint_t *endpoint, uint32_t have)
{
    while ((int32_t) (have - endpoint->acknowledged) > 0 && !opal_list_is_empty(&endpoint->sent)) {
        free(message_take(&endpoint->sent));
        endpoint->acknowledged++;
        endpoint->since_ms = now_ms();
    }
}

/* What the other end does not have goes again, before what waits. */
static void send_again(struct mca_btl_base_endpoint_t *endpoint)
{
    opal_list_join(&endpoint->waiting, opal_list_get_first(&endpoint->waiting), &endpoint->sent);
}

/* Does the other end say that nothing of this session will come from it? Where none was linked it
 * has sent nothing. */
static bool is_fenced(const struct mca_btl_base_endpoint_t *endpoint)
{
    return endpoint->is_fenced || !endpoint->is_linked;
}

static bool is_over(struct mca_btl_base_endpoint_t *endpoint)
{
    return endpoint->is_broken && is_fenced(endpoint) && !is_under_way(endpoint);
}

/* The other end may be ahead: then it has given ours up, or ours was never linked. */
static void session_heard(struct mca_btl_base_endpoint_t *endpoint, uint32_t session)
{
    if ((int32_t) (session - endpoint->session) <= 0)
        return;
    if (endpoint->is_linked || endpoint->is_broken)
        lane_break(endpoint);
    else
        endpoint->session = session;
}

/* --- sending ------------------------------------------------------------------------------------
 */

static bool is_silent(const struct flaky *lane)
{
    return lane->is_cut || lane->turn < lane->awake_turn;
}

/* Does a message, get or put get through now? */
static bool gets_through(struct mca_btl_base_endpoint_t *endpoint)
{
    endpoint->is_cut |= is_silent(endpoint->lane);
    return !endpoint->is_cut;
}

/* False: the kernel has no room. */
static bool packet_goes(struct mca_btl_base_endpoint_t *endpoint, uint32_t tag,
                        unsigned char *bytes, size_t length)
{
    const struct packet packet = {.from = getpid(),
                                  .session = endpoint->session,
                                  .have = endpoint->have,
                                  .again = endpoint->wants_again,
                                  .tag = tag,
                                  .number = endpoint->acknowledged +
                                            (uint32_t) opal_list_get_size(&endpoint->sent) + 1};
    memcpy(bytes, &packet, sizeof(packet));
    ssize_t sent = sendto(endpoint->lane->fd, bytes, sizeof(packet) + length, MSG_DONTWAIT,
                          (struct sockaddr *) &endpoint->to, endpoint->to_length);
    if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS))
        return false;
    endpoint->told = endpoint->have;
    endpoint->wants_again = false;
    return true;
}

/* Tells what was received, and greets in a new session. */
static void word_say(struct mca_btl_base_endpoint_t *endpoint)
{
    unsigned char word[sizeof(struct packet)];
    bool greets = !endpoint->is_linked && endpoint->lane->turn % GREET_TURNS == 0;
    if (endpoint->is_broken ||
        (endpoint->told == endpoint->have && !greets && !endpoint->wants_again))
        return;
    if (endpoint->is_cut || is_silent(endpoint->lane))
        endpoint->told = endpoint->have;
    else
        (void) packet_goes(endpoint, 0, word, 0);
}

/* A message, get or put is given to the lane. False: it is broken. What breaks it is taken as
 * often as not, and given back later. */
static bool is_taken(struct mca_btl_base_endpoint_t *endpoint)
{
    struct flaky *lane = endpoint->lane;
    if (endpoint->is_broken)
        return false;
    if (lane->index >= faults.lanes - faults.spared)
        return true;
    if (faults.die && !is_silent(lane) && happens(lane, 10000 / faults.die)) {
        lane->awake_turn = lane->turn + (uint64_t) faults.sleep_turns;
        endpoint->is_cut = true;
    }
    if (!happens(lane, faults.fail))
        return true;
    lane_break(endpoint);
    return chance_next(&lane->chance) & 1;
}

/* False: it has to wait. */
static bool message_goes(struct mca_btl_base_endpoint_t *endpoint, struct message *message)
{
    if (message->due > endpoint->lane->turn) /* turns may be long */
        endpoint->since_ms = now_ms();
    if (endpoint->is_broken || !endpoint->is_linked || message->due > endpoint->lane->turn)
        return false;
    if (gets_through(endpoint) &&
        !packet_goes(endpoint, message->tag, message->bytes, message->length))
        return false;
    quiet_begins(endpoint);
    opal_list_append(&endpoint->sent, &message->super);
    return true;
}

/* 1: it has left; 0: it has to wait; OPAL_ERR_UNREACH: the lane is broken, and does not take it. */
static int message_give(struct mca_btl_base_endpoint_t *endpoint, struct message *message)
{
    struct flaky *lane = endpoint->lane;
    if (!is_taken(endpoint))
        return OPAL_ERR_UNREACH;
    if (message->due < lane->connected_turn)
        message->due = lane->connected_turn;
    if (happens(lane, faults.delay))
        message->due = lane->turn + chance_next(&lane->chance) % 200;
    return opal_list_is_empty(&endpoint->waiting) && message_goes(endpoint, message);
}

/* The first that waits. False: there is none, or it goes on waiting. */
static bool waiting_goes(struct mca_btl_base_endpoint_t *endpoint,
                         mca_btl_base_descriptor_t **descriptor)
{
    struct message *message = message_take(&endpoint->waiting);
    if (message && message_goes(endpoint, message)) {
        *descriptor = message->descriptor;
        message->descriptor = NULL;
        return true;
    }
    if (message)
        opal_list_prepend(&endpoint->waiting, &message->super);
    return false;
}

static int waiting_go(struct mca_btl_base_endpoint_t *endpoint)
{
    mca_btl_base_descriptor_t *descriptor;
    for (int count = 0;; count++) {
        OPAL_THREAD_LOCK(&endpoint->lane->lock);
        bool has_gone = waiting_goes(endpoint, &descriptor);
        OPAL_THREAD_UNLOCK(&endpoint->lane->lock);
        if (!has_gone)
            return count;
        if (descriptor) /* else it has gone before */
            descriptor_end(endpoint, descriptor, OPAL_SUCCESS);
    }
}

static bool is_busy(struct flaky *lane)
{
    OPAL_THREAD_LOCK(&lane->lock);
    bool busy = happens(lane, faults.busy);
    OPAL_THREAD_UNLOCK(&lane->lock);
    return busy;
}

static mca_btl_base_descriptor_t *flaky_alloc(mca_btl_base_module_t *btl,
                                              struct mca_btl_base_endpoint_t *endpoint,
                                              uint8_t order, size_t size, uint32_t flags)
{
    enum flaky_fault fault = fault_now(endpoint);
    if (size > FRAGMENT_MAX || fault == FLAKY_NO_ROOM || fault == FLAKY_BUSY ||
        is_busy((struct flaky *) btl))
        return NULL;
    struct fragment *fragment = calloc(1, sizeof(*fragment) + size);
    if (!fragment)
        return NULL;
    fragment->segments[0].seg_addr.pval = fragment->bytes;
    fragment->segments[0].seg_len = size;
    fragment->super.des_segments = fragment->segments;
    fragment->super.des_segment_count = 1;
    fragment->super.des_flags = flags;
    fragment->super.order = order;
    return &fragment->super;
}

static int flaky_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor)
{
    (void) btl;
    free(descriptor);
    return OPAL_SUCCESS;
}

static mca_btl_base_descriptor_t *flaky_prepare(mca_btl_base_module_t *btl,
                                                struct mca_btl_base_endpoint_t *endpoint,
                                                opal_convertor_t *convertor, uint8_t order,
                                                size_t reserve, size_t *size, uint32_t flags)
{
    size_t most = FRAGMENT_MAX - reserve;
    if (*size > most)
        *size = most;
    mca_btl_base_descriptor_t *descriptor =
        flaky_alloc(btl, endpoint, order, reserve + *size, flags);
    if (!descriptor)
        return NULL;
    struct iovec part = {.iov_base =
                             (unsigned char *) descriptor->des_segments[0].seg_addr.pval + reserve,
                         .iov_len = *size};
    uint32_t parts = 1;
    opal_convertor_pack(convertor, &part, &parts, size);
    descriptor->des_segments[0].seg_len = reserve + *size;
    return descriptor;
}

static struct message *message_of(const mca_btl_base_descriptor_t *descriptor,
                                  mca_btl_base_tag_t tag)
{
    const mca_btl_base_segment_t *segments = descriptor->des_segments;
    size_t length = 0;
    for (size_t i = 0; i < descriptor->des_segment_count; i++)
        length += segments[i].seg_len;
    struct message *message = message_new(tag, length);
    unsigned char *end = message_bytes(message);
    for (size_t i = 0; i < descriptor->des_segment_count; i++) {
        memcpy(end, segments[i].seg_addr.pval, segments[i].seg_len);
        end += segments[i].seg_len;
    }
    return message;
}

static int flaky_send(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                      mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
    struct flaky *lane = (struct flaky *) btl;
    enum flaky_fault fault = fault_now(endpoint);
    if (fault == FLAKY_NO_ROOM)
        return OPAL_ERR_TEMP_OUT_OF_RESOURCE;
    struct message *message = message_of(descriptor, tag);
    OPAL_THREAD_LOCK(&lane->lock);
    if (fault == FLAKY_HELD || fault == FLAKY_BUSY)
        message->due = lane->turn + plan.rounds;
    int rc = message_give(endpoint, message);
    if (rc == 0) {
        message->descriptor = descriptor;
        descriptor->des_flags |= MCA_BTL_DES_SEND_ALWAYS_CALLBACK; /* as tcp does */
        quiet_begins(endpoint);
        opal_list_append(&endpoint->waiting, &message->super);
    }
    OPAL_THREAD_UNLOCK(&lane->lock);
    if (rc < 0)
        free(message);
    if (rc == 1)
        descriptor_end(endpoint, descriptor, OPAL_SUCCESS);
    return fault == FLAKY_BUSY && rc == 0 ? OPAL_ERR_RESOURCE_BUSY : rc;
}

static int flaky_sendi(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                       opal_convertor_t *convertor, void *header, size_t header_size,
                       size_t payload_size, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
                       mca_btl_base_descriptor_t **descriptor)
{
    struct flaky *lane = (struct flaky *) btl;
    enum flaky_fault fault = fault_now(endpoint);
    int rc = OPAL_ERR_RESOURCE_BUSY;
    if (header_size + payload_size <= EAGER_MAX && !is_busy(lane) &&
        (fault == FLAKY_NONE || fault == FLAKY_CUT || fault == FLAKY_BREAK)) {
        struct message *message = message_new(tag, header_size + payload_size);
        struct iovec part = {.iov_base = message_bytes(message) + header_size,
                             .iov_len = payload_size};
        uint32_t parts = 1;
        memcpy(message_bytes(message), header, header_size);
        if (payload_size > 0)
            opal_convertor_pack(convertor, &part, &parts, &payload_size);
        OPAL_THREAD_LOCK(&lane->lock);
        rc = message_give(endpoint, message);
        OPAL_THREAD_UNLOCK(&lane->lock);
        if (rc == 1)
            return OPAL_SUCCESS;
        free(message);
        rc = OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (descriptor)
        *descriptor = flaky_alloc(btl, endpoint, order, header_size + payload_size, flags);
    return rc;
}

/* --- gets and puts, which the kernel copies -----------------------------------------------------
 */

static int copy_make(const struct mca_btl_base_endpoint_t *endpoint, const struct copied *copied)
{
    struct iovec here = {.iov_base = copied->local, .iov_len = copied->size};
    struct iovec there = {.iov_base = (void *) (uintptr_t) copied->remote, .iov_len = copied->size};
    ssize_t done = copied->gets ? process_vm_readv(endpoint->pid, &here, 1, &there, 1, 0)
                                : process_vm_writev(endpoint->pid, &here, 1, &there, 1, 0);
    return done == (ssize_t) copied->size ? OPAL_SUCCESS : OPAL_ERROR;
}

/* A wrong bit where it was copied to. */
static void copied_flip(struct mca_btl_base_endpoint_t *endpoint, const struct copied *copied)
{
    unsigned char byte;
    uint64_t at = chance_next(&endpoint->lane->chance) % copied->size;
    struct copied one = *copied;
    one.local = copied->gets ? (unsigned char *) copied->local + at : &byte;
    one.remote += at;
    one.size = 1;
    byte = ((unsigned char *) copied->local)[at];
    flip(endpoint->lane, one.local, 1);
    if (!copied->gets)
        (void) copy_make(endpoint, &one);
}

static void copied_end(struct mca_btl_base_endpoint_t *endpoint, struct copied *copied, int status)
{
    if (copied->callback)
        copied->callback(&endpoint->lane->super, endpoint, copied->local, NULL, copied->context,
                         copied->data, status);
    free(copied);
}

/* With the lane's lock held. Null: none is due. */
static struct copied *copied_take(struct mca_btl_base_endpoint_t *endpoint)
{
    struct copied **at = &endpoint->copied;
    while (*at && (*at)->due > endpoint->lane->turn)
        at = &(*at)->next;
    struct copied *copied = *at;
    if (!copied || endpoint->is_broken || !gets_through(endpoint))
        return NULL;
    *at = copied->next;
    endpoint->since_ms = now_ms();
    return copied;
}

static int copied_go(struct mca_btl_base_endpoint_t *endpoint)
{
    for (int count = 0;; count++) {
        int status = OPAL_SUCCESS;
        OPAL_THREAD_LOCK(&endpoint->lane->lock);
        struct copied *copied = copied_take(endpoint);
        if (copied)
            status = copy_make(endpoint, copied);
        if (copied && happens(endpoint->lane, faults.flip))
            copied_flip(endpoint, copied);
        OPAL_THREAD_UNLOCK(&endpoint->lane->lock);
        if (!copied)
            return count;
        copied_end(endpoint, copied, status);
    }
}

static int flaky_copy(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                      bool gets, void *local, uint64_t remote, size_t size,
                      mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    struct flaky *lane = (struct flaky *) btl;
    enum flaky_fault fault = fault_now(endpoint);
    if (fault == FLAKY_NO_ROOM)
        return OPAL_ERR_OUT_OF_RESOURCE;
    if (fault == FLAKY_BUSY)
        return OPAL_ERR_RESOURCE_BUSY;
    struct copied *copied = malloc(sizeof(*copied));
    if (!copied)
        abort();
    *copied = (struct copied){.gets = gets,
                              .local = local,
                              .remote = remote,
                              .size = size,
                              .callback = callback,
                              .context = context,
                              .data = data};
    OPAL_THREAD_LOCK(&lane->lock);
    copied->due = fault == FLAKY_HELD ? lane->turn + plan.rounds : lane->connected_turn;
    bool takes = is_taken(endpoint);
    if (takes) {
        quiet_begins(endpoint);
        copied->next = endpoint->copied;
        endpoint->copied = copied;
    }
    OPAL_THREAD_UNLOCK(&lane->lock);
    if (!takes)
        free(copied);
    return takes ? OPAL_SUCCESS : OPAL_ERR_UNREACH;
}

static int flaky_get(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                     void *local, uint64_t remote, mca_btl_base_registration_handle_t *local_handle,
                     mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
                     int order, mca_btl_base_rdma_completion_fn_t callback, void *context,
                     void *data)
{
    (void) local_handle;
    (void) remote_handle;
    (void) flags;
    (void) order;
    return flaky_copy(btl, endpoint, true, local, remote, size, callback, context, data);
}

static int flaky_put(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                     void *local, uint64_t remote, mca_btl_base_registration_handle_t *local_handle,
                     mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
                     int order, mca_btl_base_rdma_completion_fn_t callback, void *context,
                     void *data)
{
    (void) local_handle;
    (void) remote_handle;
    (void) flags;
    (void) order;
    return flaky_copy(btl, endpoint, false, local, remote, size, callback, context, data);
}

/* --- receiving ----------------------------------------------------------------------------------
 */

/* With the lane's lock held. True: it brings the next message. */
static bool packet_comes(struct mca_btl_base_endpoint_t *endpoint, const struct packet *packet)
{
    struct flaky *lane = endpoint->lane;
    if (packet->tag && (plan.fault == FLAKY_CUT || plan.fault == FLAKY_BREAK))
        (void) fault_now(endpoint);
    if (is_silent(lane)) {
        endpoint->is_cut |= packet->tag && packet->session == endpoint->session;
        return false;
    }
    session_heard(endpoint, packet->session);
    if (packet->session != endpoint->session || endpoint->is_broken || endpoint->is_cut)
        return false;
    endpoint->is_linked = true;
    acknowledge(endpoint, packet->have);
    if (packet->again)
        send_again(endpoint);
    return packet->tag && packet->number == endpoint->have + 1;
}

/* Counts the message, which may be wrong now: then it comes again. No lock is held. */
static bool message_comes(struct mca_btl_base_endpoint_t *endpoint, const struct packet *packet,
                          unsigned char *bytes, size_t length)
{
    struct flaky *lane = endpoint->lane;
    if (is_right && happens(lane, faults.flip))
        flip(lane, bytes, length);
    bool good = !is_right || is_right(&lane->super, endpoint, (uint8_t) packet->tag, bytes, length);
    OPAL_THREAD_LOCK(&lane->lock);
    endpoint->have += good;
    endpoint->wants_again = !good;
    OPAL_THREAD_UNLOCK(&lane->lock);
    return good;
}

/* The next message, in `bytes`. False: none came. *length below 0: nor did anything else. */
static bool lane_receive_one(struct flaky *lane, unsigned char *bytes, struct packet *packet,
                             ssize_t *length)
{
    struct mca_btl_base_endpoint_t *endpoint = NULL;
    const ssize_t before = sizeof(*packet);
    OPAL_THREAD_LOCK(&lane->lock);
    *length = recv(lane->fd, bytes, before + FRAGMENT_MAX, MSG_DONTWAIT);
    memcpy(packet, bytes, sizeof(*packet));
    if (*length >= before)
        endpoint = endpoint_of(lane, packet->from);
    bool brings = endpoint && packet_comes(endpoint, packet);
    OPAL_THREAD_UNLOCK(&lane->lock);
    return brings && message_comes(endpoint, packet, bytes + before, (size_t) (*length - before));
}

/* In a block of its own size, so that a checker sees a byte read behind it; and the callback may
 * come here again. */
static void message_hand_out(struct flaky *lane, uint32_t tag, const unsigned char *bytes,
                             size_t length)
{
    unsigned char *copy = malloc(length);
    mca_btl_base_segment_t segment;
    if (!copy && length)
        abort();
    memcpy(copy, bytes, length);
    memset(&segment, 0, sizeof(segment));
    segment.seg_addr.pval = copy;
    segment.seg_len = length;
    compat_btl_deliver(&lane->super, NULL, (mca_btl_base_tag_t) tag, &segment, 1);
    free(copy);
}

static int lane_receive(struct flaky *lane)
{
    static _Thread_local unsigned char bytes[sizeof(struct packet) + FRAGMENT_MAX];
    const unsigned char *message = bytes + sizeof(struct packet);
    ssize_t length = 0;
    int count = 0;
    for (int i = 0; i < RECEIVES_MAX; i++) {
        struct packet packet = {.tag = 0};
        if (OPAL_THREAD_TRYLOCK(&lane->receiving) != 0)
            break;
        bool brings = lane_receive_one(lane, bytes, &packet, &length);
        OPAL_THREAD_UNLOCK(&lane->receiving);
        if (length < 0)
            break;
        if (brings)
            message_hand_out(lane, packet.tag, message, (size_t) length - sizeof(packet));
        count += brings;
    }
    return count;
}

/* --- what a broken lane gives back --------------------------------------------------------------
 */

static void message_end(struct mca_btl_base_endpoint_t *endpoint, struct message *message,
                        multilane_returned returned, void *context)
{
    bool is_back = returned && returned(context, (uint8_t) message->tag, message_bytes(message),
                                        message->length, NULL, 0);
    if (message->descriptor)
        descriptor_end(endpoint, message->descriptor, is_back ? OPAL_SUCCESS : OPAL_ERR_UNREACH);
    free(message);
}

static void all_end(struct mca_btl_base_endpoint_t *endpoint, opal_list_t *messages,
                    struct copied *copied, multilane_returned returned, void *context)
{
    struct message *message;
    while ((message = message_take(messages)))
        message_end(endpoint, message, returned, context);
    while (copied) {
        struct copied *next = copied->next;
        copied_end(endpoint, copied, OPAL_ERR_UNREACH);
        copied = next;
    }
}

/* With the lane's lock held: puts that end with an error as their lane breaks, while their bytes
 * are still on their way. */
static struct copied *puts_end_early(struct mca_btl_base_endpoint_t *endpoint)
{
    struct copied *ended = NULL;
    for (struct copied *at = endpoint->copied; at; at = at->next) {
        struct copied *put = at->gets || !at->callback ? NULL : malloc(sizeof(*put));
        if (!put)
            continue;
        *put = *at;
        put->next = ended;
        ended = put;
        at->callback = NULL;
    }
    return ended;
}

/* With the lane's lock held: what the other end has not got. */
static struct copied *all_take(struct mca_btl_base_endpoint_t *endpoint, opal_list_t *messages)
{
    struct copied *copied = endpoint->copied;
    acknowledge(endpoint, endpoint->their_have);
    opal_list_join(messages, opal_list_get_end(messages), &endpoint->sent);
    opal_list_join(messages, opal_list_get_end(messages), &endpoint->waiting);
    endpoint->copied = NULL;
    /* Their bytes come at the last moment, or do not; those of puts that have ended do. */
    for (struct copied *at = copied; at; at = at->next)
        if (!at->callback || chance_next(&endpoint->lane->chance) & 1)
            (void) copy_make(endpoint, at);
    return copied;
}

/* Once both ends of a broken lane know what the other one has. */
static void lane_settle(struct mca_btl_base_endpoint_t *endpoint)
{
    struct flaky *lane = endpoint->lane;
    opal_list_t messages;
    struct copied *copied = NULL;
    OBJ_CONSTRUCT(&messages, opal_list_t);
    OPAL_THREAD_LOCK(&lane->lock);
    multilane_returned returned = endpoint->returned;
    void *context = endpoint->returned_context;
    opal_proc_t *proc = endpoint->tells ? endpoint->proc : NULL;
    endpoint->tells = false;
    if (endpoint->is_broken && (is_fenced(endpoint) || !returned))
        copied = all_take(endpoint, &messages);
    else if (proc)
        copied = puts_end_early(endpoint);
    OPAL_THREAD_UNLOCK(&lane->lock);
    all_end(endpoint, &messages, copied, returned, context);
    OBJ_DESTRUCT(&messages);
    if (proc && lane->error_callback)
        lane->error_callback(&lane->super, 0, proc, "a fault of the stand-in");
}

static void endpoint_look(struct mca_btl_base_endpoint_t *endpoint)
{
    OPAL_THREAD_LOCK(&endpoint->lane->lock);
    if (faults.lost_ms > 0 && quiet_for_ms(endpoint) >= (uint64_t) faults.lost_ms)
        lane_break(endpoint);
    word_say(endpoint);
    OPAL_THREAD_UNLOCK(&endpoint->lane->lock);
    lane_settle(endpoint);
}

static int flaky_progress(void)
{
    int count = 0;
    for (int i = 0; i < faults.lanes; i++) {
        OPAL_THREAD_LOCK(&lanes[i].lock);
        lanes[i].turn++;
        struct mca_btl_base_endpoint_t *endpoint = lanes[i].endpoints;
        OPAL_THREAD_UNLOCK(&lanes[i].lock);
        for (; endpoint; endpoint = endpoint->next) {
            endpoint_look(endpoint);
            count += waiting_go(endpoint) + copied_go(endpoint);
        }
        count += lane_receive(&lanes[i]);
    }
    return count;
}

/* --- the extension ------------------------------------------------------------------------------
 */

static int attributes(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                      struct multilane_lane_attributes *out)
{
    static const struct multilane_lane_cost cost = {.range_count = 1,
                                                    .ranges = {{.largest_bytes = UINT64_MAX,
                                                                .latency_s = 1e-6,
                                                                .bandwidth_bytes_s = 2e8,
                                                                .overhead_send_s = 1e-6,
                                                                .overhead_receive_s = 1e-6}}};
    (void) endpoint;
    if (!btl)
        return OPAL_ERR_NOT_AVAILABLE;
    *out = (struct multilane_lane_attributes){.capabilities =
                                                  MULTILANE_CAN_FENCE | MULTILANE_CAN_BREAK,
                                              .memory = MODEL_MEMORY_HOST,
                                              .short_max_bytes = EAGER_MAX,
                                              .copied_max_bytes = EAGER_MAX,
                                              .zcopied_max_bytes = FRAGMENT_MAX,
                                              .cost = {[MODEL_BY_SEND] = cost}};
    if (faults.rma)
        out->cost[MODEL_BY_GET] = out->cost[MODEL_BY_PUT] = cost;
    return OPAL_SUCCESS;
}

static int fence(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint)
{
    struct flaky *lane = (struct flaky *) btl;
    OPAL_THREAD_LOCK(&lane->lock);
    lane_break(endpoint);
    int rc = is_over(endpoint) ? OPAL_SUCCESS : OPAL_ERR_RESOURCE_BUSY;
    OPAL_THREAD_UNLOCK(&lane->lock);
    return rc;
}

struct note {
    uint32_t is_answer;
    int lane;
    pid_t from;
    uint32_t session;
    uint32_t have;
};

static size_t fence_ask(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                        void *note)
{
    struct flaky *lane = (struct flaky *) btl;
    OPAL_THREAD_LOCK(&lane->lock);
    const struct note ask = {.lane = lane->index,
                             .from = getpid(),
                             .session = endpoint->session,
                             .have = endpoint->have};
    bool asks = endpoint->is_broken && !is_fenced(endpoint);
    OPAL_THREAD_UNLOCK(&lane->lock);
    memcpy(note, &ask, sizeof(ask));
    return asks ? sizeof(ask) : 0;
}

/* With the lane's lock held. False: there is no answer. */
static bool note_heard(struct mca_btl_base_endpoint_t *endpoint, struct note *note)
{
    uint32_t have = endpoint->have;
    if (note->session == endpoint->session) {
        lane_break(endpoint);
        endpoint->is_fenced = true;
        endpoint->their_have = note->have;
    } else {
        have = note->session == endpoint->past_session ? endpoint->past_have : 0;
    }
    note->have = have;
    note->from = getpid();
    return !note->is_answer && (int32_t) (endpoint->session - note->session) >= 0;
}

static size_t fence_hear(const void *note, size_t length, void *answer)
{
    struct note heard;
    if (length != sizeof(heard))
        return 0;
    memcpy(&heard, note, sizeof(heard));
    if (heard.lane < 0 || heard.lane >= faults.lanes)
        return 0;
    struct flaky *lane = &lanes[heard.lane];
    OPAL_THREAD_LOCK(&lane->lock);
    bool answers = note_heard(endpoint_of(lane, heard.from), &heard);
    OPAL_THREAD_UNLOCK(&lane->lock);
    heard.is_answer = true;
    memcpy(answer, &heard, sizeof(heard));
    return answers ? sizeof(heard) : 0;
}

static void return_to(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                      multilane_returned returned, void *context)
{
    struct flaky *lane = (struct flaky *) btl;
    OPAL_THREAD_LOCK(&lane->lock);
    endpoint->returned = returned;
    endpoint->returned_context = context;
    OPAL_THREAD_UNLOCK(&lane->lock);
}

static uint64_t quiet_ms(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint)
{
    struct flaky *lane = (struct flaky *) btl;
    OPAL_THREAD_LOCK(&lane->lock);
    uint64_t ms = quiet_for_ms(endpoint);
    OPAL_THREAD_UNLOCK(&lane->lock);
    return ms;
}

static void check_by(bool (*check)(mca_btl_base_module_t *btl,
                                   struct mca_btl_base_endpoint_t *endpoint, uint8_t tag,
                                   const void *bytes, size_t length))
{
    is_right = check;
}

MULTILANE_EXTENSION_DEFINE(flaky) = {
    MULTILANE_EXTENSION_HEAD, .attributes = attributes, .fence = fence,
    .fence_ask = fence_ask,   .fence_hear = fence_hear, .return_to = return_to,
    .quiet_ms = quiet_ms,     .check_by = check_by,
};

/* --- beginning and end --------------------------------------------------------------------------
 */

/* Null: it is broken, and not fenced yet. */
static struct mca_btl_base_endpoint_t *endpoint_add(struct flaky *lane, pid_t pid,
                                                    opal_proc_t *proc)
{
    OPAL_THREAD_LOCK(&lane->lock);
    struct mca_btl_base_endpoint_t *endpoint = endpoint_of(lane, pid);
    if (is_over(endpoint))
        session_begin(endpoint, endpoint->session + 1);
    bool is_there = !endpoint->is_broken || !endpoint->proc;
    endpoint->proc = proc;
    OPAL_THREAD_UNLOCK(&lane->lock);
    return is_there ? endpoint : NULL;
}

static int flaky_add_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                           struct mca_btl_base_endpoint_t **endpoints, opal_bitmap_t *reachable)
{
    for (size_t i = 0; i < count; i++) {
        void *data = NULL;
        size_t bytes = 0;
        pid_t pid;
        if (procs[i] == opal_proc_local_get() || !OPAL_PROC_ON_LOCAL_NODE(procs[i]->proc_flags) ||
            modex_recv("btl", "flaky", &procs[i]->proc_name, &data, &bytes) != OPAL_SUCCESS ||
            bytes != sizeof(pid))
            continue;
        memcpy(&pid, data, sizeof(pid));
        free(data);
        endpoints[i] = endpoint_add((struct flaky *) btl, pid, procs[i]);
        if (endpoints[i] && reachable)
            opal_bitmap_set_bit(reachable, (int) i);
    }
    return OPAL_SUCCESS;
}

/* What is kept is given up. */
static void endpoint_empty(struct mca_btl_base_endpoint_t *endpoint)
{
    opal_list_join(&endpoint->sent, opal_list_get_end(&endpoint->sent), &endpoint->waiting);
    struct message *message;
    while ((message = message_take(&endpoint->sent))) {
        if (message->descriptor && message->descriptor->des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP)
            free(message->descriptor);
        free(message);
    }
    while (endpoint->copied) {
        struct copied *copied = endpoint->copied;
        endpoint->copied = copied->next;
        free(copied);
    }
}

static int flaky_del_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                           struct mca_btl_base_endpoint_t **endpoints)
{
    struct flaky *lane = (struct flaky *) btl;
    (void) procs;
    OPAL_THREAD_LOCK(&lane->lock);
    for (size_t i = 0; i < count; i++)
        if (endpoints[i]) {
            endpoints[i]->proc = NULL;
            endpoints[i]->returned = NULL;
            endpoint_empty(endpoints[i]);
        }
    OPAL_THREAD_UNLOCK(&lane->lock);
    if (faults.goodbye)
        raise(SIGPIPE);
    return OPAL_SUCCESS;
}

static int flaky_register_error(mca_btl_base_module_t *btl,
                                mca_btl_base_module_error_cb_fn_t callback)
{
    ((struct flaky *) btl)->error_callback = callback;
    return OPAL_SUCCESS;
}

static int flaky_finalize(mca_btl_base_module_t *btl)
{
    struct flaky *lane = (struct flaky *) btl;
    close(lane->fd);
    lane->fd = -1;
    while (lane->endpoints) {
        struct mca_btl_base_endpoint_t *endpoint = lane->endpoints;
        lane->endpoints = endpoint->next;
        endpoint_empty(endpoint);
        free(endpoint);
    }
    OBJ_DESTRUCT(&lane->lock);
    OBJ_DESTRUCT(&lane->receiving);
    return OPAL_SUCCESS;
}

static int flaky_register(void)
{
    return param_register(&mca_btl_flaky_component.btl_version, params);
}

static void lane_describe(mca_btl_base_module_t *btl)
{
    *btl = (mca_btl_base_module_t){
        .btl_component = &mca_btl_flaky_component,
        .btl_eager_limit = EAGER_MAX,
        .btl_rndv_eager_limit = EAGER_MAX,
        .btl_max_send_size = FRAGMENT_MAX,
        .btl_exclusivity = MCA_BTL_EXCLUSIVITY_HIGH,
        .btl_latency = 1,
        .btl_bandwidth = 8000,
        .btl_flags = MCA_BTL_FLAGS_SEND,
        .btl_add_procs = flaky_add_procs,
        .btl_del_procs = flaky_del_procs,
        .btl_finalize = flaky_finalize,
        .btl_alloc = flaky_alloc,
        .btl_free = flaky_free,
        .btl_prepare_src = flaky_prepare,
        .btl_send = flaky_send,
        .btl_sendi = flaky_sendi,
        .btl_register_error = flaky_register_error,
    };
    if (!faults.rma)
        return;
    btl->btl_flags |= MCA_BTL_FLAGS_GET | MCA_BTL_FLAGS_PUT;
    btl->btl_get = flaky_get;
    btl->btl_put = flaky_put;
    btl->btl_get_limit = btl->btl_put_limit = COPY_MAX;
    btl->btl_get_alignment = btl->btl_put_alignment = 0;
}

static bool lane_open(struct flaky *lane, int index)
{
    struct sockaddr_un address;
    socklen_t length = address_of(getpid(), index, &address);
    int bytes = 4 << 20;
    *lane = (struct flaky){.index = index};
    lane_describe(&lane->super);
    /* Another course of events for every process and lane. */
    lane->chance = ((uint64_t) faults.seed * 8 + (uint64_t) index + 1) * 0x9e3779b97f4a7c15u +
                   opal_proc_local_get()->proc_name.vpid;
    lane->chance |= 1;
    OBJ_CONSTRUCT(&lane->lock, opal_mutex_t);
    OBJ_CONSTRUCT(&lane->receiving, opal_mutex_t);
    lane->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return lane->fd >= 0 && bind(lane->fd, (struct sockaddr *) &address, length) == 0 &&
           setsockopt(lane->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) == 0;
}

static mca_btl_base_module_t **flaky_init(int *count, bool progress_threads, bool mpi_threads)
{
    pid_t pid = getpid();
    (void) progress_threads;
    (void) mpi_threads;
    *count = 0;
    if (faults.rma) /* others may read and write here, whatever Yama says */
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    if (faults.lanes < 1 || faults.lanes > LANES_MAX) {
        opal_output(0, "btl_flaky_lanes is %d; it can be 1 to %d.", faults.lanes, LANES_MAX);
        return NULL;
    }
    mca_btl_base_module_t **modules = calloc((size_t) faults.lanes, sizeof(*modules));
    if (!modules || modex_send("btl", "flaky", &pid, sizeof(pid)) != OPAL_SUCCESS)
        return NULL;
    for (int i = 0; i < faults.lanes; i++) {
        if (!lane_open(&lanes[i], i)) {
            opal_output(0, "btl/flaky: no socket: %s.", strerror(errno));
            return NULL;
        }
        modules[i] = &lanes[i].super;
    }
    *count = faults.lanes;
    return modules;
}
