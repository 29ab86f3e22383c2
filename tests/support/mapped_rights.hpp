#pragma once
// The rights with which this process has a page mapped.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace carousel::test {

/// Rights of the page at `address`, e.g. "r--s", from /proc/self/maps; "" if nothing is mapped there.
inline std::string rights_at(const void* address) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        unsigned long from = 0, to = 0;
        char rights[5] = {};
        if (std::sscanf(line.c_str(), "%lx-%lx %4s", &from, &to, rights) != 3) continue;
        const auto at = reinterpret_cast<std::uintptr_t>(address);
        if (from <= at && at < to) return rights;
    }
    return "";
}

}  // namespace carousel::test
