/* SPDX-License-Identifier: BSD-3-Clause */
/* The PML module: add and remove processes, enable, end. */
#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/handle.h"
#include "base/multilane.h"
#include "base/parameters.h"
#include "base/pending.h"
#include "entry/calls.h"
#include "join/posting.h"
#include "lane/lane.h"
#include "lane/waiting.h"
#include "liveness/liveness.h"
#include "match/comm.h"
#include "match/inbound.h"
#include "memory/device.h"
#include "plan/learning.h"
#include "contact/contact.h"
#include "delivery/control.h"
#include "plan/costs.h"
#include "peer/peer.h"
#include "plan/peer_class.h"
#include "contact/peer_lanes.h"
#include "report/report.h"
#include "request/recv_request.h"
#include "request/timer.h"
#include "request/send_request.h"

/* Open MPI calls it nowhere; multilane-top shows what waits, of all communicators. */
static int module_dump(ompi_communicator_t *comm, int verbose)
{
    return OMPI_ERR_NOT_IMPLEMENTED;
}

static mca_pml_base_module_t module = {
    .pml_add_procs = module_add_procs,
    .pml_del_procs = module_del_procs,
    .pml_enable = module_enable,
    .pml_progress = NULL,
    .pml_add_comm = module_add_comm,
    .pml_del_comm = module_del_comm,
    .pml_irecv_init = module_irecv_init,
    .pml_irecv = module_irecv,
    .pml_recv = module_recv,
    .pml_isend_init = module_isend_init,
    .pml_isend = module_isend,
    .pml_send = module_send,
    .pml_iprobe = module_iprobe,
    .pml_probe = module_probe,
    .pml_start = module_start,
    .pml_improbe = module_improbe,
    .pml_mprobe = module_mprobe,
    .pml_imrecv = module_imrecv,
    .pml_mrecv = module_mrecv,
    .pml_dump = module_dump,
    COMPAT_PML_MODULE_REST(module_revoke_comm, transports_of_rank).pml_max_contextid =
        COMPAT_MAX_CONTEXT,
    .pml_max_tag = INT_MAX,
    .pml_flags = COMPAT_PML_FLAGS,
};

/* BML r2 takes only the most exclusive of the allowed lanes to a process: tcp is for processes that
 * no other lane leads to. */
static uint32_t exclusivity_of(const mca_btl_base_module_t *btl)
{
    bool is_tcp = !lane_extension_of(btl) && btl_is_of_sockets(btl);
    return is_tcp ? MCA_BTL_EXCLUSIVITY_HIGH - 1 : MCA_BTL_EXCLUSIVITY_HIGH;
}

mca_pml_base_module_t *module_of_job(void)
{
    for (mca_btl_base_module_t *btl = btl_next(NULL); btl; btl = btl_next(btl)) {
        btl->btl_exclusivity = exclusivity_of(btl);
        if (btl->btl_flags & MCA_BTL_FLAGS_SINGLE_ADD_PROCS)
            module.pml_flags |= MCA_PML_BASE_FLAG_REQUIRE_WORLD;
    }
    return &module;
}

static void request_list_init(opal_free_list_t *list, size_t size, opal_class_t *class)
{
    opal_free_list_init(list, size, opal_cache_line_size, class, 0, opal_cache_line_size, 4, -1, 64,
                        NULL, 0, NULL, NULL, NULL);
}

static void *segment_get(void *context, size_t *bytes)
{
    return malloc(*bytes);
}

static void segment_return(void *context, void *segment)
{
    free(segment);
}

/* An allocator that keeps the memory of unexpected messages for later ones. free would give so
 * much back to the system, and faulting in new pages takes longer than the copy. */
static bool payloads_open(void)
{
    mca_allocator_base_component_t *bucket = mca_allocator_component_lookup("bucket");
    multilane.payloads =
        bucket ? bucket->allocator_init(true, segment_get, segment_return, NULL) : NULL;
    if (!multilane.payloads)
        opal_output(0,
                    "multilane: Open MPI's allocator \"bucket\", which keeps unexpected messages, "
                    "cannot be used; is it left out by --mca allocator?");
    return multilane.payloads != NULL;
}

/* Sets up a peer at the first contact. Counts of an earlier contact go on. */
static void peer_contacted(struct peer *peer, uint32_t window)
{
    if (!peer->waiting_pending.retry) {
        credit_begin(peer);
        send_queue_begin(peer, window);
    }
    watch_peer(peer);
}

