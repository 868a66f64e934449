/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch points of this machine's lanes as text, for ompi_info: made without a job, at
 * registration. A profile has them all; where there is none, they are those that our lanes declare.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/lane/declared.h"
#include "common/model/number.h"
#include "lane/extension.h"
#include "wire/wire.h"
#include "peer/attributes.h"
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

/* A lane of one of our BTLs, as it declares itself, and as the user does. */
static void ours_add(struct text *text, const char *name)
{
    const struct multilane_extension *extension = lane_extension_named(name);
    struct declared_btl btl = {.name = name,
                               .can_send = true,
                               .can_send_immediately = true,
                               .can_get = true,
                               .can_put = true};
    struct multilane_lane_attributes declared;
    struct model_error complaint;
    struct model_lane lane;
    if (!extension || extension->attributes(NULL, NULL, &declared) < 0)
        return;
    btl.can_send_immediately = declared.short_max_bytes > 0;
    declared_attributes(&btl, &declared, &lane, &complaint);
    attributes_of_user(name, true, &lane);
    lane_add(text, &lane);
}

const char *class_switch_points(void)
{
    static const char *const ours[] = {"shm", "verbs"};
    static struct text text;
    const struct lane_file *profile = used_profile();
    text.length = 0;
    text.bytes[0] = '\0';
    /* Every process of every Open MPI job comes here, also where it does not use Multilane. */
    if (strcmp(program_invocation_short_name, "ompi_info") != 0)
        return "ompi_info shows them, and pml_multilane_explain those of a job";
    for (uint32_t i = 0; profile && i < profile->lane_count; i++)
        lane_add(&text, &profile->lanes[i]);
    for (size_t i = 0; !profile && i < sizeof(ours) / sizeof(ours[0]); i++)
        ours_add(&text, ours[i]);
    return text.bytes;
}
