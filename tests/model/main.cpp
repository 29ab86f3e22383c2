// carousel-model-check: explores the slot protocol's set-ups by name and prints the results.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "catalogue.hpp"

namespace {

using namespace carousel::model;

bool wanted(const entry& e, const std::vector<std::string>& names, bool everyday) {
    if (everyday && e.cost != effort::everyday) return false;
    if (names.empty()) return true;
    for (const std::string& n : names)
        if (e.name.find(n) != std::string::npos) return true;
    return false;
}

bool run(const entry& e, bool verbose, carousel::u64 max_states) {
    const result r = explore(e.what, max_states);
    const bool as_expected = r.found == e.expected;
    fmt::print("{:>10} states {:>10} steps {:7.2f} s {:6} MiB  {:16}{} {}\n", r.states, r.steps, r.seconds,
               r.bytes >> 20U, name_of(r.found),
               as_expected ? "  " : fmt::format("!! expected {}", name_of(e.expected)), e.name);
    if (r.found != failure::holds && (verbose || !as_expected)) {
        fmt::print("    why: {}\n    trace:", r.why);
        for (const std::string& s : r.trace) fmt::print(" {}", s);
        fmt::print("\n");
    }
    std::fflush(stdout);
    return as_expected;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{
        "Explores the slot protocol exhaustively in small set-ups. Exit code 1: a result differs from the "
        "expected one."};
    bool list = false, everyday = false, quiet = false;
    std::vector<std::string> names;
    carousel::u64 max_states = 40'000'000;
    app.add_option("--max-states", max_states,
                   "give up beyond (TOO-BIG); 40 million by default, about 6 GiB");
    app.add_flag("--list", list, "print the set-ups and what is expected of them");
    app.add_flag("--everyday", everyday, "only the small ones");
    app.add_flag("--quiet", quiet, "no traces of expected failures");
    app.add_option("NAME", names, "parts of the names of the set-ups to explore; none: all");
    CLI11_PARSE(app, argc, argv);

    int chosen = 0, wrong = 0;
    for (const entry& e : catalogue()) {
        if (!wanted(e, names, everyday)) continue;
        ++chosen;
        if (list)
            fmt::print("{:16} {:9} {}\n", name_of(e.expected),
                       e.cost == effort::everyday ? "everyday" : "long", e.name);
        else if (!run(e, !quiet, max_states))
            ++wrong;
    }
    if (chosen == 0) {
        fmt::print(stderr,
                   "carousel-model-check: no set-up's name contains what was asked for; --list shows them\n");
        return 2;
    }
    return wrong == 0 ? 0 : 1;
}
