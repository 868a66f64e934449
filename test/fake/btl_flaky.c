/* SPDX-License-Identifier: BSD-3-Clause */
/* A stand-in for lanes that fail: a BTL between processes of one node that, by a seed, drops,
 * delays, repeats and so reorders messages, fails completions, says that it is busy, dies and comes
 * back.
 *
 * Each lane is a module with a datagram socket of its own, for which the kernel keeps ten messages
 * that were not read. One that it has no room for waits in order, and has not left before its
 * callback: its sender may never call progress again. Faults happen where a message is sent, so the
 * receiver needs no knowledge of them. The first lane never dies and never fails a completion,
 * unless a test wants that: something has to carry the job on.
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
#include <unistd.h>

#include "btl_flaky.h"
#include "common/compat/btl.h"
#include "common/compat/modex.h"
#include "common/compat/param.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/btl/base/base.h"
#include "opal/util/output.h"

#define LANES_MAX    4
#define FRAGMENT_MAX ((size_t) 32 << 10)
#define EAGER_MAX    ((size_t) 4 << 10)
#define RECEIVES_MAX 16 /* a turn */

/* Faults are parts of 10,000 messages; turns are calls of progress. */
static struct {
    int seed, lanes, drop, twice, delay, busy, fail, die;
    int sleep_turns, spared, rma, goodbye;
} faults = {.seed = 1, .lanes = 2, .sleep_turns = 20000, .spared = 1};

static const struct param params[] = {
    {"seed", PARAM_INT, &faults.seed, NULL, "of the faults; 0: none happens"},
    {"lanes", PARAM_INT, &faults.lanes, NULL, "how many lanes (1 to 4)"},
    {"drop", PARAM_INT, &faults.drop, NULL, "of 10000 messages, how many vanish"},
    {"twice", PARAM_INT, &faults.twice, NULL, "how many come twice"},
    {"delay", PARAM_INT, &faults.delay, NULL, "how many are overtaken"},
    {"busy", PARAM_INT, &faults.busy, NULL, "how often a lane has no room"},
    {"fail", PARAM_INT, &faults.fail, NULL, "how many end in an error, which ends their lane"},
    {"die", PARAM_INT, &faults.die, NULL, "after how many a lane is silent for sleep_turns"},
    {"rma", PARAM_INT, &faults.rma, NULL, "1: gets and puts as well"},
    {"goodbye", PARAM_INT, &faults.goodbye, NULL,
     "1: it closes like btl/tcp whose peer has closed first, with SIGPIPE"},
    {"spared", PARAM_INT, &faults.spared, NULL, "so many of the first lanes never fail or die"},
    {"sleep_turns", PARAM_INT, &faults.sleep_turns, NULL, "calls of progress until it comes back"},
    {.name = NULL}};

/* What was accepted, and is sent in a later turn or when the kernel has room; its callback comes
 * then. */
struct held {
    struct held *next;
    uint64_t due; /* turn */
    struct mca_btl_base_endpoint_t *to;
    mca_btl_base_descriptor_t *descriptor;
    mca_btl_base_tag_t tag;
};

struct packet {
    struct packet *next;
    uint64_t due; /* turn */
    struct sockaddr_un to;
    socklen_t to_length;
    size_t length;
    unsigned char bytes[]; /* the tag, and the message */
};

struct fragment {
    mca_btl_base_descriptor_t super;
    mca_btl_base_segment_t segments[2];
    unsigned char bytes[];
};

/* BTLs choose what it is. */
struct mca_btl_base_endpoint_t {
    struct sockaddr_un to;
    socklen_t to_length;
    pid_t pid;
};

