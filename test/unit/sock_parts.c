/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of btl/sock that need no second process: seals and greetings, pairs of addresses, and
 * what is made of the bytes that a connection brings, cut anywhere and wrong anyhow. */
#include "check.h"

#include "btl/sock/sock.h"
#include "common/sum/crc32c.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* --- seals --- */

static void seals_are_those_of_the_paper(void)
{
    /* Results for the key 00 01 .. 0f and the texts "", 00, 00 01, as their authors publish them.
     */
    static const unsigned char results[][16] = {
        {0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02,
         0x93},
        {0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44, 0x34, 0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc,
         0x45},
        {0x81, 0x77, 0x22, 0x8d, 0xa4, 0xa4, 0x5d, 0xc7, 0xfc, 0xa3, 0x8b, 0xde, 0xf6, 0x0a, 0xff,
         0xe4},
    };
    unsigned char bytes[16];
    struct seal key;

    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char) i;
    memcpy(&key, bytes, sizeof(key));
    for (size_t length = 0; length < 3; length++) {
        struct seal seal = seal_make(&key, bytes, length);
        CHECK(memcmp(&seal, results[length], sizeof(seal)) == 0, "of %zu bytes", length);
    }
}

static void greetings_are_believed_only_whole(void)
{
    const struct seal secret = {{1, 2}}, nonce = {{3, 4}}, other = {{3, 5}};
    struct greeting greeting = {.kind = GREETING_HELLO, .session = 1, .have = 7};

    greeting_seal(&greeting, &secret, &nonce);
    CHECK(greeting_is(&greeting, GREETING_HELLO, &secret, &nonce), "as it was sealed");
    CHECK(!greeting_is(&greeting, GREETING_WELCOME, &secret, &nonce), "another kind");
    CHECK(!greeting_is(&greeting, GREETING_HELLO, &other, &nonce), "another secret");
    CHECK(!greeting_is(&greeting, GREETING_HELLO, &secret, &other), "said before");
    for (size_t i = 0; i < sizeof(greeting); i++) {
        struct greeting changed = greeting;
        ((unsigned char *) &changed)[i] ^= 1;
        CHECK(!greeting_is(&changed, GREETING_HELLO, &secret, &nonce), "byte %zu changed", i);
    }
}

static void keys_are_those_of_the_standard(void)
{
    /* RFC 5869, test case 1: the first bytes of its result. */
    static const unsigned char result[ENCRYPT_DERIVED_BYTES] = {
        0x3c, 0xb2, 0x5f, 0x25, 0xfa, 0xac, 0xd5, 0x7a, 0x90, 0x43, 0x4f,
        0x64, 0xd0, 0x36, 0x2f, 0x2a, 0x2d, 0x2d, 0x0a, 0x90, 0xcf, 0x1a,
        0x5a, 0x4c, 0x5d, 0xb0, 0x2d, 0x56, 0xec, 0xc4, 0xc5, 0xbf};
    unsigned char secret[22], salt[13], purpose[10], derived[ENCRYPT_DERIVED_BYTES];

    memset(secret, 0x0b, sizeof(secret));
    for (unsigned i = 0; i < sizeof(salt); i++)
        salt[i] = (unsigned char) i;
    for (unsigned i = 0; i < sizeof(purpose); i++)
        purpose[i] = (unsigned char) (0xf0 + i);
    if (!encrypt_derive((struct encrypt_bytes){secret, sizeof(secret)},
                        (struct encrypt_bytes){salt, sizeof(salt)},
                        (struct encrypt_bytes){purpose, sizeof(purpose)}, derived)) {
        fprintf(stderr, "sock_parts: there is no libcrypto, so keys are not checked\n");
        return;
    }
    CHECK(memcmp(derived, result, sizeof(result)) == 0, "another key");
}

/* --- addresses --- */

static struct sock_address address(unsigned net, unsigned host, unsigned prefix)
{
    return (struct sock_address){.bytes = {10, (unsigned char) net, 0, (unsigned char) host},
                                 .name = "eth",
                                 .family = 4,
                                 .prefix = (uint8_t) prefix};
}

static void check_pairs(const char *what, const struct sock_address *ours, uint32_t our_count,
                        const struct sock_address *theirs, uint32_t their_count, bool same_host,
                        const int *expected)
{
    int pairs[ADDRESSES_MAX], back[ADDRESSES_MAX];

    sock_addresses_pair(ours, our_count, theirs, their_count, same_host, true, pairs);
    sock_addresses_pair(theirs, their_count, ours, our_count, same_host, false, back);
    for (uint32_t i = 0; i < our_count; i++) {
        CHECK(pairs[i] == expected[i], "%s: %u leads to %d", what, i, pairs[i]);
        CHECK(pairs[i] < 0 || back[pairs[i]] == (int) i, "%s: the other end of %u", what, i);
    }
}

static void each_bit_of_a_header_is_checked(void)
{
    struct frame_header header = {.length = 100, .kind = FRAME_MESSAGE, .number = 7, .have = 9};

    header.check = sock_frame_check(&header);
    for (size_t bit = 0; bit < 8 * sizeof(header); bit++) {
        struct frame_header wrong = header;
        ((unsigned char *) &wrong)[bit / 8] ^= (unsigned char) (1u << bit % 8);
        CHECK(wrong.check != sock_frame_check(&wrong), "bit %zu", bit);
    }
}

