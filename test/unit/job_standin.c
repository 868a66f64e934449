/* SPDX-License-Identifier: BSD-3-Clause */
/* What lies around the PML in a job, and the other ends' pen. */
#include "job_standin.h"

#include <string.h>

#include "common/compat/btl.h"
#include "common/sum/crc32c.h"
#include "entry/calls.h"
#include "join/posting.h"
#include "open_mpi.h"
#include "contact/contact.h"
#include "contact/peer_lanes.h"

#define SENT_MAX 4096

ompi_communicator_t job_ompi_comm;
struct job_sent job_sent[SENT_MAX];
unsigned job_sent_count;
bool job_has_room = true;
unsigned job_refusals;

static ompi_group_t group;
static ompi_proc_t *procs[JOB_RANKS];
static opal_convertor_t *convertor;
static mca_btl_base_module_t *btls[JOB_LANES];

struct mca_pml_comm_t *job_comm(void)
{
    return job_ompi_comm.c_pml_comm;
}

size_t job_kept(void)
{
    opal_free_list_item_t *item, *items = NULL;
    size_t kept = multilane.inbound.fl_num_allocated;
    while ((item = (void *) opal_lifo_pop_st(&multilane.inbound.super))) {
        item->super.opal_list_next = (void *) items;
        items = item;
        kept--;
    }
    while ((item = items)) {
        items = (void *) item->super.opal_list_next;
        opal_free_list_return_st(&multilane.inbound, item);
    }
    return kept;
}

struct peer *job_peer(int rank)
{
    return atomic_load_explicit(&multilane.local_peers[rank], memory_order_relaxed);
}

/* --- Open MPI -----------------------------------------------------------------------------------
 */

static void *payload_alloc(struct mca_allocator_base_module_t *module, size_t size, size_t align)
{
    (void) module;
    (void) align;
    return malloc(size);
}

static void payload_free(struct mca_allocator_base_module_t *module, void *payload)
{
    (void) module;
    free(payload);
}

static int payloads_end(struct mca_allocator_base_module_t *module)
{
    (void) module;
    return OPAL_SUCCESS;
}

static struct mca_allocator_base_module_t *
payloads_begin(bool threads, mca_allocator_base_component_segment_alloc_fn_t get,
               mca_allocator_base_component_segment_free_fn_t give, void *context)
{
    static struct mca_allocator_base_module_t module = {
        .alc_alloc = payload_alloc, .alc_free = payload_free, .alc_finalize = payloads_end};
    (void) threads;
    (void) get;
    (void) give;
    (void) context;
    return &module;
}

/* Each payload is a block of its own, so that a checker sees a byte beyond it. */
static void allocator_begin(void)
{
    static mca_allocator_base_component_t component = {
        .allocator_version = {.mca_component_name = "bucket"}, .allocator_init = payloads_begin};
    static mca_base_component_list_item_t item;
    OBJ_CONSTRUCT(&opal_allocator_base_framework.framework_components, opal_list_t);
    OBJ_CONSTRUCT(&item, mca_base_component_list_item_t);
    item.cli_component = &component.allocator_version;
    opal_list_append(&opal_allocator_base_framework.framework_components, &item.super);
}

/* Found before that of libmpi, which looks in a table of a job. */
__attribute__((visibility("default"))) opal_proc_t *
ompi_proc_for_name(const opal_process_name_t name);

opal_proc_t *ompi_proc_for_name(const opal_process_name_t name)
{
    return name.jobid == 0 && name.vpid < JOB_RANKS ? &procs[name.vpid]->super : NULL;
}

static int bml_register(mca_btl_base_tag_t tag, mca_btl_base_module_recv_cb_fn_t callback,
                        void *data)
{
    mca_btl_base_active_message_trigger[tag].cbfunc = callback;
    mca_btl_base_active_message_trigger[tag].cbdata = data;
    return OMPI_SUCCESS;
}

static void comm_begin(void)
{
    group.grp_proc_count = JOB_RANKS;
    group.grp_proc_pointers = procs;
    OMPI_GROUP_SET_DENSE(&group);
    /* Its own class would list it with all communicators of Open MPI. */
    memset(&job_ompi_comm, 0, sizeof(job_ompi_comm));
    OBJ_CONSTRUCT(&job_ompi_comm.super, opal_infosubscriber_t);
    job_ompi_comm.c_my_rank = 0;
#if COMPAT_SERIES >= 50000
    job_ompi_comm.c_flags = OMPI_COMM_GLOBAL_INDEX; /* its index is that of all its processes */
#endif
    job_ompi_comm.c_local_group = job_ompi_comm.c_remote_group = &group;
    job_ompi_comm.error_handler = &ompi_mpi_errors_return.eh;
    if (module_add_comm(&job_ompi_comm) != OMPI_SUCCESS)
        abort();
}

/* --- peers --------------------------------------------------------------------------------------
 */

