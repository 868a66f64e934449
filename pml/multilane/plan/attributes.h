/* SPDX-License-Identifier: BSD-3-Clause */
/* The attributes of a lane for the model, and their sources. */
#ifndef MULTILANE_ATTRIBUTES_H
#define MULTILANE_ATTRIBUTES_H

#include "common/lane/profile.h"
#include "common/model/lane.h"
#include "peer/peer.h"
#include "common/compat/pml.h"

/* The network device behind a BTL module: name, card, distance. */

struct nic {
    struct nic *next;
    const mca_btl_base_module_t *btl;
    char name[40]; /* empty: none, or unknown */
    uint32_t card;
    uint32_t distance;   /* from this process: 0 is near, 1 far */
    bool is_on_bus;      /* a device of its own, not a virtual one */
    double bus_bytes_s;  /* what its bus carries; 0: not known */
    double link_bytes_s; /* and the link of a network device, by the kernel */
};

void nics_fini(void);

/* The peer's placement: same cache, same node, or another host. */
enum profile_placement attributes_placement(const struct peer *peer);

/* What a peer has to know of this end's lanes. */
void attributes_publish(struct record_ends *ends);

/* Gathers the attributes of a lane from all sources; the strongest wins. False: they are
 * impossible, which is reported. `group`: shared by the lanes to this peer, or 0. */
bool attributes_of_lane(const struct lane *lane, uint32_t group, struct model_lane *out);

/* The strongest source: what the user says of lanes of this BTL, ours or another. */
void attributes_of_user(const char *btl, bool is_ours, struct model_lane *out);

/* A lane of the module of which nothing is known but its name and what the user says. */
void attributes_of_user_alone(mca_btl_base_module_t *btl, struct model_lane *out);

#endif