struct flaky {
    mca_btl_base_module_t super;
    int index;
    int fd;
    opal_mutex_t lock; /* guards what follows */
    uint64_t chance;
    uint64_t turn;
    uint64_t awake_turn; /* until then what is sent vanishes */
    bool is_broken;
    bool is_cut;
    uint64_t connected_turn; /* what is sent before is held until then */
    struct held *held, **held_last;
    struct copied *copied;
    struct packet *first, **last;
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

/* Counts a call, or for FLAKY_CUT also what is received. */
static enum flaky_fault fault_now(struct flaky *lane)
{
    if (plan.fault == FLAKY_NONE || (plan.lane >= 0 && lane->index != plan.lane) ||
        ++plan.calls != plan.at)
        return FLAKY_NONE;
    if (plan.fault == FLAKY_CUT)
        lane->is_cut = true;
    if (plan.fault == FLAKY_UNCONNECTED)
        lane->connected_turn = lane->turn + plan.rounds;
    return plan.fault;
}

/* --- sending ------------------------------------------------------------------------------------
 */

/* With the lane's lock held, as are all below: what is due goes, in order. */
static void packets_go(struct flaky *lane)
{
    struct packet **at = &lane->first;
    while (*at) {
        struct packet *packet = *at;
        if (packet->due > lane->turn) {
            at = &packet->next; /* others overtake it */
            continue;
        }
        ssize_t sent = sendto(lane->fd, packet->bytes, packet->length, MSG_DONTWAIT,
                              (struct sockaddr *) &packet->to, packet->to_length);
        if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS))
            break;
        *at = packet->next;
        free(packet);
    }
    lane->last = &lane->first;
    while (*lane->last)
        lane->last = &(*lane->last)->next;
}

static void packet_add(struct flaky *lane, const struct mca_btl_base_endpoint_t *to,
                       mca_btl_base_tag_t tag, const mca_btl_base_segment_t *segments, size_t count,
                       uint64_t due)
{
    size_t length = 1;
    for (size_t i = 0; i < count; i++)
        length += segments[i].seg_len;
    struct packet *packet = malloc(sizeof(*packet) + length);
    if (!packet)
        abort();
    *packet =
        (struct packet){.due = due, .to = to->to, .to_length = to->to_length, .length = length};
    unsigned char *end = packet->bytes;
    *end++ = tag;
    for (size_t i = 0; i < count; i++) {
        memcpy(end, segments[i].seg_addr.pval, segments[i].seg_len);
        end += segments[i].seg_len;
    }
    *lane->last = packet;
    lane->last = &packet->next;
}

/* Takes the last packet back, if it is due and the kernel had no room for it. */
static bool last_taken_back(struct flaky *lane)
{
    struct packet **at = &lane->first;
    while (*at && (*at)->next)
        at = &(*at)->next;
    if (!*at || (*at)->due > lane->turn)
        return false;
    free(*at);
    *at = NULL;
    lane->last = at;
    return true;
}

