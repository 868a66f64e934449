/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes and checks modex records; contacts a peer, at the first send to it or at its first message.
 */
#include "contact/contact.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/multilane.h"
#include "common/compat/btl.h"
#include "contact/peer_lanes.h"
#include "common/compat/modex.h"
#include "common/model/attribute.h"
#include "base/parameters.h"
#include "wire/wire.h"

/* The modex record. */

static uint32_t longest_key(void)
{
    size_t longest = 0;
    for (mca_btl_base_module_t *btl = btl_next(NULL); btl; btl = btl_next(btl)) {
        if (btl->btl_register_mem && btl->btl_registration_handle_size > longest)
            longest = btl->btl_registration_handle_size;
    }
    return (uint32_t) longest;
}

_Static_assert(sizeof(struct record) <= MULTILANE_PUBLISHED_BYTES, "it is left at lanes");

static size_t record_length(const struct record_ends *ends)
{
    return offsetof(struct record, ends.lanes) + ends->lane_count * sizeof(ends->lanes[0]);
}

int record_publish(uint32_t window, const struct record_ends *ends)
{
    struct record record = {.magic = MODEX_MAGIC,
                            .wire_version = WIRE_VERSION,
                            .pointer_bytes = sizeof(void *),
                            .record_bytes = sizeof(record),
                            .byte_order = RECORD_BYTE_ORDER,
                            .features = parameters.sums,
                            .key_bytes = longest_key(),
                            .pid = (uint32_t) getpid(),
                            .window = window,
                            .pid_namespace = host_namespace("pid"),
                            .user_namespace = host_namespace("user"),
                            .ends = *ends};
    host_boot(record.boot_id);
    lanes_publish(&record, record_length(ends));
    return modex_send("pml", "multilane", &record, record_length(ends));
}

static bool is_lane(const struct record_lane *lane)
{
    double bandwidth = lane->bandwidth_bytes_s != 0 ? lane->bandwidth_bytes_s : 1;
    return lane->name[0] && memchr(lane->name, '\0', sizeof(lane->name)) &&
           model_attribute_check(MODEL_OVERHEAD_SEND, lane->overhead_s, NULL) &&
           model_attribute_check(MODEL_REG_COST, lane->reg_cost_s, NULL) &&
           model_attribute_check(MODEL_REG_GROWTH, lane->reg_growth_s_byte, NULL) &&
           model_attribute_check(MODEL_BANDWIDTH, bandwidth, NULL);
}

static bool ends_check(const struct record *record, size_t bytes, struct error_text *why)
{
    const struct record_ends *ends = &record->ends;
    if (record->record_bytes != sizeof(*record) || ends->lane_count > RECORD_LANES_MAX ||
        bytes != record_length(ends))
        return fail_with(why, "its record is damaged: its length cannot be");
    if (ends->local_ranks < 1)
        return fail_with(why, "its record is damaged: that it runs on a node without processes "
                              "cannot be");
    for (uint32_t i = 0; i < ends->lane_count; i++)
        if (!is_lane(&ends->lanes[i]))
            return fail_with(why, "its record is damaged: what it says of its lanes cannot be");
    return true;
}

/* The record of `proc`: left at a lane, which costs no call of the runtime, or published. The
 * caller frees it. */
static int record_get(ompi_proc_t *proc, void **data, size_t *bytes)
{
    *data = malloc(MULTILANE_PUBLISHED_BYTES);
    *bytes = !*data ? 0 : lanes_published_read(proc, *data, MULTILANE_PUBLISHED_BYTES);
    if (*bytes != 0)
        return OPAL_SUCCESS;
    free(*data);
    return modex_recv("pml", "multilane", &proc->super.proc_name, data, bytes);
}

bool record_check(const void *data, size_t bytes, struct error_text *why)
{
    static const char *const of[] = {"no messages", "messages over some lanes", "all messages",
                                     "?"};
    struct record record = {.magic = ""};
    memcpy(&record, data, bytes < sizeof(record) ? bytes : sizeof(record));
    if (bytes < offsetof(struct record, window) + sizeof(record.window) ||
        memcmp(record.magic, MODEX_MAGIC, sizeof(record.magic)) != 0)
        return fail_with(why, "its record of %zu bytes is not one of Multilane's", bytes);
    if (record.wire_version != WIRE_VERSION)
        return fail_with(why,
                         "it speaks wire version %u and this process speaks %u; install one "
                         "Multilane on all nodes",
                         record.wire_version, WIRE_VERSION);
    if (record.byte_order != RECORD_BYTE_ORDER || record.pointer_bytes != sizeof(void *))
        return fail_with(why,
                         "its byte order (%08x) or pointer size (%u) is not that of this process "
                         "(%08x, %zu); Multilane needs equal architectures",
                         record.byte_order, record.pointer_bytes, RECORD_BYTE_ORDER,
                         sizeof(void *));
    if (record.features & ~RECORD_SUMS)
        return fail_with(why,
                         "it wants features (%08x) that this process does not have; install one "
                         "Multilane on all nodes",
                         record.features);
    if (record.features != parameters.sums)
        return fail_with(why,
                         "it makes sums of %s and this process of %s; give all processes the same "
                         "pml_multilane_verify, and verify in pml_multilane_lane_attr",
                         of[record.features], of[parameters.sums]);
    if (record.key_bytes > WIRE_KEY_MAX)
        return fail_with(why, "a lane of it has registration keys of %u bytes, more than %u",
                         record.key_bytes, WIRE_KEY_MAX);
    return ends_check(&record, bytes, why);
}

