// engine: taps. A viewer asks for the memory of a ring and joins it as a `latest` reader by itself; the
// supervisor only lends it the memory and, when its connection closes, frees its place in the ring (a killed
// viewer can't).
#include <fmt/format.h>

#include <algorithm>

#include "core/errors.hpp"
#include "ring/recovery.hpp"
#include "supervisor/engine/engine.hpp"

namespace carousel::supervisor {
namespace {

/// The stage whose output is asked for; "": what the last sink reads.
u32 tapped_stage(const run_setup& s, const std::string& name) {
    if (name.empty()) {
        for (std::size_t k = s.stages.size(); k-- > 0;)
            if (!s.stages[k].has_output() && !s.stages[k].spec.input_indices.empty())
                return s.stages[k].spec.input_indices.front();
        throw config_error("this pipeline has no sink");
    }
    for (std::size_t k = 0; k < s.stages.size(); ++k)
        if (s.stages[k].spec.name == name && s.stages[k].has_output()) return static_cast<u32>(k);
    throw config_error(fmt::format("no stage \"{}\" with an output in {}", name, s.name));
}

}  // namespace

void engine::lend(connection& c, const run::tap_request& wish) {
    const u32 stage = tapped_stage(*setup_, wish.stage);
    const stage_setup& st = setup_->stages[stage];
    const u32 link = made_->stage[stage].output_link[0];
    if (c.tap == shm::none) {
        // Names a place in a latest group; never an incarnation's entry, and not used again for as long as it
        // matters.
        c.tap = shm::max_incarnations + taps_++ % (0xFFFFU - shm::max_incarnations);
    }
    std::vector<int> fds;
    if (!memory_.complete()) throw shm_error("the run is being taken over by a second supervisor: try again");
    run::tap_answer a;
    a.run_id = run_id_;
    a.link = link;
    a.stage = st.spec.name;
    a.entry = c.tap;
    a.format = st.format;
    a.memory = memory_.describe(false, link, fds);
    a.device = st.device;
    (void)shm::send_message(c.fd.get(), run::to_json(a).dump(), fds);
}

}  // namespace carousel::supervisor
