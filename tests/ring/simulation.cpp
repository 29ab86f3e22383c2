#include "simulation.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/errors.hpp"
#include "ring/check/block_check.hpp"
#include "ring/event_domain.hpp"
#include "ring/parameter_box.hpp"
#include "ring/stream_end.hpp"
#include "simulated_process.hpp"

namespace carousel::test {
namespace {
using namespace carousel::ring;

class scheduler {
public:
    explicit scheduler(const simulation_options& o) : options_(o) {
        world_.random.seed(o.seed);
        initialise(*world_.c, plan_of(o));
        seen_ring_ = world_.c->stage[1].output_link[0];
        const u64 value = 0;
        initialise_parameters(world_.c->parameters, std::as_bytes(std::span(&value, 1)), 0);
        if (o.first.lap != 0)
            world_.c->parameters.state.store(
                parameter_state{o.first.lap, 0}.pack());  // every slot of the box has that set
        changes_random_.seed(o.seed);
        world_.c->magic.store(shm::control_magic);
        flips_.seed(o.seed);
        if (o.check_every != 0 || o.flips != 0) {
            made_ = shm::make_private_block();
            shm::copy_words(*made_, *world_.c);
        }
        for (u32 seat = 0; seat < world_.c->seats; ++seat) start(seat);
        viewer_ = std::make_unique<latest_reader>(*world_.c, seen_ring_, shm::max_incarnations);
    }

    simulation_result run() {
        const while_hooked hooked(options_.interleaved, [this](crash_point at) { interleave(at); });
        u32 kills = options_.kills, flips = options_.flips;
        const u64 limit = 4000 * (options_.frames + 10);
        for (u64 step = 0; step < limit; ++step) {
            world_.result.steps = step;
            if (finished()) break;
            if (options_.stop_early && step >= limit / 400 && load(world_.c->end) == end_unknown)
                begin_stop(*world_.c);
            if (options_.stop_early) (void)try_finish_stop(*world_.c);
            if (changes_random_() % 16 == 0) change_parameters();
            if (flips > 0 && !flips_.now() && flips_.is_time())
                --flips, flips_.flip(*world_.c, *made_, options_.flips_in_use);
            const u64 dice = world_.below(1000);
            if (dice < 4 && kills > 0 && options_.domain_ends)
                --kills, end_domain();
            else if (dice < 8 && kills > 0)
                --kills, kill_one();
            else if (dice < 60)
                supervise();
            else if (dice < 120)
                view();
            else
                moving_ = processes_[world_.below(processes_.size())].get(), advance(*moving_);
            if (options_.check_every != 0 && step % options_.check_every == 0 &&
                world_.result.finding.empty())
                check();
        }
        for (int k = 0; k < 3; ++k) supervise();
        judge();
        return world_.result;
    }

private:
    // At a point between a worker's read of a word and its CAS another process makes a whole step, on this
    // thread. fill() would wait for a slot that the other process has taken, so two free slots are needed.
    void interleave(crash_point at) {
        if (!is_before_a_lease(at) || moving_ == nullptr || !has_two_free_slots(*world_.c, *moving_->w))
            return;
        process& other = *processes_[world_.below(processes_.size())];
        if (&other == moving_ || world_.below(2) != 0) return;
        process* const outer = std::exchange(moving_, nullptr);
        ++world_.result.interleavings, advance(other);
        moving_ = outer;
    }

