#include "supervisor/processes/stray_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "core/errors.hpp"
#include "ring/frame_format.hpp"
#include "ring/stray.hpp"

namespace carousel::supervisor {
namespace {

std::string text_of_ring(const process_table& t, const ring::stray& to) {
    if (to.index >= std::min(t.made->links, shm::max_links)) return "";
    const shm::link_block& made = t.made->link[to.index];
    if (to.slot >= std::min(made.slots, shm::max_slots) || made.stage >= t.setup->stages.size()) return "";
    const stage_setup& producer = t.setup->stages[made.stage];
    const char* const what = to.what == ring::stray_target::output ? "an overrun of its slot in the ring"
                             : to.what == ring::stray_target::input
                                 ? "a write into its input ring"
                                 : "an access beyond a slot of its input ring";
    return fmt::format("{} {}, frame {}, {}", what, producer.spec.name,
                       ring::load(t.c->frames[to.index].header[to.slot].sequence),
                       place_in_slot(producer.format, to.offset));
}

std::string text_of_header(const process_table& t, const ring::stray& to) {
    if (to.index >= std::min(t.made->links, shm::max_links)) return "";
    const shm::link_block& made = t.made->link[to.index];
    if (to.slot >= std::min(made.slots, shm::max_slots) || made.stage >= t.setup->stages.size()) return "";
    return fmt::format("a write into the headers of the ring {}, frame {}, offset {}",
                       t.setup->stages[made.stage].spec.name,
                       ring::load(t.c->frames[to.index].header[to.slot].sequence), to.offset);
}

/// By the canary.
bool found_late(const process& p) {
    return p.how.signal == 0 && p.how.exit_code == exit_code::stage_exception;
}

}  // namespace

std::string place_in_slot(const nlohmann::json& format, u64 offset) {
    std::string name = "the status word";
    u64 begin = 0;
    try {
        ring::frame_format f = ring::frame_format::from_json(format.dump());
        (void)f.lay_out();
        for (const ring::plane& p : f.planes) {
            if (p.offset > offset || p.offset < begin) continue;
            begin = p.offset;
            name = (offset - begin < p.bytes() ? "plane " : "behind plane ") + p.name;
        }
    } catch (const error&) {
        name = "the slot";  // its place in it says enough
    }
    return fmt::format("{}, offset {}", name, offset - begin);
}

std::string stray_text(const process_table& t, const process& p) {
    if (p.who.entry >= shm::max_incarnations || p.mps.excused || p.mps.with_domain) return "";
    const ring::stray to = ring::stray::of(ring::load(t.c->entry[p.who.entry].stray));
    switch (to.what) {
        case ring::stray_target::input:
        case ring::stray_target::behind_input:
            return p.how.signal == SIGSEGV ? text_of_ring(t, to) : "";
        case ring::stray_target::output:
            return p.how.signal == SIGSEGV || found_late(p) ? text_of_ring(t, to) : "";
        case ring::stray_target::header:
            return p.how.signal == SIGSEGV ? text_of_header(t, to) : "";
        case ring::stray_target::asset:
            if (to.index >= t.setup->assets.size() || p.how.signal != SIGSEGV) return "";
            return fmt::format("a write into the asset {}, offset {}", t.setup->assets[to.index].name,
                               to.offset);
        case ring::stray_target::device:
            if (p.how.signal != 0 || p.how.exit_code != exit_code::gpu_fault) return "";
            return fmt::format("an illegal address, with frame {} the oldest on its device", to.offset);
        case ring::stray_target::nothing:
            return "";
    }
    return "";
}

}  // namespace carousel::supervisor
