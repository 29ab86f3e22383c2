#pragma once
// The pool model's states and its class; pool_model.hpp is what others include.

#include <fmt/format.h>

#include "pool_model.hpp"

namespace carousel::ipc_model::of_pool {

inline constexpr u8 most_units = 4, most_serials = 30;

enum pc : u8 {
    rest,
    checks,
    draws,
    claims_first,
    claims_body,
    becomes_owner,
    owns,
    parts_length,
    parts_body,
    parts_first,  // gives back part of a block
    leaves,
    length,
    frees_body,
    frees_first,  // releases a block
    names,
    claims_cell,
    writes_cell,
    publishes,
    transfers,
    leases,
    reads_cell,
    checks_block,
    takes,
    walks,
    commits
};
enum class unit_is : u8 { free, claiming, owned, leaving, in_queue, body };
struct unit_word {
    u8 serial, epoch;
    unit_is is;
    bool operator==(const unit_word&) const = default;
};
enum class cell_is : u8 { free, claimed, ready, leased };
struct cell_word {
    u8 lap, epoch;
    cell_is is;
    bool operator==(const cell_word&) const = default;
};
struct block_ref {
    u8 unit, before, after;
};
struct client {
    u8 at, left, first, n, k, serial, later;  // later: where to continue the search, when a claim failed
    u8 lap;
    block_ref ref;
    unit_word seen;
};
struct pool_state : common {
    std::array<unit_word, most_units> unit{};
    u8 serial = 0;
    cell_word cell{};
    block_ref in_cell{};
    block_ref named{};  // what the holder has gathered
    u8 gathered = 0;
    std::array<client, max_incarnations> all{};
    u8 gifts = 0, received = 0;  // published; taken and committed
};

enum repair_pc : u8 {
    repairs_cell,
    gathers,
    checks_word,
    to_leaving,
    repair_length,
    repair_body,
    repair_first
};

class model {
public:
    using state = pool_state;
    const pool_setup& what;
    explicit model(const pool_setup& s) : what(s) {}

    [[nodiscard]] state first() const {
        state s;
        static_cast<common&>(s) = begun(what);
        for (u8 p = 0; p < what.incarnations; ++p) {
            if (what.role[p] != pool_role::receiver) s.all[p].left = what.rounds;
            if (what.one_process) s.participant[p].epoch = 1;
        }
        return s;
    }
    void expand(const state& s, sink<state>& out) const { expand_incarnations(*this, s, out); }
    [[nodiscard]] bool busy(const state& s, u8 p) const { return s.all[p].at != rest || s.all[p].left > 0; }
    void dies(state& t, u8 p) const {
        const u8 left = t.all[p].left;
        t.all[p] = {};
        t.all[p].left = t.left.births > 0 ? left : u8{0};
    }
    void born(state&, u8) const {}

    void step(const state& s, u8 p, sink<state>& out) const {
        const u8 at = s.all[p].at;
        if (at == rest && what.role[p] == pool_role::receiver)
            receives(s, p, out);
        else if (at < parts_length)
            acquires(s, p, out);
        else if (at < names)
            frees(s, p, out);
        else if (at < leases)
            sends(s, p, out);
        else
            receives(s, p, out);
    }
    void repair_step(const state& s, sink<state>& out) const;

    [[nodiscard]] const char* broken(const state& s) const {
        u8 in[most_units] = {};
        for (u8 p = 0; p < what.incarnations; ++p)
            for (u8 k = 0; k < held_by(s, p); ++k)
                if (s.all[p].first + k >= what.units || in[s.all[p].first + k]++ != 0)
                    return "a unit is in two blocks";
        return s.serial > most_serials ? "serials are drawn without end" : nullptr;
    }
    [[nodiscard]] bool done(const state& s) const {
        return no_receiver_left(s) || (all_rest(*this, s) && (!receivers() || s.cell.is != cell_is::ready));
    }
    [[nodiscard]] const char* unsettled(const state& s) const {
        if (no_receiver_left(s)) return nullptr;
        if (s.cell.is == cell_is::claimed || s.cell.is == cell_is::leased) return "a cell is lost";
        for (u8 k = 0; k < what.units; ++k)
            if (s.unit[k].is != unit_is::free)
                return s.unit[k].is == unit_is::in_queue ? "a gift is lost" : "a unit is leaked";
        return nullptr;
    }
    [[nodiscard]] std::string text(const state& s) const {
        std::string out = fmt::format("cell {}/{}/{} names {}, units", s.cell.lap, s.cell.epoch,
                                      static_cast<int>(s.cell.is), s.in_cell.unit);
        for (u8 k = 0; k < what.units; ++k)
            out +=
                fmt::format(" {}/{}/{}", s.unit[k].serial, s.unit[k].epoch, static_cast<int>(s.unit[k].is));
        for (u8 p = 0; p < what.incarnations; ++p)
            out += fmt::format("; life {} at {} first {} of {}", p, s.all[p].at, s.all[p].first, s.all[p].n);
        return out;
    }

private:
    [[nodiscard]] static unit_word body_of(u8 first) { return {first, 0, unit_is::body}; }
    // The number of units that the incarnation takes, from its first one on.
    [[nodiscard]] u8 held_by(const state& s, u8 p) const {
        const client& c = s.all[p];
        if (s.participant[p].is == body::ended) return 0;
        const bool own = c.at == owns || c.at == leaves || (c.at >= names && c.at <= publishes);
        return own ? c.n : u8{0};
    }
    [[nodiscard]] bool receivers() const {
        for (u8 p = 0; p < what.incarnations; ++p)
            if (what.role[p] == pool_role::receiver) return true;
        return false;
    }
    // Then gifts stay where they are, and givers wait.
    [[nodiscard]] bool no_receiver_left(const state& s) const {
        for (u8 p = 0; p < what.incarnations; ++p)
            if (what.role[p] == pool_role::receiver && s.participant[p].is != body::ended) return false;
        return receivers();
    }
    static void clear(client& me) {
        const u8 left = me.left;
        me = {};
        me.left = left;
    }

    void acquires(const state& s, u8 p, sink<state>& out) const;
    void frees(const state& s, u8 p, sink<state>& out) const;
    void freed(client& me, u8 units, bool part) const;
    void sends(const state& s, u8 p, sink<state>& out) const;
    void receives(const state& s, u8 p, sink<state>& out) const;
    [[nodiscard]] u8 giver_of() const {
        u8 p = 0;
        while (p + 1 < what.incarnations && what.role[p] != pool_role::giver) ++p;
        return p;
    }
};

}  // namespace carousel::ipc_model::of_pool
