/* SPDX-License-Identifier: BSD-3-Clause */
/* Places of devices: cards from a tree of devices as the kernel shows it, what is near and what is
 * far, and what both do to the order in which lanes are taken. */
#define _GNU_SOURCE
#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/lane/locality.h"
#include "common/lane/processor_list.h"
#include "common/model/plan.h"

/* --- cards --------------------------------------------------------------------------------------
 */

static char sysfs[] = "/tmp/lane_locality.XXXXXX";

static void folder(const char *path)
{
    char whole[300], *at = whole;
    snprintf(whole, sizeof(whole), "%s/%s", sysfs, path);
    while ((at = strchr(at + 1, '/'))) {
        *at = '\0';
        mkdir(whole, 0700);
        *at = '/';
    }
    mkdir(whole, 0700);
}

static void device_make(const char *kind, const char *name, const char *address, const char *cpus)
{
    char path[300], target[300];
    snprintf(path, sizeof(path), "devices/pci0000:00/%s", address);
    folder(path);
    snprintf(path, sizeof(path), "%s/devices/pci0000:00/%s/local_cpulist", sysfs, address);
    FILE *file = fopen(path, "w");
    if (!file) {
        CHECK(file, "%s", path);
        return;
    }
    fprintf(file, "%s\n", cpus);
    fclose(file);
    snprintf(path, sizeof(path), "class/%s/%s", kind, name);
    folder(path);
    snprintf(path, sizeof(path), "%s/class/%s/%s/device", sysfs, kind, name);
    snprintf(target, sizeof(target), "../../../devices/pci0000:00/%s", address);
    CHECK(symlink(target, path) == 0, "%s", path);
}

static void ports_of_a_card_have_its_number(void)
{
    struct locality one, other, far, rdma;
    CHECK(mkdtemp(sysfs), "no folder");
    device_make("net", "eth0", "0000:41:00.0", "0-3");
    device_make("net", "eth1", "0000:41:00.1", "0-3");
    device_make("net", "eth2", "0000:c1:00.0", "4-7");
    device_make("infiniband", "mlx5_0", "0000:41:00.0", "0-3");
    folder("class/net/veth0");
    CHECK(locality_find(sysfs, "eth0", &one) && locality_find(sysfs, "eth1", &other) &&
              locality_find(sysfs, "eth2", &far) && locality_find(sysfs, "mlx5_0:1", &rdma),
          "a device is not found");
    CHECK(one.card && one.card == other.card && one.card == rdma.card && one.card != far.card,
          "cards %x %x %x %x", one.card, other.card, rdma.card, far.card);
    CHECK(strcmp(one.cpus, "0-3") == 0 && strcmp(far.cpus, "4-7") == 0, "%s and %s", one.cpus,
          far.cpus);
    static const char *const nowhere[] = {"veth0", "eth9", "", ":1", "..", "../net/eth0", "/"};
    for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++)
        CHECK(!locality_find(sysfs, nowhere[i], &one) && !one.card && !one.cpus[0], "\"%s\"",
              nowhere[i]);
}

static void file_make(const char *path, const char *text)
{
    char whole[300];
    snprintf(whole, sizeof(whole), "%s/%s", sysfs, path);
    FILE *file = fopen(whole, "w");
    CHECK(file, "%s", whole);
    if (file) {
        fprintf(file, "%s\n", text);
        fclose(file);
    }
}

static void a_bus_carries_what_its_link_does(void)
{
    static const char bus[] = "devices/pci0000:00/0000:41:00.0";
    char path[128];
    CHECK(locality_bus(sysfs, "mlx5_0:1") == 0, "a bus of no known speed");
    snprintf(path, sizeof(path), "%s/current_link_width", bus);
    file_make(path, "16");
    snprintf(path, sizeof(path), "%s/current_link_speed", bus);
    file_make(path, "16.0 GT/s PCIe");
    double carries = locality_bus(sysfs, "mlx5_0:1");
    CHECK(carries > 28.5e9 && carries < 28.7e9, "%g", carries); /* 32e9 * 128/130 * 256/282 */
    CHECK(locality_bus(sysfs, "eth0") == carries, "the same device by its other name");
    file_make(path, "5.0 GT/s PCIe");
    carries = locality_bus(sysfs, "eth0");
    CHECK(carries > 7.2e9 && carries < 7.3e9, "%g", carries);
    static const char *const impossible[] = {"", "Unknown", "-1 GT/s", "1e9 GT/s"};
    for (size_t i = 0; i < sizeof(impossible) / sizeof(impossible[0]); i++) {
        file_make(path, impossible[i]);
        CHECK(locality_bus(sysfs, "eth0") == 0, "\"%s\"", impossible[i]);
    }
    CHECK(locality_bus(sysfs, "veth0") == 0 && locality_bus(sysfs, "../net/eth0") == 0, "no bus");
}

