/* SPDX-License-Identifier: BSD-3-Clause */
/* The input of a plan: its defaults, its checks, and forced protocols as text. */
#include "common/model/plan_input.h"

#include <string.h>

#include "common/model/number.h"

void plan_input_init(struct plan_input *input)
{
    memset(input, 0, sizeof *input);
    input->around.buffer = (struct model_buffer){.memory = MODEL_MEMORY_HOST, .pieces = 1};
    input->around.bias = MODEL_BIAS_DEFAULT;
    for (int i = 1; i < MODEL_MEMORIES; i++)
        input->around.copy[i].fixed_s = -1; /* until a driver is there that copies it */
}

static bool check_surroundings(const struct model_surroundings *around, struct error_text *error)
{
    if (!(around->bias > 0 && around->bias <= MODEL_BIAS_MAX))
        return fail_with(error, "bias = %g is not a number above 0 and up to 100", around->bias);
    for (int i = 0; i < MODEL_MEMORIES; i++)
        if (!(around->copy[i].fixed_s <= 1e9) ||
            !(around->copy[i].growth_s_byte >= 0 && around->copy[i].growth_s_byte <= 1e9))
            return fail_with(error, "copying %s memory: %g s and %g s a byte are no times",
                             model_memory_name(UINT32_C(1) << i), around->copy[i].fixed_s,
                             around->copy[i].growth_s_byte);
    for (uint32_t i = 0; i < around->groups.count; i++) {
        const struct model_group *group = &around->groups.list[i];
        if (!(group->bandwidth_bytes_s >= 0)) /* 0: it was not measured */
            return fail_with(error, "group %u: bandwidth = %g is below 0", (unsigned) group->id,
                             group->bandwidth_bytes_s);
    }
    return true;
}

bool plan_input_check(const struct plan_input *input, struct error_text *error)
{
    if (!input->lane_count || input->lane_count > MODEL_LANES_MAX)
        return fail_with(error, "a plan is made of 1 to %d lanes, not of %u", MODEL_LANES_MAX,
                         (unsigned) input->lane_count);
    for (uint32_t i = 0; i < input->override_count; i++)
        if (input->overrides[i].protocol_index >= MODEL_PROTOCOLS)
            return fail_with(error, "protocol %u is forced, but the table has %u",
                             (unsigned) input->overrides[i].protocol_index,
                             (unsigned) MODEL_PROTOCOLS);
    for (uint32_t i = 0; i < input->lane_count; i++)
        if (!model_lane_check(&input->lanes[i], error))
            return false;
    return check_surroundings(&input->around, error);
}

/* --- overrides as text ------------------------------------------------------------------------ */

/* One piece between commas: NAME, NAME:LO-HI, or LO-HI for the name before. */
static bool override_parse(char *piece, int *protocol, struct plan_override *override,
                           struct error_text *error)
{
    char *range = strchr(piece, ':');
    bool named = range || *protocol < 0 || piece[0] < '0' || piece[0] > '9';
    if (range)
        *range++ = 0;
    if (named) {
        *protocol = model_protocol_find(piece, error);
        if (*protocol < 0)
            return false;
    } else {
        range = piece;
    }
    override->protocol_index = (uint32_t) *protocol;
    override->first_bytes = 0;
    override->last_bytes = UINT64_MAX;
    return !range ||
           number_parse_range(range, &override->first_bytes, &override->last_bytes, error);
}

bool plan_overrides_parse(const char *text, struct plan_override overrides[PLAN_OVERRIDES_MAX],
                          uint32_t *count, struct error_text *error)
{
    char copy[512];
    int protocol = -1;
    uint32_t read = 0;
    if (strlen(text) >= sizeof copy)
        return fail_with(error, "a list of protocols of %zu characters is too long", strlen(text));
    *count = 0;
    if (!strcmp(text, "auto"))
        return true;
    memcpy(copy, text, strlen(text) + 1);
    for (char *piece = copy, *next; piece; piece = next) {
        next = strchr(piece, ',');
        if (next)
            *next++ = 0;
        if (read == PLAN_OVERRIDES_MAX)
            return fail_with(error, "more than %d forced ranges", PLAN_OVERRIDES_MAX);
        if (!override_parse(piece, &protocol, &overrides[read++], error))
            return false;
    }
    *count = read;
    return true;
}
