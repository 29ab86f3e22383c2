#pragma once
#include "../support/catch.hpp"
#include "catalogue.hpp"

namespace carousel::model {

/// Explores the entries of the requested cost, each in a section of its own.
inline void check_entries(const std::vector<entry>& entries, effort cost, bool holding) {
    for (const entry& e : entries) {
        if (e.cost != cost || (e.expected == failure::holds) != holding) continue;
        DYNAMIC_SECTION(e.name) {
            const result r = explore(e.what);
            std::string trace;
            for (const std::string& s : r.trace) trace += " " + s;
            INFO(r.states << " states; " << r.why << "; trace:" << trace);
            CHECK(std::string(name_of(r.found)) == name_of(e.expected));
        }
    }
}

}  // namespace carousel::model