    void start(u32 seat) {
        const u32 before = seat_word::of(load(world_.c->seat[seat].current)).epoch;
        const incarnation_id incarnation = appoint(*world_.c, seat);
        CAROUSEL_ASSERT(incarnation);
        epochs_[seat] = incarnation.epoch;
        (void)revoke(*world_.c, seat, 0);  // the incarnation that the words of a fresh block belong to
        (void)revoke(*world_.c, seat, before);
        CAROUSEL_ASSERT(claim(*world_.c, incarnation) == claim_result::ok);
        for (u32 k = 0; k < shm::max_slots; ++k) {
            const u32 names[2] = {incarnation.entry, k};
            std::memcpy(world_.c->event_handle[incarnation.entry][k], names, sizeof names);
        }
        world_.c->entry[incarnation.entry].events_published.store(published_in(domain_));
        CAROUSEL_ASSERT(go_live(*world_.c, incarnation));
        auto p = std::make_unique<process>();
        p->incarnation = incarnation;
        p->w = std::make_unique<worker>(*world_.c, incarnation.seat, incarnation.entry, incarnation.epoch);
        p->context = std::make_unique<event_context>(events_of(world_));
        p->help = std::make_unique<helper>(*world_.c, *p->context, domain_);
        processes_.push_back(std::move(p));
    }

    // As the supervisor does: into the block, and into its own copy of the block.
    void change_parameters() {
        const u64 value = ++world_.result.changes, oldest = load(world_.c->link[0].tail);
        const auto bytes = std::as_bytes(std::span(&value, 1));
        const std::optional<u64> from = publish(world_.c->parameters, bytes, oldest);
        if (!from)
            --world_.result.changes;
        else
            change_from_.push_back(*from);
        if (!from || !made_) return;
        shm::parameter_box& own = made_->parameters;
        own.state.store(parameter_state{parameter_state::of(load(own.state)).sets, *from}.pack());
        CAROUSEL_ASSERT(publish(own, bytes, oldest) == from);
    }

    // Change k + 1 applies from change_from_[k] on: only the returned values determine which change a frame
    // has.
    void check_parameters(const job& j) {
        const auto next_change = std::upper_bound(change_from_.begin(), change_from_.end(), j.ring_sequence);
        u64 value = 0;
        std::memcpy(&value, j.parameters, sizeof value);
        const u64 expected = static_cast<u64>(next_change - change_from_.begin());
        if (j.parameter_number != expected || value != expected) ++world_.result.mixed;
    }

    [[nodiscard]] known_run what_is_known() const {
        known_run known;
        known.end = load(world_.c->end);
        if (known.end == shm::no_number) known.end = shm::end_word::unpack(flips_.now()->truth);
        known.surplus = options_.ends_at != ~u64{0} ? shm::max_window : 0;
        for (u32 k = 0; k < made_->seats; ++k) known.epochs.push_back(epochs_[k]);
        for (const auto& p : processes_)
            known.processes.push_back({p->incarnation.seat, p->incarnation.entry, p->incarnation.epoch,
                                       static_cast<u32>(::getpid()), !p->zombie, false});
        for (const incarnation_id& incarnation : fenced_)
            known.processes.push_back(
                {incarnation.seat, incarnation.entry, incarnation.epoch, 0, false, false});
        known.tails = tails_;
        return known;
    }

    // Between two steps nothing moves: every word must be as the protocol leaves it.
    void check() {
        const known_run known = what_is_known();
        for (const auto& found : {check_static(*world_.c, *made_), check_known(*world_.c, *made_, known),
                                  check_words(*world_.c, *made_, known)})
            if (!found.empty())
                world_.result.finding =
                    "step " + std::to_string(world_.result.steps) + ": " + found.front().text();
        ++world_.result.checks;
        tails_.clear();
        for (u32 k = 0; k < made_->links; ++k) tails_.push_back(load(world_.c->link[k].tail));
    }

    void kill_one() {
        process& p = *processes_[world_.below(processes_.size())];
        if (p.zombie || p.exited || flips_.hides_a_seat()) return;  // an unknown epoch has no next one
        const job_census n = census(*world_.c, p.incarnation.seat, p.incarnation.epoch);
        for (u32 k = 0; k < 5; ++k) world_.result.kills_at[k] += n.by_state[k];
        p.zombie = true;
        const incarnation_id incarnation = p.incarnation;
        doom(*world_.c, incarnation.entry);
        if (options_.mps && options_.kill_first) cut_short(p);
        start(incarnation.seat);
        p.revoked = revoke(*world_.c, incarnation.seat, incarnation.epoch);
        if (options_.mps && !options_.kill_first) cut_short(p);
        if (world_.below(2) == 0)
            (void)requeue(*world_.c, incarnation.seat, incarnation.epoch, blame::none,
                          n.in_flight);  // otherwise supervise() does it, late
    }