static void a_link_carries_what_the_kernel_says(void)
{
    CHECK(locality_link(sysfs, "eth0") == 0, "a speed that nothing says");
    file_make("class/net/eth0/speed", "25000");
    double carries = locality_link(sysfs, "eth0");
    CHECK(carries > 2.94e9 && carries < 2.95e9, "%g", carries); /* 25e9 / 8 * 1448/1538 */
    file_make("class/net/eth1/speed", "-1");                    /* the link is down */
    CHECK(locality_link(sysfs, "eth1") == 0, "a link that is down");
    file_make("class/net/veth0/speed", "10000"); /* of a device that is none */
    CHECK(locality_link(sysfs, "veth0") == 0, "a virtual device");
    folder("class/net/bond0/lower_eth0");
    file_make("class/net/bond0/speed", "50000");
    carries = locality_link(sysfs, "bond0");
    CHECK(carries > 5.88e9 && carries < 5.89e9, "%g", carries);
    CHECK(locality_link(sysfs, "../net/eth0") == 0 && locality_link(sysfs, "") == 0, "no device");
}

/* --- distances ----------------------------------------------------------------------------------
 */

static void near_is_nearer_than_far(void)
{
    static const struct {
        const char *here, *device;
        bool is_near;
    } cases[] = {
        {"0", "0-3", true},         {"0", "4-7", false},       {"3,4", "4-7", true},
        {"0-7", "4-7", true},       {"0", "", true},           {"0", "100-200", false},
        {"0", "nonsense", true},    {"15", "8-11", false},     {"8", "0-15", true},
        {"2", "0-1,3,8-11", false}, {"9", "0-1,3,8-11", true}, {"0", "1024-9999", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *here = cases[i].here;
        cpu_set_t mine;
        CPU_ZERO(&mine);
        for (unsigned first, last; processor_range(&here, &first, &last);)
            for (; first <= last; first++)
                CPU_SET(first, &mine);
        CHECK(processor_list_overlaps(cases[i].device, &mine) == cases[i].is_near, "from %s to %s",
              cases[i].here, cases[i].device);
    }
}

static void a_process_knows_where_it_is(void)
{
    char cpu[16];
    snprintf(cpu, sizeof(cpu), "%d", sched_getcpu());
    CHECK(locality_is_near(cpu) && locality_is_near(""), "far from processor %s", cpu);
    CHECK(!locality_is_near("1000-1023"), "near to processors that are not there");
}

/* --- the order of lanes -------------------------------------------------------------------------
 */

static struct model_lane port(const char *name, double bandwidth, uint32_t card, uint32_t distance)
{
    struct model_lane lane;
    const struct model_lane_range range = {.latency_s = 1e-6, .bandwidth_bytes_s = bandwidth};
    model_lane_init(&lane, name);
    lane.can = MODEL_CAN_SEND;
    lane.copied_max_bytes = 4096;
    lane.zcopied_max_bytes = 65536;
    lane.card = card;
    lane.distance = distance;
    model_lane_set_cost(&lane, MODEL_BY_SEND, &range);
    return lane;
}

/* The lanes that a large message takes if it may take `most`, by the first letter of their names.
 */
static void expect_order(const struct model_lane *lanes, uint32_t count, const char *wanted)
{
    struct plan_input input;
    struct error_text error;
    char order[MODEL_LANES_MAX + 1] = "";
    plan_input_init(&input);
    input.lanes = lanes;
    input.lane_count = count;
    input.most_rndv_lanes = input.most_eager_lanes = (uint32_t) strlen(wanted);
    struct plan *plan = plan_build(&input, &error);
    CHECK(plan, "%s", error.text);
    if (!plan)
        return;
    const struct plan_entry *entry = plan_lookup(plan, UINT64_C(1) << 40);
    for (uint32_t i = 0; i < entry->lane_count; i++)
        order[i] = lanes[entry->lanes[i]].name[0];
    CHECK(strcmp(order, wanted) == 0, "%s, not %s", order, wanted);
    plan_free(plan);
}

static void cards_come_before_second_ports_and_near_before_far(void)
{
    const struct model_lane two_cards[] = {port("a", 1e9, 5, 0), port("b", 1e9, 5, 0),
                                           port("c", 1e9, 6, 1), port("d", 1e9, 6, 1)};
    expect_order(two_cards, 4, "a");
    expect_order(two_cards, 4, "ac");
    expect_order(two_cards, 4, "acb");
    expect_order(two_cards, 4, "acbd");
    const struct model_lane far_first[] = {port("a", 1e9, 5, 2), port("b", 1e9, 6, 1),
                                           port("c", 1e9, 7, 0), port("d", 1e9, 7, 0)};
    expect_order(far_first, 4, "c");
    expect_order(far_first, 4, "cba");
    expect_order(far_first, 4, "cbad");
    const struct model_lane faster_far[] = {port("a", 1e9, 5, 0), port("b", 2e9, 6, 1)};
    expect_order(faster_far, 2, "b");
    const struct model_lane no_cards[] = {port("a", 1e9, 0, 0), port("b", 1e9, 0, 0)};
    expect_order(no_cards, 2, "ab");
}

int main(void)
{
    ports_of_a_card_have_its_number();
    a_bus_carries_what_its_link_does();
    a_link_carries_what_the_kernel_says();
    check_folder_remove(sysfs);
    near_is_nearer_than_far();
    a_process_knows_where_it_is();
    cards_come_before_second_ports_and_near_before_far();
    return check_end();
}
