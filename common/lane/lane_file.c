/* SPDX-License-Identifier: BSD-3-Clause */
/* A lane file that says nothing. */
#include "common/lane/lane_file.h"

#include <string.h>

void lane_file_init(struct lane_file *file)
{
    struct plan_input defaults;
    memset(file, 0, sizeof *file);
    plan_input_init(&defaults);
    file->around = defaults.around;
}
