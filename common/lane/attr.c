/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the user's attributes of lanes. */
#include "common/lane/attr.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/lane/lane_file.h"
#include "common/model/number.h"

/* Larger ones are the product's own. */
#define GROUP_MAX 65535

/* One "key=value" of one lane, cut out of the text. */
struct item {
    char btl[48];
    char device[64]; /* empty: every device */
    char key[32];
    char value[48];
};

/* Calls `visit` for each key=value; false at the first that is malformed or that it refuses. */
static bool items_walk(const char *text,
                       bool (*visit)(const struct item *, void *, struct model_error *),
                       void *context, struct model_error *error);

/* Copies up to `end`; false if it does not fit or is empty. */
static bool cut(char *to, size_t room, const char *from, const char *end)
{
    size_t length = (size_t) (end - from);
    if (length == 0 || length >= room)
        return false;
    memcpy(to, from, length);
    to[length] = '\0';
    return true;
}

static const char *lane_end(const char *text)
{
    return text + strcspn(text, ";");
}

/* Splits "BTL[:device]:" off; returns where the keys begin, or null. */
static const char *read_name(const char *text, const char *end, struct item *item)
{
    const char *equals = memchr(text, '=', (size_t) (end - text));
    if (!equals)
        return NULL;
    const char *keys = equals;
    while (keys > text && keys[-1] != ':')
        keys--;
    if (keys == text)
        return NULL;
    const char *name_end = keys - 1;
    const char *colon = memchr(text, ':', (size_t) (name_end - text));
    item->device[0] = '\0';
    if (!colon)
        return cut(item->btl, sizeof(item->btl), text, name_end) ? keys : NULL;
    if (!cut(item->btl, sizeof(item->btl), text, colon) ||
        !cut(item->device, sizeof(item->device), colon + 1, name_end))
        return NULL;
    return keys;
}

static bool items_walk(const char *text,
                       bool (*visit)(const struct item *, void *, struct model_error *),
                       void *context, struct model_error *error)
{
    while (text && *text) {
        struct item item;
        const char *end = lane_end(text);
        const char *at = read_name(text, end, &item);
        if (!at)
            return model_fail(error, "\"%.*s\" is not BTL[:device]:key=value,...",
                              (int) (end - text), text);
        while (at < end) {
            const char *stop = memchr(at, ',', (size_t) (end - at));
            if (!stop)
                stop = end;
            const char *equals = memchr(at, '=', (size_t) (stop - at));
            if (!equals || !cut(item.key, sizeof(item.key), at, equals) ||
                !cut(item.value, sizeof(item.value), equals + 1, stop))
                return model_fail(error, "\"%.*s\" is not key=value", (int) (stop - at), at);
            if (!visit(&item, context, error))
                return false;
            at = stop < end ? stop + 1 : end;
        }
        text = *end ? end + 1 : end;
    }
    return true;
}

/* The user's keys of the table of attributes, and the group of lanes that share what carries them.
 */
static bool set_value(struct model_lane *lane, const char *key, double value)
{
    bool is_known = false;
    if (strcmp(key, "group") == 0) {
        lane->group = (uint32_t) value;
        return true;
    }
    if (strcmp(key, "shared") == 0) {
        lane->shared_bytes_s = value;
        return true;
    }
    if (strcmp(key, "bandwidth") == 0) {
        lane->shared_bytes_s = 0; /* what the user says counts, until it says more */
        lane->cost[MODEL_BY_BOTH].range_count = 0; /* both ends: as one beside the other */
        if (value >= LANE_FILE_BANDWIDTH_MOST)
            value = INFINITY; /* as in a profile */
    }
    if (strncmp(key, "reg_", strlen("reg_")) == 0)
        lane->reg_cached_s = -1; /* what the user says counts, cache or not */
    for (int way = 0; way < MODEL_WAYS; way++)
        for (uint32_t i = 0; i < lane->cost[way].range_count; i++)
            is_known = model_attribute_set(&lane->cost[way].ranges[i], key, value);
    return is_known;
}

static void set_source(struct model_lane *lane, const char *key)
{
    for (int i = 0; i < MODEL_ATTRIBUTES; i++)
        if (strcmp(key, model_attributes[i].user_key) == 0)
            model_lane_set_source(lane, MODEL_WAYS, (enum model_attribute) i, MODEL_SOURCE_USER);
}

static bool refuse_key(const struct item *item, struct model_error *error)
{
    char known[160] = "";
    for (int i = 0; i < MODEL_ATTRIBUTES; i++)
        if (!model_attribute_shares_key(i)) {
            size_t length = strlen(known);
            snprintf(known + length, sizeof(known) - length, "%s, ", model_attributes[i].user_key);
        }
    return model_fail(error, "%s: \"%s\" is none of %sgroup, shared, use", item->btl, item->key,
                      known);
}

static bool item_check(const struct item *item, void *context, struct model_error *error)
{
    struct model_lane probe;
    struct model_error why = {""};
    double value;
    (void) context;
    if (strcmp(item->key, "use") == 0)
        return model_use_find(item->value, &probe.use) ||
               model_fail(error, "%s: use=%s: it is eager, rndv or both", item->btl, item->value);
    model_lane_init(&probe, item->btl);
    model_lane_set_cost(&probe, MODEL_BY_SEND,
                        &(struct model_lane_range){.bandwidth_bytes_s = INFINITY});
    if (!set_value(&probe, item->key, 0))
        return refuse_key(item, error);
    if (!number_parse_real(item->value, &value, &why))
        return model_fail(error, "%s: %s=%s: %s", item->btl, item->key, item->value, why.text);
    bool is_bandwidth = strcmp(item->key, "bandwidth") == 0 || strcmp(item->key, "shared") == 0;
    if (value <= 0 && is_bandwidth)
        return model_fail(error, "%s: %s=%s: it must be above 0", item->btl, item->key,
                          item->value);
    if (strcmp(item->key, "group") == 0 &&
        (!(value >= 0 && value <= GROUP_MAX) || value != (uint32_t) value))
        return model_fail(error, "%s: group=%s: it is a number from 0 to %d", item->btl,
                          item->value, GROUP_MAX);
    set_value(&probe, item->key, value);
    if (!model_lane_check(&probe, &why))
        return model_fail(error, "%s: %s=%s cannot be: %.150s", item->btl, item->key, item->value,
                          why.text);
    return true;
}

bool attr_check(const char *text, struct model_error *error)
{
    return items_walk(text, item_check, NULL, error);
}

struct apply {
    const char *btl;
    const char *device;
    struct model_lane *lane;
    bool shares; /* now what is shared, which a bandwidth before or behind it does not undo */
};

static bool item_apply(const struct item *item, void *context, struct model_error *error)
{
    const struct apply *apply = context;
    double value;
    (void) error;
    if (strcmp(item->btl, apply->btl) != 0 ||
        (item->device[0] && (!apply->device || strcmp(item->device, apply->device) != 0)) ||
        (strcmp(item->key, "shared") == 0) != apply->shares)
        return true;
    if (strcmp(item->key, "use") == 0)
        (void) model_use_find(item->value, &apply->lane->use);
    else if (number_parse_real(item->value, &value, NULL) &&
             set_value(apply->lane, item->key, value))
        set_source(apply->lane, item->key);
    return true;
}

void attr_apply(const char *text, const char *btl, const char *device, struct model_lane *lane)
{
    struct apply apply = {.btl = btl, .device = device, .lane = lane};
    items_walk(text, item_apply, &apply, NULL);
    apply.shares = true;
    items_walk(text, item_apply, &apply, NULL);
}
