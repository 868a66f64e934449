// SPDX-License-Identifier: BSD-3-Clause
// Conformance, chapter Datatypes: every predefined type, derived types of every constructor,
// bounds, MPI_BOTTOM, packing, and what a received message may touch.
#include "layout.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct named_type {
    const char *name;
    MPI_Datatype type;
};

static void exchange_type(const struct named_type *named, size_t count)
{
    int bytes = 0;
    MPI_Aint lower, extent;
    MPI_Status status;
    OK(MPI_Type_size(named->type, &bytes));
    OK(MPI_Type_get_extent(named->type, &lower, &extent));
    if (named->type == MPI_DATATYPE_NULL || bytes == 0)
        return;
    size_t span = (size_t) extent * count;
    unsigned char *out = suite_alloc(span), *in = suite_alloc(span + 16);
    pattern_fill(out, span, count);
    memset(in, 0xA5, span + 16);
    OK(MPI_Sendrecv(out, (int) count, named->type, suite.next, 1, in, (int) count, named->type,
                    suite.prev, 1, suite.comm, &status));
    int got = -1;
    OK(MPI_Get_count(&status, named->type, &got));
    CHECK(got == (int) count, "%s: count %d instead of %zu", named->name, got, count);
    if ((MPI_Aint) bytes == extent)
        CHECK_PATTERN(in, span, count, "%s x %zu", named->name, count);
    for (size_t i = 0; i < count; i++) // a pair may have a gap: its members' first bytes
        CHECK(memcmp(in + i * (size_t) extent, out + i * (size_t) extent, 1) == 0,
              "%s: item %zu differs", named->name, i);
    CHECK(all_bytes_are(in + span, 16, 0xA5), "%s x %zu: wrote behind", named->name, count);
    free(out);
    free(in);
}

