/* SPDX-License-Identifier: BSD-3-Clause */
/* All protocols. */
#ifndef MULTILANE_PROTOCOL_TABLE_H
#define MULTILANE_PROTOCOL_TABLE_H

/* Hands the table of protocols down to base/protocol.h. */
void protocol_table_use(void);

#endif
