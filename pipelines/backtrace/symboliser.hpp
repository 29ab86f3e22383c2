#pragma once
// Finds the functions and source lines of a recorded stack.

#include <map>
#include <string>
#include <vector>

#include "backtrace/libdw.hpp"
#include "run/fault_record.hpp"

namespace carousel::backtrace {

/// One line of a backtrace. A frame of the stack has several: the functions that are inlined into it come
/// first.
struct place {
    std::string function;  ///< demangled; "": unknown
    std::string source;    ///< "sharpen.cpp:31"; "": unknown
    bool inlined = false;
};

class symboliser {
public:
    /// `library`: null if libdw is not installed; then no names are found.
    symboliser(const run::fault_record& r, const libdw* library);
    ~symboliser();
    symboliser(const symboliser&) = delete;
    symboliser& operator=(const symboliser&) = delete;

    /// The module of frame `k`; null if it is in none, e.g. in code that was compiled at run time.
    [[nodiscard]] const run::fault_module* module_of(u32 k) const noexcept;
    /// The address of frame `k` in the file of its module, as addr2line expects it: that of the call.
    [[nodiscard]] u64 address_in_file(u32 k) const noexcept;
    /// Empty if nothing is known.
    [[nodiscard]] std::vector<place> places_of(u32 k) const;
    /// True if the module's file has been replaced since the process was started, or cannot be read. False
    /// for a module without a file.
    [[nodiscard]] bool is_stale(const run::fault_module& m) const noexcept;

private:
    /// The address of the instruction that was executing.
    [[nodiscard]] u64 instruction(u32 k) const noexcept { return record_->frame[k] - (k == 0 ? 0 : 1); }
    [[nodiscard]] std::vector<place> scopes_of(Dwfl_Module* module, u64 address) const;
    [[nodiscard]] std::string function_name(Dwarf_Die& die) const;
    [[nodiscard]] std::string call_site(Dwarf_Die& unit, Dwarf_Die& die) const;

    const run::fault_record* record_;
    const libdw* library_;
    Dwfl* session_ = nullptr;
    std::map<const run::fault_module*, Dwfl_Module*> modules_;  ///< null: stale
};

}  // namespace carousel::backtrace
