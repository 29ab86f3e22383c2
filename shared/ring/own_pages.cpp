#include "ring/own_pages.hpp"

#include <algorithm>
#include <cstddef>

namespace carousel::ring {
namespace {

bool is_at(const shm::stage_block& s, u32 link) noexcept {
    if (link >= shm::max_links) return false;
    bool here = false;
    for (u32 k = 0; k < std::min(s.outputs, shm::max_outputs); ++k) here |= s.output_link[k] == link;
    for (u32 i = 0; i < std::min(s.inputs, shm::max_inputs); ++i) here |= s.input_link[i] == link;
    for (u32 i = 0; i < std::min(s.sampled_inputs, shm::max_sampled_inputs); ++i)
        here |= s.sampled_link[i] == link;
    return here;
}

void add_doorbell(page_list& to, const shm::control_block& c, u32 stage) noexcept {
    const shm::doorbell_word& bell = c.stage[stage].doorbell;
    to.add(c, &bell, sizeof bell);
}

void add_ring(page_list& to, const shm::control_block& c, u32 link) noexcept {
    if (link >= shm::max_links) return;
    const shm::link_block& l = c.link[link];
    to.add(c, &l.tail, sizeof l - offsetof(shm::link_block, tail));
}

void add_source(page_list& to, const shm::control_block& c, u32 source) noexcept {
    if (source >= shm::max_sources) return;
    const shm::source_block& q = c.source[source];
    to.add(c, &q.ended, sizeof q - offsetof(shm::source_block, ended));
    to.add(c, &c.parameters.state, sizeof c.parameters.state);
    to.add(c, &c.next_source_ns, sizeof c.next_source_ns);
}

}  // namespace

void page_list::add(const shm::control_block& c, const void* from, u64 bytes) noexcept {
    const u64 begin =
        static_cast<u64>(static_cast<const std::byte*>(from) - reinterpret_cast<const std::byte*>(&c));
    const u64 first = begin / shm::own_page * shm::own_page;
    const u64 end = (begin + bytes + shm::own_page - 1) / shm::own_page * shm::own_page;
    if (count_ < ranges_.size()) ranges_[count_++] = {first, end - first};
}

page_list pages_of(const shm::control_block& c, const incarnation_id& id, u32 token) noexcept {
    page_list own;
    if (id.seat >= shm::max_seats || id.entry >= shm::max_incarnations) return own;
    const shm::seat_block& seat = c.seat[id.seat];
    const u32 stage = std::min(seat.stage, shm::max_stages - 1);
    const shm::stage_block& s = c.stage[stage];
    own.add(c, &s.counters, sizeof s.counters);
    own.add(c, &seat.fault, sizeof(shm::seat_block) - offsetof(shm::seat_block, fault));
    own.add(c, &c.entry[id.entry], sizeof(shm::incarnation));
    own.add(c, c.event_handle[id.entry], sizeof c.event_handle[id.entry]);
    own.add(c, c.job, sizeof c.job);
    if (seat.first_job < shm::max_jobs && seat.jobs > 0)
        own.add(c, &c.job_info[seat.first_job],
                std::min(seat.jobs, shm::max_jobs - seat.first_job) * sizeof(shm::job_block));
    for (u32 i = 0; i < std::min(s.inputs, shm::max_inputs); ++i) add_ring(own, c, s.input_link[i]);
    for (u32 i = 0; i < std::min(s.sampled_inputs, shm::max_sampled_inputs); ++i)
        add_ring(own, c, s.sampled_link[i]);
    for (u32 k = 0; k < std::min(s.outputs, shm::max_outputs); ++k) {
        const u32 link = s.output_link[k];
        if (link >= shm::max_links) continue;
        add_ring(own, c, link);
        own.add(c, &c.frames[link], shm::frame_bytes(c.link[link].slots));
    }
    add_source(own, c, s.source);
    for (u32 k = 0; k < std::min(c.assets, shm::max_assets); ++k)
        if (c.asset[k].maker_stage == stage) own.add(c, &c.asset[k].state, sizeof c.asset[k].state);
    if (token < shm::max_turns) own.add(c, &c.turn[token], sizeof c.turn[token]);
    for (u32 k = 0; k < std::min(c.stages, shm::max_stages); ++k) {
        bool rings = k == stage || token < shm::max_turns;
        for (u32 o = 0; o < std::min(s.outputs, shm::max_outputs); ++o)
            rings |= is_at(c.stage[k], s.output_link[o]);
        for (u32 i = 0; i < std::min(s.inputs, shm::max_inputs); ++i)
            rings |= is_at(c.stage[k], s.input_link[i]);
        for (u32 i = 0; i < std::min(s.sampled_inputs, shm::max_sampled_inputs); ++i)
            rings |= is_at(c.stage[k], s.sampled_link[i]);
        if (rings) add_doorbell(own, c, k);
    }
    return own;
}

page_list pages_of_reader(const shm::control_block& c, u32 link) noexcept {
    page_list own;
    add_ring(own, c, link);
    for (u32 k = 0; k < std::min(c.stages, shm::max_stages); ++k)
        if (is_at(c.stage[k], link)) add_doorbell(own, c, k);
    return own;
}

}  // namespace carousel::ring