/* What is to be done in each round of Open MPI's progress, beside the lanes. One function for all,
 * registered once: Open MPI frees its list when that grows, while another thread may walk it. */
static __attribute__((noinline)) int work_progress(void)
{
    int done = pending_any() ? pending_progress() : 0;
    return driver_is_loaded ? done + staging_progress() + device_costs_progress() : done;
}

static int module_progress(void)
{
    looks_add();
    (void) watch_progress();
    return OPAL_UNLIKELY(pending_any() || driver_is_loaded) ? work_progress() : 0;
}

/* Requests are started by the functions that stand before the module's, too. */
static int requests_start(size_t count, ompi_request_t **requests)
{
    return mca_pml.pml_start(count, requests);
}

/* Fills the tables by which lower layers call upper ones. */
static void tables_hand_down(void)
{
    errors_begin();
    wrong_begin();
    timers_begin();
    learning_begin();
    contact_events.contacted = peer_contacted;
    request_calls =
        (struct request_calls){.start = requests_start, .cancel_send = send_request_cancel};
}

int module_enable(bool enable)
{
    if (!enable || multilane.enabled)
        return OMPI_SUCCESS;
    tables_hand_down();
    if (!payloads_open())
        return OMPI_ERR_NOT_AVAILABLE;
    OBJ_CONSTRUCT(&multilane.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&multilane.comm_lock, opal_mutex_t);
    OBJ_CONSTRUCT(&multilane.orphans, opal_list_t);
    OBJ_CONSTRUCT(&multilane.inbound, opal_free_list_t);
    request_list_init(&multilane.inbound, sizeof(struct inbound), OBJ_CLASS(inbound_t));
    handle_table_init(&multilane.handles);
    sent_fragments_init();

    /* These two lists are Open MPI's: a debugger that shows message queues walks them. */
    request_list_init(&mca_pml_base_send_requests, sizeof(struct send_request),
                      OBJ_CLASS(send_request_t));
    request_list_init(&mca_pml_base_recv_requests, sizeof(struct recv_request),
                      OBJ_CLASS(recv_request_t));

    multilane.me = ompi_proc_local_proc->super.proc_name;
    multilane.local_peer_count = ompi_process_info.num_procs;
    multilane.local_peers = calloc(multilane.local_peer_count, sizeof(*multilane.local_peers));
    if (!multilane.local_peers)
        return OMPI_ERR_OUT_OF_RESOURCE;
    multilane.enabled = true;
    waits_hook();
    int rc = page_keeper_begin();
    if (rc == OMPI_SUCCESS)
        blackbox_begin(&mca_pml);
    return rc;
}

/* A lane whose largest eager fragment is too small for the headers would fail at the first
 * message. */
static int module_check_btls(void)
{
    for (mca_btl_base_module_t *btl = btl_next(NULL); btl; btl = btl_next(btl)) {
        if (!(btl->btl_flags & MCA_BTL_FLAGS_SEND) || btl->btl_eager_limit >= WIRE_CONTROL_MAX)
            continue;
        const char *name = lane_name_of(btl);
        opal_output(
            0,
            "multilane: btl_%s_eager_limit is %zu bytes, and headers need %zu: set it to at "
            "least that, or leave %s out of --mca btl.",
            name, btl->btl_eager_limit, WIRE_CONTROL_MAX, name);
        return OMPI_ERR_BAD_PARAM;
    }
    return OMPI_SUCCESS;
}

/* What cannot work is refused before the first message. */
static int module_check_uses(ompi_proc_t **procs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!lanes_have_all_uses(procs[i]))
            return OMPI_ERR_BAD_PARAM;
    return OMPI_SUCCESS;
}

