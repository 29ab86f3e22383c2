#include "supervisor/hosts/first_kept.hpp"

#include <algorithm>

#include "ledger/ledger.hpp"
#include "ledger/ledger_fold.hpp"

namespace carousel::supervisor {
namespace {

/// Also works for a run that started at a later frame: the frames below that count as folded.
u64 first_unmarked(const std::string& path) {
    const auto ledger = telemetry::ledger_reader::open(path);
    return ledger ? ledger->first_undelivered(0) : telemetry::folded_end(path);
}

}  // namespace

std::optional<u64> first_kept(const hosts_plan& plan, const std::string& folder, const std::string& from,
                              const std::string& to) {
    std::optional<u64> first;
    for (const crossing& c : plan.links)
        if (c.from == from && c.to == to)
            first = std::max(first.value_or(0), first_unmarked(telemetry::ledger_path(folder, c.send)));
    return first;
}

}  // namespace carousel::supervisor