static void addresses_are_paired(void)
{
    struct sock_address loopback = {
        .bytes = {127, 0, 0, 1}, .family = 4, .prefix = 8, .is_loopback = 1};
    const struct sock_address a[] = {loopback, address(1, 1, 24), address(2, 1, 24)};
    const struct sock_address b[] = {loopback, address(2, 2, 24), address(1, 2, 24)};
    const struct sock_address far[] = {address(7, 2, 24), address(8, 2, 24)};
    const struct sock_address bridge[] = {address(1, 1, 24), address(9, 1, 16)};
    const struct sock_address wide[] = {address(1, 9, 16)};

    check_pairs("two subnets", a, 3, b, 3, false, (int[]){-1, 2, 1});
    check_pairs("the same host", a, 3, a, 3, true, (int[]){0, -1, -1});
    check_pairs("only by a router", a, 3, far, 2, false, (int[]){-1, 0, -1});
    check_pairs("an address that both have", a, 3, bridge, 2, false, (int[]){-1, 1, -1});
    check_pairs("prefixes that differ", a, 3, wide, 1, false, (int[]){-1, 0, -1});
    check_pairs("none", a, 3, b, 0, false, (int[]){-1, -1, -1});
}

static struct ifaddrs *interfaces;

int __wrap_getifaddrs(struct ifaddrs **all);
int __wrap_getifaddrs(struct ifaddrs **all)
{
    *all = interfaces;
    return 0;
}

void __wrap_freeifaddrs(struct ifaddrs *all);
void __wrap_freeifaddrs(struct ifaddrs *all)
{
    (void) all;
}

static void addresses_of_a_link_are_used_if_named(void)
{
    struct sockaddr_in mask = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xffff0000)};
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xa9fe0301)};
    struct sockaddr_in given = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a010005)};
    struct ifaddrs last = {.ifa_name = (char[]){"eth0"},
                           .ifa_flags = IFF_UP | IFF_RUNNING,
                           .ifa_addr = (struct sockaddr *) &given,
                           .ifa_netmask = (struct sockaddr *) &mask};
    struct ifaddrs first = last;
    struct sock_address list[ADDRESSES_MAX];
    struct error_text why;

    first.ifa_next = &last;
    first.ifa_addr = (struct sockaddr *) &own;
    interfaces = &first;
    CHECK(sock_addresses_list("auto", list, &why) == 1 && list[0].bytes[0] == 10, "without a wish");
    CHECK(sock_addresses_list("^eth1", list, &why) == 1 && list[0].bytes[0] == 10, "all but one");
    CHECK(sock_addresses_list("eth0", list, &why) == 1 && list[0].bytes[0] == 10, "the interface");
    CHECK(sock_addresses_list("169.254.0.0/16", list, &why) == 1 && list[0].bytes[0] == 169,
          "the subnet is named");
}

static void wishes_are_checked(void)
{
    static const struct {
        const char *text;
        bool good;
    } wishes[] = {{"auto", true},
                  {"eth0", true},
                  {"^docker0,10.0.0.0/8", true},
                  {"fd00::/64", true},
                  {"", false},
                  {"^", false},
                  {"eth0,,eth1", false},
                  {"10.0.0.0/33", false},
                  {"10.0.0/8", false},
                  {"fd00::/129", false},
                  {"10.0.0.0/", false},
                  {"10.0.0.0/8x", false},
                  {"an_interface_with_a_long_name", false}};
    for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++)
        CHECK(sock_addresses_check(wishes[i].text, NULL) == wishes[i].good, "\"%s\"",
              wishes[i].text);
}

/* --- what a connection brings --- */

#define TAG 0x40

static mca_btl_base_component_t component = {.btl_version.mca_component_name = "sock"};
static struct sock_module module = {.super = {.btl_component = &component,
                                              .btl_alloc = sock_work_alloc,
                                              .btl_free = sock_work_free}};
static sock_peer_t *peer;
static int far_end;
static unsigned long delivered, delivered_bytes;
#define PUT_BYTES   100000u
#define PUT_ADDRESS ((uint64_t) (uintptr_t) (put_memory + 8))
static unsigned char put_memory[PUT_BYTES + 16];

/* Every byte of a message is its length's lowest byte. */
static void message_check(const mca_btl_base_segment_t *segment)
{
    const unsigned char *bytes = segment->seg_addr.pval;

    delivered++;
    delivered_bytes += segment->seg_len;
    for (size_t i = 0; i < segment->seg_len; i++)
        if (bytes[i] != (unsigned char) segment->seg_len) {
            CHECK(false, "byte %zu of %zu", i, (size_t) segment->seg_len);
            return;
        }
}

static bool hostile; /* then contents mean nothing */

#if COMPAT_SERIES >= 50000
static void message_come(mca_btl_base_module_t *btl, const mca_btl_base_receive_descriptor_t *from)
{
    (void) btl;
    if (!hostile)
        message_check(from->des_segments);
}
#else
static void message_come(mca_btl_base_module_t *btl, mca_btl_base_tag_t tag,
                         mca_btl_base_descriptor_t *from, void *data)
{
    (void) btl;
    (void) tag;
    (void) data;
    if (!hostile)
        message_check(from->des_segments);
}
#endif

static void connection_make(void)
{
    const opal_process_name_t name = {.jobid = 1, .vpid = 2};
    int ends[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0, "a pair of sockets");
    peer = sock_peer_get(&module, &name);
    sock_peer_begin(peer, 1);
    peer->link = sock_socket_new(ends[0], ROLE_LINK, &module, peer);
    CHECK(peer->link != NULL, "a link");
    far_end = ends[1];
}

static void connection_end(void)
{
    sock_socket_close(peer->link);
    peer->link = NULL;
    sock_sockets_free();
    sock_intake_reset(peer);
    close(far_end);
}

