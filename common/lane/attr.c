/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the user's attributes of lanes. */
#include "common/lane/attr.h"

#include <stdio.h>
#include <string.h>

#include "common/lane/lane_keys.h"
#include "common/model/number.h"

/* Larger ones are the product's own. */
#define GROUP_MAX 65535

#define TEXT_CHARS_MAX 4096

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
                     struct error_text *why)
{
    struct attribute_values read;
    uint64_t group;
    if (attribute_is_key(name)) {
        if (!attribute_read(name, value, &read, why))
            return false;
        set_attributes(lane, &read);
        return true;
    }
    if (strcmp(name, "use") == 0 || strcmp(name, "shared") == 0 || strcmp(name, "verify") == 0)
        return key_read(key_find(lane_keys, name), value, lane, why);
    if (strcmp(name, "group") != 0)
        return fail_with(why, "there is no such key; it is latency, bandwidth, overhead (or its "
                              "parts overhead_send, overhead_receive), reg_cost or reg_growth, "
                              "each also with send_, get_, put_ or both_ before it, group, "
                              "shared, use or verify");
    if (!number_parse_count(value, 0, GROUP_MAX, &group, why))
        return false;
    lane->group = (uint32_t) group;
    return true;
}

static bool value_check(const char *name, const char *value, struct error_text *why)
{
    struct model_lane probe = {.name = ""};
    return lane_set(&probe, name, value, why);
}

/* Whom the text is read for. */
struct reader {
    const char *btl; /* null: only whether it is well formed */
    const char *device;
    struct model_lane *lane;
    bool shares; /* now what is shared, which a bandwidth before or behind it does not undo */
};

static bool item_read(const struct reader *reader, const char *btl, const char *device,
                      const char *key, const char *value, struct error_text *error)
{
    struct error_text why;
    if (!reader->btl)
        return value_check(key, value, &why) ||
               fail_with(error, "%s: %s=%s: %.250s", btl, key, value, why.text);
    if (strcmp(btl, reader->btl) == 0 &&
        (!device || (reader->device && strcmp(device, reader->device) == 0)) &&
        (strcmp(key, "shared") == 0) == reader->shares)
        (void) lane_set(reader->lane, key, value, NULL);
    return true;
}

/* "BTL[:device]:key=value,...", which is taken apart. */
static bool items_read(const struct reader *reader, char *text, struct error_text *error)
{
    char *equals = strchr(text, '=');
    char *keys = equals ? memrchr(text, ':', (size_t) (equals - text)) : NULL;
    char *device = keys ? memchr(text, ':', (size_t) (keys - text)) : NULL;
    if (!keys || keys == text || device == text || (device && device + 1 == keys))
        return fail_with(error, "\"%s\" is not BTL[:device]:key=value,...", text);
    *keys++ = '\0';
    if (device)
        *device++ = '\0';
    while (keys && *keys) {
        char *key = strsep(&keys, ","), *value = strchr(key, '=');
        if (!value || value == key || !value[1])
            return fail_with(error, "\"%s\" is not key=value", key);
        *value++ = '\0';
        if (!item_read(reader, text, device, key, value, error))
            return false;
    }
    return true;
}

static bool text_read(const struct reader *reader, const char *text, struct error_text *error)
{
    char copy[TEXT_CHARS_MAX], *rest = copy;
    if (snprintf(copy, sizeof(copy), "%s", text ? text : "") >= TEXT_CHARS_MAX)
        return fail_with(error, "it is longer than %d characters", TEXT_CHARS_MAX - 1);
    while (rest && *rest)
        if (!items_read(reader, strsep(&rest, ";"), error))
            return false;
    return true;
}

bool attr_check(const char *text, struct error_text *error)
{
    return text_read(&(struct reader){.btl = NULL}, text, error);
}

void attr_apply(const char *text, const char *btl, const char *device, struct model_lane *lane)
{
    struct reader reader = {.btl = btl, .device = device, .lane = lane};
    (void) text_read(&reader, text, NULL);
    reader.shares = true;
    (void) text_read(&reader, text, NULL);
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
                           struct error_text *error)
{
    for (int i = 0; i < MODEL_ATTRIBUTES; i++) {
        const char *key = model_attributes[i].user_key, *text = parameters->texts[i];
        struct error_text why;
        if (text && strcmp(text, "auto") && !value_check(key, parameter_value(i, text), &why))
            return fail_with(error, "btl_%s_lane_%s is \"%.64s\": %.150s; give another, or auto.",
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
