/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the user's attributes of lanes. */
#include "common/lane/attr.h"

#include <string.h>

#include "common/lane/lane_keys.h"
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

/* Calls `visit` for each key=value; false at the first that is malformed or that it refuses. */
static bool items_walk(const char *text,
                       bool (*visit)(const struct item *, void *, struct model_error *),
                       void *context, struct model_error *error)
{
    while (text && *text) {
        struct item item;
        const char *end = text + strcspn(text, ";");
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

static void set_attributes(struct model_lane *lane, const struct attribute_values *read)
{
    for (int i = 0; i < MODEL_ATTRIBUTES; i++) {
        if (!read->is_given[i])
            continue;
        for (int way = 0; way < MODEL_WAYS; way++)
            for (uint32_t j = 0; j < lane->cost[way].range_count; j++)
                if (read->way == MODEL_WAYS || read->way == (enum model_way) way)
                    *model_attribute_in(&lane->cost[way].ranges[j], i) = read->values[i];
        model_lane_set_source(lane, read->way, (enum model_attribute) i, MODEL_SOURCE_USER);
    }
    if (read->is_given[MODEL_BANDWIDTH])
        lane->shared_bytes_s = 0; /* what the user says counts, until it says more */
    if (read->is_given[MODEL_BANDWIDTH] && read->way == MODEL_WAYS)
        lane->cost[MODEL_BY_BOTH].range_count = 0; /* both ends: as one beside the other */
    if (read->is_given[MODEL_REG_COST] || read->is_given[MODEL_REG_GROWTH])
        lane->reg_cached_s = -1; /* what the user says counts, cache or not */
}

/* The keys of the table of attributes, and of those of a lane what is the user's to say. */
static bool lane_set(struct model_lane *lane, const char *name, const char *value,
                     struct model_error *why)
{
    struct attribute_values read;
    uint64_t group;
    if (attribute_is_key(name)) {
        if (!attribute_read(name, value, &read, why))
            return false;
        set_attributes(lane, &read);
        return true;
    }
    if (strcmp(name, "use") == 0 || strcmp(name, "shared") == 0)
        return key_read(key_find(lane_keys, name), value, lane, why);
    if (strcmp(name, "group") != 0)
        return model_fail(why,
                          "there is no such key; it is latency, bandwidth, overhead, reg_cost, "
                          "reg_growth, group, shared or use");
    if (!number_parse_count(value, 0, GROUP_MAX, &group, why))
        return false;
    lane->group = (uint32_t) group;
    return true;
}

static bool value_check(const char *name, const char *value, struct model_error *why)
{
    struct model_lane probe = {.name = ""};
    return lane_set(&probe, name, value, why);
}

static bool item_check(const struct item *item, void *context, struct model_error *error)
{
    struct model_error why;
    (void) context;
    return value_check(item->key, item->value, &why) ||
           model_fail(error, "%s: %s=%s: %.150s", item->btl, item->key, item->value, why.text);
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
    (void) error;
    if (strcmp(item->btl, apply->btl) == 0 &&
        (!item->device[0] || (apply->device && strcmp(item->device, apply->device) == 0)) &&
        (strcmp(item->key, "shared") == 0) == apply->shares)
        (void) lane_set(apply->lane, item->key, item->value, NULL);
    return true;
}

void attr_apply(const char *text, const char *btl, const char *device, struct model_lane *lane)
{
    struct apply apply = {.btl = btl, .device = device, .lane = lane};
    items_walk(text, item_apply, &apply, NULL);
    apply.shares = true;
    items_walk(text, item_apply, &apply, NULL);
}

/* --- btl_NAME_lane_* -------------------------------------------------------------------------- */

/* As in btl.h a bandwidth of 0 is an infinite one. */
static const char *parameter_value(int attribute, const char *text)
{
    double value;
    bool is_zero = number_parse_real(text, &value, NULL) && value == 0;
    return attribute == MODEL_BANDWIDTH && is_zero ? "1e30" : text;
}

bool attr_parameters_check(const struct attr_parameters *parameters, const char *btl,
                           struct model_error *error)
{
    for (int i = 0; i < MODEL_ATTRIBUTES; i++) {
        const char *key = model_attributes[i].user_key, *text = parameters->texts[i];
        struct model_error why;
        if (text && strcmp(text, "auto") && !value_check(key, parameter_value(i, text), &why))
            return model_fail(error, "btl_%s_lane_%s is \"%.64s\": %.150s; give another, or auto.",
                              btl, key, text, why.text);
    }
    return true;
}

void attr_parameter_apply(int attribute, const char *text, struct model_lane *lane)
{
    if (strcmp(text, "auto"))
        (void) lane_set(lane, model_attributes[attribute].user_key,
                        parameter_value(attribute, text), NULL);
}
