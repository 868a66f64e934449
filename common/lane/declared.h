/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of lanes from what their BTLs say: ours by their extension; Open MPI's in their
 * units, and from a table of defaults for what they do not say. */
#ifndef COMMON_LANE_DECLARED_H
#define COMMON_LANE_DECLARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/lane.h"
#include "multilane/extension.h"

/* Fills `lane`; `can` are the abilities that btl.h gives the module. Values that the BTL does not
 * know (below 0) become 0. What cannot be (a latency of a minute, a bandwidth that is no number) is
 * replaced by a default, and *complaint is a sentence about the first such value; else it is empty.
 */
void declared_attributes(const char *btl, uint32_t can,
                         const struct multilane_lane_attributes *attributes,
                         struct model_lane *lane, struct error_text *complaint);

/* What Open MPI knows of a BTL module, in its own units. */
struct stock_btl {
    const char *name; /* "vader", "tcp", ... */
    uint32_t bandwidth;
    uint32_t latency;
    uint32_t can;       /* enum model_ability, by btl.h */
    bool registers;     /* memory must be registered before get or put */
    size_t eager_limit; /* of messages, headers included; and of what is worth a send-immediate */
    size_t max_send_size;
};

/* Does that BTL leave its bandwidth at what Open MPI gives every network? */
bool stock_btl_knows_no_network(const char *name, uint32_t bandwidth);

/* Puts what the kernel says of the link (0: nothing) in place of that, and names the source. */
void stock_btl_network(double link_bytes_s, struct model_lane *lane);

/* Bytes a second of a BTL's btl_bandwidth, whose unit differs between them; 0 for 0. */
double stock_btl_bandwidth(const char *name, uint32_t bandwidth);

/* Is a message out of this process once its btl_sendi has accepted it? smcuda's queues what its
 * FIFO has no room for, and says the same; of a BTL that is not known it is not believed either.
 * uct's takes a message that is all header for a short one, whatever its length. What a
 * descriptor's callback says is believed of all. */
bool stock_btl_sendi_leaves(const char *name);

/* Fills `lane`. Where a BTL says something impossible the default is taken, and *complaint is a
 * sentence about it; else it is empty. */
void stock_btl_attributes(const struct stock_btl *btl, struct model_lane *lane,
                          struct error_text *complaint);

/* Sets what a lane of tcp or sock inside this node costs, whatever interface it is named after: the
 * kernel takes its messages from one process to the other. As is usual; messages show what it
 * really is. `has_event_loop`: its messages pass through Open MPI's, which takes more. */
void declared_inside_node(bool has_event_loop, struct model_lane *lane);

#endif
