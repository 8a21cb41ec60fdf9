/* Hands unused memory of this process back to the system.
 *
 * After a program is built: free parts of the heap, and the pages of LLVM's libraries, of which 45 MB are
 * read once when they are loaded. A run whose kernels are cached holds 50 to 70 MB less (W4: 94 instead of
 * 152 MB). */
#include "core/memory.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "platform/system.h"

#ifdef __GLIBC__

#include <stdbool.h>
#include <string.h>

/* Whether malloc is the C library's. With another one (jemalloc, a sanitizer), the C library's own is not
 * initialized: malloc_trim would do it, and two threads at once would both do it. */
static bool is_library_allocator(void) {
    Dl_info allocator, library;
    const void *malloc_address = dlsym(RTLD_DEFAULT, "malloc"), *trim_address = dlsym(RTLD_DEFAULT, "malloc_trim");
    return malloc_address && trim_address && dladdr(malloc_address, &allocator) && dladdr(trim_address, &library) &&
           allocator.dli_fbase == library.dli_fbase;
}

/* Whether the dynamic linker wrote to the code of the library, whose pages are then no longer those of the file. */
static bool has_text_relocations(const struct dl_phdr_info *library) {
    for (int i = 0; i < library->dlpi_phnum; ++i) {
        if (library->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
        const ElfW(Dyn) *entry = (const void *)(library->dlpi_addr + library->dlpi_phdr[i].p_vaddr);
        for (; entry->d_tag != DT_NULL; ++entry)
            if (entry->d_tag == DT_TEXTREL || (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL)))
                return true;
    }
    return false;
}

/* Libraries of LLVM, with which PoCL and Mesa compile. Loading one reads its symbols and relocations once, 45
 * MB with PoCL 3.1; a run that found its kernels in a cache never executes the rest. */
static bool is_compiler(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return strncmp(name, "libLLVM", 7) == 0 || strncmp(name, "libclang", 8) == 0;
}

/* Drops the pages of segments that are never written. The dynamic linker holds its lock meanwhile, so that
 * the library stays where it is. */
static int drop_pages(struct dl_phdr_info *library, size_t size, void *user) {
    const ElfW(Addr) page = *(const ElfW(Addr) *)user;
    (void)size;
    if (!library->dlpi_name || !is_compiler(library->dlpi_name) || has_text_relocations(library)) return 0;
    for (int i = 0; i < library->dlpi_phnum; ++i) {
        const ElfW(Phdr) *segment = &library->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W)) continue;
        const ElfW(Addr) from = (library->dlpi_addr + segment->p_vaddr) & ~(page - 1);
        /* the last page stays, since the next segment may begin in it */
        const ElfW(Addr) to = (library->dlpi_addr + segment->p_vaddr + segment->p_memsz) & ~(page - 1);
        if (to > from) madvise((void *)from, to - from, MADV_DONTNEED);
    }
    return 0;
}

void cleat_trim_memory(void) {
    ElfW(Addr) page = (ElfW(Addr))sysconf(_SC_PAGESIZE);
    if (is_library_allocator()) malloc_trim(0);
    dl_iterate_phdr(drop_pages, &page);
}

#else

void cleat_trim_memory(void) {
}

#endif
