/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers of the own job and of many others: each name finds its own peer, and one that was not met
 * finds none. */
#include "check.h"

#include "lanes_standin.h"
#include "contact/contact.h"

#define RANKS 3000 /* of each job */
#define JOBS  5

static unsigned met;

static void peer_contacted(struct peer *peer, uint32_t window)
{
    CHECK(!peer->reachable && window == multilane.window, "%u units", window);
    met++;
}

static opal_process_name_t name_of(uint32_t job, uint32_t rank)
{
    /* So far apart that equal ranks of them share a bucket of the table. */
    return (opal_process_name_t){.jobid = 0xabcd0001u + 1024 * job, .vpid = rank};
}

int main(void)
{
    standin_begin();
    /* One process stands for all of them: of itself Open MPI has all that is to be known. */
    struct peer *stranger = standin_peer();
    standin_reach(stranger, standin_btl("self", 1000));
    ompi_proc_t *process = ompi_proc_local_proc = stranger->proc;
    contact_events.contacted = peer_contacted;
    multilane.window = 77;
    multilane.me = name_of(0, 0);
    multilane.local_peer_count = RANKS;
    multilane.local_peers = calloc(RANKS, sizeof(*multilane.local_peers));
    for (uint32_t job = 0; job < JOBS; job++)
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            opal_process_name_t name = name_of(job, rank);
            CHECK(!peer_find(name), "job %u rank %u was not met", job, rank);
            CHECK(peer_contact(name, process), "job %u rank %u", job, rank);
        }
    for (uint32_t job = 0; job < JOBS; job++)
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            opal_process_name_t name = name_of(job, rank);
            const struct peer *peer = peer_find(name);
            CHECK(peer && peer->name.jobid == name.jobid && peer->name.vpid == name.vpid &&
                      peer->is_of_other_job == (job != 0),
                  "job %u rank %u", job, rank);
            /* Open MPI, which knows none of them, is not asked. */
            CHECK(peer_of_sender(&(struct wire_base){.flags = WIRE_NAMED},
                                 &(struct wire_name){.jobid = name.jobid, .vpid = name.vpid}) ==
                      peer,
                  "a message of job %u rank %u", job, rank);
        }
    CHECK(met == RANKS * JOBS, "%u were met", met);
    CHECK(!peer_find(name_of(0, RANKS)), "a rank that the own job does not have");
    CHECK(!peer_find(name_of(JOBS, 0)), "a job that was not met");
    peers_fini();
    CHECK(!multilane.other_job_peers && !peer_find(name_of(1, 0)), "all are forgotten");
    return check_end();
}
