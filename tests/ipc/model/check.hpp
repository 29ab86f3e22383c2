#pragma once
#include <iostream>

#include "catalogue.hpp"
#include "tests/support/catch.hpp"

namespace carousel::ipc_model {

inline constexpr u64 most_states = 40'000'000;  // a few GiB

/// Explores each, in its own section. A broken rule shows the shortest path to it.
template <class Setup>
void check(const listed<Setup>& all) {
    for (const one_search<Setup>& one : all) {
        DYNAMIC_SECTION(one.name) {
            const result r = explore(one.what, most_states);
            std::string trace;
            for (const std::string& s : r.trace) trace += " " + s;
            if (!r.broken.empty()) trace = "\n  " + r.broken + ":" + trace + "\n  " + r.why;
            std::cout << one.name << ": " << r.states << " states, " << r.steps << " steps" << trace << '\n';
            INFO(r.states << " states" << trace);
            CHECK(r.broken == one.rule);
            CHECK(r.trace.empty() == r.broken.empty());
        }
    }
}

}  // namespace carousel::ipc_model
