#pragma once
// The functions of libdw (elfutils) that this program uses, loaded if the library is installed. No header of
// it is needed to build. Their signatures are those of elfutils/libdw.h and elfutils/libdwfl.h, which have
// been stable since 0.158.

#include <elf.h>
#include <sys/types.h>

#include <cstddef>

#include "core/types.hpp"

namespace carousel::backtrace {

// Types that only libdw defines. These are complete only because functions write into them; the members are
// not used.

struct Dwfl;
struct Dwfl_Module;
struct Dwfl_Line;
struct Dwarf_Files;

struct Dwarf_Die {
    void* addr;
    void* cu;
    void* abbrev;
    long padding;
};
struct Dwarf_Attribute {
    unsigned int code, form;
    unsigned char* valp;
    void* cu;
};
struct Dwfl_Callbacks {
    int (*find_elf)(Dwfl_Module*, void**, const char*, u64, char**, void**);
    int (*find_debuginfo)(Dwfl_Module*, void**, const char*, u64, const char*, const char*, u32, char**);
    int (*section_address)(Dwfl_Module*, void**, const char*, u64, const char*, u32, const void*, u64*);
    char** debuginfo_path;
};

struct libdw {
    Dwfl* (*dwfl_begin)(const Dwfl_Callbacks*);
    void (*dwfl_end)(Dwfl*);
    void (*dwfl_report_begin)(Dwfl*);
    Dwfl_Module* (*dwfl_report_elf)(Dwfl*, const char* name, const char* file, int fd, u64 base,
                                    bool add_vaddr);
    int (*dwfl_report_end)(Dwfl*, int (*)(Dwfl_Module*, void*, const char*, u64, void*), void*);
    int (*dwfl_module_build_id)(Dwfl_Module*, const unsigned char** bits, u64* vaddr);
    const char* (*dwfl_module_addrinfo)(Dwfl_Module*, u64 address, u64* offset, Elf64_Sym*, u32* section,
                                        void** elf, u64* bias);
    Dwfl_Line* (*dwfl_module_getsrc)(Dwfl_Module*, u64 address);
    const char* (*dwfl_lineinfo)(Dwfl_Line*, u64* address, int* line, int* column, u64* time, u64* length);
    Dwarf_Die* (*dwfl_module_addrdie)(Dwfl_Module*, u64 address, u64* bias);
    int (*dwarf_getscopes)(Dwarf_Die* unit, u64 pc, Dwarf_Die** scopes);
    int (*dwarf_getscopes_die)(Dwarf_Die*, Dwarf_Die** scopes);
    int (*dwarf_tag)(Dwarf_Die*);
    const char* (*dwarf_diename)(Dwarf_Die*);
    Dwarf_Attribute* (*dwarf_attr_integrate)(Dwarf_Die*, unsigned int name, Dwarf_Attribute*);
    const char* (*dwarf_formstring)(Dwarf_Attribute*);
    int (*dwarf_formudata)(Dwarf_Attribute*, u64*);
    int (*dwarf_getsrcfiles)(Dwarf_Die* unit, Dwarf_Files**, std::size_t*);
    const char* (*dwarf_filesrc)(Dwarf_Files*, std::size_t, u64* time, u64* length);
    int (*dwfl_standard_find_debuginfo)(Dwfl_Module*, void**, const char*, u64, const char*, const char*, u32,
                                        char**);
};

/// Returns null if libdw.so.1 is not installed, or lacks a function.
[[nodiscard]] const libdw* load_libdw();

}  // namespace carousel::backtrace
