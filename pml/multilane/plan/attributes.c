/* SPDX-License-Identifier: BSD-3-Clause */
/* Gathers the attributes of a lane, weakest source first: defaults and the BTL, measurements,
 * the user. */
#include "plan/costs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compat/param.h"
#include "common/lane/attr.h"
#include "common/lane/declared.h"
#include "common/model/number.h"
#include "lane/lane.h"
#include "base/multilane.h"
#include "base/parameters.h"
#include "common/lane/locality.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/base/mca_base_var_group.h"

/* Finds the network device of a BTL module, which Open MPI's interface does not tell. A BTL with
 * several devices registers a parameter for each and keeps it in the module: the one kept in
 * this module's btl_bandwidth, say btl_tcp_bandwidth_eth0, names eth0. */

static struct nic *devices;

/* What follows "bandwidth_" in the parameter's name, or null. */
static const char *device_in(const mca_base_var_t *variable, const mca_btl_base_module_t *btl)
{
    static const char prefix[] = "bandwidth_";
    if ((const void *) variable->mbv_storage != &btl->btl_bandwidth ||
        !variable->mbv_variable_name ||
        strncmp(variable->mbv_variable_name, prefix, sizeof(prefix) - 1) != 0)
        return NULL;
    return variable->mbv_variable_name + sizeof(prefix) - 1;
}

static void name_find(const mca_btl_base_module_t *btl, char *name, size_t size)
{
    const mca_base_component_t *component = &btl->btl_component->btl_version;
    const mca_base_var_group_t *group;
    int index = mca_base_var_group_find(component->mca_project_name, component->mca_type_name,
                                        component->mca_component_name);
    if (index < 0 || mca_base_var_group_get(index, &group) != OPAL_SUCCESS)
        return;
    size_t count = opal_value_array_get_size((opal_value_array_t *) &group->group_vars);
    for (size_t i = 0; i < count; i++) {
        const mca_base_var_t *variable;
        int item = OPAL_VALUE_ARRAY_GET_ITEM(&group->group_vars, int, i);
        if (mca_base_var_get(item, &variable) != OPAL_SUCCESS)
            continue;
        const char *found = device_in(variable, btl);
        if (found) {
            snprintf(name, size, "%s", found);
            return;
        }
    }
}

static void place_fill(struct nic *device)
{
    struct locality place;
    if (!device->name[0])
        return;
    device->link_bytes_s = locality_link(NULL, device->name);
    if (!locality_find(NULL, device->name, &place))
        return;
    device->is_on_bus = true;
    device->bus_bytes_s = locality_bus(NULL, device->name);
    device->card = place.card;
    device->distance = !locality_is_near(place.cpus);
}

/* The module's device, looked up once per module. `name`: what the BTL itself calls it, or
 * empty. With the component's lock held. */
static const struct nic *nic_of(const mca_btl_base_module_t *btl, const char *name)
{
    struct nic *device = devices;
    while (device && device->btl != btl)
        device = device->next;
    if (device || !(device = calloc(1, sizeof(*device))))
        return device;
    device->btl = btl;
    if (name[0])
        snprintf(device->name, sizeof(device->name), "%s", name);
    else
        name_find(btl, device->name, sizeof(device->name));
    place_fill(device);
    device->next = devices;
    devices = device;
    return device;
}

void nics_fini(void)
{
    while (devices) {
        struct nic *device = devices;
        devices = device->next;
        free(device);
    }
}

enum profile_placement attributes_placement(const struct peer *peer)
{
    if (!OPAL_PROC_ON_LOCAL_NODE(peer->proc->super.proc_flags))
        return PROFILE_HOST;
    bool is_near =
        OPAL_PROC_ON_LOCAL_L3CACHE(peer->proc->super.proc_flags) && !node_costs_are_apart();
    return is_near ? PROFILE_CACHE : PROFILE_NODE;
}

/* Reports impossible values of a BTL once, not for each peer. */
static void say_complaint(const mca_btl_base_module_t *btl, const struct error_text *complaint)
{
    static const mca_btl_base_module_t *named[MODEL_LANES_MAX];
    static unsigned count;
    if (!complaint->text[0])
        return;
    for (unsigned i = 0; i < count; i++)
        if (named[i] == btl)
            return;
    if (count < MODEL_LANES_MAX)
        named[count++] = btl;
    opal_output(0, "multilane: %s.", complaint->text);
}

