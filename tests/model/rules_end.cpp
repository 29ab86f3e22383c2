// The end in two phases, one END for all sources: UNKNOWN -> STOPPING by the user; a number once every live
// incarnation of a source has acknowledged that none of its leases is in progress.

#include <algorithm>

#include "moves.hpp"

namespace carousel::model {
namespace {

bool all_sources_answered(const moves& m) {
    for (size_t e = 0; e < m.cfg.incarnations.size(); ++e) {
        const incarnation_state& i = m.now().incarnation[e];
        if (m.cfg.stages[m.cfg.stage_of(static_cast<int>(e))].source < 0 ||
            i.alive != process_state::running || i.acknowledged != 0)
            continue;
        const bool revoked = (m.now().revoked >> e & 1U) != 0;
        // A doomed incarnation that is not yet revoked can still commit what it leases now.
        if (i.declared != 0 && (revoked || m.cfg.seeded.end_skips_unrevoked)) continue;
        return false;
    }
    return true;
}

int first_number_not_begun(const moves& m) {
    int end = 0;
    for (const stage_setup& s : m.cfg.stages) {
        if (s.source < 0 || (m.cfg.seeded.end_of_one_source && s.source > 0)) continue;
        for (int k = 0; k < m.cfg.numbers; ++k) {
            const lease_word& w = m.now().sequence_lease[s.source][k];
            const int n = w.generation * m.cfg.numbers + k;
            if (w.state == lease_state::leased)
                end = std::max(end, n + 1);
            else if (w.generation > 0)
                end = std::max(end, n - m.cfg.numbers + 1);
        }
    }
    return std::min(end, m.cfg.frames);
}

int lowest_unleased(const moves& m) {
    int lowest = m.cfg.frames;
    for (int k = 0; k < m.cfg.numbers; ++k) {
        const lease_word& w = m.now().sequence_lease[0][k];
        if (w.state == lease_state::wait) lowest = std::min(lowest, w.generation * m.cfg.numbers + k);
    }
    return lowest;
}

}  // namespace

void ending_rules(moves& m) {
    if (m.cfg.end == ending::known) return;
    if (m.now().end == none) {
        m.next().end = m.cfg.end == ending::two_phases ? spoiled : static_cast<u8>(lowest_unleased(m));
        return m.emit({action::stop_sources}, actor::fault);
    }
    if (m.now().end != spoiled || !all_sources_answered(m)) return;
    if (m.cfg.damages > 0 && m.now().damaged != none) return;  // the frames in progress are not known
    const u8 end = static_cast<u8>(first_number_not_begun(m));
    m.next().end = end;
    m.emit({action::set_end, end}, actor::supervisor);
}

}  // namespace carousel::model
