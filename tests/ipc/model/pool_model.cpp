#include "pool_state.hpp"

namespace carousel::ipc_model {
namespace of_pool {

void model::acquires(const state& s, u8 p, sink<state>& out) const {
    state t = s;
    client& me = t.all[p];
    const u8 units = what.size[p], epoch = s.participant[p].epoch;
    const unit_word claiming{me.serial, epoch, unit_is::claiming};
    const char* name = "";
    const auto on = [&](u8 first) {
        me.first = first, me.k = me.n = me.later = 0, me.at = checks;
        if (first + units > what.units) clear(me);  // it polls again later
    };
    switch (me.at) {
        case rest:
            if (me.left == 0) return;
            on(0);
            name = "begins";
            break;
        case checks:
            name = "looks_at_unit";
            if (s.unit[me.first + me.k].is != unit_is::free)
                on(static_cast<u8>(me.first + me.k + 1));
            else if (++me.k == units)
                me.k = 0, me.at = me.serial == 0 ? draws : claims_first;
            break;
        case draws:
            me.serial = ++t.serial, me.at = claims_first, name = "draws_serial";
            break;
        case claims_first:
            name = "claims_unit";
            if (s.unit[me.first].is != unit_is::free && what.first_checked) {
                on(static_cast<u8>(me.first + 1));
                break;
            }
            t.unit[me.first] = claiming;
            me.n = 1;
            me.at = units == 1 || !what.first_claimed_first ? becomes_owner : claims_body;
            break;
        case claims_body: {
            name = "claims_unit";
            unit_word& w = t.unit[me.first + me.n];
            if (w.is == unit_is::free || !what.body_checked) {
                w = body_of(me.first);
                if (++me.n == units) me.at = what.first_claimed_first ? becomes_owner : claims_first;
            } else {
                me.later = static_cast<u8>(me.first + me.n + 1), me.n = 0;
                if (!what.frees_part || !what.first_claimed_first)
                    on(me.later);
                else
                    me.at = parts_length, me.n = 1;
            }
            break;
        }
        case becomes_owner:
            name = "owns_block";
            if (s.unit[me.first] == claiming) t.unit[me.first].is = unit_is::owned;
            me.n = units, me.at = owns;
            break;
        default:  // owns: it releases or gives it
            name = "uses_block";
            me.at = what.role[p] == pool_role::giver ? names : leaves;
            break;
    }
    // Bodies before the first: what a change of that order would leave.
    if (!what.first_claimed_first && me.at == claims_first && me.n == 0 && units > 1)
        me.at = claims_body, me.n = 1;
    out.work(t, name, p);
}

// free_run() of a part (its first is CLAIMING) and of a block (LEAVING).
void model::frees(const state& s, u8 p, sink<state>& out) const {
    state t = s;
    client& me = t.all[p];
    const char* name = "walks";
    const char* rule = nullptr;
    const bool part = me.at < leaves;
    unit_word& head = t.unit[me.first];
    switch (me.at) {
        case leaves:
            name = "leaves_block";
            if (head != unit_word{me.serial, s.participant[p].epoch, unit_is::owned}) {
                rule = "an owner could not release";
            } else {
                head.is = unit_is::leaving;
                me.n = 1, me.at = length;
            }
            break;
        case parts_length:
        case length:
            if (me.first + me.n < what.units && s.unit[me.first + me.n] == body_of(me.first)) {
                ++me.n;
                break;
            }
            me.k = 1;
            me.at = part ? parts_body : frees_body;
            if (me.n == 1 || !what.first_freed_last) me.at = part ? parts_first : frees_first;
            break;
        case parts_body:
        case frees_body: {
            name = "frees_unit";
            const u8 unit = static_cast<u8>(me.first + (what.freed_downwards ? me.n - me.k : me.k));
            if (s.unit[unit] == body_of(me.first)) t.unit[unit] = {};
            if (++me.k < me.n) break;
            if (what.first_freed_last)
                me.at = part ? parts_first : frees_first;
            else
                freed(me, what.size[p], part);
            break;
        }
        default:  // parts_first, frees_first
            name = "frees_first";
            if (head.epoch == s.participant[p].epoch && head.serial == me.serial) head = {};
            if (!what.first_freed_last && me.n > 1)
                me.at = part ? parts_body : frees_body;
            else
                freed(me, what.size[p], part);
            break;
    }
    out.work(t, name, p, rule);
}
void model::freed(client& me, u8 units, bool part) const {
    const client was = me;
    clear(me);
    if (!part) {
        if (me.left > 0) --me.left;
    } else if (was.later + units <= what.units) {
        me.first = was.later, me.serial = was.serial, me.at = checks;
    }
}

}  // namespace of_pool

result explore(const pool_setup& s, u64 max_states) {
    const of_pool::model m(s);
    return search<of_pool::model>(m, max_states).run();
}

}  // namespace carousel::ipc_model