/* What btl.h says of a lane; of one that sends at once, also that. */
static uint32_t abilities(uint32_t flags, bool sends_at_once)
{
    bool sends = flags & MCA_BTL_FLAGS_SEND;
    return (sends ? MODEL_CAN_SEND : 0) | (sends && sends_at_once ? MODEL_CAN_SHORT : 0) |
           (flags & MCA_BTL_FLAGS_GET ? MODEL_CAN_GET : 0) |
           (flags & MCA_BTL_FLAGS_PUT ? MODEL_CAN_PUT : 0) |
           (flags & MCA_BTL_FLAGS_ATOMIC_FOPS ? MODEL_CAN_ATOMICS : 0);
}

/* Of the flags of a module those that it has a function for. */
static uint32_t flags_kept(const mca_btl_base_module_t *btl, uint32_t flags)
{
    return flags & ~(uint32_t) ((btl->btl_get ? 0 : MCA_BTL_FLAGS_GET) |
                                (btl->btl_put ? 0 : MCA_BTL_FLAGS_PUT));
}

static void attributes_of_ours(const struct lane *lane, struct model_lane *out)
{
    struct multilane_lane_attributes declared;
    struct error_text complaint;
    memset(&declared, 0, sizeof(declared));
    lane->extension->attributes(lane->btl, lane->endpoint, &declared);
    declared_attributes(lane_name(lane), abilities(lane->flags, lane->sendi), &declared, out,
                        &complaint);
    say_complaint(lane->btl, &complaint);
}

/* What the BTL says of its lanes, the same toward all peers. */
static void attributes_of_stock_btl(mca_btl_base_module_t *btl, uint32_t flags, bool sends_at_once,
                                    struct model_lane *out)
{
    struct error_text complaint;
    const struct stock_btl stock = {.name = lane_name_of(btl),
                                    .bandwidth = btl->btl_bandwidth,
                                    .latency = btl->btl_latency,
                                    .can = abilities(flags_kept(btl, flags), sends_at_once),
                                    .registers = btl->btl_register_mem != NULL,
                                    .eager_limit = btl->btl_eager_limit,
                                    .max_send_size = btl->btl_max_send_size};
    stock_btl_attributes(&stock, out, &complaint);
    say_complaint(btl, &complaint);
    if (!stock_btl_knows_no_network(stock.name, stock.bandwidth))
        return;
    const struct nic *device = nic_of(btl, "");
    stock_btl_network(device ? device->link_bytes_s : 0, out);
}

/* What a port carries is the most that any way over it does; its bus may carry less. */
static double port_bytes_s(const struct nic *device, const struct model_lane *lane)
{
    double most = 0;
    for (int way = 0; way < MODEL_WAYS; way++)
        for (uint32_t i = 0; i < lane->cost[way].range_count; i++)
            most = fmax(most, lane->cost[way].ranges[i].bandwidth_bytes_s);
    return device->bus_bytes_s > 0 ? fmin(most, device->bus_bytes_s) : most;
}

/* Names the lane after its device, as in "tcp:eth0", and sets card, distance and what is shared. */
static void set_device(const struct lane *lane, struct model_lane *out)
{
    const char *colon = strchr(out->name, ':');
    const struct nic *device = nic_of(lane->btl, colon ? colon + 1 : "");
    if (!device)
        return;
    if (!colon && device->name[0])
        snprintf(out->name, sizeof(out->name), "%.7s:%s", lane_name(lane), device->name);
    if (device->is_on_bus && (out->reach & MODEL_MEMORY_HOST))
        out->shared_bytes_s = port_bytes_s(device, out);
    out->card = device->card;
    out->distance = device->distance;
}

void attributes_of_user(const char *btl, bool is_ours, struct model_lane *out)
{
    const char *device = strchr(out->name, ':');
    for (int i = 0; is_ours && i < MODEL_ATTRIBUTES; i++) {
        const struct words variable = words_of("lane_%s", model_attributes[i].user_key);
        char *given = param_peek_string("btl", btl, variable.text);
        if (given)
            attr_parameter_apply(i, given, out);
        free(given);
    }
    attr_apply(parameters.lane_attr, btl, device ? device + 1 : NULL, out);
}