static size_t frame_put(unsigned char *stream, enum frame_kind kind, uint32_t number,
                        const void *head, size_t head_bytes, size_t length)
{
    size_t all = head_bytes + length;
    const struct frame_header header = {
        .length = (uint32_t) all, .kind = (uint8_t) kind, .tag = TAG, .number = number};

    memcpy(stream, &header, sizeof(header));
    if (head_bytes)
        memcpy(stream + sizeof(header), head, head_bytes);
    memset(stream + sizeof(header) + head_bytes, (unsigned char) length, length);
    memset(stream + sizeof(header) + all, 0, FRAME_PADDING(all));
    return sizeof(header) + all + FRAME_PADDING(all);
}

static const size_t lengths[] = {0, 1, 7, 8, 9, 100, 4000, 70000};
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

/* Messages and puts in turn, and words between them. */
static size_t stream_make(unsigned char *stream, const mca_btl_base_registration_handle_t *handle)
{
    size_t at = 0;

    for (uint32_t i = 0; i < LENGTHS; i++) {
        const struct frame_target target = {
            .address = PUT_ADDRESS, .key = handle->key, .slot = handle->slot};
        at += frame_put(stream + at, FRAME_MESSAGE, 2 * i + 1, NULL, 0, lengths[i]);
        at += frame_put(stream + at, FRAME_ACK, 0, NULL, 0, 0);
        at += frame_put(stream + at, FRAME_PUT, 2 * i + 2, &target, sizeof(target), lengths[i]);
    }
    return at;
}

/* Brings the bytes and reads them. NULL: nothing was wrong. */
static const char *bytes_bring(const unsigned char *bytes, size_t count)
{
    const char *broken = NULL;

    while (count > 0 && !broken) {
        ssize_t sent = send(far_end, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) {
            bytes += sent;
            count -= (size_t) sent;
        }
        while (!broken && sock_intake_read(peer, &broken) > 0)
            ;
    }
    return broken;
}

static void stream_is_read_wherever_it_is_cut(const unsigned char *stream, size_t bytes)
{
    size_t sum = 0;

    for (size_t i = 0; i < LENGTHS; i++)
        sum += lengths[i];
    for (size_t cut = 1; cut < bytes; cut += cut < 400 ? 1 : 997) {
        connection_make();
        delivered = delivered_bytes = 0;
        memset(put_memory, 0, sizeof(put_memory));
        CHECK(!bytes_bring(stream, cut) && !bytes_bring(stream + cut, bytes - cut), "cut at %zu",
              cut);
        CHECK(delivered == LENGTHS && delivered_bytes == sum, "cut at %zu: %lu messages, %lu bytes",
              cut, delivered, delivered_bytes);
        CHECK(peer->have == 2 * LENGTHS, "cut at %zu: %u frames", cut, peer->have);
        CHECK(put_memory[7] == 0 && put_memory[8] == (unsigned char) 70000 &&
                  put_memory[8 + 69999] == (unsigned char) 70000 && put_memory[8 + 70000] == 0,
              "cut at %zu: the last put", cut);
        connection_end();
    }
}

static void
a_put_of_nothing_has_come_with_its_header(const mca_btl_base_registration_handle_t *handle)
{
    const struct frame_target target = {
        .address = PUT_ADDRESS, .key = handle->key, .slot = handle->slot};
    unsigned char frame[64];
    const size_t bytes = frame_put(frame, FRAME_PUT, 1, &target, sizeof(target), 0);

    for (size_t cut = 1; cut <= bytes; cut++) {
        connection_make();
        CHECK(!bytes_bring(frame, cut) && !bytes_bring(frame + cut, bytes - cut), "cut at %zu",
              cut);
        CHECK(peer->have == 1, "cut at %zu: %u frames", cut, peer->have);
        connection_end();
    }
}

/* Its receive has ended, as that from a process which counts as lost does. */
static void a_put_ends_with_its_registration(void)
{
    mca_btl_base_registration_handle_t *handle =
        registered_add(NULL, NULL, put_memory + 8, PUT_BYTES, MCA_BTL_REG_FLAG_REMOTE_WRITE);
    CHECK(handle != NULL, "a registration");
    const struct frame_target target = {
        .address = PUT_ADDRESS, .key = handle->key, .slot = handle->slot};
    unsigned char frame[4096];
    const size_t bytes = frame_put(frame, FRAME_PUT, 1, &target, sizeof(target), 1000);

    connection_make();
    memset(put_memory, 0, sizeof(put_memory));
    CHECK(!bytes_bring(frame, bytes / 2), "the first half");
    registered_remove(NULL, handle);
    const char *broken = bytes_bring(frame + bytes / 2, bytes - bytes / 2);
    CHECK(broken && strstr(broken, "not registered any more"), "%s", broken ? broken : "taken");
    CHECK(put_memory[8] != 0 && put_memory[8 + 999] == 0, "it is written after its end");
    connection_end();
}

static void wrong_bytes_end_the_connection(const unsigned char *stream, size_t bytes)
{
    unsigned char *changed = malloc(bytes);
    unsigned refused = 0;

    CHECK(changed != NULL, "memory");
    hostile = true;
    srand(1);
    for (int round = 0; round < 3000; round++) {
        memcpy(changed, stream, bytes);
        /* The headers lie among the first bytes. */
        for (int flips = 1 + round % 4; flips > 0; flips--)
            changed[(size_t) rand() % 600] = (unsigned char) rand();
        connection_make();
        memset(put_memory, 0, sizeof(put_memory));
        refused += bytes_bring(changed, bytes) != NULL;
        CHECK(put_memory[7] == 0 && put_memory[100008] == 0, "round %d: written beside", round);
        connection_end();
    }
    CHECK(refused > 1000, "%u of 3000 were refused", refused);
    free(changed);
}