int module_add_procs(ompi_proc_t **procs, size_t count)
{
    if (count == 0)
        return OMPI_SUCCESS;
    int rc = mca_pml_base_pml_check_selected("multilane", procs, count);
    if (rc != OMPI_SUCCESS)
        return rc;
    node_costs_find_first(procs, count);

    opal_bitmap_t reachable;
    OBJ_CONSTRUCT(&reachable, opal_bitmap_t);
    rc = opal_bitmap_init(&reachable, (int) count);
    if (rc == OMPI_SUCCESS)
        rc = mca_bml.bml_add_procs(count, procs, &reachable);
    OBJ_DESTRUCT(&reachable);
    if (rc == OMPI_SUCCESS)
        rc = module_check_uses(procs, count);
    if (rc == OMPI_SUCCESS)
        lanes_replaced_rest(procs, count);
    if (rc != OMPI_SUCCESS || multilane.receiving)
        return rc;

    rc = module_check_btls();
    if (rc == OMPI_SUCCESS)
        rc = arrivals_listen();
    if (rc == OMPI_SUCCESS)
        rc = mca_bml.bml_register_error(errors_from_btl);
    if (rc == OMPI_SUCCESS)
        rc = counters_register_lanes(&mca_pml_multilane_component.pmlm_version);
    if (rc == OMPI_SUCCESS && parameters.failover && lanes_may_break())
        schedule_begin(); /* also if no process is ever contacted: awaited_senders_contact */
    multilane.receiving = rc == OMPI_SUCCESS;
    if (multilane.receiving) {
        opal_progress_register(module_progress);
        waiting_begin();
        progress_thread_begin();
        job_pages_begin();
    }
    return rc;
}

/* --- SIGPIPE at the end of MPI ----------------------------------------------------------------
 * A process that leaves later than its peers writes to connections of btl/tcp that they have
 * closed, and Open MPI does not shield it from SIGPIPE. */

static struct sigaction before_mpi;
static bool is_ignored;

static void sigpipe_ignore(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    if (!is_ignored && sigaction(SIGPIPE, &ignore, &before_mpi) == 0)
        is_ignored = true;
}

/* Sets what was there before, unless the program has set another one since. */
void sigpipe_restore(void)
{
    struct sigaction now;
    if (is_ignored && sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
        sigaction(SIGPIPE, &before_mpi, NULL);
    is_ignored = false;
}

static int procs_part(ompi_proc_t **procs, size_t count)
{
    /* First: a BTL may call back for what it still holds, and the callback uses the lane. */
    int rc = mca_bml.bml_del_procs(count, procs);
    for (size_t i = 0; i < count; i++) {
        struct peer *peer = peer_find(procs[i]->super.proc_name);
        if (peer)
            peer_forget_lanes(peer);
    }
    return rc;
}

/* Until no copy of what was sent to it waits here, for room there. */
static void copies_leave(const struct peer *peer, uint64_t end_ns)
{
    while (atomic_load_explicit(&peer->queued, memory_order_relaxed) > 0 && !peer_is_gone(peer) &&
           clock_now_ns() < end_ns)
        opal_progress();
}

/* Open MPI names processes of this job alone, which have waited for each other. Those of other jobs
 * go on: what was sent to them arrives, and their lanes hear that this process ends in order. */
static void other_jobs_part(void)
{
    uint64_t end_ns = clock_now_ns() + (uint64_t) parameters.lost_s * 1000000000u;
    for (struct peer *peer = peer_next(NULL); peer; peer = peer_next(peer))
        if (peer->is_of_other_job) {
            copies_leave(peer, end_ns);
            if (peer_is_reachable(peer) && !peer_is_gone(peer))
                control_send(peer_control_lane(peer), WIRE_END, NULL, 0);
            (void) procs_part(&peer->proc, 1);
        }
}

int module_del_procs(ompi_proc_t **procs, size_t count)
{
    /* Open MPI calls this only where MPI, or the last session, ends. */
    sigpipe_ignore();
    job_pages_end();
    progress_thread_pause();
    other_jobs_part();
    int rc = procs_part(procs, count);
    progress_thread_resume();
    return rc;
}

void module_fini(void)
{
    if (!multilane.enabled)
        return;
    progress_thread_end();
    blackbox_end(&mca_pml);
    page_keeper_end();
    waits_unhook();
    explain_write();
    learning_save();
    waiting_end(); /* both depend on how processes have waited */
    timers_end();
    opal_progress_unregister(module_progress);
    counters_end();
    multilane.receiving = false;
    pending_close();
    schedule_fini();
    livenesses_fini();
    assemblies_fini();
    inbounds_fini();
    peers_fini();
    learning_end();
    machine_end();
    classes_fini();
    comms_fini();
    handle_table_fini(&multilane.handles);
    sent_fragments_fini();
    device_costs_fini();
    staging_fini();
    OBJ_DESTRUCT(&multilane.orphans);
    OBJ_DESTRUCT(&multilane.inbound);
    (void) multilane.payloads->alc_finalize(multilane.payloads);
    OBJ_DESTRUCT(&multilane.comm_lock);
    OBJ_DESTRUCT(&multilane.lock);
}
