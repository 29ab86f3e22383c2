#include "supervisor/processes/wild_write_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <optional>

#include "core/errors.hpp"
#include "core/json.hpp"
#include "frame/frame_format.hpp"
#include "ring/exit_notes.hpp"
#include "shm/block_guard.hpp"

namespace carousel::supervisor {
namespace {

/// Returns the stage that writes a link of the run's plan, and which of its outputs; nothing if there is
/// none.
std::optional<ring_place> ring_place_of(const process_table& t, u32 link) {
    if (link >= std::min(t.made->links, shm::max_links)) return std::nullopt;
    const u32 stage = t.made->link[link].stage;
    if (stage >= t.setup->stages.size()) return std::nullopt;
    for (u32 o = 0; o < std::min(t.setup->stages[stage].outputs(), shm::max_outputs); ++o)
        if (t.made->stage[stage].output_link[o] == link) return ring_place{stage, o};
    return std::nullopt;
}

std::string name_of_ring(const process_table& t, u32 link) {
    const auto at = ring_place_of(t, link);
    return at ? t.setup->stages[at->stage].ring_name(at->output) : "";
}

std::string text_of_ring(const process_table& t, const ring::wild_write& to) {
    const auto at = ring_place_of(t, to.index);
    if (!at || to.slot >= std::min(t.made->link[to.index].slots, shm::max_slots)) return "";
    const stage_setup& producer = t.setup->stages[at->stage];
    const char* const what = to.what == ring::wild_write_target::output ? "an overrun of its slot in the ring"
                             : to.what == ring::wild_write_target::input
                                 ? "a write into its input ring"
                                 : "an access beyond a slot of its input ring";
    return fmt::format("{} {}, frame {}, {}", what, producer.ring_name(at->output),
                       ring::load(t.c->frames[to.index].header[to.slot].ring_sequence),
                       place_in_slot(producer.ring(at->output).format, to.offset));
}

std::string text_of_header(const process_table& t, const ring::wild_write& to) {
    const std::string name = name_of_ring(t, to.index);
    if (name.empty()) return "";
    if (to.slot >= std::min(t.made->link[to.index].slots, shm::max_slots))
        return fmt::format("a write after the headers of the ring {}", name);
    return fmt::format("a write into the headers of the ring {}, frame {}, offset {}", name,
                       ring::load(t.c->frames[to.index].header[to.slot].ring_sequence), to.offset);
}

/// Names the owner by a name from the run's own plan, because the place comes from a process that has just
/// made a wild write.
std::string text_of_owner(const process_table& t, shm::block_part part, u32 index) {
    const auto stage = [&](u32 k) { return k < t.setup->stages.size() ? t.setup->stages[k].spec.name : ""; };
    switch (part) {
        case shm::block_part::stage:
        case shm::block_part::doorbell:
        case shm::block_part::telemetry:
            return stage(index);
        case shm::block_part::seat:
        case shm::block_part::seat_asked:
            return index < t.seats.size() ? t.seats[index]->label : "";
        case shm::block_part::ring:
        case shm::block_part::ring_words:
            return name_of_ring(t, index);
        case shm::block_part::source:
        case shm::block_part::numbers:
            return index < std::min(t.made->sources, shm::max_sources) ? stage(t.made->source[index].stage)
                                                                       : "";
        case shm::block_part::asset:
            return index < t.setup->assets.size() ? t.setup->assets[index].name : "";
        case shm::block_part::entry:
        case shm::block_part::events: {
            if (index >= shm::max_incarnations) return "";
            const auto w = ring::entry_word::of(ring::load(t.c->entry[index].identity));
            const bool is = w.state != ring::entry_state::unused && w.seat < t.seats.size();
            return is ? t.seats[w.seat]->label : "";
        }
        default:
            return "";
    }
}

struct part_text {
    shm::block_part part;
    const char* text;   ///< followed by the owner
    const char* spare;  ///< for a row that the run does not use
};
constexpr part_text part_texts[] = {
    {shm::block_part::head, "the head of the control block", ""},
    {shm::block_part::pace, "the time of the next frame", ""},
    {shm::block_part::parameters, "the parameters", ""},
    {shm::block_part::stage, "the description of stage ", "an unused stage's description"},
    {shm::block_part::doorbell, "the doorbell of ", "an unused stage's doorbell"},
    {shm::block_part::telemetry, "the telemetry of ", "an unused stage's telemetry"},
    {shm::block_part::seat, "the seat of ", "an unused seat"},
    {shm::block_part::seat_asked, "the requests to ", "the requests to an unused seat"},
    {shm::block_part::ring, "the description of ring ", "an unused ring's description"},
    {shm::block_part::ring_words, "the words of ring ", "an unused ring's words"},
    {shm::block_part::source, "the description of source ", "an unused source's description"},
    {shm::block_part::numbers, "the numbers of source ", "an unused source's numbers"},
    {shm::block_part::asset, "the state of asset ", "an unused asset's state"},
    {shm::block_part::turn, "the token of a GPU", ""},
    {shm::block_part::jobs, "the job words", ""},
    {shm::block_part::job_records, "the records of jobs", ""},
    {shm::block_part::entry, "the entry of ", "an unused entry"},
    {shm::block_part::events, "the event handles of ", "an unused entry's event handles"},
};

std::string text_of_block(const process_table& t, const ring::wild_write& to) {
    for (const part_text& row : part_texts) {
        if (static_cast<u32>(row.part) != to.index) continue;
        const std::string owner = text_of_owner(t, row.part, to.slot);
        const bool spare = owner.empty() && *row.spare != '\0';
        return fmt::format("a write into the control block: {}, offset {}",
                           spare ? row.spare : row.text + owner, to.offset);
    }
    return "";
}

// CUDA errors contain no address, so neither ring, plane nor offset can be given.
std::string text_of_device(const ring::wild_write& to) {
    if (to.index <= 1)
        return fmt::format("an illegal address, with only frame {} in flight (a GPU reports no address)",
                           to.offset);
    return fmt::format(
        "an illegal address, with frame {} the oldest of {} in flight, the newest {} (a GPU reports no "
        "address)",
        to.offset, to.index, to.offset + to.slot);
}

/// Found by the canary.
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
            name = (offset - begin < p.bytes() ? "plane " : "after plane ") + p.name;
        }
    } catch (const error&) {
        name = "the slot";  // the offset in the slot suffices
    }
    return fmt::format("{}, offset {}", name, offset - begin);
}

