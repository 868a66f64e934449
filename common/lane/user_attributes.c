/* SPDX-License-Identifier: BSD-3-Clause */
/* What the user says of our own lanes. */
#include "common/lane/user_attributes.h"

#include <string.h>

#include "common/model/number.h"

bool user_attributes_read(struct user_attributes *user, const char *btl, struct model_error *error)
{
    for (int i = 0; i < MODEL_ATTRIBUTES; i++) {
        const char *key = model_attributes[i].user_key, *text = user->texts[i];
        struct model_error why;
        user->values[i] = -1;
        if (!text || !strcmp(text, "auto"))
            continue;
        if (!number_parse_real(text, &user->values[i], NULL))
            return model_fail(error,
                              "btl_%s_lane_%s is \"%.64s\", which is not a number of at least 0; "
                              "give one, or auto.",
                              btl, key, text);
        bool is_infinite = i == MODEL_BANDWIDTH && user->values[i] == 0;
        if (!is_infinite && !model_attribute_check((enum model_attribute) i, user->values[i], &why))
            return model_fail(error, "btl_%s_lane_%s is \"%.64s\": %.150s; give another, or auto.",
                              btl, key, text, why.text);
    }
    return true;
}

void user_attributes_apply(const struct user_attributes *user, struct multilane_lane_range *ranges,
                           uint32_t count)
{
    for (uint32_t range = 0; range < count; range++)
        for (int i = 0; i < MODEL_ATTRIBUTES; i++)
            if (user->values[i] >= 0)
                model_attribute_set(&ranges[range], model_attributes[i].user_key, user->values[i]);
}