static void wrong_frames_are_named(const mca_btl_base_registration_handle_t *handle)
{
    const struct frame_target good = {
        .address = PUT_ADDRESS, .key = handle->key, .slot = handle->slot};
    struct frame_target targets[] = {good, good, good, good};
    unsigned char frame[4096];
    size_t bytes;

    targets[0].key ^= 1;
    targets[1].slot = 1u << 20;
    targets[2].address = PUT_ADDRESS - 1;
    targets[3].address = PUT_ADDRESS + PUT_BYTES - 99;
    hostile = true;
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        connection_make();
        bytes = frame_put(frame, FRAME_PUT, 1, &targets[i], sizeof(targets[i]), 100);
        const char *broken = bytes_bring(frame, bytes);
        CHECK(broken && strstr(broken, "not registered"), "target %zu: %s", i,
              broken ? broken : "taken");
        connection_end();
    }
    connection_make();
    bytes = frame_put(frame, FRAME_MESSAGE, 2, NULL, 0, 8);
    CHECK(bytes_bring(frame, bytes) != NULL, "the second frame comes first");
    connection_end();
    connection_make();
    bytes = frame_put(frame, FRAME_ACK, 0, NULL, 0, 0);
    ((struct frame_header *) (void *) frame)->have = 5;
    CHECK(bytes_bring(frame, bytes) != NULL, "it has what was not sent");
    connection_end();
}

/* The code that takes messages may be unloaded before the lane ends. */
static void message_at_the_end_is_dropped(const unsigned char *stream)
{
    connection_make();
    delivered = 0;
    sock.is_ending = true;
    CHECK(!bytes_bring(stream, sizeof(struct frame_header)), "a message of no bytes");
    CHECK(delivered == 0 && peer->have == 1, "%lu were handed out", delivered);
    sock.is_ending = false;
    connection_end();
}

/* Peers stay until MPI ends, and may be many by then. */
static void memory_goes_with_the_connection(void)
{
    unsigned char frame[4096];

    connection_make();
    CHECK(!bytes_bring(frame, frame_put(frame, FRAME_MESSAGE, 1, NULL, 0, 4000) - 1) &&
              peer->intake.room > 4000,
          "a message but for a byte");
    connection_end();
    CHECK(peer->intake.bytes == NULL && peer->intake.room == 0, "%zu bytes are kept",
          peer->intake.room);
}

/* A process that was forked, and runs no other program, has all descriptors as well. */
static void a_closed_socket_is_reported_no_more(void)
{
    struct epoll_event event;

    connection_make();
    int of_child = dup(peer->link->fd);
    CHECK(send(far_end, "", 1, 0) == 1 && epoll_wait(sock.poll_fd, &event, 1, 0) == 1,
          "something has come");
    connection_end();
    CHECK(epoll_wait(sock.poll_fd, &event, 1, 0) == 0, "an event of a socket that is freed");
    close(of_child);
}

/* --- the clock --- */

static unsigned watched(void)
{
    unsigned count = 0;

    for (const sock_peer_t *at = sock.watched; at; at = at->next_watched)
        count++;
    return count;
}

static void tick(uint64_t now_ms)
{
    sock_peer_t *next;

    for (sock_peer_t *at = sock_peers_watched(); at; at = next) {
        next = at->next_watched;
        sock_link_tick(at, now_ms);
    }
}

static void clock_looks_at_peers_with_something_to_watch(const unsigned char *stream)
{
    for (unsigned i = 0; i < 129; i++)
        CHECK(sock_peer_get(&module, &(opal_process_name_t){.jobid = 7, .vpid = i}) != NULL, "%u",
              i);
    sock_peer_begin(peer, 1);
    tick(1000);
    CHECK(watched() == 0, "%u of 129 idle peers are looked at", watched());
    connection_make();
    peer->can_write = true;
    CHECK(!bytes_bring(stream, sizeof(struct frame_header)), "a message of no bytes");
    CHECK(watched() == 1, "%u are looked at while one waits to be told", watched());
    tick(1000);
    CHECK(watched() == 1 && peer->told == peer->have, "it was told, but has not acknowledged it");
    tick(2000); /* here no connection of the kernel's: it has nothing on the way */
    CHECK(watched() == 0, "it has it");
    connection_end();
}

/* --- calls --- */

static void caller_make(void)
{
    peer->caller = sock_socket_new(dup(far_end), ROLE_CALLER, &module, peer);
    CHECK(peer->caller != NULL, "a caller");
}

static void one_that_is_not_greeted_is_out_of_reach(void)
{
    connection_make();
    struct sock_socket *link = peer->link;
    peer->link = NULL;
    peer->known = true;
    sock.lost_s = 60;
    sock.clock_ms = 10000;
    peer->down_since_ms = 7000;
    sock_peer_watch(peer);
    tick(sock_now_ms());
    CHECK(watched() == 1 && module.unreached == peer, "it is said after 2 s");
    caller_make();
    peer->caller->is_connected = true;
    tick(sock_now_ms());
    CHECK(module.unreached == peer, "its kernel took the call, its process may not");
    sock_socket_close(peer->caller);
    peer->caller = NULL;
    peer->link = link;
    tick(sock_now_ms());
    CHECK(module.unreached == NULL, "it is connected");
    peer->known = false;
    connection_end();
}