static void every_predefined_type_travels(void)
{
    const struct named_type types[] = {
        {"MPI_CHAR", MPI_CHAR},
        {"MPI_SIGNED_CHAR", MPI_SIGNED_CHAR},
        {"MPI_UNSIGNED_CHAR", MPI_UNSIGNED_CHAR},
        {"MPI_BYTE", MPI_BYTE},
        {"MPI_WCHAR", MPI_WCHAR},
        {"MPI_SHORT", MPI_SHORT},
        {"MPI_UNSIGNED_SHORT", MPI_UNSIGNED_SHORT},
        {"MPI_INT", MPI_INT},
        {"MPI_UNSIGNED", MPI_UNSIGNED},
        {"MPI_LONG", MPI_LONG},
        {"MPI_UNSIGNED_LONG", MPI_UNSIGNED_LONG},
        {"MPI_LONG_LONG_INT", MPI_LONG_LONG_INT},
        {"MPI_UNSIGNED_LONG_LONG", MPI_UNSIGNED_LONG_LONG},
        {"MPI_FLOAT", MPI_FLOAT},
        {"MPI_DOUBLE", MPI_DOUBLE},
        {"MPI_C_BOOL", MPI_C_BOOL},
        {"MPI_INT8_T", MPI_INT8_T},
        {"MPI_INT16_T", MPI_INT16_T},
        {"MPI_INT32_T", MPI_INT32_T},
        {"MPI_INT64_T", MPI_INT64_T},
        {"MPI_UINT8_T", MPI_UINT8_T},
        {"MPI_UINT16_T", MPI_UINT16_T},
        {"MPI_UINT32_T", MPI_UINT32_T},
        {"MPI_UINT64_T", MPI_UINT64_T},
        {"MPI_C_FLOAT_COMPLEX", MPI_C_FLOAT_COMPLEX},
        {"MPI_C_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX},
        {"MPI_AINT", MPI_AINT},
        {"MPI_OFFSET", MPI_OFFSET},
        {"MPI_COUNT", MPI_COUNT},
        {"MPI_2INT", MPI_2INT},
        {"MPI_FLOAT_INT", MPI_FLOAT_INT},
        {"MPI_DOUBLE_INT", MPI_DOUBLE_INT},
        {"MPI_LONG_INT", MPI_LONG_INT},
        {"MPI_SHORT_INT", MPI_SHORT_INT},
        {"MPI_PACKED", MPI_PACKED},
    };
    static const size_t counts[] = {0, 1, 3, 64, 1025, 9000, 70000};
    for (size_t i = 0; i < COUNT_OF(types); i++)
        for (size_t k = 0; k < COUNT_OF(counts); k++)
            exchange_type(&types[i], counts[k]);
}

// The exchange of one message between two layouts, each checked to the byte.
static void exchange_layouts(enum layout_kind from, enum layout_kind to,
                             const struct layout_element *element, size_t elements, bool late)
{
    struct layout out, in;
    MPI_Status status;
    MPI_Request request;
    uint64_t key = (uint64_t) from * 100 + (uint64_t) to + elements;
    layout_build(&out, from, element->type, element->bytes, elements);
    layout_build(&in, to, element->type, element->bytes, elements);
    layout_fill(&out, key + (uint64_t) suite.rank);
    if (late) {
        OK(MPI_Isend(out.address, out.count, out.type, suite.next, 1, suite.comm, &request));
        OK(MPI_Probe(suite.prev, 1, suite.comm, &status));
        CHECK_STATUS(status, suite.prev, 1, in.bytes);
        OK(MPI_Recv(in.address, in.count, in.type, suite.prev, 1, suite.comm, &status));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
        OK(MPI_Irecv(in.address, in.count, in.type, suite.prev, 1, suite.comm, &request));
        OK(MPI_Send(out.address, out.count, out.type, suite.next, 1, suite.comm));
        OK(MPI_Wait(&request, &status));
    }
    CHECK_STATUS(status, suite.prev, 1, in.bytes);
    ptrdiff_t wrong = layout_check(&in, key + (uint64_t) suite.prev, in.bytes);
    CHECK(wrong < 0, "%s to %s, %zu %s: byte %td is wrong", layout_names[from], layout_names[to],
          elements, element->name, wrong);
    CHECK(layout_gaps_untouched(&in), "%s to %s, %zu %s: a gap was written", layout_names[from],
          layout_names[to], elements, element->name);
    CHECK(layout_check(&out, key + (uint64_t) suite.rank, out.bytes) < 0 &&
              layout_gaps_untouched(&out),
          "%s to %s: the send buffer changed", layout_names[from], layout_names[to]);
    layout_free(&out);
    layout_free(&in);
}

static void derived_types_travel_between_all_layouts(void)
{
    static const size_t elements[] = {0, 12, 60, 600, 1200, 12000, 120000};
    for (int from = 0; from < LAYOUT_KINDS; from++) {
        for (int to = 0; to < LAYOUT_KINDS; to++) {
            for (size_t i = 0; i < COUNT_OF(elements); i++) {
                struct layout_element element = layout_element_get((size_t) from + (size_t) to + i);
                if (suite.oversubscribed && elements[i] > 50000)
                    continue;
                exchange_layouts((enum layout_kind) from, (enum layout_kind) to, &element,
                                 elements[i], (from + to + (int) i) % 2);
            }
        }
    }
}

static void large_derived_messages_travel(void)
{
    size_t elements = suite.thorough ? 6000000 : 600000;
    for (int kind = LAYOUT_GAPS; kind < LAYOUT_KINDS; kind++) {
        struct layout_element element = layout_element_get(4);
        exchange_layouts((enum layout_kind) kind, LAYOUT_CONTIGUOUS, &element, elements, false);
        exchange_layouts(LAYOUT_CONTIGUOUS, (enum layout_kind) kind, &element, elements, true);
    }
}

// Each length has its protocol, pieces and places in a lane's memory; and what is sent again and
// again may be tried by other protocols.
static void columns_of_any_length_travel(void)
{
    struct layout_element element = layout_element_get(4);
    for (size_t elements = 16; elements < 20000; elements += elements / 12 + 1)
        exchange_layouts(LAYOUT_LONG_VECTOR, LAYOUT_GAPS, &element,
                         elements / LAYOUT_UNIT * LAYOUT_UNIT, false);
    for (size_t elements = 600; elements < 10000; elements *= 2)
        for (int i = 0; i < (suite.thorough ? 20000 : 500); i++)
            exchange_layouts(LAYOUT_LONG_VECTOR, LAYOUT_LONG_VECTOR, &element, elements, false);
}

static void a_shorter_message_fills_the_first_elements(void)
{
    static const size_t sizes[][2] = {{12, 24}, {600, 12000}, {6000, 9000}, {60000, 120000}};
    for (int kind = 0; kind < LAYOUT_KINDS; kind++) {
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            struct layout out, in;
            MPI_Status status;
            layout_build(&out, LAYOUT_CONTIGUOUS, MPI_INT, sizeof(int), sizes[i][0]);
            layout_build(&in, (enum layout_kind) kind, MPI_INT, sizeof(int), sizes[i][1]);
            layout_fill(&out, i);
            OK(MPI_Sendrecv(out.address, out.count, out.type, suite.next, 1, in.address, in.count,
                            in.type, suite.prev, 1, suite.comm, &status));
            CHECK_STATUS(status, suite.prev, 1, out.bytes);
            CHECK(layout_check(&in, i, out.bytes) < 0, "%s: contents", layout_names[kind]);
            CHECK(layout_rest_untouched(&in, out.bytes), "%s: more was written than came",
                  layout_names[kind]);
            layout_free(&out);
            layout_free(&in);
        }
    }
}

