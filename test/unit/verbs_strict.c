/* SPDX-License-Identifier: BSD-3-Clause */
/* The strict stand-in for RDMA devices (test/fake/verbs) is as strict as its profile says: a test
 * that it lets pass has been refused nothing. Each case is a process of its own with its profile.
 */
#include "test/fake/verbs/strict.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "strict_case.h"

/* A port with two pairs that lead to each other; without a receive buffer yet. */
struct end {
    struct ibv_qp *qp;
    struct ibv_cq *cq;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *receive_cq;
static struct ibv_srq *srq;
static struct end ends[2];
static unsigned char memory[2][4096];
static struct ibv_mr *regions[2];

static void device_open(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 64, .max_sge = 1}};

    context = ibv_open_device(list[0]);
    fcntl(context->async_fd, F_SETFL, O_NONBLOCK);
    pd = ibv_alloc_pd(context);
    receive_cq = ibv_create_cq(context, 64, NULL, NULL, 0);
    srq = ibv_create_srq(pd, &srq_init);
    for (int i = 0; i < 2; i++)
        regions[i] =
            ibv_reg_mr(pd, memory[i], sizeof(memory[i]),
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    ibv_free_device_list(list);
}

static struct ibv_qp *pair_make(struct ibv_cq *cq, uint32_t depth, uint32_t inlined)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = receive_cq,
        .srq = srq,
        .cap = {.max_send_wr = depth, .max_send_sge = 2, .max_inline_data = inlined},
        .qp_type = IBV_QPT_RC};

    return ibv_create_qp(pd, &init);
}