/* Before any peer is known. */
static void module_name(mca_btl_base_module_t *btl, struct model_lane *out)
{
    const struct nic *device = nic_of(btl, "");
    if (device && device->name[0])
        snprintf(out->name, sizeof(out->name), "%.7s:%s", lane_name_of(btl), device->name);
}

static void module_of_user(mca_btl_base_module_t *btl, struct model_lane *out)
{
    attributes_of_user(lane_name_of(btl), lane_extension_of(btl) != NULL, out);
}

void attributes_of_user_alone(mca_btl_base_module_t *btl, struct model_lane *out)
{
    model_lane_init(out, lane_name_of(btl));
    module_name(btl, out);
    module_of_user(btl, out);
}

/* --- the other end ---------------------------------------------------------------------------- */

/* What a plan takes the worse of, as one number a BTL: of its first lane for messages and the last
 * range of sizes. */
static struct record_lane record_of_lane(const char *name, const struct model_lane *lane)
{
    struct record_lane record = {.name = ""};
    snprintf(record.name, sizeof(record.name), "%.15s", name);
    for (int way = MODEL_WAYS - 1; way >= 0; way--) {
        const struct model_lane_cost *cost = &lane->cost[way];
        if (!cost->range_count)
            continue;
        const struct model_lane_range *range = &cost->ranges[cost->range_count - 1];
        record.overhead_s = range->overhead_send_s + range->overhead_receive_s;
        record.reg_cost_s = fmax(record.reg_cost_s, range->reg_cost_s);
        record.reg_growth_s_byte = fmax(record.reg_growth_s_byte, range->reg_growth_s_byte);
        if (isfinite(range->bandwidth_bytes_s))
            record.bandwidth_bytes_s = fmax(record.bandwidth_bytes_s, range->bandwidth_bytes_s);
    }
    return record;
}

/* Where lanes of one BTL differ, the slowest counts; but the fastest link. */
static void record_join(struct record_lane *record, const struct record_lane *more)
{
    record->overhead_s = fmax(record->overhead_s, more->overhead_s);
    record->reg_cost_s = fmax(record->reg_cost_s, more->reg_cost_s);
    record->reg_growth_s_byte = fmax(record->reg_growth_s_byte, more->reg_growth_s_byte);
    record->bandwidth_bytes_s = fmax(record->bandwidth_bytes_s, more->bandwidth_bytes_s);
}

/* A BTL of ours does not say what a lane is like before it knows the peer; a profile and the user
 * do. Both ends run one release, so what it declares is the same at both. */
static void describe_module(mca_btl_base_module_t *btl, struct model_lane *out)
{
    model_lane_init(out, lane_name_of(btl));
    if (lane_extension_of(btl)) {
        const struct model_lane_range nothing = {.bandwidth_bytes_s = INFINITY};
        model_lane_set_cost(out, MODEL_WAYS, &nothing);
    } else {
        attributes_of_stock_btl(btl, btl->btl_flags, false, out);
    }
    module_name(btl, out);
    used_profile_apply(PROFILE_HOST, out);
    module_of_user(btl, out);
}

void attributes_publish(struct record_ends *ends)
{
    memset(ends, 0, sizeof(*ends));
    ends->local_ranks = (uint32_t) ompi_process_info.num_local_peers + 1;
    for (mca_btl_base_module_t *btl = btl_next(NULL); btl; btl = btl_next(btl)) {
        struct model_lane lane;
        uint32_t i = 0;
        if (strcmp(lane_name_of(btl), "self") == 0)
            continue;
        describe_module(btl, &lane);
        const struct record_lane record = record_of_lane(lane_name_of(btl), &lane);
        while (i < ends->lane_count && strcmp(ends->lanes[i].name, record.name) != 0)
            i++;
        if (i < ends->lane_count)
            record_join(&ends->lanes[i], &record);
        else if (i < RECORD_LANES_MAX)
            ends->lanes[ends->lane_count++] = record;
    }
}

static const struct record_lane *record_find(const struct record_ends *ends, const char *name)
{
    for (uint32_t i = 0; i < ends->lane_count; i++)
        if (strcmp(ends->lanes[i].name, name) == 0)
            return &ends->lanes[i];
    return NULL;
}

