#pragma once
// How this process has a page mapped.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace carousel::test {

/// "r--s": the rights of the page at `address`, by /proc/self/maps; "" where nothing is mapped.
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
