#include "backtrace/libdw.hpp"

#include <dlfcn.h>

#include <type_traits>

namespace carousel::backtrace {

const libdw* load_libdw() {
    static libdw all{};
    void* const library = ::dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    bool complete = true;
    const auto find = [&](const char* name, auto& function) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
        complete = complete && function != nullptr;
    };
#define CAROUSEL_FIND(name) find(#name, all.name)
    CAROUSEL_FIND(dwfl_begin);
    CAROUSEL_FIND(dwfl_end);
    CAROUSEL_FIND(dwfl_report_begin);
    CAROUSEL_FIND(dwfl_report_elf);
    CAROUSEL_FIND(dwfl_report_end);
    CAROUSEL_FIND(dwfl_module_build_id);
    CAROUSEL_FIND(dwfl_module_addrinfo);
    CAROUSEL_FIND(dwfl_module_getsrc);
    CAROUSEL_FIND(dwfl_lineinfo);
    CAROUSEL_FIND(dwfl_module_addrdie);
    CAROUSEL_FIND(dwarf_getscopes);
    CAROUSEL_FIND(dwarf_getscopes_die);
    CAROUSEL_FIND(dwarf_tag);
    CAROUSEL_FIND(dwarf_diename);
    CAROUSEL_FIND(dwarf_attr_integrate);
    CAROUSEL_FIND(dwarf_formstring);
    CAROUSEL_FIND(dwarf_formudata);
    CAROUSEL_FIND(dwarf_getsrcfiles);
    CAROUSEL_FIND(dwarf_filesrc);
    CAROUSEL_FIND(dwfl_standard_find_debuginfo);
#undef CAROUSEL_FIND
    return complete ? &all : nullptr;
}

}  // namespace carousel::backtrace
