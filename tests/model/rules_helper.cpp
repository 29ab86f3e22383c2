// A consumer that commits for the producer: reads S, reads J, queries the imported event, CASes that very J,
// marks the slot READY.

#include "moves.hpp"

namespace carousel::model {
namespace {

constexpr helper_registers resting{0, none, 0, 0, 0, 0, none};
enum : u8 { rest = 0, asking = 1, committing = 2, marking = 3, at_inputs = 4, at_job = 5, seeking = 6 };

job_state helped_from(const moves& m) {
    return m.cfg.with.help_from_submitted ? job_state::submitted : job_state::open;
}

void poll(moves& m) {
    const int link = m.cfg.helper_link;
    for (int x = 0; x < m.cfg.links[link].slots; ++x) {
        const slot_word& w = m.now().link[link].slot[x];
        if (w.state != slot_state::fill || w.job == none) continue;
        const job_word& j = m.now().job[w.job];
        if (j.version != w.version || j.state != helped_from(m)) continue;
        if (m.cfg.with.own_domain && m.cfg.incarnations[j.epoch].domain != m.cfg.helper_domain) continue;
        const u8 slot = static_cast<u8>(x);
        const bool own =
            m.cfg.stages[m.cfg.job_stage(w.job)].output[0] == link || m.cfg.seeded.event_of_own_slot;
        m.next().helper = {own ? asking : seeking, slot, w.job, j.version, j.epoch, w.generation,
                           own ? slot : none};
        m.emit({action::helper_sees, static_cast<u8>(x)}, actor::helper);
    }
}

// At a further output: the job's event is that of the slot that it has filled at its first output.
void seek_event(moves& m) {
    const helper_registers& h = m.now().helper;
    const int first = m.cfg.stages[m.cfg.job_stage(h.job)].output[0];
    for (int x = 0; x < m.cfg.links[first].slots; ++x) {
        const slot_word& w = m.now().link[first].slot[x];
        if (w.state != slot_state::fill || w.job != h.job || w.version != h.version) continue;
        state& t = m.next();
        t.helper.at = asking;
        t.helper.event = static_cast<u8>(x);
        return m.emit({action::helper_seeks, h.slot}, actor::helper);
    }
    m.next().helper = resting;
    m.emit({action::helper_abandons, h.slot}, actor::helper);
}

void ask_event(moves& m) {
    const helper_registers& h = m.now().helper;
    const int event_owner = m.cfg.with.event_by_epoch ? h.epoch : m.successor(h.epoch);
    const job_word& j = m.now().job[h.job];
    if (m.now().event_pending[event_owner][h.event] == 0) {
        m.next().helper.at = committing;
        m.emit({action::helper_fired, h.slot}, actor::helper);
    } else if (j.version != h.version || j.epoch != h.epoch ||
               (j.state != job_state::open && j.state != job_state::submitted)) {
        m.next().helper = resting;
        m.emit({action::helper_abandons, h.slot}, actor::helper);
    }
}

void commit(moves& m) {
    const helper_registers& h = m.now().helper;
    const job_word now = m.now().job[h.job];
    const bool same = now == job_word{h.version, h.epoch, helped_from(m)};
    const bool taken = same || (m.cfg.seeded.helper_ignores_version && now.state == helped_from(m));
    state& t = m.next();
    t.helper.at = marking;
    if (taken) m.commit(t, h.job, now.version, now.epoch);
    m.emit({taken ? action::helper_commits : action::helper_late, h.slot}, actor::helper);
}

void mark(moves& m) {
    const helper_registers& h = m.now().helper;
    const slot_word& w = m.now().link[m.cfg.helper_link].slot[h.slot];
    state& t = m.next();
    t.helper = resting;
    if (m.now().job[h.job] == job_word{h.version, h.epoch, job_state::committed}) {
        if (!m.cfg.with.helper_minimal) {
            t.helper = h;
            t.helper.at = at_inputs;
        }
        if (w.generation == h.generation && w.state == slot_state::fill && w.job == h.job &&
            w.version == h.version)
            m.make_ready(t, m.cfg.helper_link, h.slot);
    }
    m.emit({action::helper_marks, h.slot}, actor::helper);
}

// Not part of the protocol: a helper that continues with the inputs and the job word.
void meddle(moves& m) {
    const helper_registers& h = m.now().helper;
    state& t = m.next();
    if (h.at == at_inputs) {
        t.helper.at = at_job;
        for (int n = 0; n < m.cfg.numbers && !m.cfg.seeded.helper_half; ++n) {
            lease_word& w = t.sequence_lease[0][n];
            if (w.state == lease_state::leased && w.job == h.job && w.version == h.version)
                moves::number_done(w);
        }
        return m.emit({action::helper_inputs, h.slot}, actor::helper);
    }
    t.helper = resting;
    job_word& j = t.job[h.job];
    if (j == job_word{h.version, h.epoch, job_state::committed})
        j = {static_cast<u8>(h.version + 1),
             m.declared(h.epoch) ? static_cast<u8>(m.successor(h.epoch)) : h.epoch, job_state::idle};
    m.emit({action::helper_idles, h.slot}, actor::helper);
}

}  // namespace

void helper_rules(moves& m) {
    if (m.cfg.helper_link < 0) return;
    switch (m.now().helper.at) {
        case rest:
            return poll(m);
        case seeking:
            return seek_event(m);
        case asking:
            return ask_event(m);
        case committing:
            return commit(m);
        case marking:
            return mark(m);
        default:
            return meddle(m);
    }
}

}  // namespace carousel::model
