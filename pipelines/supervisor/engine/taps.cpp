// engine: taps. A viewer asks for the memory of a ring and joins it as a `latest` reader by itself; the
// supervisor only passes it the memory and, when its connection closes, frees its place in the ring (a killed
// viewer cannot).
#include <fmt/format.h>

#include <algorithm>

#include "core/errors.hpp"
#include "ring/recovery.hpp"
#include "spec/outputs.hpp"
#include "supervisor/engine/engine.hpp"

namespace carousel::supervisor {
namespace {

std::string rings_text(const stage_setup& st) {
    std::string text;
    for (u32 o = 0; o < st.outputs(); ++o) text += (o == 0 ? "" : ", ") + st.ring_name(o);
    return text;
}

/// The requested ring; "": the one that the last sink reads.
ring_place tapped_ring(const run_setup& s, const std::string& name) {
    if (name.empty()) {
        for (std::size_t k = s.stages.size(); k-- > 0;)
            if (!s.stages[k].has_output() && !s.stages[k].spec.input_indices.empty())
                return {s.stages[k].spec.input_indices.front(), s.stages[k].output_of_input(0)};
        throw config_error("this pipeline has no sink");
    }
    for (const ring_place at : s.rings()) {
        const stage_setup& st = s.stages[at.stage];
        const std::string& output = st.ring(at.output).output;
        if (st.ring_name(at.output) == name || (!output.empty() && st.spec.name + "." + output == name))
            return at;
    }
    const std::string stage = ring_name_of(name).stage;
    for (const stage_setup& st : s.stages)
        if (stage != name && st.spec.name == stage && st.has_output())
            throw config_error(
                fmt::format("no ring \"{}\" in {}; those of {}: {}", name, s.name, stage, rings_text(st)));
    throw config_error(fmt::format("no stage \"{}\" with an output in {}", name, s.name));
}

}  // namespace

void engine::lease_tap(connection& c, const run::tap_request& request) {
    const ring_place at = tapped_ring(*setup_, request.stage);
    const stage_setup& st = setup_->stages[at.stage];
    const u32 link = made_->stage[at.stage].output_link[at.output];
    if (c.tap == shm::none) {
        // Identifies a place in a latest group; never an incarnation's entry, and not reused while it
        // matters.
        c.tap = shm::max_incarnations + taps_++ % (0xFFFFU - shm::max_incarnations);
    }
    std::vector<int> fds;
    if (!memory_.complete()) throw shm_error("the run is being taken over by a second supervisor: try again");
    run::tap_answer a;
    a.run_id = run_id_;
    a.link = link;
    a.stage = st.ring_name(at.output);
    a.entry = c.tap;
    a.format = st.ring(at.output).format;
    a.memory = memory_.describe(false, link, fds);
    a.device = st.device;
    (void)shm::send_message(c.fd.get(), run::to_json(a).dump(), fds);
}

}  // namespace carousel::supervisor
