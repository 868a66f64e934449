# SPDX-License-Identifier: BSD-3-Clause
"""For gdb, attached to a rank: the requests in the two lists that debuggers of MPI programs walk.

    gdb -batch -p PID -ex "source test/mpi/queues.py"

Prints "receive RANK TAG" and "send RANK TAG" for each request that is active, found in the way of Open
MPI's own library for debuggers: from the list's memory, by its element size, with the base request first.
"""
import gdb


def items_of(name):
    """The elements in all memory that the free list has."""
    lists = gdb.parse_and_eval(f"*(opal_free_list_t *) &{name}")
    size = int(lists["fl_frag_size"]) or int(lists["fl_frag_class"]["cls_sizeof"])
    line = int(gdb.parse_and_eval("*(int *) &opal_cache_line_size"))
    size = (size + line - 1) // line * line
    alignment = int(lists["fl_frag_alignment"])
    end = lists["fl_allocations"]["opal_list_sentinel"].address
    at = end.dereference()["opal_list_next"]
    left = int(lists["fl_num_allocated"])
    head = gdb.lookup_type("opal_free_list_item_t").sizeof
    per_chunk = int(lists["fl_num_per_alloc"])
    while int(at) != int(end) and left > 0:
        first = (int(at) + head + alignment - 1) // alignment * alignment
        for i in range(min(left, per_chunk)):
            yield first + i * size
        left -= per_chunk
        at = at.dereference()["opal_list_next"]


def show(name, word):
    for address in items_of(name):
        request = gdb.parse_and_eval(f"*(mca_pml_base_request_t *) {address}")
        active = request["req_ompi"]["req_state"] == gdb.parse_and_eval("OMPI_REQUEST_ACTIVE")
        if active and not int(request["req_pml_complete"]):
            print(word, int(request["req_peer"]), int(request["req_tag"]))


show("mca_pml_base_recv_requests", "receive")
show("mca_pml_base_send_requests", "send")