static int pair_init(struct ibv_qp *qp, uint16_t pkey_index)
{
    struct ibv_qp_attr values = {.qp_state = IBV_QPS_INIT,
                                 .pkey_index = pkey_index,
                                 .port_num = 1,
                                 .qp_access_flags =
                                     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};

    return ibv_modify_qp(qp, &values,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int pair_lead(struct ibv_qp *qp, uint32_t to, uint8_t gid_index, uint8_t reads_in)
{
    struct ibv_qp_attr values = {.qp_state = IBV_QPS_RTR,
                                 .path_mtu = IBV_MTU_1024,
                                 .dest_qp_num = to,
                                 .max_dest_rd_atomic = reads_in,
                                 .min_rnr_timer = 12,
                                 .ah_attr = {.port_num = 1}};

    values.ah_attr.dlid = port_lid(0, 1);
    if (profile_get()->roce) {
        values.ah_attr.is_global = 1;
        values.ah_attr.grh.sgid_index = gid_index;
        (void) ibv_query_gid(context, 1, gid_index, &values.ah_attr.grh.dgid);
    }
    return ibv_modify_qp(qp, &values,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int pair_ready(struct ibv_qp *qp, uint8_t reads_out)
{
    struct ibv_qp_attr values = {.qp_state = IBV_QPS_RTS,
                                 .timeout = 14,
                                 .retry_cnt = 6,
                                 .rnr_retry = 7,
                                 .max_rd_atomic = reads_out};

    return ibv_modify_qp(qp, &values,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void ends_connect(void)
{
    device_open();
    for (int i = 0; i < 2; i++) {
        ends[i].cq = ibv_create_cq(context, 64, NULL, NULL, 0);
        ends[i].qp = pair_make(ends[i].cq, 16, 64);
        CHECK(pair_init(ends[i].qp, 0) == 0, "errno %d", errno);
    }
    for (int i = 0; i < 2; i++) {
        CHECK(pair_lead(ends[i].qp, ends[!i].qp->qp_num, (uint8_t) profile_get()->foreign, 4) == 0,
              "errno %d", errno);
        CHECK(pair_ready(ends[i].qp, 4) == 0, "errno %d", errno);
    }
}

static void receive_add(uint64_t id)
{
    struct ibv_sge part = {(uint64_t) (uintptr_t) memory[1], 512, regions[1]->lkey};
    struct ibv_recv_wr request = {.wr_id = id, .sg_list = &part, .num_sge = 1}, *bad;

    CHECK(ibv_post_srq_recv(srq, &request, &bad) == 0, "buffer %d", (int) id);
}

/* Of `bytes` of memory[0], by the first end; `count` of them in one chain. */
static int post(enum ibv_wr_opcode opcode, uint32_t bytes, int flags, int count)
{
    struct ibv_sge part = {(uint64_t) (uintptr_t) memory[0], bytes, regions[0]->lkey};
    struct ibv_send_wr requests[8] = {{0}}, *bad;

    for (int i = 0; i < count; i++) {
        requests[i].next = i + 1 < count ? &requests[i + 1] : NULL;
        requests[i].sg_list = &part;
        requests[i].num_sge = 1;
        requests[i].opcode = opcode;
        requests[i].send_flags = (unsigned) flags;
        requests[i].wr.rdma.remote_addr = (uint64_t) (uintptr_t) memory[1];
        requests[i].wr.rdma.rkey = regions[1]->rkey;
    }
    return ibv_post_send(ends[0].qp, requests, &bad);
}

static bool event_is(enum ibv_event_type type)
{
    struct ibv_async_event event;

    if (ibv_get_async_event(context, &event) != 0)
        return false;
    ibv_ack_async_event(&event);
    return event.event_type == type;
}

/* --- cases --- */

static void limits_are_kept(void)
{
    device_open();
    struct ibv_cq *cq = ends[0].cq = ibv_create_cq(context, 64, NULL, NULL, 0);
    CHECK(!pair_make(cq, 65536, 0) && errno == EINVAL, "errno %d", errno);
    CHECK(!pair_make(cq, 16, 97) && errno == EINVAL, "errno %d", errno);
    struct ibv_qp *qp = pair_make(cq, 16, 96);
    CHECK(qp != NULL, "errno %d", errno);
    CHECK(pair_init(qp, 1) == EINVAL, "a P_Key index beyond the table is taken");
    CHECK(pair_init(qp, 0) == 0, "errno %d", errno);
    CHECK(pair_lead(qp, 1, 0, 4) == ENODEV, "a GID of another namespace is taken");
    CHECK(pair_lead(qp, 1, 20, 31) == EINVAL, "the device's 30 outgoing reads are exceeded");
    CHECK(pair_lead(qp, 1, 20, 30) == 0, "errno %d", errno);
    CHECK(pair_ready(qp, 127) == EINVAL, "the device's 126 incoming reads are exceeded");
    struct ibv_gid_entry entries[8];
    CHECK(ibv_query_gid_table(context, entries, 8, 0) < 0, "a table of 24 fits 8 entries");
}

static void memory_is_limited(void)
{
    struct ibv_qp *qp = NULL;
    int made = 0;

    device_open();
    struct ibv_cq *cq = ends[0].cq = ibv_create_cq(context, 64, NULL, NULL, 0);
    while (made < 100 && (qp = pair_make(cq, 128, 256)))
        made++;
    /* 512 bytes a request of 256 inline: 64 KiB a pair, as mlx5's library locks. */
    CHECK(!qp && errno == ENOMEM && made == 14, "%d pairs, errno %d", made, errno);
}

static void chain_rings_once(void)
{
    struct strict_counts counts;
    struct ibv_wc wc[8];

    ends_connect();
    for (uint64_t i = 0; i < 4; i++)
        receive_add(i);
    CHECK(post(IBV_WR_SEND, 8, IBV_SEND_INLINE | IBV_SEND_SIGNALED, 4) == 0, "errno %d", errno);
    strict_verbs_counts(&counts);
    CHECK(counts.posts == 4 && counts.doorbells == 1 && counts.inlined == 4, "%d posts, %d rings",
          (int) counts.posts, (int) counts.doorbells);
    CHECK(ibv_poll_cq(receive_cq, 8, wc) == 4, "not all came");
    CHECK(ibv_poll_cq(ends[0].cq, 8, wc) == 4, "not all ended");
}

/* Unsignaled requests keep their places until one behind them is polled. */
static void places_return_with_completions(void)
{
    struct ibv_wc wc;
    int taken = 0;

    ends_connect();
    while (taken < 100 && post(IBV_WR_RDMA_WRITE, 8, 0, 1) == 0)
        taken++;
    CHECK(taken == 16, "%d places", taken);
    ibv_destroy_qp(ends[0].qp);
    ends[0].qp = NULL;
    CHECK(ibv_poll_cq(ends[0].cq, 1, &wc) == 0, "an unsignaled request is reported");
}

static int received_after_destroy(void)
{
    struct ibv_wc wc;

    ends_connect();
    receive_add(1);
    CHECK(post(IBV_WR_SEND, 8, IBV_SEND_SIGNALED, 1) == 0, "errno %d", errno);
    ibv_destroy_qp(ends[1].qp);
    return ibv_poll_cq(receive_cq, 1, &wc);
}

static void destroyed_pair_takes_receives_along(void)
{
    CHECK(received_after_destroy() == 0, "the completion is left");
}

static void destroyed_pair_leaves_receives(void)
{
    CHECK(received_after_destroy() == 1, "the completion is gone");
}

static void write_is_visible_after_a_read(void)
{
    struct ibv_wc wc[2];

    ends_connect();
    memory[0][0] = 7;
    CHECK(post(IBV_WR_RDMA_WRITE, 1, IBV_SEND_SIGNALED, 1) == 0, "errno %d", errno);
    CHECK(ibv_poll_cq(ends[0].cq, 1, wc) == 1 && wc[0].status == IBV_WC_SUCCESS, "no completion");
    CHECK(memory[1][0] == 0, "it is visible at once");
    CHECK(post(IBV_WR_RDMA_READ, 1, IBV_SEND_SIGNALED, 1) == 0, "errno %d", errno);
    CHECK(memory[1][0] == 7 && memory[0][0] == 7, "it is not visible after a read");
}

static void dead_device_swallows(void)
{
    struct ibv_wc wc;

    ends_connect();
    receive_add(1);
    CHECK(post(IBV_WR_SEND, 8, 0, 1) == 0, "errno %d", errno);
    CHECK(strict_verbs_event("fatal", 0, 1), "no such event");
    CHECK(event_is(IBV_EVENT_DEVICE_FATAL), "no event came");
    CHECK(post(IBV_WR_RDMA_WRITE, 1, IBV_SEND_SIGNALED, 1) == 0, "errno %d", errno);
    CHECK(ibv_poll_cq(receive_cq, 1, &wc) == 1 && wc.opcode == IBV_WC_RECV,
          "what had come is not reported");
    CHECK(ibv_poll_cq(ends[0].cq, 1, &wc) == 0, "a completion comes");
}

static void broken_pair_says_its_last_buffer(void)
{
    struct ibv_qp_attr values = {.qp_state = IBV_QPS_ERR};
    struct ibv_srq_attr limit = {.srq_limit = 2};

    ends_connect();
    receive_add(1);
    receive_add(2);
    CHECK(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT) == 0, "errno %d", errno);
    CHECK(post(IBV_WR_SEND, 8, 0, 1) == 0 && event_is(IBV_EVENT_SRQ_LIMIT_REACHED), "no event");
    ibv_modify_qp(ends[1].qp, &values, IBV_QP_STATE);
    CHECK(event_is(IBV_EVENT_QP_LAST_WQE_REACHED), "no event of the last buffer");
}

/* A pair that sends to an address that a port had before reaches nothing. */
static void changed_lid_breaks(void)
{
    struct ibv_wc wc;
    int count = 0;

    ends_connect();
    strict_verbs_event("lid", 0, 1);
    CHECK(event_is(IBV_EVENT_LID_CHANGE), "no event");
    CHECK(post(IBV_WR_RDMA_WRITE, 1, 0, 1) == 0, "errno %d", errno);
    for (int i = 0; i < 100 && count == 0; i++, usleep(10000))
        count = ibv_poll_cq(ends[0].cq, 1, &wc);
    CHECK(count == 1 && wc.status == IBV_WC_RETRY_EXC_ERR, "%d completions", count);
}

static void words_are_checked(void)
{
    static const struct {
        const char *words, *why;
    } wrong[] = {
        {"mlx6", "no profile \"mlx6\"; there are mlx5"},
        {"mlx5,colour=red", "it has no setting \"colour\""},
        {"mlx5,ports=9", "ports is \"9\"; it can be 1 to 2"},
        {"mlx5,speed=fast", "speed is \"fast\"; it can be 1 to 256, or sdr=1"},
        {"mlx5,max_qp=10x", "max_qp is \"10x\""},
        {"mlx5,at=5:boom:0:1", "at is \"5:boom:0:1\"; it can be POSTS:EVENT:DEVICE:PORT"},
        {"hns,foreign=20", "does not fit a table of gids=16"},
    };
    struct profile profile;
    char why[512];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        CHECK(!profile_read(wrong[i].words, &profile, why, sizeof(why)) &&
                  strstr(why, wrong[i].why),
              "%s: %s", wrong[i].words, why);
    CHECK(profile_read("mlx5,speed=xdr,at=9:lid:1:2", &profile, why, sizeof(why)) &&
              profile.speed == 256 && profile.at[0].port == 2,
          "%s", why);
}

int main(void)
{
    int failed = 0;

    words_are_checked();
    failed += case_run("bnxt,foreign=20,gids=32", limits_are_kept);
    failed += case_run("mlx5,memlock=1000000", memory_is_limited);
    failed += case_run("irdma", chain_rings_once);
    failed += case_run("mlx5", places_return_with_completions);
    failed += case_run("mlx5", destroyed_pair_takes_receives_along);
    failed += case_run("hns", destroyed_pair_leaves_receives);
    failed += case_run("mlx5,delay_ms=60000", write_is_visible_after_a_read);
    failed += case_run("mlx5", dead_device_swallows);
    failed += case_run("mlx5", broken_pair_says_its_last_buffer);
    failed += case_run("mlx5,retry_ms=50", changed_lid_breaks);
    return failed != 0 || check_end() != 0;
}
