/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes entries of the table by which a library finds what it uses of others. */
#include "common/compat/library_calls.h"

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

/* As the dynamic linker has it. */
static bool library_read(struct library *library, const struct dl_phdr_info *object)
{
    const elf_dynamic *dynamic = NULL;

    *library = (struct library){.base = object->dlpi_addr};
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const elf_segment *segment = &object->dlpi_phdr[i];
        uintptr_t first = library->base + segment->p_vaddr;

        if (segment->p_type == PT_DYNAMIC)
            dynamic = (const void *) first;
        if (segment->p_type == PT_GNU_RELRO) { /* whole pages of it are protected */
            library->fixed_start = page_of(first);
            library->fixed_end = page_of(first + segment->p_memsz);
        }
    }
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++)
        dynamic_read(library, dynamic);
    if (!library->has_calls)
        library->calls.count = 0;
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

struct change {
    const char *file, *name;
    uintptr_t address;
    bool is_made;
};

static int library_change(struct dl_phdr_info *object, size_t size, void *context)
{
    struct change *change = context;
    const char *file = strrchr(object->dlpi_name, '/');
    struct library library;

    file = file ? file + 1 : object->dlpi_name;
    if (strncmp(file, change->file, strlen(change->file)) != 0 || !library_read(&library, object))
        return 0;
    void *place = place_find(&library, &library.calls, change->name);
    if (!place)
        place = place_find(&library, &library.others, change->name);
    if (place && place_set(&library, place, change->address))
        change->is_made = true;
    return 0;
}

bool library_entry_set(const char *file, const char *name, uintptr_t address)
{
    struct change change = {file, name, address, false};

    dl_iterate_phdr(library_change, &change);
    return change.is_made;
}