static bool keep_sent(const mca_btl_base_module_t *btl,
                      const struct mca_btl_base_endpoint_t *endpoint, const unsigned char *bytes,
                      size_t length)
{
    struct job_sent *sent = &job_sent[job_sent_count];
    if (!job_has_room || job_refusals) {
        job_refusals -= job_refusals > 0;
        return false;
    }
    if (job_sent_count++ == SENT_MAX)
        abort();
    *sent = (struct job_sent){.type = bytes[0], .length = length};
    memcpy(sent->bytes, bytes, length < sizeof(sent->bytes) ? length : sizeof(sent->bytes));
    for (int rank = 1; rank < JOB_RANKS; rank++) {
        const struct lane *lane = peer_lane_of(job_peer(rank), btl);
        if (lane && lane->endpoint == endpoint) {
            sent->rank = rank;
            sent->lane = lane->index;
        }
    }
    return true;
}

static struct peer *peer_begin(int rank)
{
    struct peer *peer = standin_peer();
    procs[rank] = peer->proc;
    peer->proc->super.proc_convertor = convertor;
    peer->name = peer->proc->super.proc_name = (opal_process_name_t){.vpid = (uint32_t) rank};
    return peer;
}

/* As peer_contact, which would ask Open MPI for a record of each. */
static void peer_meet(int rank, uint32_t window)
{
    struct peer *peer = peer_begin(rank);
    for (int i = 0; i < JOB_LANES; i++)
        standin_reach(peer, btls[i]);
    OPAL_THREAD_LOCK(&multilane.lock);
    if (!peer_take_lanes(peer))
        abort();
    contact_events.contacted(peer, window);
    peer_reach(peer, true);
    peer_list(peer);
    OPAL_THREAD_UNLOCK(&multilane.lock);
}

void job_begin(uint32_t window, uint32_t pool)
{
    standin_surround();
    standin_takes = keep_sent;
    allocator_begin();
    opal_progress_set_event_flag(0); /* there is no loop of events in Open MPI's progress */
    if (!convertor) {
        convertor = open_mpi_begin();
    }
    struct peer *self = peer_begin(0);
    standin_reach(self, standin_btl("self", 1000));
    ompi_proc_local_proc = self->proc;
    ompi_process_info.num_procs = JOB_RANKS;
    OBJ_CONSTRUCT(&mca_pml_base_send_requests, opal_free_list_t);
    OBJ_CONSTRUCT(&mca_pml_base_recv_requests, opal_free_list_t);
    multilane.window = window;
    atomic_store_explicit(&multilane.pool.left, pool, memory_order_relaxed);
    mca_bml.bml_register = bml_register;
    if (module_enable(true) != OMPI_SUCCESS || arrivals_listen() != OMPI_SUCCESS)
        abort();
    standin_count_failures();
    for (int i = 0; i < JOB_LANES; i++)
        btls[i] = standin_btl("tcp", 1000);
    for (int rank = 1; rank < JOB_RANKS; rank++)
        peer_meet(rank, window);
    comm_begin();
}

void job_end(void)
{
    module_del_comm(&job_ompi_comm);
    module_fini();
    OBJ_DESTRUCT(&job_ompi_comm.super);
    OBJ_DESTRUCT(&mca_pml_base_send_requests);
    OBJ_DESTRUCT(&mca_pml_base_recv_requests);
    OPAL_LIST_DESTRUCT(&mca_btl_base_modules_initialized);
    job_forget();
}

/* --- what comes ---------------------------------------------------------------------------------
 */

bool job_is_apart;
size_t job_wrong_bit = JOB_ALL_RIGHT;

static struct wire_apart sums_of(const void *header, size_t length, const void *payload,
                                 size_t size)
{
    struct wire_apart apart = {.headers = (uint32_t) length, .payload = (uint32_t) size};
    apart.payload_sum = crc32c(0, payload, size);
    apart.sum =
        crc32c(crc32c(0, &apart.headers, sizeof(apart) - sizeof(apart.sum)), header, length);
    return apart;
}

/* A block of its own, so that a checker sees a byte beyond it. */
void job_bytes(int rank, int lane, const void *header, size_t length, const void *payload,
               size_t size)
{
    const struct lane *from = &job_peer(rank)->lanes[lane];
    const size_t sums = job_is_apart ? sizeof(struct wire_apart) : 0;
    unsigned char *bytes = malloc(sums + length + size);
    if (sums) {
        struct wire_apart apart = sums_of(header, length, payload, size);
        memcpy(bytes, &apart, sums);
    }
    memcpy(bytes + sums, header, length);
    if (size)
        memcpy(bytes + sums + length, payload, size);
    if (job_wrong_bit / 8 < sums + length + size)
        bytes[job_wrong_bit / 8] ^= (unsigned char) (1u << job_wrong_bit % 8);
    mca_btl_base_segment_t segment = {.seg_addr.pval = bytes, .seg_len = sums + length + size};
    if (!compat_btl_deliver(from->btl, from->endpoint, sums ? WIRE_TAG_APART : WIRE_TAG, &segment,
                            1))
        abort();
    free(bytes);
}

