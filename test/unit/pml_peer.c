/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers of the own job and of many others: each name finds its own peer, and one that was not met
 * finds none. */
#include "check.h"

#include "match/credit.h"
#include "delivery/delivery.h"
#include "match/inbound.h"
#include "peer/peer.h"
#include "peer/peer_class.h"
#include "peer/record.h"

#define RANKS 3000 /* of each job */
#define JOBS  5

struct multilane multilane;
static ompi_proc_t process;

/* --- what lies around --------------------------------------------------------------------------
 */

bool record_accepts(const ompi_proc_t *proc, uint32_t *window)
{
    (void) window;
    return proc == &process;
}

bool peer_take_lanes(struct peer *peer)
{
    (void) peer;
    return true;
}

void credit_begin(struct peer *peer, uint32_t promised)
{
    (void) peer;
    (void) promised;
}

void delivery_free(struct delivery *delivery)
{
    (void) delivery;
    abort();
}

void inbound_free(struct inbound *inbound)
{
    (void) inbound;
    abort();
}

void classes_fini(void)
{
}

/* --- the test ----------------------------------------------------------------------------------
 */

static opal_process_name_t name_of(uint32_t job, uint32_t rank)
{
    return (opal_process_name_t){.jobid = 0xabcd0001u + job, .vpid = rank};
}

int main(void)
{
    OBJ_CONSTRUCT(&multilane.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&process.super.super, opal_list_item_t); /* it is only counted */
    multilane.me = name_of(0, 0);
    multilane.local_peer_count = RANKS;
    multilane.local_peers = calloc(RANKS, sizeof(*multilane.local_peers));
    for (uint32_t job = 0; job < JOBS; job++)
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            opal_process_name_t name = name_of(job, rank);
            CHECK(!peer_find(name), "job %u rank %u was not met", job, rank);
            CHECK(peer_contact(name, &process), "job %u rank %u", job, rank);
        }
    for (uint32_t job = 0; job < JOBS; job++)
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            opal_process_name_t name = name_of(job, rank);
            const struct peer *peer = peer_find(name);
            CHECK(peer && peer->name.jobid == name.jobid && peer->name.vpid == name.vpid &&
                      peer->foreign == (job != 0),
                  "job %u rank %u", job, rank);
            /* Open MPI, which knows none of them, is not asked. */
            CHECK(peer_of_sender(&(struct wire_base){.flags = WIRE_NAMED},
                                 &(struct wire_name){.jobid = name.jobid, .vpid = name.vpid}) ==
                      peer,
                  "a message of job %u rank %u", job, rank);
        }
    CHECK(!peer_find(name_of(0, RANKS)), "a rank that the own job does not have");
    CHECK(!peer_find(name_of(JOBS, 0)), "a job that was not met");
    peers_fini();
    CHECK(!multilane.foreign_peers && !peer_find(name_of(1, 0)), "all are forgotten");
    return check_end();
}