/* Each outage is told, also after one that ended with the other end's goodbye. */
static void an_outage_ends_with_the_session(void)
{
    unsigned char bye[sizeof(struct frame_header)];

    connection_make();
    module.unreached = peer;
    CHECK(!bytes_bring(bye, frame_put(bye, FRAME_BYE, 0, NULL, 0, 0)), "a goodbye");
    sock_link_broke(peer, "the other end closed it");
    CHECK(module.unreached == NULL, "no later outage of this rail would be told");
    module.unreached = NULL;
    sock_sockets_free();
    close(far_end);
}

/* Its address cannot be called from here: that is no refusal by the other end. */
static void only_a_refused_call_is_a_refusal(void)
{
    connection_make();
    struct sock_socket *link = peer->link;
    peer->link = NULL;
    peer->theirs = sock.record.addresses[0] =
        (struct sock_address){.bytes = {192, 0, 2, 1}, .family = 4}; /* of documents */
    peer->has_address = true;
    peer->refused_since_ms = 1;
    sock_link_call(peer);
    CHECK(!peer->caller && peer->call_error == EADDRNOTAVAIL, "%s", strerror(peer->call_error));
    CHECK(peer->refused_since_ms == 0, "it still counts as refused");
    peer->has_address = false;
    peer->link = link;
    connection_end();
}

/* Each would take one of the ports that the address has for all its callers. */
static void a_caller_of_ipv6_binds_no_port(void)
{
    const struct sock_address loopback = {.bytes = {[15] = 1}, .family = 6, .port = 0x0100};
    int fd = socket(AF_INET6, SOCK_STREAM, 0), binds_none = 0;
    socklen_t length = sizeof(binds_none);
    struct sockaddr_storage at;

    /* And it can be asked for: qemu-user does not translate the option. */
    const int wanted = 1;
    bool is_there =
        fd >= 0 &&
        bind(fd, (struct sockaddr *) &at, sock_address_fill(&loopback, false, &at)) == 0 &&
        setsockopt(fd, IPPROTO_IP, 24, &wanted, sizeof(wanted)) == 0 &&
        getsockopt(fd, IPPROTO_IP, 24, &binds_none, &length) == 0 && binds_none;
    if (fd >= 0)
        close(fd);
    if (!is_there)
        return;
    connection_make();
    peer->theirs = sock.record.addresses[0] = loopback;
    struct sock_socket *caller = sock_socket_call(peer);
    CHECK(caller != NULL, "%s", strerror(errno));
    binds_none = 0;
    CHECK(getsockopt(caller->fd, IPPROTO_IP, 24, &binds_none, &length) == 0 && binds_none,
          "it takes a port of its own (IP_BIND_ADDRESS_NO_PORT)");
    sock_socket_close(caller);
    connection_end();
}

/* A call was refused while the kernel still tried, in the end with success. */
static void a_connection_that_came_back_forgets_a_refusal(void)
{
    connection_make();
    sock.clock_ms = 10000;
    peer->down_since_ms = 8000;
    peer->refused_since_ms = 9000;
    sock_peer_watch(peer);
    tick(sock_now_ms());
    CHECK(sock_peer_state(peer) == PEER_UP, "it works");
    CHECK(peer->refused_since_ms == 0, "a later tick would give it up");
    connection_end();
}

static void a_first_call_waits_longer_where_none_is_answered(void)
{
    connection_make();
    struct sock_socket *link = peer->link;
    peer->link = NULL;
    sock.lost_s = 60;
    for (uint32_t ms = 250; ms <= 1000; ms *= 2) {
        caller_make();
        sock_peer_watch(peer);
        sock.clock_ms += ms - 1;
        tick(sock_now_ms());
        CHECK(peer->caller != NULL, "it is given up before %u ms", ms);
        sock.clock_ms += 1;
        tick(sock_now_ms());
        CHECK(peer->caller == NULL, "it waits for more than %u ms", ms);
    }
    peer->call_ms = 0;
    peer->link = link;
    connection_end();
}

/* The other end has taken the call, computed for longer than btl_sock_lost_s, and then calls
 * itself, so that ours is to come later. */
static void a_process_that_computed_is_not_given_up(void)
{
    const struct seal nonce = {{3, 4}};
    struct greeting later = {.kind = GREETING_LATER, .session = 1};

    connection_make();
    struct sock_socket *link = peer->link;
    peer->link = NULL;
    sock.lost_s = 60;
    sock.clock_ms = 1000;
    peer->down_since_ms = 1000;
    caller_make();
    peer->caller->is_connected = true;
    peer->caller->nonce = nonce;
    sock_peer_watch(peer);
    sock.clock_ms = 91000;
    greeting_seal(&later, &peer->their_secret, &nonce);
    CHECK(write(link->fd, &later, sizeof(later)) == sizeof(later), "a greeting");
    sock_caller_event(peer->caller);
    CHECK(!peer->caller, "the call is over");
    tick(sock_now_ms());
    CHECK(sock_peer_state(peer) == PEER_UP, "it is given up, though it has just answered");
    peer->link = link;
    connection_end();
}

/* --- how soon a message is there --- */

/* While it stands no time passes but what the test says, on a slow machine as well. */
static bool clock_stands;

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    if (!clock_stands)
        return __real_clock_gettime(clock, time);
    *time = (struct timespec){.tv_sec = 1000000};
    return 0;
}

#define WORK_BYTES ((size_t) 20000)

