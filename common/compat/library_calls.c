/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes entries of the table by which a library finds what it uses of others. */
#define _GNU_SOURCE
#include "common/compat/library_calls.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if __ELF_NATIVE_CLASS == 64
#define SYMBOL_OF(info) ELF64_R_SYM(info)
#else
#define SYMBOL_OF(info) ELF32_R_SYM(info)
#endif

/* An entry names a symbol, and the place of its address. */
typedef ElfW(Rela) elf_entry;
typedef ElfW(Sym) elf_symbol;
typedef ElfW(Dyn) elf_dynamic;
typedef ElfW(Ehdr) elf_header;
typedef ElfW(Phdr) elf_segment;

struct entries {
    const elf_entry *first;
    size_t count;
};

/* A library, as it lies in memory. */
struct library {
    uintptr_t base;
    const elf_symbol *symbols;
    const char *names;
    struct entries calls, others; /* where there is no table of calls, they are among the others */
    bool has_calls;               /* in entries of this form */
    uintptr_t fixed_start, fixed_end; /* read-only since it was linked */
};

/* Most systems write the address here, some leave the distance from the base. */
static const void *dynamic_address(const struct library *library, const elf_dynamic *dynamic)
{
    uintptr_t at = dynamic->d_un.d_ptr;

    return (const void *) (at < library->base ? at + library->base : at);
}

static void dynamic_read(struct library *library, const elf_dynamic *dynamic)
{
    switch (dynamic->d_tag) {
    case DT_SYMTAB:
        library->symbols = dynamic_address(library, dynamic);
        break;
    case DT_STRTAB:
        library->names = dynamic_address(library, dynamic);
        break;
    case DT_JMPREL:
        library->calls.first = dynamic_address(library, dynamic);
        break;
    case DT_PLTRELSZ:
        library->calls.count = dynamic->d_un.d_val / sizeof(elf_entry);
        break;
    case DT_PLTREL:
        library->has_calls = dynamic->d_un.d_val == DT_RELA;
        break;
    case DT_RELA:
        library->others.first = dynamic_address(library, dynamic);
        break;
    case DT_RELASZ:
        library->others.count = dynamic->d_un.d_val / sizeof(elf_entry);
        break;
    }
}

static uintptr_t page_of(uintptr_t at)
{
    return at & ~((uintptr_t) getpagesize() - 1);
}

/* Whole pages, as the dynamic linker protects them. */
static void fixed_find(struct library *library, const char *start)
{
    const elf_header *header = (const void *) start;
    const elf_segment *segments = (const void *) (start + header->e_phoff);

    for (unsigned i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == PT_GNU_RELRO) {
            uintptr_t first = library->base + segments[i].p_vaddr;

            library->fixed_start = page_of(first);
            library->fixed_end = page_of(first + segments[i].p_memsz);
        }
}

static bool library_find(struct library *library, library_function *inside)
{
    void *address, *map = NULL;
    Dl_info found;

    *library = (struct library){.base = 0};
    memcpy(&address, &inside, sizeof(address)); /* ISO C has no such conversion */
    if (!dladdr1(address, &found, &map, RTLD_DL_LINKMAP) || !map)
        return false;
    library->base = ((struct link_map *) map)->l_addr;
    for (const elf_dynamic *at = ((struct link_map *) map)->l_ld; at->d_tag != DT_NULL; at++)
        dynamic_read(library, at);
    if (!library->has_calls)
        library->calls.count = 0;
    fixed_find(library, found.dli_fbase);
    return library->symbols && library->names;
}

/* The place of the function's address; null: there is none. */
static void *place_find(const struct library *library, const struct entries *entries,
                        const char *name)
{
    for (size_t i = 0; entries->first && i < entries->count; i++) {
        const elf_entry *entry = &entries->first[i];
        size_t symbol = SYMBOL_OF(entry->r_info);

        if (symbol && strcmp(library->names + library->symbols[symbol].st_name, name) == 0)
            return (void *) (library->base + entry->r_offset);
    }
    return NULL;
}

/* Release: what the function needs is there before it is called, or the variable before it is read.
 */
static bool place_set(const struct library *library, void *place, uintptr_t address)
{
    uintptr_t at = (uintptr_t) place, page = page_of(at);
    bool is_fixed = at >= library->fixed_start && at < library->fixed_end;

    if (is_fixed && mprotect((void *) page, at - page + 1, PROT_READ | PROT_WRITE) != 0)
        return false;
    atomic_store_explicit((_Atomic uintptr_t *) place, address, memory_order_release);
    if (is_fixed)
        (void) mprotect((void *) page, at - page + 1, PROT_READ);
    return true;
}

static bool address_set(library_function *inside, const char *name, uintptr_t address)
{
    struct library library;

    if (!library_find(&library, inside))
        return false;
    void *place = place_find(&library, &library.calls, name);
    if (!place)
        place = place_find(&library, &library.others, name);
    return place && place_set(&library, place, address);
}

bool library_call_set(library_function *inside, const char *name, library_function *function)
{
    return address_set(inside, name, (uintptr_t) function);
}

bool library_variable_set(library_function *inside, const char *name, const void *variable)
{
    return address_set(inside, name, (uintptr_t) variable);
}