/* The lane `name` (of a BTL) costs what it does at the worse of its two ends. */
static void attributes_join(const struct record_ends *mine, const struct record_ends *theirs,
                            const char *name, struct model_lane *lane)
{
    const struct record_lane *here = record_find(mine, name), *there = record_find(theirs, name);
    if (!here || !there)
        return;
    double overhead_s = fmax(there->overhead_s - here->overhead_s, 0);
    double cost_s = fmax(there->reg_cost_s - here->reg_cost_s, 0);
    double growth_s_byte = fmax(there->reg_growth_s_byte - here->reg_growth_s_byte, 0);
    bool is_slower =
        there->bandwidth_bytes_s > 0 && there->bandwidth_bytes_s < here->bandwidth_bytes_s;
    for (int way = 0; way < MODEL_WAYS; way++)
        for (uint32_t i = 0; i < lane->cost[way].range_count; i++) {
            struct model_lane_range *range = &lane->cost[way].ranges[i];
            range->overhead_receive_s += overhead_s;
            range->reg_cost_s += cost_s;
            range->reg_growth_s_byte += growth_s_byte;
            if (is_slower)
                range->bandwidth_bytes_s = fmin(range->bandwidth_bytes_s, there->bandwidth_bytes_s);
        }
    if (is_slower && lane->shared_bytes_s > there->bandwidth_bytes_s)
        lane->shared_bytes_s = there->bandwidth_bytes_s;
}

/* On another node the worse of both ends counts, of the processes that share a device too. */
static void attributes_of_both_ends(const struct lane *lane, struct model_lane *out)
{
    const struct record_ends *theirs = lane->peer->ends;
    struct model_sharers sharers = {.processes = multilane.ends.local_ranks,
                                    .same_node = attributes_placement(lane->peer) != PROFILE_HOST};
    if (theirs && !sharers.same_node) {
        attributes_join(&multilane.ends, theirs, lane_name(lane), out);
        if (theirs->local_ranks > sharers.processes)
            sharers.processes = theirs->local_ranks;
    }
    model_lane_share(out, sharers);
}

/* By a profile; else, inside the node, at the start of the job. */
static void attributes_measured(const struct lane *lane, struct model_lane *out)
{
    enum profile_placement placement = attributes_placement(lane->peer);
    if (used_profile_apply(placement, out) || placement == PROFILE_HOST)
        return;
    if (!btl_is_of_sockets(lane->btl))
        startup_apply(node_costs(), out);
    else if (lane->extension ||
             stock_btl_knows_no_network(lane_name(lane), lane->btl->btl_bandwidth))
        declared_inside_node(!lane->extension, out);
}

/* To another node a connection's round trip is better than a default. */
static void round_trip_apply(const struct lane *lane, struct model_lane *out)
{
    for (int way = 0; lane->round_trip_s > 0 && way < MODEL_WAYS; way++) {
        if (out->source[way][0][MODEL_LATENCY] <= MODEL_SOURCE_MEASURED)
            continue;
        for (uint32_t i = 0; i < out->cost[way].range_count; i++)
            out->cost[way].ranges[i].latency_s = (double) lane->round_trip_s / 2;
        model_lane_set_source(out, (enum model_way) way, MODEL_LATENCY, MODEL_SOURCE_MEASURED);
    }
}

static void limit(uint64_t *bytes, uint64_t most)
{
    if (*bytes > most)
        *bytes = most;
}

bool attributes_of_lane(const struct lane *lane, uint32_t group, struct model_lane *out)
{
    struct error_text error;
    if (lane->extension)
        attributes_of_ours(lane, out);
    else
        attributes_of_stock_btl(lane->btl, lane->flags, lane->sendi, out);
    set_device(lane, out);
    if (!(out->reach & MODEL_MEMORY_HOST))
        device_costs_apply(out, lane->peer->is_self);
    else if (!lane->peer->is_self) /* measured are copies between two processes */
        attributes_measured(lane, out);
    round_trip_apply(lane, out);
    if (group)
        out->group = group;
    attributes_of_user(lane_name(lane), lane->extension != NULL, out);
    attributes_of_both_ends(lane, out);
    if (lane->returns || lane->sums) { /* its largest message must fit other lanes, or its sum */
        limit(&out->short_max_bytes, lane->largest);
        limit(&out->copied_max_bytes, lane->largest);
        limit(&out->zcopied_max_bytes, lane->largest);
    }
    if (!lane->in_place)
        out->copy_growth_s_byte = 0;
    if (model_lane_check(out, &error))
        return true;
    opal_output(0, "multilane: %s.", error.text);
    return false;
}
