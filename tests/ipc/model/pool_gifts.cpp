// Gifts through the queue's cell, and the repair of cell and units.
#include "pool_state.hpp"

namespace carousel::ipc_model::of_pool {

void model::sends(const state& s, u8 p, sink<state>& out) const {
    state t = s;
    client& me = t.all[p];
    const u8 epoch = s.participant[p].epoch;
    const char* name = "";
    const char* rule = nullptr;
    switch (me.at) {
        case names:
            name = "draws_serial";
            me.ref = {me.first, me.serial, what.new_serial ? ++t.serial : me.serial};
            me.at = what.publishes_first ? claims_cell : transfers;
            break;
        case claims_cell:
            name = "claims_cell";
            if (s.cell.is != cell_is::free) return;  // full: it waits
            t.cell = {s.cell.lap, epoch, cell_is::claimed};
            me.lap = s.cell.lap, me.at = writes_cell;
            break;
        case writes_cell:
            t.in_cell = me.ref, me.at = publishes, name = "names_block";
            break;
        case publishes:
            name = "publishes";
            if (s.cell != cell_word{me.lap, epoch, cell_is::claimed}) {
                rule = "a cell is not its claimer's any more";
                break;
            }
            t.cell = {me.lap, 0, cell_is::ready};
            ++t.gifts;
            if (what.publishes_first)
                me.at = transfers;
            else
                --me.left, clear(me);
            break;
        default: {  // transfers
            name = "transfers";
            unit_word& w = t.unit[me.ref.unit];
            if (w == unit_word{me.ref.before, epoch, unit_is::owned})
                w = {me.ref.after, 0, unit_is::in_queue};
            me.n = 0;
            if (what.publishes_first)
                --me.left, clear(me);
            else
                me.at = claims_cell;
            break;
        }
    }
    out.work(t, name, p, rule);
}

void model::receives(const state& s, u8 p, sink<state>& out) const {
    state t = s;
    client& me = t.all[p];
    const u8 epoch = s.participant[p].epoch;
    const char* name = "";
    const char* rule = nullptr;
    switch (me.at) {
        case rest:
            name = "leases_cell";
            if (s.cell.is != cell_is::ready) return;
            t.cell.is = cell_is::leased, t.cell.epoch = epoch;
            me.lap = s.cell.lap, me.at = reads_cell;
            break;
        case reads_cell:
            me.ref = s.in_cell, me.at = what.commits_last ? checks_block : commits, name = "reads_cell";
            break;
        case checks_block: {
            name = "checks_block";
            const unit_word w = s.unit[me.ref.unit];
            const bool giver = w.is == unit_is::owned && w.serial == me.ref.before;
            const bool cells =
                (w.is == unit_is::in_queue || w.is == unit_is::owned) && w.serial == me.ref.after;
            if (!giver && !cells) rule = "a cell names no block";
            me.seen = w, me.at = takes;
            break;
        }
        case takes: {
            name = "takes_block";
            unit_word& w = t.unit[me.ref.unit];
            me.at = checks_block;
            if (w == me.seen) {
                w = {me.ref.after, epoch, unit_is::owned};
                me.first = me.ref.unit, me.serial = me.ref.after, me.n = 1, me.at = walks;
            }
            me.seen = {};
            break;
        }
        case walks:
            name = "walks";
            if (me.first + me.n < what.units && s.unit[me.first + me.n] == body_of(me.first)) {
                ++me.n;
                break;
            }
            if (me.n != what.size[giver_of()]) rule = "a block has come in another length";
            me.at = what.commits_last ? commits : owns;
            break;
        default:  // commits
            name = "commits";
            if (s.cell != cell_word{me.lap, epoch, cell_is::leased})
                rule = "a cell is not its holder's any more";
            t.cell = {static_cast<u8>(me.lap + 1), 0, cell_is::free};
            ++t.received;
            me.at = what.commits_last ? owns : checks_block;
            break;
    }
    out.work(t, name, p, rule);
}

// The queue's cell, then what it names, then the units; a block that is to go is freed as its owner would.
void model::repair_step(const state& s, sink<state>& out) const {
    state t = s;
    repairer& m = t.holder;
    const char* name = "looks_at_unit";
    unit_word& w = t.unit[m.k];
    const auto next = [&] {
        m.pc = checks_word, m.n = 0;
        if (++m.k < what.units) return;
        t.named = {}, t.gathered = 0;
        end_repair(t);
    };
    switch (m.pc) {
        case repairs_cell:
            name = "repairs_cell";
            if (s.cell.epoch == m.epoch && s.cell.is == cell_is::claimed)
                t.cell = {static_cast<u8>(s.cell.lap + 1), 0, cell_is::free};
            if (s.cell.epoch == m.epoch && s.cell.is == cell_is::leased && what.gathers_leased)
                t.cell = {s.cell.lap, 0, cell_is::ready};
            t.named = {}, t.gathered = 0, m.pc = gathers;
            break;
        case gathers:
            name = "gathers";
            if (s.cell.is == cell_is::ready || (s.cell.is == cell_is::leased && what.gathers_leased))
                t.named = s.in_cell, t.gathered = 1;
            // For a cell that is repaired after the pool: the pool's repair must see the receiver's death.
            if (!what.gathers_leased && s.cell.epoch == m.epoch && s.cell.is == cell_is::leased)
                t.cell = {s.cell.lap, 0, cell_is::ready};
            m.pc = checks_word;
            break;
        case checks_word:
            if (w.epoch != m.epoch || w.is == unit_is::free || w.is == unit_is::body) {
                next();
            } else if (w.is == unit_is::owned) {
                if (what.repairs_owned)
                    m.pc = to_leaving;
                else
                    next();
            } else if (w.is == unit_is::claiming ? what.repairs_claiming : what.repairs_leaving) {
                m.pc = repair_length, m.n = 1;
            } else {
                next();
            }
            break;
        case to_leaving: {
            name = "mends_block";
            if (w.epoch != m.epoch || w.is != unit_is::owned) {  // a receiver has taken it meanwhile
                next();
                break;
            }
            const bool named = s.gathered != 0 && s.named.unit == m.k &&
                               (s.named.before == w.serial || s.named.after == w.serial);
            if (named && what.repairs_named_to_cell) {
                w = {s.named.after, 0, unit_is::in_queue};
                next();
            } else {
                w.is = unit_is::leaving;
                m.pc = repair_length, m.n = 1;
            }
            break;
        }
        case repair_length:
            name = "walks";
            if (m.k + m.n < what.units && s.unit[m.k + m.n] == body_of(m.k))
                ++m.n;
            else
                m.pc = m.n == 1 ? repair_first : repair_body;
            break;
        case repair_body:
            name = "frees_unit";
            t.unit[m.k + m.n - 1] = {};
            if (--m.n == 1) m.pc = repair_first;
            break;
        default:  // repair_first
            name = "frees_first";
            w = {};
            next();
            break;
    }
    out.work(t, name, the_holder);
}

}  // namespace carousel::ipc_model::of_pool
