#include "setup.hpp"

#include <fmt/format.h>

#include <cstring>
#include <stdexcept>

namespace carousel::model {

bool setup::has_readers() const {
    for (const stage_setup& s : stages)
        if (s.input[0] >= 0) return true;
    return false;
}

int setup::readers(int link) const {
    int n = 0;
    for (const stage_setup& s : stages) n += (s.input[0] == link) + (s.input[1] == link);
    return n;
}

int setup::column(int link, int stage) const {
    int n = links[link].consumers;
    for (int k = 0; k < stage; ++k) n += (stages[k].input[0] == link) + (stages[k].input[1] == link);
    return n;
}

bool setup::any_latest() const {
    for (const link_setup& l : links)
        if (l.latest > 0) return true;
    return false;
}

void setup::validate() const {
    const auto need = [](bool ok, const char* what) {
        if (!ok) throw std::invalid_argument(fmt::format("model set-up: {}", what));
    };
    need(static_cast<int>(stages.size()) <= max_stages && static_cast<int>(links.size()) <= max_links,
         "too many stages or links");
    need(jobs() <= max_jobs && numbers <= max_numbers && static_cast<int>(lanes.size()) <= max_lanes,
         "too many jobs, numbers or lanes");
    need(static_cast<int>(incarnations.size()) <= max_incarnations && frames < 8,
         "too many incarnations or frames");
    for (size_t k = 0; k < links.size(); ++k) {
        const link_setup& l = links[k];
        need(l.slots <= max_slots && groups(static_cast<int>(k)) <= max_groups, "too many slots or groups");
        need(l.consumers <= max_consumers && l.latest <= max_latest, "too many consumers or latest columns");
    }
    for (const stage_setup& s : stages)
        need(s.output[1] < 0 || (s.output[0] >= 0 && s.output[0] != s.output[1]),
             "outputs are links of their own");
    for (const stage_setup& s : stages)
        need(s.ends_at < 0 || (s.source >= 0 && two_step_lease && !s.instant),
             "only a source that leases in two steps may end its stream");
}

state initial_state(const setup& c) {
    state s;
    std::memset(&s, 0, sizeof s);
    for (int k = 0; k < c.seats(); ++k) {
        int first = 0;
        while (c.incarnations[first].seat != k) ++first;
        for (int j = 0; j < c.jobs_a_seat; ++j) s.job[k * c.jobs_a_seat + j].epoch = static_cast<u8>(first);
        s.incarnation[first].alive = process_state::running;
    }
    for (auto& source : s.sequence_lease)
        for (lease_word& n : source) n.job = n.version = none;
    for (claim_word& e : s.claim) e = {none, none, none};
    for (size_t k = 0; k < c.links.size(); ++k) {
        link_state& l = s.link[k];
        for (slot_word& w : l.slot) w = {1, slot_state::free, none, none, none, none};
        for (auto& columns : l.group)
            for (lease_word& w : columns) w = {0, lease_state::done, none, none, 0};
        for (viewer_registers& v : l.viewer)
            v = {0, none, 0, 0, none, static_cast<u8>(c.membership_changes ? 0 : 1)};
        l.freer.slot = none;
    }
    for (lane_registers& l : s.lane) l = {step::idle, gpu_work::no, none, none, none, 0};
    for (auto& lane : s.input)
        for (slot_register& i : lane) i = {none, none};
    for (auto& lane : s.output)
        for (slot_register& o : lane) o = {none, 0};
    s.helper.slot = s.helper.event = none;
    s.end = s.damaged = none;
    return s;
}

layout::layout(const setup& c) : start_(initial_state(c)) {
    const auto* base = reinterpret_cast<const std::byte*>(&start_);
    const auto add = [&](const auto& field) {
        const auto at = static_cast<size_t>(reinterpret_cast<const std::byte*>(&field) - base);
        for (size_t k = 0; k < sizeof field; ++k) bytes_.push_back(static_cast<u16>(at + k));
    };
    for (int j = 0; j < c.jobs(); ++j) add(start_.job[j]);
    for (const stage_setup& s : c.stages)
        for (int n = 0; n < c.numbers && s.source >= 0; ++n) add(start_.sequence_lease[s.source][n]);
    for (const stage_setup& s : c.stages)
        if (s.ends_at >= 0) add(start_.claim[s.source]);
    for (size_t k = 0; k < c.links.size(); ++k) {
        const link_state& l = start_.link[k];
        const int link = static_cast<int>(k);
        for (int x = 0; x < c.links[k].slots; ++x) {
            add(l.slot[x]);
            for (int g = 0; g < c.groups(link); ++g) {
                add(l.group[x][g].generation), add(l.group[x][g].state);
                // only stages have job words to name
                if (g < c.links[k].consumers || g >= c.blocking(link)) continue;
                add(l.group[x][g].job), add(l.group[x][g].version);
                if (c.poison >= 0) add(l.group[x][g].attempts);
            }
        }
        add(l.tail);
        for (int g = 0; g < c.links[k].consumers; ++g) add(l.consumed[g]);
        for (int g = 0; g < c.links[k].latest; ++g) add(l.viewer[g]);
        add(l.freer);
    }
    for (size_t l = 0; l < c.lanes.size(); ++l) {
        add(start_.lane[l]);
        for (int k = 0; k < c.outputs(c.stage_of(c.lanes[l])); ++k) add(start_.output[l][k]);
    }
    for (size_t l = 0; l < c.lanes.size() && c.has_readers(); ++l) add(start_.input[l]);
    for (size_t e = 0; e < c.incarnations.size(); ++e) {
        add(start_.incarnation[e]);
        const int out = c.stages[c.stage_of(static_cast<int>(e))].output[0];
        for (int x = 0; out >= 0 && x < c.links[out].slots; ++x) add(start_.event_pending[e][x]);
    }
    if (c.helper_link >= 0) add(start_.helper);
    if (c.scan_registers) add(start_.scan);
    if (c.damages > 0) add(start_.damaged), add(start_.damages);
    add(start_.end), add(start_.forgot), add(start_.revoked);
    for (size_t k = 0; k < c.stages.size(); ++k) add(start_.committed[k]);
    for (size_t k = 0; k < bytes_.size(); ++k) {
        const bool goes_on = k > 0 && bytes_[k] == bytes_[k - 1] + 1 && runs_.back().bytes < 8;
        if (!goes_on) runs_.push_back({bytes_[k], 0});
        ++runs_.back().bytes;
    }
}

// Copies eight bytes at once: the bytes written past the end of a run are overwritten by the next run.
void layout::pack(const state& s, u8* out) const {
    const auto* from = reinterpret_cast<const u8*>(&s);
    for (const run& r : runs_) {
        std::memcpy(out, from + r.from, 8);
        out += r.bytes;
    }
}

void layout::unpack(const u8* in, state& s) const {
    s = start_;
    auto* to = reinterpret_cast<u8*>(&s);
    for (size_t k = 0; k < bytes_.size(); ++k) to[bytes_[k]] = in[k];
}

std::string describe(const setup& c, const state& s) {
    const auto number = [](u8 v) {
        return v == none ? std::string("-") : v == spoiled ? std::string("~") : fmt::format("{}", v);
    };
    std::string out = "J:";
    for (int j = 0; j < c.jobs(); ++j)
        out += fmt::format(" v{}/e{}/{}", s.job[j].version, s.job[j].epoch,
                           "IOSCA"[static_cast<int>(s.job[j].state)]);
    for (const stage_setup& t : c.stages) {
        if (t.source < 0) continue;
        out += " Q:";
        for (int n = 0; n < c.numbers; ++n)
            out += fmt::format(" {}{}", s.sequence_lease[t.source][n].generation * c.numbers + n,
                               "WLDX"[static_cast<int>(s.sequence_lease[t.source][n].state)]);
    }
    for (size_t k = 0; k < c.links.size(); ++k) {
        out += fmt::format(" link {} tail {}:", k, s.link[k].tail);
        for (int x = 0; x < c.links[k].slots; ++x) {
            const slot_word& w = s.link[k].slot[x];
            out +=
                fmt::format(" [g{} {} seq {} holds {}", w.generation, "FLRQ"[static_cast<int>(w.state) & 3],
                            number(w.ring_sequence), number(w.content));
            for (int g = 0; g < c.groups(static_cast<int>(k)); ++g) {
                const lease_word& l = s.link[k].group[x][g];
                out += fmt::format(" {}{}", l.generation, "WLDX"[static_cast<int>(l.state) & 3]);
            }
            out += "]";
        }
        for (int g = 0; g < c.links[k].consumers; ++g)
            out += fmt::format(" consumer {} wants {}", g, s.link[k].consumed[g]);
    }
    for (size_t l = 0; l < c.lanes.size(); ++l)
        out += fmt::format(" lane {} (inc {}) step {} frame {}", l, c.lanes[l],
                           static_cast<int>(s.lane[l].at), number(s.lane[l].frame));
    for (size_t e = 0; e < c.incarnations.size(); ++e)
        out +=
            fmt::format(" inc {}: {}{}{}", e, "urd"[static_cast<int>(s.incarnation[e].alive)],
                        s.incarnation[e].declared ? " doomed" : "", s.incarnation[e].fenced ? " fenced" : "");
    return out + fmt::format(" END {}", number(s.end));
}

}  // namespace carousel::model
