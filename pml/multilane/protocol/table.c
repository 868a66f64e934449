/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of protocols: by the list of the model, which knows what each needs and costs. A new
 * one is a file here and a line in that list. */
#include "protocol/table.h"

#include "base/protocol.h"

#define DECLARE(index, object) extern const struct protocol object;
MODEL_PROTOCOL_LIST(DECLARE)

#define ENTRY(index, object) [MODEL_##index] = &object,
static const struct protocol *const table[MODEL_PROTOCOLS] = {MODEL_PROTOCOL_LIST(ENTRY)};

void protocol_table_use(void)
{
    protocols_use(table);
}