static void types_may_be_freed_while_in_use(void)
{
    enum { ELEMENTS = 120000 };
    struct layout out, in;
    MPI_Request requests[2];
    layout_build(&out, LAYOUT_VECTOR, MPI_DOUBLE, sizeof(double), ELEMENTS);
    layout_build(&in, LAYOUT_INDEXED, MPI_DOUBLE, sizeof(double), ELEMENTS);
    layout_fill(&out, 5);
    OK(MPI_Irecv(in.address, in.count, in.type, suite.prev, 1, suite.comm, &requests[0]));
    OK(MPI_Isend(out.address, out.count, out.type, suite.next, 1, suite.comm, &requests[1]));
    OK(MPI_Type_free(&out.type));
    OK(MPI_Type_free(&in.type));
    out.type_is_ours = in.type_is_ours = false;
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(layout_check(&in, 5, in.bytes) < 0, "contents");
    layout_free(&out);
    layout_free(&in);
}

// Types with holes all of whose data has no bytes at all.
static void types_without_bytes_travel(void)
{
    MPI_Datatype empty, resized;
    int in[4] = {1, 2, 3, 4};
    MPI_Status status;
    OK(MPI_Type_contiguous(0, MPI_INT, &empty));
    OK(MPI_Type_create_resized(empty, -8, 24, &resized));
    OK(MPI_Type_commit(&resized));
    OK(MPI_Sendrecv(in, 5, resized, suite.next, 0, in, 9, resized, suite.prev, 0, suite.comm,
                    &status));
    CHECK_STATUS(status, suite.prev, 0, 0);
    CHECK(in[0] == 1 && in[3] == 4, "an empty message wrote");
    OK(MPI_Type_free(&empty));
    OK(MPI_Type_free(&resized));
}