    // terminate_client: no work that the dead process has enqueued runs any more, and its events read as
    // complete. Processes that wait for its frames check at once.
    void cut_short(process& dead) {
        for (auto& [name, pending] : world_.pending)
            if (name.first == dead.incarnation.entry) pending = false;
        dead.exited = true;
        help_all();
    }

    void help_all() {
        for (auto& p : processes_)
            for (u32 k = 0; !p->zombie && k < p->w->stage().inputs; ++k)
                world_.result.helped += p->help->help(p->w->input(k));
    }

    // A joint takeover. The successor of each seat polls before the words of the other seats are revoked.
    void end_domain() {
        if (flips_.hides_a_seat()) return;
        std::vector<process*> over;
        for (auto& p : processes_)
            if (!p->zombie && !p->exited) over.push_back(p.get());
        for (process* p : over) {
            p->zombie = p->exited = true;
            for (auto& [name, pending] : world_.pending)
                if (name.first == p->incarnation.entry) pending = false;
        }
        ++domain_, ++world_.result.domain_ends;
        std::shuffle(over.begin(), over.end(), world_.random);
        for (process* p : over) {
            const incarnation_id incarnation = p->incarnation;
            const job_census n = census(*world_.c, incarnation.seat, incarnation.epoch);
            doom(*world_.c, incarnation.entry);
            start(incarnation.seat);
            help_all();
            p->revoked = revoke(*world_.c, incarnation.seat, incarnation.epoch);
            (void)requeue(*world_.c, incarnation.seat, incarnation.epoch, blame::none, n.in_flight);
        }
    }

    // One pass over the dead processes; at times a fence arrives. Like the engine's tick it sweeps: after the
    // last frame no other process may be left to move a ring's tail, when its producer has left and the last
    // member's DONE was written on behalf of a dead process.
    void supervise() {
        if (flips_.now()) flips_.repair(*world_.c, *made_, what_is_known(), world_.result);
        if (options_.flips != 0)
            revoke_forgotten_leases(*world_.c, seen_ring_, viewer_->group(),
                                    viewed_ ? viewed_.index : shm::none);
        for (u32 k = 0; k < world_.c->links; ++k) link_ref(*world_.c, k).sweep();
        check_for_end();
        for (std::size_t k = 0; k < processes_.size();) {
            process& p = *processes_[k];
            if (!p.zombie) {
                ++k;
                continue;
            }
            p.revoked = revoke(*world_.c, p.incarnation.seat, p.incarnation.epoch) || p.revoked;
            (void)requeue(*world_.c, p.incarnation.seat, p.incarnation.epoch, blame::none, 0);
            if (!p.revoked || world_.below(4) != 0) {
                ++k;
                continue;
            }
            mark_fenced(*world_.c, p.incarnation.entry);  // from here on it takes no step and writes no byte
            fenced_.push_back(p.incarnation);
            processes_.erase(processes_.begin() + static_cast<long>(k));
        }
        for (const incarnation_id& incarnation : fenced_) {
            (void)requeue(*world_.c, incarnation.seat, incarnation.epoch, blame::none, 0);
            (void)reclaim(*world_.c, incarnation.seat, incarnation.epoch);
        }
        std::erase_if(fenced_, [&](const incarnation_id& incarnation) {
            return reclaim(*world_.c, incarnation.seat, incarnation.epoch);
        });
    }

