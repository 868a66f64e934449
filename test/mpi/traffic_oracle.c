// SPDX-License-Identifier: BSD-3-Clause
// Judges the order in which receives took messages by the two rules of the standard.
//
// Let T(m) be when message m was matched.
//   Receives: of two posted one after the other that both match m, the second may not take m while
//   the first is pending: whatever the first took was matched before m.
//   Messages: of two sent one after the other by one source that both match a receive, the receive
//   may not take the second while the first is pending: the first was matched before the second.
// The observation is legal exactly if these demands on T have no cycle.
#include "traffic.h"

#include <string.h>

bool oracle_accepts(const struct message *receive, const struct message *message)
{
    bool source = receive->source == message->source, tag = receive->tag == message->tag;
    switch (receive->shape) {
    case EXACT:
        return source && tag;
    case ANY_TAG:
        return source;
    case ANY_SOURCE:
        return tag;
    case ANYTHING:
        return true;
    }
    return false;
}

// Whether taken[first] must have been matched before taken[second].
static bool must_precede(const struct batch *batch, const struct taken *taken, int first,
                         int second)
{
    const struct message *a = &batch->messages[taken[first].message];
    const struct message *b = &batch->messages[taken[second].message];
    const struct message *receive_of_a = &batch->messages[taken[first].shape_of];
    const struct message *receive_of_b = &batch->messages[taken[second].shape_of];
    if (first < second && oracle_accepts(receive_of_a, b))
        return true;
    return a->source == b->source && oracle_accepts(receive_of_b, a) &&
           message_start_order(batch, taken[first].message) <
               message_start_order(batch, taken[second].message);
}

bool oracle_order_is_legal(const struct batch *batch, const struct taken *taken, int count)
{
    bool placed[MESSAGES_MOST] = {false};
    // take away, again and again, one that nothing left has to precede
    for (int done = 0; done < count; done++) {
        int free_one = -1;
        for (int i = 0; i < count && free_one < 0; i++) {
            bool waits = placed[i];
            for (int k = 0; k < count && !waits; k++)
                waits = k != i && !placed[k] && must_precede(batch, taken, k, i);
            if (!waits)
                free_one = i;
        }
        if (free_one < 0)
            return false;
        placed[free_one] = true;
    }
    return true;
}