static void darray_and_nested_types_travel(void)
{
    enum { ROWS = 40, COLUMNS = 30 };
    double out[ROWS][COLUMNS], in[ROWS][COLUMNS];
    MPI_Datatype column, columns;
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++) {
            out[r][c] = r * 100 + c;
            in[r][c] = -1;
        }
    OK(MPI_Type_vector(ROWS, 1, COLUMNS, MPI_DOUBLE, &column));
    OK(MPI_Type_create_hvector(COLUMNS, 1, sizeof(double), column, &columns)); // the transpose
    OK(MPI_Type_commit(&columns));
    OK(MPI_Sendrecv(out, 1, columns, suite.next, 0, in, ROWS * COLUMNS, MPI_DOUBLE, suite.prev, 0,
                    suite.comm, MPI_STATUS_IGNORE));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        CHECK((&in[0][0])[i] == i % ROWS * 100 + i / ROWS, "transposed element %d is %g", i,
              (&in[0][0])[i]);
    OK(MPI_Type_free(&column));
    OK(MPI_Type_free(&columns));
    MPI_Datatype darray;
    int share = 0;
    OK(MPI_Type_create_darray(1, 0, 2, (int[]){ROWS, COLUMNS},
                              (int[]){MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK},
                              (int[]){MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG},
                              (int[]){1, 1}, MPI_ORDER_C, MPI_DOUBLE, &darray));
    OK(MPI_Type_commit(&darray));
    OK(MPI_Type_size(darray, &share));
    CHECK(share == (int) sizeof out, "the only process's share has %d bytes", share);
    memset(in, 0, sizeof in);
    OK(MPI_Sendrecv(out, 1, darray, suite.next, 0, in, 1, darray, suite.prev, 0, suite.comm,
                    MPI_STATUS_IGNORE));
    CHECK(memcmp(in, out, sizeof in) == 0, "the array differs");
    OK(MPI_Type_free(&darray));
}

