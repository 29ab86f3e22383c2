// check_parity(): which words are damaged by one bit, and the name of each.
#include <fmt/format.h>

#include "ring/check/block_check.hpp"
#include "ring/check/word_repair.hpp"
#include "ring/names.hpp"

namespace carousel::ring {
namespace {

std::string ring_name(const shm::control_block& made, u32 link) {
    return fmt::format("ring of {}", made.link[std::min(link, shm::max_links - 1)].name);
}
std::string job_name(const shm::control_block& made, u32 job) {
    return fmt::format("job {} ({})", job,
                       seat_name(made, made.job_info[std::min(job, shm::max_jobs - 1)].seat));
}
std::string source_name(const shm::control_block& made, u32 source) {
    return fmt::format("source {}",
                       stage_name(made, made.source[std::min(source, shm::max_sources - 1)].stage));
}

}  // namespace

std::string name_of(const shm::control_block& made, const word_place& at) {
    switch (at.kind) {
        case word_kind::end:
            return "the run: end";
        case word_kind::parameters:
            return "parameters: state";
        case word_kind::tail:
            return ring_name(made, at.first) + ": tail";
        case word_kind::group:
            return fmt::format("{}: group_state {}", ring_name(made, at.first), at.second);
        case word_kind::slot:
            return fmt::format("{}: slot {}", ring_name(made, at.first), at.second);
        case word_kind::lease:
            return fmt::format("{}: slot {}, group {}", ring_name(made, at.first), at.second, at.third);
        case word_kind::header:
            return fmt::format("{}: slot {}: header.ring_sequence", ring_name(made, at.first), at.second);
        case word_kind::sequence:
            return fmt::format("{}: number word {}", source_name(made, at.first), at.second);
        case word_kind::claim:
            return source_name(made, at.first) + ": ended";
        case word_kind::seat:
            return fmt::format("seat of {}: current", seat_name(made, at.first));
        case word_kind::entry:
            return fmt::format("entry {}: identity", at.first);
        case word_kind::job:
            return job_name(made, at.first);
        case word_kind::ring_sequence:
            return job_name(made, at.first) + ": sequence";
        case word_kind::asset:
            return fmt::format("asset {}: state", made.asset[std::min(at.first, shm::max_assets - 1)].name);
    }
    return "?";
}

std::vector<finding> check_parity(const shm::control_block& c, const shm::control_block& made) {
    std::vector<finding> all;
    for (const damaged_word& w : damaged_words(c, made))
        all.push_back(
            {name_of(made, w.at), fmt::format("is damaged: {:#x} is not a valid word, by one bit", w.raw)});
    return all;
}

}  // namespace carousel::ring
