#include "stages/hosts/link_figures.hpp"

#include "core/errors.hpp"
#include "core/json.hpp"
#include "shm/runtime_folder.hpp"

namespace carousel::hosts {

void link_figures::update(bool up, const std::optional<clock_relation>& clock, u64 now, bool force) {
    if (up && !was_up_) ++connections_;
    was_up_ = up;
    if (clock) clock_ = clock;
    if (!force && now - written_ns_ < ns_per_s) return;
    written_ns_ = now;
    nlohmann::json j{{"run", run_},       {"up", up},
                     {"frames", frames_}, {"connections", connections_},
                     {"bytes", bytes_},   {"bytes_on_the_way", packed_}};
    if (durable_) j["durable"] = true;
    j["clock_offset_ms"] = clock_ ? nlohmann::json(static_cast<f64>(clock_->offset_ns) / 1e6) : nullptr;
    j["clock_error_ms"] = clock_ ? nlohmann::json(static_cast<f64>(clock_->error_ns) / 1e6) : nullptr;
    try {
        shm::write_whole_file(path_, j.dump());
    } catch (const error&) {  // for example because of a full disk: figures must not cost a frame
    }
}

}  // namespace carousel::hosts
