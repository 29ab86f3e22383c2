#include "supervisor/engine/tap_leases.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/errors.hpp"
#include "ring/recovery.hpp"
#include "spec/links.hpp"

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

/// The number after the highest number stored in a viewer's place.
u32 next_tap(const shm::control_block& c) {
    u32 next = 0;
    for (u32 k = 0; k < std::min(c.links, shm::max_links); ++k) {
        for (u32 g = shm::max_blocking; g < shm::max_groups; ++g) {
            const ring::group_word w = ring::group_word::of(ring::load(c.link[k].group_state[g]));
            if (w.state == ring::group_state::latest && w.entry >= shm::max_incarnations)
                next = std::max(next, w.entry - shm::max_incarnations + 1);
        }
    }
    return next;
}

}  // namespace

void tap_leases::adopt() { taps_ = next_tap(block_->block()); }

void tap_leases::release(const connection& c) {
    if (c.tap != shm::none) ring::dismiss_latest(block_->block(), c.tap);
}

void tap_leases::lease(connection& c, const run::tap_request& request) {
    const ring_place at = tapped_ring(*setup_, request.stage);
    const stage_setup& st = setup_->stages[at.stage];
    const u32 link = block_->published().stage[at.stage].output_link[at.output];
    if (c.tap == shm::none) {
        // Identifies a place in a latest group; never equal to the entry of an incarnation, and not reused
        // while it may still be referenced.
        c.tap = shm::max_incarnations + taps_++ % (0xFFFFU - shm::max_incarnations);
    }
    std::vector<int> fds;
    if (!memory_->complete())
        throw shm_error("the run is being taken over by a second supervisor: try again");
    run::tap_answer a;
    a.run_id = run_id_;
    a.link = link;
    a.stage = st.ring_name(at.output);
    a.entry = c.tap;
    a.format = st.ring(at.output).format;
    a.memory = memory_->describe(false, link, fds);
    a.device = st.device;
    (void)shm::send_message(c.fd.get(), nlohmann::json(a).dump(), fds);
}

}  // namespace carousel::supervisor
