/* SPDX-License-Identifier: BSD-3-Clause */
/* Which send each receive of a recording got its message from. */
#ifndef TOOLS_REPLAY_MATCH_H
#define TOOLS_REPLAY_MATCH_H

#include "tools/replay/recording.h"

#define MATCH_NONE UINT32_MAX

struct match {
    uint32_t *message;      /* by number among all events: of a send or a receive; or MATCH_NONE */
    uint32_t message_count; /* a send and a receive each */
    uint64_t unmatched;     /* sends and receives whose other end is not in the recording */
};

bool match_make(const struct recording *recording, struct match *match);
void match_free(struct match *match);

#endif