    void check_for_end() {
        if (options_.keeps_stopping && load(world_.c->end) == end_stopping) return;
        if (const auto found = claimed_end(*world_.c)) (void)lower_end(*world_.c, found->ring_sequence);
    }

    void view() {
        if (viewed_) {
            const u64 seen = world_.content[{seen_ring_, viewed_.index}];
            const u64 expected = viewed_.ring_sequence;
            if (world_.below(3) == 0) {  // some process revokes a stale lease
                shm::word& at = world_.c->link[seen_ring_].group[viewed_.index][viewer_->group()];
                const u64 raw = load(at);
                if (lease_word::of(raw).state == lease_state::leased)
                    cas(at, raw,
                        lease_word{lease_word::of(raw).generation, 0, 0, 0, lease_state::skipped}.pack());
            } else if (world_.below(2) == 0) {
                if (viewer_->release()) {
                    ++world_.result.seen_by_latest;
                    if (seen != expected) ++world_.result.torn;
                }
                viewed_ = {};
            }
            return;
        }
        viewed_ = viewer_->acquire();
        if (viewed_ && world_.content[{seen_ring_, viewed_.index}] != viewed_.ring_sequence)
            ++world_.result.torn;
    }

    void advance(process& p) {
        if (p.exited) return;
        const u64 choice = world_.below(6);
        if (choice == 0 && !p.zombie)
            for (u32 k = 0; k < p.w->stage().inputs; ++k) world_.result.helped += p.help->help(p.w->input(k));
        for (u32 k = 0; choice == 1 && k < p.w->outputs(); ++k) p.w->output(k).sweep();
        if (choice <= 3 && begin_one(p)) return;
        if (!p.jobs.empty()) {
            work& x = p.jobs[p.w->outputs() > 0 ? world_.below(p.jobs.size()) : 0];
            if (!waits_for_repair(*world_.c, *p.w, x.j)) step(p, x);
        }
        std::erase_if(p.jobs, [](const work& w) { return w.at == phase::done; });
    }

    bool begin_one(process& p) {
        if (p.jobs.size() >= p.w->stage().in_flight) return false;
        if (!intact(load(world_.c->parameters.state))) return false;  // the process would wait
        if (std::any_of(p.jobs.begin(), p.jobs.end(), [](const work& w) { return w.at == phase::ended; }))
            return false;
        // fill() may sleep for a slot: enter it only if a slot is free, as no other thread could free one
        // meanwhile
        for (u32 k = 0; k < p.w->outputs(); ++k)
            if (!p.w->output(k).has_free_slot()) return false;
        if (options_.reach_moves) p.w->reach(1 + static_cast<u32>(world_.below(world_.c->link[0].window)));
        work n;
        const outcome o = p.w->begin(n.j, static_cast<u32>(p.jobs.size()));
        if (o == outcome::revoked) {
            if (!p.zombie) ++world_.result.late;
            p.exited = true;
        }
        if (o == outcome::closed && p.jobs.empty()) p.exited = true;
        if (o != outcome::ok) return false;
        check_inputs(p, n.j);
        for (u32 k = 0; k < p.w->outputs(); ++k)
            world_.content[{p.w->output(k).index(), n.j.output[k].index}] = ~u64{0};
        if (n.j.sequence_index != shm::none && n.j.ring_sequence >= options_.ends_at) n.at = phase::ended;
        p.jobs.push_back(n);
        return true;
    }

    void check_inputs(process& p, const job& j) {
        if (p.zombie) return;  // what a revoked process reads is discarded
        check_parameters(j);
        for (u32 k = 0; k < j.inputs; ++k)
            if (world_.content[{p.w->input(k).index(), j.input[k].index}] != j.ring_sequence)
                ++world_.result.torn;
    }

