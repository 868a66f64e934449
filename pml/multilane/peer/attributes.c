/* SPDX-License-Identifier: BSD-3-Clause */
/* Gathers the attributes of a lane, weakest source first: defaults and the BTL, measurements,
 * the user. */
#include "peer/attributes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compat/param.h"
#include "common/lane/attr.h"
#include "common/lane/declared.h"
#include "common/lane/stock_btl.h"
#include "common/model/number.h"
#include "peer/nic.h"
#include "peer/node_costs.h"
#include "peer/used_profile.h"
#include "base/multilane.h"
#include "base/parameters.h"

enum profile_placement attributes_placement(const struct peer *peer)
{
    if (!OPAL_PROC_ON_LOCAL_NODE(peer->proc->super.proc_flags))
        return PROFILE_HOST;
    return OPAL_PROC_ON_LOCAL_L3CACHE(peer->proc->super.proc_flags) ? PROFILE_CACHE : PROFILE_NODE;
}

/* Reports impossible values of a BTL once, not for each peer. */
static void say_complaint(const mca_btl_base_module_t *btl, const struct model_error *complaint)
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

static bool can_send_immediately(const struct lane *lane)
{
    return lane->plain_sendi != NULL;
}

static void attributes_of_ours(const struct lane *lane, struct model_lane *out)
{
    struct multilane_lane_attributes declared;
    struct model_error complaint;
    const struct declared_btl btl = {.name = lane_name(lane),
                                     .can_send = lane->flags & MCA_BTL_FLAGS_SEND,
                                     .can_send_immediately = can_send_immediately(lane),
                                     .can_get = lane->flags & MCA_BTL_FLAGS_GET,
                                     .can_put = lane->flags & MCA_BTL_FLAGS_PUT,
                                     .can_atomics = lane->flags & MCA_BTL_FLAGS_ATOMIC_FOPS};
    memset(&declared, 0, sizeof(declared));
    lane->extension->attributes(lane->btl, lane->endpoint, &declared);
    declared_attributes(&btl, &declared, out, &complaint);
    say_complaint(lane->btl, &complaint);
}

static void attributes_of_stock_btl(const struct lane *lane, struct model_lane *out)
{
    struct model_error complaint;
    const mca_btl_base_module_t *btl = lane->btl;
    const struct stock_btl stock = {
        .name = lane_name(lane),
        .bandwidth = btl->btl_bandwidth,
        .latency = btl->btl_latency,
        .can_send = lane->flags & MCA_BTL_FLAGS_SEND,
        .can_send_immediately = can_send_immediately(lane),
        .can_get = (lane->flags & MCA_BTL_FLAGS_GET) && btl->btl_get,
        .can_put = (lane->flags & MCA_BTL_FLAGS_PUT) && btl->btl_put,
        .can_atomics = lane->flags & MCA_BTL_FLAGS_ATOMIC_FOPS,
        .registers = btl->btl_register_mem != NULL,
        .eager_limit = btl->btl_eager_limit,
        .max_send_size = btl->btl_max_send_size,
        .short_max_bytes = btl->btl_eager_limit,
    };
    stock_btl_attributes(&stock, out, &complaint);
    say_complaint(btl, &complaint);
}

/* Names the lane after its device, as in "tcp:eth0", and sets card and distance. */
static void set_device(const struct lane *lane, struct model_lane *out)
{
    const char *colon = strchr(out->name, ':');
    const struct nic *device = nic_of(lane->btl, colon ? colon + 1 : "");
    if (!device)
        return;
    if (!colon && device->name[0])
        snprintf(out->name, sizeof(out->name), "%.7s:%s", lane_name(lane), device->name);
    out->card = device->card;
    out->distance = device->distance;
}

/* Applies the user's values again, which a BTL of ours has already declared: a profile must not
 * replace them. */
static void attributes_of_user(const struct lane *lane, struct model_lane *out)
{
    static const char *const keys[] = {"latency", "bandwidth", "overhead", "reg_cost",
                                       "reg_growth"};
    const char *device = strchr(out->name, ':');
    for (size_t i = 0; lane->extension && i < sizeof(keys) / sizeof(keys[0]); i++) {
        char variable[32], text[96];
        double value;
        snprintf(variable, sizeof(variable), "lane_%s", keys[i]);
        char *given = param_peek_string("btl", lane_name(lane), variable);
        if (given && number_parse_real(given, &value, NULL)) { /* not "auto" */
            /* 0 means infinite, as in btl.h. */
            bool is_infinite = strcmp(keys[i], "bandwidth") == 0 && value == 0;
            snprintf(text, sizeof(text), "%s:%s=%s", lane_name(lane), keys[i],
                     is_infinite ? "1e30" : given);
            attr_apply(text, lane_name(lane), NULL, out);
        }
        free(given);
    }
    attr_apply(parameters.lane_attr, lane_name(lane), device ? device + 1 : NULL, out);
}

/* By a profile; else, inside the node, at the start of the job. */
static void attributes_measured(enum profile_placement placement, struct model_lane *out)
{
    const struct startup_costs *costs = placement == PROFILE_HOST ? NULL : node_costs();
    if (!used_profile_apply(placement, out) && costs)
        startup_apply(costs, out);
}

static void limit(uint64_t *bytes, uint64_t most)
{
    if (*bytes > most)
        *bytes = most;
}

bool attributes_of_lane(const struct lane *lane, uint32_t group, struct model_lane *out)
{
    struct model_error error;
    if (lane->extension)
        attributes_of_ours(lane, out);
    else
        attributes_of_stock_btl(lane, out);
    set_device(lane, out);
    /* Measured are copies between two processes; not yet a lane of device memory alone. */
    if (out->reach & MODEL_MEMORY_HOST && !lane->peer->is_self)
        attributes_measured(attributes_placement(lane->peer), out);
    if (group)
        out->group = group;
    attributes_of_user(lane, out);
    if (out->short_max_bytes > EAGER_SHORT_MAX + WIRE_EAGER_HEADER_MAX)
        out->short_max_bytes = EAGER_SHORT_MAX + WIRE_EAGER_HEADER_MAX;
    if (lane->framed) { /* its largest message must hold the envelope, and fit other lanes */
        limit(&out->short_max_bytes, lane->largest);
        limit(&out->copied_max_bytes, lane->largest);
        limit(&out->zcopied_max_bytes, lane->largest);
        out->copy_growth_s_byte *= 2; /* into the frame that is kept, and out of it */
    }
    if (!lane->in_place)
        out->copy_growth_s_byte = 0;
    if (model_lane_check(out, &error))
        return true;
    opal_output(0, "multilane: %s.", error.text);
    return false;
}