/* So many of them ask for a word. */
static unsigned works_add(unsigned count)
{
    unsigned asks = 0;

    for (unsigned i = 0; i < count; i++) {
        struct sock_work *work = (struct sock_work *) sock_work_alloc(
            &module.super, peer, MCA_BTL_NO_ORDER, WORK_BYTES, MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);
        CHECK(work != NULL, "a work");
        work->own_bytes = WORK_BYTES;
        *(struct frame_header *) (void *) work->memory = (struct frame_header){0};
        sock_queue_add(peer, work);
        asks += ((struct frame_header *) (void *) work->memory)->flags & FRAME_WANTS_ACK;
    }
    peer->most_number = peer->next_number - 1; /* as if written */
    return asks;
}

/* The other end says so, `later_ns` after what was last measured. */
static void works_arrive(uint32_t have, uint64_t later_ns)
{
    opal_list_t done;

    OBJ_CONSTRUCT(&done, opal_list_t);
    peer->rate.asked_ns -= later_ns;
    peer->rate.from_ns -= later_ns;
    CHECK(sock_queue_received(peer, have, &done), "%u frames", have);
    sock_works_complete(&done, OPAL_SUCCESS);
}

#define LINK_BYTES_S 1e7

static void check_rate(double least, double most, const char *what)
{
    double bytes_s = 1e6 / (sock_rate_arrival_s(peer, 1000000, LINK_BYTES_S) -
                            sock_rate_arrival_s(peer, 0, LINK_BYTES_S));
    CHECK(bytes_s > least && bytes_s < most, "%s: %.0f bytes/s, and not %.0f to %.0f", what,
          bytes_s, least, most);
}

static void rates_are_those_of_samples(void)
{
    CHECK(sock_works_open(WORK_BYTES) == OPAL_SUCCESS, "memory for works");
    connection_make();
    peer->can_write = false; /* nothing is written */
    CHECK(works_add(2) == 0, "no lanes are compared");
    works_arrive(2, 0);
    check_rate(0.99 * LINK_BYTES_S, 1.01 * LINK_BYTES_S, "not known yet");
    CHECK(sock_rate_observed(peer) == 0, "the link says so, nothing was seen");
    CHECK(works_add(2) == 2, "one of an idle rail, and what follows at once");
    works_arrive(3, 10000000);
    CHECK(sock_rate_observed(peer) == 0, "one of two is there");
    works_arrive(4, 5000000);
    check_rate(4e4 / 0.0155, 4e4 / 0.015, "two in 15 ms");
    for (uint32_t i = 0; i < 3; i++) { /* the first ones follow at once */
        CHECK(works_add(1) == 1, "sample %u", i);
        works_arrive(5 + i, 4000000);
    }
    check_rate(3.6e6, 3.8e6, "these and the first: 100 kB in 27 ms");
    CHECK(works_add(1) == 0, "it is just known");
    works_arrive(8, 0);
    sock.clock_ms += 5;
    CHECK(works_add(1) == 1, "of 5 ms ago");
    works_arrive(9, UINT64_C(10000000000));
    check_rate(2.2e6, 2.4e6, "the other end computed: four times slower");
    sock.clock_ms += 49;
    check_rate(2.2e6, 2.4e6, "measured just now");
    sock.clock_ms += 1;
    (void) sock_rate_arrival_s(peer, 1, 1e6);
    CHECK(peer->rate.doubts == 0, "it is as fast as such a link: no doubt");
    check_rate(4.4e6, 4.8e6, "doubted");
    CHECK(sock_rate_observed(peer) < 2.4e6, "what was seen is not");
    connection_end();
    sock_works_close();
}

/* Of what is small, or added while much is under way, no word is asked: the words that come by
 * themselves tell. */
static void busy_rails_are_measured_by_all_words(void)
{
    CHECK(sock_works_open(WORK_BYTES) == OPAL_SUCCESS, "memory for works");
    connection_make();
    peer->can_write = false;
    memset(&peer->rate, 0, sizeof(peer->rate));
    check_rate(0.99 * LINK_BYTES_S, 1.01 * LINK_BYTES_S, "not known yet");
    CHECK(works_add(30) == 27, "as many as are one sample");
    peer->rate.asked_bytes = 0;
    CHECK(works_add(1) == 0, "much is under way");
    check_rate(0.99 * LINK_BYTES_S, 1.01 * LINK_BYTES_S, "no word yet");
    works_arrive(1, 1000000);
    CHECK(sock_rate_observed(peer) == 0, "1 ms is not enough");
    works_arrive(3, 10000000);
    check_rate(5.4e6, 5.5e6, "three in 11 ms");
    CHECK(works_add(1) == 0, "one more");
    works_arrive(32, UINT64_C(10000000000));
    check_rate(5.4e6, 5.5e6, "the rail was idle for a part of 10 s");
    connection_end();
    sock_works_close();
}

/* --- owners --- */

static unsigned owners_told;

static void owner_told(mca_btl_base_module_t *btl, sock_peer_t *to,
                       mca_btl_base_descriptor_t *descriptor, int status)
{
    (void) btl, (void) to, (void) descriptor;
    owners_told += status == OPAL_SUCCESS;
}

static void message_send(uint32_t flags)
{
    mca_btl_base_descriptor_t *message =
        sock_work_alloc(&module.super, peer, MCA_BTL_NO_ORDER, 8, flags);

    CHECK(message != NULL, "a message");
    message->des_cbfunc = owner_told;
    CHECK(sock_send_start(&module.super, peer, message, TAG) == OPAL_SUCCESS, "it is taken");
}

/* Of the next message that was written. */
static bool asks_for_word(void)
{
    struct {
        struct frame_header header;
        unsigned char bytes[8];
    } frame;

    CHECK(recv(far_end, &frame, sizeof(frame), MSG_DONTWAIT) == sizeof(frame), "a message");
    return frame.header.flags & FRAME_WANTS_ACK;
}