/* As our own to that peer, but that it comes from there. */
static size_t header_of(int rank, unsigned char *header, uint8_t type, uint32_t sequence, int tag,
                        struct wire_handle sender)
{
    size_t length =
        comm_write_match(job_comm(), job_peer(rank), header, type, sequence, tag, sender);
    struct wire_base *base = (struct wire_base *) (void *) header;
    struct wire_match *match = (struct wire_match *) (void *) (header + length - sizeof(*match));
    base->from = (uint32_t) rank;
    match->source = rank;
    return length;
}

void job_synchronous(int rank, int lane, uint32_t sequence, int tag, const void *data, size_t size,
                     struct wire_handle sender)
{
    _Alignas(8) unsigned char header[WIRE_EAGER_HEADER_MAX];
    size_t length = header_of(rank, header, WIRE_EAGER, sequence, tag, sender);
    job_bytes(rank, lane, header, length, data, size);
}

void job_eager(int rank, int lane, uint32_t sequence, int tag, const void *data, size_t size)
{
    job_synchronous(rank, lane, sequence, tag, data, size, (struct wire_handle){0});
}

void job_eager_on(uint32_t context, int rank, int lane, uint32_t sequence, int tag,
                  const void *data, size_t size)
{
    const struct wire_plain header = {
        .base = {.type = WIRE_EAGER, .from = (uint32_t) rank},
        .match = {.sequence = sequence, .context = context, .source = rank, .tag = tag}};
    job_bytes(rank, lane, &header, sizeof(header), data, size);
}

void job_rts(int rank, int lane, uint32_t sequence, int tag, size_t size, uint32_t method,
             struct wire_handle sender)
{
    _Alignas(8) unsigned char header[WIRE_EAGER_HEADER_MAX];
    size_t length = header_of(rank, header, WIRE_RTS, sequence, tag, (struct wire_handle){0});
    const struct wire_rts rts = {.size = size, .sender = sender, .method = method};
    job_bytes(rank, lane, header, length, (const char *) &rts + sizeof(rts.match),
              sizeof(rts) - sizeof(rts.match));
}

void job_part(int rank, int lane, uint32_t sequence, int tag, const void *message, size_t size,
              size_t offset, size_t length)
{
    _Alignas(8) unsigned char header[WIRE_EAGER_HEADER_MAX];
    size_t at = header_of(rank, header, WIRE_PART, sequence, tag, (struct wire_handle){0});
    const struct wire_part part = {.size = size, .offset = offset};
    memcpy(header + at, (const char *) &part + sizeof(part.match),
           sizeof(part) - sizeof(part.match));
    job_bytes(rank, lane, header, at + sizeof(part) - sizeof(part.match),
              (const char *) message + offset, length);
}

void job_control(int rank, int lane, uint8_t type, const void *body, size_t length,
                 const void *payload, size_t size)
{
    struct {
        struct wire_base base;
        unsigned char body[sizeof(struct wire_page)];
    } header = {.base = {.type = type, .from = (uint32_t) rank}};
    memcpy(header.body, body, length);
    job_bytes(rank, lane, &header, sizeof(header.base) + length, payload, size);
}

/* --- what is sent -------------------------------------------------------------------------------
 */

const void *job_last(int rank, uint8_t type)
{
    for (unsigned i = job_sent_count; i > 0; i--)
        if (job_sent[i - 1].rank == rank && job_sent[i - 1].type == type)
            return job_sent[i - 1].bytes + sizeof(struct wire_base);
    return NULL;
}

unsigned job_count(int rank, uint8_t type)
{
    unsigned count = 0;
    for (unsigned i = 0; i < job_sent_count; i++)
        count += job_sent[i].rank == rank && job_sent[i].type == type;
    return count;
}

uint32_t job_sequence(const struct job_sent *sent)
{
    struct wire_match match;
    struct wire_base base;
    memcpy(&base, sent->bytes, sizeof(base));
    const struct wire_handle answer = {.generation =
                                           (base.flags & (WIRE_SYNCHRONOUS | WIRE_TIMED)) != 0};
    size_t end = comm_match_length(job_comm(), job_peer(sent->rank), answer);
    memcpy(&match, sent->bytes + end - sizeof(match), sizeof(match));
    return match.sequence;
}

void job_forget(void)
{
    job_sent_count = 0;
}

/* --- requests -----------------------------------------------------------------------------------
 */

struct recv_request *job_receive_type(void *buffer, size_t count, ompi_datatype_t *datatype,
                                      int source, int tag)
{
    return receive_post(buffer, count, datatype, source, tag, &job_ompi_comm);
}

struct recv_request *job_receive(void *buffer, size_t size, int source, int tag)
{
    return job_receive_type(buffer, size, &ompi_mpi_byte.dt, source, tag);
}

ompi_request_t *job_send(const void *buffer, size_t size, int rank, int tag)
{
    ompi_request_t *request = NULL;
    if (module_isend(buffer, size, &ompi_mpi_byte.dt, rank, tag, MCA_PML_BASE_SEND_STANDARD,
                     &job_ompi_comm, &request) != OMPI_SUCCESS)
        abort();
    return request;
}

int job_free(ompi_request_t *request)
{
    if (request == compat_empty_send_request())
        return MPI_SUCCESS;
    int error = request->req_status.MPI_ERROR;
    ompi_request_free(&request);
    return error;
}