    void step(process& p, work& x) {
        switch (x.at) {
            case phase::filled:
                if (p.w->outputs() > 0)
                    world_.pending[{p.incarnation.entry, x.j.output[0].index}] =
                        true;  // recorded, before SUBMITTED
                if (p.w->submit(x.j))
                    x.at = phase::submitted;
                else
                    leave(p);
                break;
            case phase::submitted:  // the device is done: a zombie's late writes land here too, until its
                                    // fence
                if (x.written < p.w->outputs()) {
                    world_.content[{p.w->output(x.written).index(), x.j.output[x.written].index}] =
                        x.j.ring_sequence;
                    if (++x.written < p.w->outputs()) break;
                    world_.pending[{p.incarnation.entry, x.j.output[0].index}] = false;
                }
                x.at = phase::written;
                break;
            case phase::written:
                check_inputs(p, x.j);
                if (p.w->commit(x.j)) {
                    if (p.revoked) ++world_.result.late;
                    if (p.w->outputs() == 0) deliver(p, x.j.ring_sequence);
                    x.at = phase::committed;
                } else {
                    leave(p);
                }
                break;
            case phase::committed:
                if (!p.w->complete(x.j) && !p.zombie) ++world_.result.late;
                x.at = phase::done;
                break;
            case phase::ended:
                give_back_after_end(p, x);
                break;
            case phase::done:
                break;
        }
    }

    void give_back_after_end(process& p, work& x) {
        const outcome end_result = p.w->end_stream(x.j);
        if (end_result == outcome::empty) return;
        if (end_result == outcome::revoked || !p.w->give_back(x.j)) return leave(p);
        x.at = phase::done;
    }

    void leave(process& p) {
        if (!p.zombie) ++world_.result.late;  // a live process that finds itself revoked
        p.exited = true;
    }

    void deliver(process& p, u64 ring_sequence) {
        std::vector<u64>& got = world_.delivered[p.w->stage_index()];
        if (std::find(got.begin(), got.end(), ring_sequence) != got.end())
            ++world_.result.repeated;
        else if (!got.empty() && ring_sequence < got.back())
            ++world_.result.disorder;
        got.push_back(ring_sequence);
        ++world_.result.delivered;
    }

    bool finished() {
        if (!all_delivered(*world_.c) || !fenced_.empty()) return false;
        return std::all_of(processes_.begin(), processes_.end(),
                           [](const auto& p) { return p->exited && !p->zombie; });
    }

    void judge() {
        const u64 end = load(world_.c->end);
        world_.result.stuck = !all_delivered(*world_.c);
        if (world_.result.stuck) return;
        world_.result.end = end;
        for (u32 stage : {2U, 3U}) {
            const std::vector<u64>& got = world_.delivered[stage];
            world_.result.beyond +=
                static_cast<u64>(std::count_if(got.begin(), got.end(), [&](u64 n) { return n >= end; }));
            const u64 every = stage == 2 ? options_.every : 1;
            world_.result.beyond += static_cast<u64>(
                std::count_if(got.begin(), got.end(), [&](u64 n) { return n % every != 0; }));
            for (u64 n = 0; n < end; n += every)
                if (std::find(got.begin(), got.end(), n) == got.end()) ++world_.result.lost;
        }
    }

    simulation_options options_;
    world world_;
    shm::private_block made_;  ///< as it was published
    std::vector<u64> tails_;
    std::mt19937_64
        changes_random_;  ///< separate, so that the histories are the same with changes and without
    std::vector<u64> change_from_;
    std::vector<std::unique_ptr<process>> processes_;
    std::vector<incarnation_id> fenced_;
    process* moving_ = nullptr;  ///< the process that is in a step, and may be interrupted
    simulated_flips flips_;
    u32 epochs_[shm::max_seats] = {};
    std::unique_ptr<latest_reader> viewer_;
    slot_ref viewed_;
    u32 domain_ = 1;     ///< generation of the MPS domain that serves
    u32 seen_ring_ = 1;  ///< the first ring of the middle stage
};

}  // namespace

simulation_result simulate(const simulation_options& options) { return scheduler(options).run(); }

}  // namespace carousel::test