static void owners_wait_for_the_kernel_alone(void)
{
    const uint32_t ours = MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;

    CHECK(sock_works_open(WORK_BYTES) == OPAL_SUCCESS, "memory for works");
    connection_make();
    struct sock_socket *link = peer->link;
    peer->link = NULL;
    message_send(ours);
    message_send(ours);
    sock_owners_tell(peer);
    CHECK(owners_told == 0, "there is no connection yet");
    peer->link = link;
    peer->can_write = true;
    OPAL_THREAD_LOCK(&peer->lock);
    sock_queue_write(peer);
    OPAL_THREAD_UNLOCK(&peer->lock);
    works_arrive(1, 0);
    CHECK(owners_told == 0, "under the lock nothing is told");
    sock_owners_tell(peer);
    CHECK(owners_told == 2 && !asks_for_word() && !asks_for_word(), "both are gone");
    message_send(ours);
    CHECK(owners_told == 3 && !asks_for_word(), "it is gone at once");
    message_send(0);
    CHECK(owners_told == 3 && asks_for_word(), "its owner frees it once it is there");
    works_arrive(4, 0);
    CHECK(owners_told == 4, "it is there");
    connection_end();
    sock_works_close();
}

/* What the kernel says of a connection that repeats in vain; NULL: the kernel is asked. */
static const struct tcp_info *repeating;

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *length);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *length);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
    if (!repeating || name != TCP_INFO)
        return __real_getsockopt(fd, level, name, value, length);
    memcpy(value, repeating, *length);
    return 0;
}

/* The other end calls, and greets: so much gets through. */
static void guest_greets(uint32_t call)
{
    const struct greeting hello = {.session = 1, .call = call};
    int ends[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0, "a pair of sockets");
    struct sock_socket *guest = sock_socket_new(ends[0], ROLE_GUEST, &module, NULL);
    CHECK(guest && sock_link_accept(peer, guest, &hello), "call %u", call);
    close(far_end);
    far_end = ends[1];
}

static void one_that_takes_only_greetings_is_given_up(void)
{
    static const struct tcp_info vain = {
        .tcpi_unacked = 1, .tcpi_retransmits = 2, .tcpi_last_ack_recv = 300};
    static const struct tcp_info others_get_through = {.tcpi_unacked = 1, .tcpi_retransmits = 5};

    CHECK(sock_works_open(WORK_BYTES) == OPAL_SUCCESS, "memory for works");
    connection_make();
    peer->can_write = true;
    peer->their_calls = peer->linked_call = 0;
    sock.lost_s = 2;
    message_send(0);
    for (uint32_t call = 1; call <= 3; call++) {
        repeating = call == 2 ? &others_get_through : &vain;
        sock.clock_ms += 600;
        tick(sock_now_ms());
        CHECK(peer->down_since_ms != 0, "cut %u", call);
        CHECK(sock_peer_state(peer) == PEER_UP, "it may work again after cut %u", call);
        guest_greets(call);
    }
    sock.clock_ms += 2000;
    tick(sock_now_ms());
    CHECK(sock_peer_state(peer) == PEER_FAILED, "greetings alone get through");
    repeating = NULL;
    sock_sockets_free();
    close(far_end);
    sock_works_close();
}

/* The other end has said goodbye. */
static void what_is_said_to_one_that_has_ended_is_dropped(void)
{
    const uint32_t ours = MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;

    CHECK(sock_works_open(WORK_BYTES) == OPAL_SUCCESS, "memory for works");
    owners_told = 0;
    connection_make();
    peer->can_write = true;
    peer->state = PEER_ENDED;
    message_send(ours);
    CHECK(owners_told == 1 && !asks_for_word(), "its kernel takes it as long as it is connected");
    message_send(0);
    peer->can_write = false;
    message_send(ours);
    CHECK(owners_told == 1, "these have not left");
    sock_link_broke(peer, "the other end closed it");
    CHECK(owners_told == 3, "%u of 3 count as sent once it has gone", owners_told);
    message_send(ours);
    message_send(0);
    CHECK(owners_told == 5 && peer->kept_bytes == 0, "so do those that come later");
    sock_sockets_free();
    close(far_end);
    sock_works_close();
}

/* --- further connections --- */

/* Is one more tried after the windows of a decision, in which each connection carries so much? */
static bool is_tried(struct sock_growth *growth, uint32_t links, uint32_t megabits, double each)
{
    bool tries = false;

    growth->links = links;
    for (uint32_t i = 0; i < GROWTH_WINDOWS; i++) {
        CHECK(!tries, "%u windows are too few", i);
        tries = sock_growth_judge(growth, megabits, links * each, each);
    }
    return tries;
}