static void packed_data_is_received_as_its_type(void)
{
    int values[50], in[50] = {0}, position = 0, room = 0;
    double factors[10], got[10] = {0};
    for (int i = 0; i < 50; i++)
        values[i] = i * i;
    for (int i = 0; i < 10; i++)
        factors[i] = i / 3.0;
    OK(MPI_Pack_size(50, MPI_INT, suite.comm, &room));
    char *packed = suite_alloc((size_t) room + 10 * sizeof(double) + 200);
    room += (int) (10 * sizeof(double) + 200);
    OK(MPI_Pack(values, 50, MPI_INT, packed, room, &position, suite.comm));
    MPI_Request request;
    OK(MPI_Isend(packed, position, MPI_PACKED, suite.next, 0, suite.comm, &request));
    OK(MPI_Recv(in, 50, MPI_INT, suite.prev, 0, suite.comm, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(memcmp(in, values, sizeof in) == 0, "packed integers differ");
    OK(MPI_Pack(factors, 10, MPI_DOUBLE, packed, room, &position, suite.comm));
    char *arrived = suite_alloc((size_t) room);
    OK(MPI_Sendrecv(packed, position, MPI_PACKED, suite.next, 0, arrived, room, MPI_PACKED,
                    suite.prev, 0, suite.comm, MPI_STATUS_IGNORE));
    int at = 0;
    memset(in, 0, sizeof in);
    OK(MPI_Unpack(arrived, room, &at, in, 50, MPI_INT, suite.comm));
    OK(MPI_Unpack(arrived, room, &at, got, 10, MPI_DOUBLE, suite.comm));
    CHECK(memcmp(in, values, sizeof in) == 0 && memcmp(got, factors, sizeof got) == 0,
          "unpacked values differ");
    free(packed);
    free(arrived);
}

// Sender and receiver may build the same signature differently, also over several items.
static void the_signature_matches_not_the_type(void)
{
    struct {
        int a;
        double b;
    } in[100];
    MPI_Datatype pair, packed;
    MPI_Aint places[2];
    unsigned char out[100 * (sizeof(int) + sizeof(double))];
    for (int i = 0; i < 100; i++) {
        double b = i * 0.5;
        memcpy(out + 12 * (size_t) i, &i, sizeof i);
        memcpy(out + 12 * (size_t) i + sizeof i, &b, sizeof b);
    }
    places[0] = 0;
    places[1] = (MPI_Aint) ((char *) &in[0].b - (char *) &in[0].a);
    MPI_Datatype members[] = {MPI_INT, MPI_DOUBLE}, whole;
    OK(MPI_Type_create_struct(2, (int[]){1, 1}, places, members, &pair));
    OK(MPI_Type_create_resized(pair, 0, sizeof in[0], &whole));
    OK(MPI_Type_commit(&whole));
    places[1] = sizeof(int);
    OK(MPI_Type_free(&pair));
    OK(MPI_Type_create_struct(2, (int[]){1, 1}, places, members, &pair));
    OK(MPI_Type_create_resized(pair, 0, sizeof(int) + sizeof(double), &packed));
    OK(MPI_Type_commit(&packed));
    memset(in, 0, sizeof in);
    OK(MPI_Sendrecv(out, 100, packed, suite.next, 0, in, 100, whole, suite.prev, 0, suite.comm,
                    MPI_STATUS_IGNORE));
    for (int i = 0; i < 100; i++)
        CHECK(in[i].a == i && in[i].b == i * 0.5, "item %d is %d, %g", i, in[i].a, in[i].b);
    OK(MPI_Type_free(&pair));
    OK(MPI_Type_free(&whole));
    OK(MPI_Type_free(&packed));
}

static void derived_types_serve_collectives(void)
{
    struct layout out, in;
    enum { ELEMENTS = 2400 };
    for (int kind = 0; kind < LAYOUT_KINDS; kind++) {
        layout_build(&out, (enum layout_kind) kind, MPI_INT, sizeof(int), ELEMENTS);
        layout_build(&in, LAYOUT_CONTIGUOUS, MPI_INT, sizeof(int),
                     (size_t) ELEMENTS * (size_t) suite.size);
        layout_fill(&out, (uint64_t) suite.rank);
        OK(MPI_Allgather(out.address, out.count, out.type, in.address, ELEMENTS, MPI_INT,
                         suite.comm));
        for (int i = 0; i < suite.size; i++)
            CHECK_PATTERN(in.origin + (size_t) i * ELEMENTS * sizeof(int), ELEMENTS * sizeof(int),
                          (uint64_t) i, "%s from rank %d", layout_names[kind], i);
        layout_fill(&out, 999);
        if (suite.rank != 0)
            layout_clear(&out);
        OK(MPI_Bcast(out.address, out.count, out.type, 0, suite.comm));
        CHECK(layout_check(&out, 999, out.bytes) < 0 && layout_gaps_untouched(&out),
              "%s: broadcast", layout_names[kind]);
        layout_free(&out);
        layout_free(&in);
    }
}

#define DERIVED "Datatypes, Derived Datatypes"

static const struct suite_case cases[] = {
    {"every_predefined_type_travels", "Point-to-Point, Message Data", every_predefined_type_travels,
     1},
    {"derived_types_travel_between_all_layouts", DERIVED, derived_types_travel_between_all_layouts,
     1},
    {"large_derived_messages_travel", DERIVED, large_derived_messages_travel, 1},
    {"columns_of_any_length_travel", DERIVED, columns_of_any_length_travel, 1},
    {"a_shorter_message_fills_the_first_elements",
     "Datatypes, Use of General Datatypes in Communication",
     a_shorter_message_fills_the_first_elements, 1},
    {"types_may_be_freed_while_in_use", "Datatypes, Commit and Free",
     types_may_be_freed_while_in_use, 1},
    {"types_without_bytes_travel", "Datatypes, Datatype Constructors", types_without_bytes_travel,
     1},
    {"darray_and_nested_types_travel", "Datatypes, Distributed Array Datatype Constructor",
     darray_and_nested_types_travel, 1},
    {"packed_data_is_received_as_its_type", "Datatypes, Pack and Unpack",
     packed_data_is_received_as_its_type, 1},
    {"the_signature_matches_not_the_type", "Point-to-Point, Data Type Matching",
     the_signature_matches_not_the_type, 1},
    {"derived_types_serve_collectives", DERIVED, derived_types_serve_collectives, 1},
};

const struct suite_chapter suite_datatype = {"datatype", cases, COUNT_OF(cases)};
