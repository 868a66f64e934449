# SPDX-License-Identifier: BSD-3-Clause
"""For gdb, attached to a rank: what a debugger of MPI programs shows of the message queues.

    MSGQ=.../libompi_dbg_msgq.so gdb -batch -p PID \\
        -ex "add-symbol-file BUILD/.libs/libdebugger_types.so" -ex "source test/mpi/queues.py"

gdb knows no queues itself; it stands in for the debugger here, and Open MPI's own library for debuggers
reads the rank through it. Prints "receive RANK TAG" and "send RANK TAG" for each pending operation.
libdebugger_types has the types of Open MPI, whose descriptions Debian takes out of its libraries.
"""
import ctypes
import os
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_long, c_size_t, c_ulong, c_void_p

import gdb

OK, MISSING = 0, 1
IMAGE, PROCESS = 1, 2  # what the library calls back with; there is one of each
SENDS, RECEIVES = 0, 1
infos, types = {}, []
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = c_void_p, [c_size_t], [c_void_p]


class Communicator(ctypes.Structure):
    _fields_ = [("id", c_ulong), ("rank", c_long), ("size", c_long), ("name", ctypes.c_char * 64)]


class Operation(ctypes.Structure):
    _fields_ = [("status", c_int), ("rank", c_long), ("world_rank", c_long), ("any_tag", c_int),
                ("tag", c_long), ("length", c_long), ("is_system", c_int), ("buffer", c_ulong),
                ("actual_rank", c_long), ("actual_world_rank", c_long), ("actual_tag", c_long),
                ("actual_length", c_long), ("extra", ctypes.c_char * 64 * 5)]


def symbol_find(name, address):
    try:
        found = int(gdb.parse_and_eval(f"(long) &{name.decode()}"))
    except gdb.error:
        return MISSING
    if address:
        address[0] = found
    return OK


def type_find(_, name, language):
    del language
    for form in (name.decode(), f"struct {name.decode()}"):
        try:
            types.append(gdb.lookup_type(form).strip_typedefs())
            return len(types)
        except gdb.error:
            pass
    return None


def field_offset(number, name):
    for field in types[number - 1].fields():
        if field.name == name.decode():
            return field.bitpos // 8
    return -1


def fetch(_, address, size, to):
    try:
        ctypes.memmove(to, gdb.selected_inferior().read_memory(address, size).tobytes(), size)
    except gdb.MemoryError:
        return MISSING
    return OK


def sizes_get(_, sizes):
    for i, size in enumerate((2, 4, 8, 8, 8, 1, 8)):
        sizes[i] = size


def table(*entries):
    """A table of callbacks: (what it returns, what it takes, the function)."""
    made = [CFUNCTYPE(result, *taken)(function) for result, taken, function in entries]
    return (c_void_p * len(made))(*(ctypes.cast(one, c_void_p) for one in made)), made


put = (None, [c_void_p, c_void_p], infos.__setitem__)
get = (c_void_p, [c_void_p], infos.get)
basic = table((c_void_p, [c_size_t], libc.malloc), (None, [c_void_p], libc.free),
              (None, [c_char_p], print), (c_char_p, [c_int], lambda error: b"an error"),
              put, get, put, get)
image = table((None, [c_void_p, POINTER(c_int)], sizes_get),
              (c_int, [c_void_p, c_char_p, c_int, POINTER(c_ulong)],
               lambda _, name, language, address: symbol_find(name, address)),
              (c_int, [c_void_p, c_char_p, POINTER(c_ulong)],
               lambda _, name, address: symbol_find(name, address)),
              (c_void_p, [c_void_p, c_char_p, c_int], type_find),
              (c_int, [c_void_p, c_char_p], field_offset),
              (c_int, [c_void_p], lambda number: types[number - 1].sizeof))
process = table((c_int, [c_void_p], lambda _: 0), (c_void_p, [c_void_p], lambda _: IMAGE),
                (c_int, [c_void_p, c_ulong, c_int, c_void_p], fetch),
                (None, [c_void_p, c_void_p, c_void_p, c_int],
                 lambda _, at, to, size: ctypes.memmove(to, at, size)))

library = ctypes.CDLL(os.environ["MSGQ"])
library.mqs_dll_error_string.restype = c_char_p


def call(name, *arguments):
    status = getattr(library, name)(*arguments)
    if status != OK:
        raise gdb.GdbError(f"{name}: {status}: {library.mqs_dll_error_string(status)}")


message = c_char_p()
library.mqs_setup_basic_callbacks(basic[0])
call("mqs_setup_image", c_void_p(IMAGE), image[0])
call("mqs_image_has_queues", c_void_p(IMAGE), ctypes.byref(message))
call("mqs_setup_process", c_void_p(PROCESS), process[0])
call("mqs_process_has_queues", c_void_p(PROCESS), ctypes.byref(message))
call("mqs_update_communicator_list", c_void_p(PROCESS))
call("mqs_setup_communicator_iterator", c_void_p(PROCESS))
communicator, operation = Communicator(), Operation()
while library.mqs_get_communicator(c_void_p(PROCESS), ctypes.byref(communicator)) == OK:
    for kind, word in ((RECEIVES, "receive"), (SENDS, "send")):
        if library.mqs_setup_operation_iterator(c_void_p(PROCESS), kind) != OK:
            continue
        while library.mqs_next_operation(c_void_p(PROCESS), ctypes.byref(operation)) == OK:
            if operation.status == 0:  # pending
                print(word, operation.rank, operation.tag)
    if library.mqs_next_communicator(c_void_p(PROCESS)) != OK:
        break