/* OPAL_ERR_OUT_OF_RESOURCE: the kernel has no room, and the message was not sent. */
static int message_send(struct flaky *lane, const struct mca_btl_base_endpoint_t *to,
                        mca_btl_base_tag_t tag, const mca_btl_base_segment_t *segments,
                        size_t count)
{
    int rc = OPAL_SUCCESS;
    OPAL_THREAD_LOCK(&lane->lock);
    if (lane->index >= faults.spared && faults.die && lane->turn >= lane->awake_turn &&
        happens(lane, 10000 / faults.die))
        lane->awake_turn = lane->turn + (uint64_t) faults.sleep_turns;
    if (lane->is_broken || (lane->index >= faults.spared && happens(lane, faults.fail))) {
        lane->is_broken = true;
        rc = OPAL_ERR_UNREACH;
    } else if (lane->turn >= lane->awake_turn && !lane->is_cut && !happens(lane, faults.drop)) {
        uint64_t due =
            happens(lane, faults.delay) ? lane->turn + chance_next(&lane->chance) % 200 : 0;
        packet_add(lane, to, tag, segments, count, due);
        packets_go(lane);
        if (last_taken_back(lane))
            rc = OPAL_ERR_OUT_OF_RESOURCE;
        else if (happens(lane, faults.twice))
            packet_add(lane, to, tag, segments, count, lane->turn);
    }
    OPAL_THREAD_UNLOCK(&lane->lock);
    return rc;
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
    enum flaky_fault fault = fault_now((struct flaky *) btl);
    (void) endpoint;
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

/* Does a message have to wait behind others, or for the connection? */
static bool holds_back(struct flaky *lane)
{
    OPAL_THREAD_LOCK(&lane->lock);
    bool holds = lane->held || lane->turn < lane->connected_turn;
    OPAL_THREAD_UNLOCK(&lane->lock);
    return holds;
}

/* OPAL_ERR_OUT_OF_RESOURCE: as message_send. */
static int descriptor_send(struct flaky *lane, struct mca_btl_base_endpoint_t *endpoint,
                           mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
    int rc =
        message_send(lane, endpoint, tag, descriptor->des_segments, descriptor->des_segment_count);
    if (rc == OPAL_ERR_OUT_OF_RESOURCE)
        return rc;
    bool is_ours = descriptor->des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
    /* Errors come as often by the return as by the callback, or, as tcp has it, by both. */
    uint64_t way = rc == OPAL_SUCCESS ? 1 : chance_next(&lane->chance) % 3;
    if (way == 0)
        return rc;
    if (rc != OPAL_SUCCESS || descriptor->des_flags & MCA_BTL_DES_SEND_ALWAYS_CALLBACK)
        descriptor->des_cbfunc(&lane->super, endpoint, descriptor, rc);
    if (is_ours)
        free(descriptor);
    return way == 2 ? rc : 1;
}

static void descriptor_hold(struct flaky *lane, struct mca_btl_base_endpoint_t *endpoint,
                            mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag,
                            uint64_t due)
{
    struct held *held = malloc(sizeof(*held));
    if (!held)
        abort();
    *held = (struct held){.due = due, .to = endpoint, .descriptor = descriptor, .tag = tag};
    descriptor->des_flags |= MCA_BTL_DES_SEND_ALWAYS_CALLBACK; /* as tcp does */
    OPAL_THREAD_LOCK(&lane->lock);
    *lane->held_last = held;
    lane->held_last = &held->next;
    OPAL_THREAD_UNLOCK(&lane->lock);
}

/* Null: none is due. */
static struct held *held_take(struct flaky *lane)
{
    OPAL_THREAD_LOCK(&lane->lock);
    struct held *held = lane->held;
    if (held && held->due > lane->turn)
        held = NULL;
    if (held)
        lane->held = held->next;
    if (!lane->held)
        lane->held_last = &lane->held;
    OPAL_THREAD_UNLOCK(&lane->lock);
    return held;
}

static void held_return(struct flaky *lane, struct held *held)
{
    OPAL_THREAD_LOCK(&lane->lock);
    held->next = lane->held;
    lane->held = held;
    if (!held->next)
        lane->held_last = &held->next;
    OPAL_THREAD_UNLOCK(&lane->lock);
}

/* In order: the first one that is not due, or has no room, keeps the others. */
static int held_go(struct flaky *lane)
{
    struct held *held;
    int count = 0;
    while ((held = held_take(lane))) {
        if (descriptor_send(lane, held->to, held->descriptor, held->tag) ==
            OPAL_ERR_OUT_OF_RESOURCE) {
            held_return(lane, held);
            break;
        }
        free(held);
        count++;
    }
    return count;
}

static int flaky_send(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                      mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
    struct flaky *lane = (struct flaky *) btl;
    enum flaky_fault fault = fault_now(lane);
    if (fault == FLAKY_NO_ROOM)
        return OPAL_ERR_TEMP_OUT_OF_RESOURCE;
    if (fault != FLAKY_HELD && fault != FLAKY_BUSY && !holds_back(lane)) {
        int rc = descriptor_send(lane, endpoint, descriptor, tag);
        if (rc != OPAL_ERR_OUT_OF_RESOURCE)
            return rc;
    }
    uint64_t due = lane->connected_turn;
    if (fault == FLAKY_HELD || fault == FLAKY_BUSY)
        due = lane->turn + plan.rounds;
    descriptor_hold(lane, endpoint, descriptor, tag, due);
    return fault == FLAKY_BUSY ? OPAL_ERR_RESOURCE_BUSY : OPAL_SUCCESS;
}

static int flaky_sendi(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                       opal_convertor_t *convertor, void *header, size_t header_size,
                       size_t payload_size, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
                       mca_btl_base_descriptor_t **descriptor)
{
    struct flaky *lane = (struct flaky *) btl;
    mca_btl_base_segment_t segment;
    (void) convertor;
    memset(&segment, 0, sizeof(segment));
    segment.seg_addr.pval = header;
    segment.seg_len = header_size;
    int rc = OPAL_ERR_OUT_OF_RESOURCE;
    if (payload_size == 0 && header_size <= EAGER_MAX && !is_busy(lane) &&
        fault_now(lane) == FLAKY_NONE && !holds_back(lane))
        rc = message_send(lane, endpoint, tag, &segment, 1);
    if (rc != OPAL_ERR_OUT_OF_RESOURCE)
        return rc;
    if (descriptor)
        *descriptor = flaky_alloc(btl, endpoint, order, header_size + payload_size, flags);
    return OPAL_ERR_RESOURCE_BUSY;
}

/* --- gets and puts, which the kernel copies at once ----------------------------------------------
 */

struct copied {
    struct copied *next;
    uint64_t due; /* turn in which the callback comes */
    struct mca_btl_base_endpoint_t *endpoint;
    mca_btl_base_rdma_completion_fn_t callback;
    void *context, *data, *local;
    int status;
};

static int copied_later(struct flaky *lane, struct copied *copied, uint64_t due)
{
    copied->due = due;
    copied->next = lane->copied;
    lane->copied = copied;
    return OPAL_SUCCESS;
}

static int copied_go(struct flaky *lane)
{
    struct copied **at = &lane->copied;
    int count = 0;
    while (*at) {
        struct copied *copied = *at;
        if (copied->due > lane->turn) {
            at = &copied->next;
            continue;
        }
        *at = copied->next;
        copied->callback(&lane->super, copied->endpoint, copied->local, NULL, copied->context,
                         copied->data, copied->status);
        free(copied);
        count++;
        at = &lane->copied; /* the callback may have added some */
    }
    return count;
}

static int flaky_copy(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                      bool gets, void *local, uint64_t remote, size_t size,
                      mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    struct flaky *lane = (struct flaky *) btl;
    enum flaky_fault fault = fault_now(lane);
    if (fault == FLAKY_NO_ROOM)
        return OPAL_ERR_OUT_OF_RESOURCE;
    if (fault == FLAKY_BUSY)
        return OPAL_ERR_RESOURCE_BUSY;
    struct iovec here = {.iov_base = local, .iov_len = size};
    struct iovec there = {.iov_base = (void *) (uintptr_t) remote, .iov_len = size};
    ssize_t done = gets ? process_vm_readv(endpoint->pid, &here, 1, &there, 1, 0)
                        : process_vm_writev(endpoint->pid, &here, 1, &there, 1, 0);
    struct copied *copied = calloc(1, sizeof(*copied));
    if (!copied)
        abort();
    *copied = (struct copied){.endpoint = endpoint,
                              .callback = callback,
                              .context = context,
                              .data = data,
                              .local = local,
                              .status = done == (ssize_t) size ? OPAL_SUCCESS : OPAL_ERROR};
    uint64_t due = fault == FLAKY_HELD ? lane->turn + plan.rounds : lane->connected_turn;
    return copied_later(lane, copied, due);
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

static int lane_receive(struct flaky *lane)
{
    static _Thread_local unsigned char bytes[FRAGMENT_MAX + 1];
    int count = 0;
    ssize_t length;
    while (count < RECEIVES_MAX &&
           (length = recv(lane->fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
        if (lane->is_cut || fault_now(lane) == FLAKY_CUT)
            continue; /* lost on its way */
        /* A block of its own size, so that a checker sees a byte read behind it; and the callback
         * may come here again. */
        unsigned char *copy = malloc((size_t) length);
        mca_btl_base_segment_t segment;
        if (!copy)
            abort();
        memcpy(copy, bytes, (size_t) length);
        memset(&segment, 0, sizeof(segment));
        segment.seg_addr.pval = copy + 1;
        segment.seg_len = (size_t) length - 1;
        compat_btl_deliver(&lane->super, NULL, copy[0], &segment, 1);
        free(copy);
        count++;
    }
    return count;
}

static int flaky_progress(void)
{
    int count = 0;
    for (int i = 0; i < faults.lanes; i++) {
        OPAL_THREAD_LOCK(&lanes[i].lock);
        lanes[i].turn++;
        packets_go(&lanes[i]);
        OPAL_THREAD_UNLOCK(&lanes[i].lock);
        count += held_go(&lanes[i]) + copied_go(&lanes[i]);
        count += lane_receive(&lanes[i]);
    }
    return count;
}

/* --- beginning and end --------------------------------------------------------------------------
 */

/* In the abstract namespace of the node. */
static socklen_t address_of(pid_t pid, int index, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
                          "multilane-flaky-%d-%d", (int) pid, index);
    return (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) length);
}

static int flaky_add_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                           struct mca_btl_base_endpoint_t **endpoints, opal_bitmap_t *reachable)
{
    const struct flaky *lane = (struct flaky *) btl;
    for (size_t i = 0; i < count; i++) {
        void *data = NULL;
        size_t bytes = 0;
        pid_t pid;
        if (procs[i] == opal_proc_local_get() || !OPAL_PROC_ON_LOCAL_NODE(procs[i]->proc_flags) ||
            modex_recv(&mca_btl_flaky_component.btl_version, &procs[i]->proc_name, &data, &bytes) !=
                OPAL_SUCCESS ||
            bytes != sizeof(pid))
            continue;
        memcpy(&pid, data, sizeof(pid));
        free(data);
        endpoints[i] = calloc(1, sizeof(*endpoints[i]));
        endpoints[i]->to_length = address_of(pid, lane->index, &endpoints[i]->to);
        endpoints[i]->pid = pid;
        if (reachable)
            opal_bitmap_set_bit(reachable, (int) i);
    }
    return OPAL_SUCCESS;
}

static int flaky_del_procs(mca_btl_base_module_t *btl, size_t count, opal_proc_t **procs,
                           struct mca_btl_base_endpoint_t **endpoints)
{
    (void) btl;
    (void) procs;
    for (size_t i = 0; i < count; i++)
        free(endpoints[i]);
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
    while (lane->first) {
        struct packet *packet = lane->first;
        lane->first = packet->next;
        free(packet);
    }
    lane->last = &lane->first;
    while (lane->held) {
        struct held *held = lane->held;
        lane->held = held->next;
        if (held->descriptor->des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP)
            free(held->descriptor);
        free(held);
    }
    OBJ_DESTRUCT(&lane->lock);
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
    btl->btl_get_limit = btl->btl_put_limit = 64 << 10;
    btl->btl_get_alignment = btl->btl_put_alignment = 0;
}

static bool lane_open(struct flaky *lane, int index)
{
    struct sockaddr_un address;
    socklen_t length = address_of(getpid(), index, &address);
    int bytes = 4 << 20;
    lane_describe(&lane->super);
    lane->index = index;
    lane->last = &lane->first;
    lane->held_last = &lane->held;
    /* Another course of events for every process and lane. */
    lane->chance = ((uint64_t) faults.seed * 8 + (uint64_t) index + 1) * 0x9e3779b97f4a7c15u +
                   opal_proc_local_get()->proc_name.vpid;
    lane->chance |= 1;
    OBJ_CONSTRUCT(&lane->lock, opal_mutex_t);
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
    if (!modules ||
        modex_send(&mca_btl_flaky_component.btl_version, &pid, sizeof(pid)) != OPAL_SUCCESS)
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