uint32_t record_pid(ompi_proc_t *proc)
{
    struct record record = {.pid = 0};
    void *data = NULL;
    size_t bytes = 0;
    if (record_get(proc, &data, &bytes) == OPAL_SUCCESS && data && record_check(data, bytes, NULL))
        memcpy(&record, data, bytes);
    free(data);
    return record.pid_namespace == host_namespace("pid") ? record.pid : 0;
}

/* Reads the record of `proc`, its window and its ends. False: prints why it cannot be used. */
static bool record_accepts(ompi_proc_t *proc, uint32_t *window, struct record_ends *ends)
{
    void *data = NULL;
    size_t bytes = 0;
    struct error_text why = {"it published no record of Multilane: it runs another PML, so it was "
                             "not started with --mca pml multilane"};
    bool good =
        record_get(proc, &data, &bytes) == OPAL_SUCCESS && data && record_check(data, bytes, &why);
    if (good) {
        memcpy(window, (char *) data + offsetof(struct record, window), sizeof(*window));
        memset(ends, 0, sizeof(*ends));
        memcpy(ends, (char *) data + offsetof(struct record, ends),
               bytes - offsetof(struct record, ends));
    } else {
        opal_output(0, "multilane: cannot talk to %s: %s.", compat_proc_name(&proc->super).text,
                    why.text);
    }
    free(data);
    return good;
}

struct contact_events contact_events;

static bool lanes_reach(struct peer *peer)
{
    bool reaches = peer_take_lanes(peer);
    if (!reaches)
        opal_output(0,
                    "multilane: no lane reaches %s; --mca btl must name a BTL that does, such as "
                    "self,shm,sock.",
                    compat_proc_name(&peer->proc->super).text);
    return reaches;
}

/* Most peers are as this process is. */
static bool peer_keep_ends(struct peer *peer, const struct record_ends *ends)
{
    free(peer->ends);
    peer->ends = NULL;
    if (memcmp(ends, &multilane.ends, sizeof(*ends)) == 0)
        return true;
    peer->ends = malloc(sizeof(*peer->ends));
    if (peer->ends)
        *peer->ends = *ends;
    else
        opal_output(
            0, "multilane: no memory for what rank %u says of its lanes: it cannot be reached.",
            peer->name.vpid);
    return peer->ends != NULL;
}

struct peer *peer_contact(opal_process_name_t name, ompi_proc_t *proc)
{
    struct peer *peer = peer_find(name);
    if (peer && (peer_is_reachable(peer) || peer_is_lost(peer)))
        return peer;
    if (name.jobid == multilane.me.jobid && name.vpid >= multilane.local_peer_count)
        return NULL;
    if (!proc)
        proc = (ompi_proc_t *) ompi_proc_for_name(name); /* which makes one, too */
    if (!proc)
        return NULL;

    multilane_lock();
    peer = peer_find(name);
    bool is_new = !peer;
    if (is_new)
        peer = peer_new(name, proc);
    if (peer && !peer_is_reachable(peer)) {
        peer->is_self = proc == ompi_proc_local_proc;
        peer->proc = proc;
        uint32_t window = multilane.window;
        struct record_ends ends = multilane.ends;
        /* Each of them reports why not. */
        if ((peer->is_self || record_accepts(proc, &window, &ends)) &&
            peer_keep_ends(peer, &ends) && lanes_have_all_uses(proc) && lanes_reach(peer)) {
            contact_events.contacted(peer, window);
            peer_reach(peer, true); /* messages may be sent from here on */
        }
        if (is_new)
            peer_list(peer);
    }
    multilane_unlock();
    return peer;
}

struct peer *peer_of_sender(const struct wire_base *base, const struct wire_name *name)
{
    if (OPAL_LIKELY(!(base->flags & WIRE_NAMED))) {
        if (OPAL_UNLIKELY(base->from >= multilane.local_peer_count))
            return NULL;
        struct peer *peer = atomic_load_explicit(&multilane.local_peers[base->from],
                                                 memory_order_acquire); /* peer_list */
        if (OPAL_LIKELY(peer && peer_is_reachable(peer)))
            return peer;
    }
    opal_process_name_t sender = {.jobid = multilane.me.jobid, .vpid = base->from};
    if (base->flags & WIRE_NAMED)
        sender = (opal_process_name_t){.jobid = name->jobid, .vpid = name->vpid};
    struct peer *peer = peer_find(sender);
    if (OPAL_LIKELY(peer && peer_is_reachable(peer)))
        return peer;
    ompi_proc_t *proc = NULL;
    if (base->flags & WIRE_NAMED) {
        /* Only known processes: others were not added by MPI, and looking up a name that no
         * process has might wait for ever. One look-up: Open MPI's is without a lock, and
         * another thread may be adding the process. */
        proc = (ompi_proc_t *) ompi_proc_lookup(sender);
        if (sender.jobid != multilane.me.jobid && !proc)
            return NULL;
    }
    peer = peer_contact(sender, proc);
    return peer && (peer_is_reachable(peer) || peer_is_lost(peer)) ? peer : NULL;
}
