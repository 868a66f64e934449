/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch points of a profile's lanes as text, for ompi_info: made without a job, at
 * registration. */
#include <stdio.h>
#include <string.h>

#include "common/model/number.h"
#include "peer/used_profile.h"
#include "base/parameters.h"
#include "peer/peer_class.h"

struct text {
    char bytes[2048];
    size_t length;
};

static void text_add(struct text *text, const char *piece)
{
    int length =
        snprintf(text->bytes + text->length, sizeof(text->bytes) - text->length, "%s", piece);
    text->length += (size_t) length;
    if (text->length >= sizeof(text->bytes))
        text->length = sizeof(text->bytes) - 1;
}

/* "shm@cache: eager-short to 936, rndv-get above" */
static void lane_add(struct text *text, const struct model_lane *lane)
{
    struct peer_class class = {.lane_count = 1, .lanes = (struct model_lane *) lane};
    struct plan_input input;
    struct model_error error;
    char size[NUMBER_SIZE_CHARS];
    class_plan_input(&class, CLASS_CONTIGUOUS, &input);
    struct plan *plan = plan_build(&input, &error);
    if (!plan)
        return;
    text_add(text, text->length ? "; " : "");
    text_add(text, lane->name);
    for (uint32_t i = 0; i < plan->entry_count; i++) {
        bool is_last = i + 1 == plan->entry_count;
        text_add(text, i ? ", " : ": ");
        text_add(text, plan->entries[i].protocol->name);
        text_add(text, is_last ? " above" : " to ");
        if (!is_last)
            text_add(text, number_print_size(plan->entries[i].largest_bytes, size));
    }
    plan_free(plan);
}

const char *class_switch_points(void)
{
    static struct text text;
    const struct lane_file *profile = used_profile();
    text.length = 0;
    text.bytes[0] = '\0';
    for (uint32_t i = 0; profile && i < profile->lane_count; i++)
        lane_add(&text, &profile->lanes[i]);
    return text.length ? text.bytes : "by the lanes' defaults: pml_multilane_explain shows them";
}
