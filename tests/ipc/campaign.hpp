#pragma once
// Many histories of one primitive, from the seed of the environment on (tests/support/seed.hpp). Under a
// sanitizer, where each takes ten times as long, fewer. A history that fails names its own seed.
#include <string>

#include "histories.hpp"
#include "tests/support/seed.hpp"

namespace carousel::test {

#ifdef CAROUSEL_SANITIZED
constexpr u32 usual_histories = 250;
#else
constexpr u32 usual_histories = 800;
#endif

using one_history = bool (*)(history&, u64, u64&);

// Until one fails; a control continues until one has failed by the rule in question.
inline campaign_result histories(one_history of, bool repairs_living_clients, u64& done,
                                 const std::string& rule = "", const history_options& like = {}) {
    campaign_result all;
    const u64 first = seed_or(1), last = first + scaled(usual_histories);
    for (u64 seed = first; seed < last && all.failed == 0; ++seed) {
        history_options o = like;
        o.seed = seed;
        o.clients = 2 + static_cast<u32>(seed % 5);
        o.kills = 6 + static_cast<u32>(seed % 20);
        o.repairs_living_clients = repairs_living_clients;
        history h(o);
        const bool ended = of(h, seed, done);
        campaign_result one;
        one.add(h, seed, ended);
        if (one.failed == 0 || one.finding.find(rule) != std::string::npos) all.add(h, seed, ended);
    }
    return all;
}

}  // namespace carousel::test