static void connections_are_tried_while_they_bring_something(void)
{
    struct sock_growth growth = {0};

    CHECK(is_tried(&growth, 1, 0, 20e6), "one carries little");
    CHECK(!is_tried(&growth, 1, 0, 20e6), "the second is not connected yet");
    CHECK(is_tried(&growth, 2, 0, 20e6), "two carry twice as much");
    CHECK(!is_tried(&growth, 3, 0, 15e6) && !growth.has_ended, "three carry 45 where two did 40");
    CHECK(is_tried(&growth, 3, 0, 18e6), "they had begun late");
    for (uint32_t i = 1; i <= GROWTH_VAIN_MEANS; i++)
        CHECK(!is_tried(&growth, 4, 0, 14e6) && growth.has_ended == (i == GROWTH_VAIN_MEANS),
              "four carry 56 where three did 54, %u times", i);
    growth = (struct sock_growth){0};
    CHECK(is_tried(&growth, 3, 0, 20e6), "the other end has made two");
    CHECK(!is_tried(&growth, 4, 800, 20e6), "four fill the link");
    CHECK(!growth.has_ended, "they may fill it no more");
    CHECK(is_tried(&growth, 4, 2000, 20e6), "they do not");
    growth = (struct sock_growth){.tried = 2, .links = 2, .before_bytes_s = 20e6};
    for (uint32_t i = 0; i < 10 * GROWTH_WINDOWS; i++)
        CHECK(!sock_growth_judge(&growth, 0, 20e6, 1e6), "the second is not used");
    CHECK(!growth.has_ended, "so it says nothing");
}

/* As many as there may be: none is looked for behind them. */
static void all_connections_of_a_rail_are_counted(void)
{
    static struct sock_module further[SOCK_LINKS_MAX];

    connection_make();
    memset(module.device, 'x', sizeof(module.device) - 1);
    for (uint32_t nth = 1; nth < SOCK_LINKS_MAX; nth++) {
        further[nth] = (struct sock_module){.nth = nth, .first = &module};
        OBJ_CONSTRUCT(&further[nth].lock, opal_mutex_t);
        atomic_store(&module.further[nth], &further[nth]);
        sock_peer_get(&further[nth], &peer->name)->link = peer->link;
    }
    sock_growth_tick(peer);
    CHECK(!peer->growth.has_ended, "they are counted");
    for (uint32_t nth = 1; nth < SOCK_LINKS_MAX; nth++) {
        atomic_store(&module.further[nth], NULL);
        sock_peers_free(&further[nth]);
        OBJ_DESTRUCT(&further[nth].lock);
    }
    connection_end();
}

/* --- a later session --- */

extern const struct multilane_extension mca_btl_sock_multilane_v5;

static bool can_renew(void)
{
    struct multilane_lane_attributes out;

    CHECK(mca_btl_sock_multilane_v5.attributes(&module.super, peer, &out) == OPAL_SUCCESS,
          "attributes");
    return out.capabilities & MULTILANE_CAN_RENEW;
}

static void what_the_other_end_began_anew_may_return(void)
{
    connection_make();
    peer->was_linked = true;
    CHECK(!can_renew(), "nothing has happened");
    struct sock_socket *guest = sock_socket_new(dup(far_end), ROLE_GUEST, &module, NULL);
    const struct greeting hello = {.session = 2, .call = 1, .past_session = 1, .past_have = 0};
    CHECK(guest && !sock_link_accept(peer, guest, &hello),
          "it calls in a session that is not ours");
    CHECK(peer->failure && peer->fenced && can_renew(), "ours is over");
    sock_peer_begin(peer, 2);
    CHECK(!can_renew(), "the same as theirs");
    sock_socket_close(guest);
    connection_end();
}

int main(void)
{
    static unsigned char stream[1u << 20];

    sock.poll_fd = epoll_create1(0);
    sock.buffer = malloc(INTAKE_BYTES);
    crc32c_begin();
    CHECK(sock.poll_fd >= 0 && sock.buffer, "the beginning");
    registered_init();
    OBJ_CONSTRUCT(&sock.closed, opal_list_t);
    OBJ_CONSTRUCT(&module.lock, opal_mutex_t);
    module.super.btl_max_send_size = 128 << 10;
    module.super.btl_put_limit = 1 << 20;
    mca_btl_base_active_message_trigger[TAG].cbfunc = message_come;

    seals_are_those_of_the_paper();
    greetings_are_believed_only_whole();
    keys_are_those_of_the_standard();
    each_bit_of_a_header_is_checked();
    addresses_are_paired();
    wishes_are_checked();
    addresses_of_a_link_are_used_if_named();

    mca_btl_base_registration_handle_t *handle =
        registered_add(NULL, NULL, put_memory + 8, PUT_BYTES, MCA_BTL_REG_FLAG_REMOTE_WRITE);
    CHECK(handle != NULL, "a registration");
    size_t bytes = stream_make(stream, handle);
    stream_is_read_wherever_it_is_cut(stream, bytes);
    a_put_of_nothing_has_come_with_its_header(handle);
    a_put_ends_with_its_registration();
    wrong_bytes_end_the_connection(stream, bytes);
    wrong_frames_are_named(handle);
    hostile = false;
    message_at_the_end_is_dropped(stream);
    memory_goes_with_the_connection();
    a_closed_socket_is_reported_no_more();
    clock_looks_at_peers_with_something_to_watch(stream);
    one_that_is_not_greeted_is_out_of_reach();
    an_outage_ends_with_the_session();
    only_a_refused_call_is_a_refusal();
    a_caller_of_ipv6_binds_no_port();
    a_connection_that_came_back_forgets_a_refusal();
    a_first_call_waits_longer_where_none_is_answered();
    a_process_that_computed_is_not_given_up();
    clock_stands = true;
    rates_are_those_of_samples();
    busy_rails_are_measured_by_all_words();
    clock_stands = false;
    owners_wait_for_the_kernel_alone();
    one_that_takes_only_greetings_is_given_up();
    what_is_said_to_one_that_has_ended_is_dropped();
    connections_are_tried_while_they_bring_something();
    what_the_other_end_began_anew_may_return();
    all_connections_of_a_rail_are_counted();
    registered_remove(NULL, handle);
    registered_finish();
    sock_peers_free(&module);
    free(sock.buffer);
    return check_end();
}
