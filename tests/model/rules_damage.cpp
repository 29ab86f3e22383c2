// A bit that flips in a word, at any moment. By its parity the word is invalid then: no rule matches it, no
// CAS expects it (moves::emit), and a process that needs it waits until the supervisor has repaired it. The
// original value is kept underneath and is what the repair finds. With the parity left out the word has
// another valid value, one bit from the original.

#include <cstring>
#include <type_traits>
#include <vector>

#include "moves.hpp"

namespace carousel::model {
namespace {

u8 narrow(int v) { return static_cast<u8>(v); }

/// Calls fn(word of s) for the word of that index: jobs, numbers, then for each link its tail, slots and
/// columns. Returns false if there is none.
template <typename State, typename F>
bool at_word(const setup& c, State& s, int index, F&& fn) {
    if (index < c.jobs()) return fn(s.job[index]), true;
    index -= c.jobs();
    for (const stage_setup& st : c.stages) {
        if (st.source < 0) continue;
        if (index < c.numbers) return fn(s.sequence_lease[st.source][index]), true;
        index -= c.numbers;
    }
    for (size_t k = 0; k < c.links.size(); ++k) {
        auto& l = s.link[k];
        const int slots = c.links[k].slots, groups = c.groups(static_cast<int>(k));
        if (index == 0) return fn(l.tail), true;
        if (--index < slots) return fn(l.slot[index]), true;
        index -= slots;
        if (index < slots * groups) return fn(l.group[index / groups][index % groups]), true;
        index -= slots * groups;
    }
    return false;
}

void mask(job_word& w) { w.version = 0, w.state = job_state::damaged; }
void mask(lease_word& w) { w.job = w.version = none, w.attempts = 0, w.state = lease_state::damaged; }
void mask(slot_word& w) { w.job = w.version = none, w.state = slot_state::damaged; }
void mask(u8& tail) { tail = 0; }

/// The words whose state differs from this one's in one bit.
template <typename Word>
void flips(std::vector<Word>& out, const Word& w, int states) {
    for (const int bit : {1, 2, 4}) {
        const int other = static_cast<int>(w.state) ^ bit;
        if (other >= states) continue;
        Word f = w;
        f.state = static_cast<decltype(f.state)>(other);
        out.push_back(f);
    }
}
std::vector<job_word> flipped(const job_word& w) {
    std::vector<job_word> out;
    flips(out, w, 5);
    return out;
}
std::vector<lease_word> flipped(const lease_word& w) {
    std::vector<lease_word> out;
    flips(out, w, 4);
    return out;
}
std::vector<slot_word> flipped(const slot_word& w) {
    std::vector<slot_word> out;
    flips(out, w, 4);
    return out;
}
std::vector<u8> flipped(u8 tail) { return {narrow(tail ^ 1), narrow(tail ^ 2)}; }

bool of_kind(struck what, const job_word&) { return what == struck::any || what == struck::jobs; }
bool of_kind(struck what, const lease_word&) { return what == struck::any || what == struck::leases; }
bool of_kind(struck what, const slot_word&) { return what == struck::any || what == struck::slots; }
bool of_kind(struck what, const u8&) { return what == struck::any || what == struck::tails; }

}  // namespace

void mask_word(const setup& c, state& s, int index) {
    at_word(c, s, index, [](auto& w) { mask(w); });
}

bool same_word(const setup& c, const state& a, const state& b, int index) {
    bool same = false;
    at_word(c, a, index, [&](const auto& first) {
        at_word(c, b, index, [&](const auto& second) {
            if constexpr (std::is_same_v<decltype(first), decltype(second)>)
                same = std::memcmp(&first, &second, sizeof first) == 0;
        });
    });
    return same;
}

void copy_word(const setup& c, const state& from, state& to, int index) {
    at_word(c, from, index, [&](const auto& first) {
        at_word(c, to, index, [&](auto& second) {
            if constexpr (std::is_same_v<std::remove_const_t<std::remove_reference_t<decltype(first)>>,
                                         std::remove_reference_t<decltype(second)>>)
                second = first;
        });
    });
}

void damage_rules(moves& m) {
    if (m.cfg.damages == 0) return;
    if (m.now().damaged != none) {
        const u8 index = m.now().damaged;
        m.next().damaged = none;
        return m.emit({action::repair, index}, actor::supervisor);
    }
    if (m.now().damages >= m.cfg.damages) return;
    for (int k = 0;; ++k) {
        const bool there = at_word(m.cfg, m.now(), k, [&](const auto& w) {
            if (!of_kind(m.cfg.strikes, w)) return;
            if (m.cfg.with.parity) {
                state& t = m.next();
                t.damaged = narrow(k);
                ++t.damages;
                return m.emit({action::flip, narrow(k)}, actor::fault);
            }
            for (const auto& other : flipped(w)) {
                state& t = m.next();
                ++t.damages;
                at_word(m.cfg, t, k, [&](auto& at) {
                    if constexpr (std::is_same_v<
                                      std::remove_reference_t<decltype(at)>,
                                      std::remove_const_t<std::remove_reference_t<decltype(other)>>>)
                        at = other;
                });
                m.emit({action::flip, narrow(k)}, actor::fault);
            }
        });
        if (!there) return;
    }
}

}  // namespace carousel::model