std::string wild_write_text(const process_table& t, const process& p) {
    if (p.incarnation.entry >= shm::max_incarnations || p.mps.excused || p.mps.with_domain) return "";
    const ring::wild_write to = ring::wild_write::of(ring::load(t.c->entry[p.incarnation.entry].wild_write));
    switch (to.what) {
        case ring::wild_write_target::input:
        case ring::wild_write_target::after_input:
            return p.how.signal == SIGSEGV ? text_of_ring(t, to) : "";
        case ring::wild_write_target::output:
            return p.how.signal == SIGSEGV || found_late(p) ? text_of_ring(t, to) : "";
        case ring::wild_write_target::header:
            return p.how.signal == SIGSEGV ? text_of_header(t, to) : "";
        case ring::wild_write_target::block:
            return p.how.signal == SIGSEGV ? text_of_block(t, to) : "";
        case ring::wild_write_target::asset:
            if (to.index >= t.setup->assets.size() || p.how.signal != SIGSEGV) return "";
            return fmt::format("a write into the asset {}, offset {}", t.setup->assets[to.index].name,
                               to.offset);
        case ring::wild_write_target::device:
            if (p.how.signal != 0 || p.how.exit_code != exit_code::gpu_fault) return "";
            return text_of_device(to);
        case ring::wild_write_target::nothing:
            return "";
    }
    return "";
}

}  // namespace carousel::supervisor
