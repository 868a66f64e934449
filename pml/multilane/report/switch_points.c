/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch points of this machine's lanes as text, for ompi_info: made without a job, at
 * registration. A profile has them all; where there is none, they are those that our lanes declare.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "common/lane/declared.h"
#include "common/model/number.h"
#include "lane/extension.h"
#include "plan/attributes.h"
#include "plan/used_profile.h"
#include "base/parameters.h"
#include "plan/peer_class.h"

#define TEXT_CHARS 2048

/* "shm@cache: eager-short to 936, rndv-get above" */
static void lane_add(char text[TEXT_CHARS], const struct model_lane *lane)
{
    struct peer_class class = {.lane_count = 1, .lanes = (struct model_lane *) lane};
    struct plan_input input;
    struct model_error error;
    class_plan_input(&class, CLASS_CONTIGUOUS, &input);
    struct plan *plan = plan_build(&input, &error);
    if (!plan)
        return;
    text_more(text, TEXT_CHARS, "%s%s", text[0] ? "; " : "", lane->name);
    for (uint32_t i = 0; i < plan->entry_count; i++) {
        bool is_last = i + 1 == plan->entry_count;
        text_more(text, TEXT_CHARS, "%s%s%s", i ? ", " : ": ", plan->entries[i].protocol->name,
                  is_last ? " above" : " to ");
        if (!is_last)
            text_more(text, TEXT_CHARS, "%s", number_size(plan->entries[i].largest_bytes).text);
    }
    plan_free(plan);
}

/* A lane of one of our BTLs, as it declares itself, and as the user does. */
static void ours_add(char text[TEXT_CHARS], const char *name)
{
    const struct multilane_extension *extension = lane_extension_named(name);
    uint32_t can = MODEL_CAN_SEND | MODEL_CAN_GET | MODEL_CAN_PUT;
    struct multilane_lane_attributes declared;
    struct model_error complaint;
    struct model_lane lane;
    if (!extension || extension->attributes(NULL, NULL, &declared) < 0)
        return;
    can |= declared.short_max_bytes > 0 ? MODEL_CAN_SHORT : 0;
    declared_attributes(name, can, &declared, &lane, &complaint);
    attributes_of_user(name, true, &lane);
    lane_add(text, &lane);
}

const char *class_switch_points(void)
{
    static const char *const ours[] = {"shm", "verbs"};
    static char text[TEXT_CHARS];
    const struct lane_file *profile = used_profile();
    text[0] = '\0';
    /* Every process of every Open MPI job comes here, also where it does not use Multilane. */
    if (strcmp(program_invocation_short_name, "ompi_info") != 0)
        return "ompi_info shows them, and pml_multilane_explain those of a job";
    for (uint32_t i = 0; profile && i < profile->lane_count; i++)
        lane_add(text, &profile->lanes[i]);
    for (size_t i = 0; !profile && i < sizeof(ours) / sizeof(ours[0]); i++)
        ours_add(text, ours[i]);
    return text;
}
