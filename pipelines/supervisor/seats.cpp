#include "supervisor/seats.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "shm/process_id.hpp"
#include "supervisor/descriptors.hpp"
#include "supervisor/mps_domain.hpp"

namespace carousel::supervisor {
namespace {
constexpr u64 short_delay_ns = 500 * ns_per_ms;
}

using nlohmann::json;

seat_keeper::seat_keeper(const run_setup& setup, event_loop& loop, console& out) : setup_(&setup), loop_(&loop), console_(&out), ledgers_(setup) {
    u32 index = 0, on_cpu = 0;
    for (u32 k = 0; k < setup.stages.size(); ++k) {
        const stage_setup& st = setup.stages[k];
        for (u32 i = 0; i < st.instances; ++i) {
            auto s = std::make_unique<seat>();
            s->index = index++;
            s->stage = k;
            s->instance = i;
            s->label = st.instances > 1 ? fmt::format("{}.{}", st.name, i) : st.name;
            label_width_ = std::max(label_width_, s->label.size());
            on_cpu += st.device.kind == device::device_kind::cpu ? 1 : 0;
            seats_.push_back(std::move(s));
        }
    }
    for (auto& s : seats_)
        s->log = std::make_unique<log_sink>(out, s->label, label_width_, s->stage,
                                            fmt::format("{}/logs/{}.jsonl", setup.directory, s->label));
    if (const char* delay = std::getenv("CAROUSEL_TEST_KILL_DELAY_MS")) kill_delay_ns_ = std::strtoull(delay, nullptr, 10) * ns_per_ms;
    recoveries_ = recovery_log(setup.directory + "/recoveries.jsonl");
    journal_ = std::make_unique<log_sink>(out, "carousel", label_width_, 6, setup.directory + "/logs/@carousel.jsonl");
    cpu_threads_ = std::max(1U, std::thread::hardware_concurrency() / std::max(1U, on_cpu));  // the pools share the cores
}

seat_keeper::~seat_keeper() {
    for (auto& s : seats_) {
        if (s->now) s->gone.push_back(std::move(s->now));
        if (s->spare) s->gone.push_back(std::move(s->spare));
        for (auto& l : s->gone) {
            if (l->pidfd) loop_->forget(l->pidfd.get());
            if (l->tool_pidfd) loop_->forget(l->tool_pidfd.get());
            if (l->log.fd() >= 0) loop_->forget(l->log.fd());
        }
    }
}

void seat_keeper::attach_to(shm::control_block& c, const memory_keeper& memory, const shm::control_block* made) {
    CAROUSEL_ASSERT(all_gone());
    c_ = &c;
    made_ = made != nullptr ? made : &c;
    memory_ = &memory;
    for (auto& s : seats_) {
        s->gone.clear();
        s->heir = {};
    }
}

void seat_keeper::say(const std::string& text) {
    journal_->line(::getpid(), text);
}

void seat_keeper::note(const char* kind, u64 time_ns, const seat& s, const life& l, std::string text) {
    notes_.add({0, time_ns, kind, s.index, l.who.epoch, l.pid, std::move(text)});
}

void seat_keeper::start_all() {
    for (auto& s : seats_) {
        if (s->machine.state() == seat_state::down) s->machine.on(seat_event::bring_up, now_ns());
        s->start_wanted = true;
        s->due_ns = 0;
        start(*s);
    }
}

// Starts the stage's program for the entry that l.who names. Throws carousel::error.
void seat_keeper::spawn_life(const seat& s, life& l) const {
    const stage_setup& st = setup_->stages[s.stage];
    spawn_request r;
    r.argv = st.prefix;
    r.argv.push_back(st.program);
    r.environment = {"CAROUSEL_STAGE=" + setup_->stages[s.stage].name,
                     fmt::format("CAROUSEL_ATTACH={} {} {} {}", setup_->directory, l.who.seat, l.who.entry, l.who.epoch),
                     "CUDA_MODULE_LOADING=EAGER"};
    l.domain = wants_domain(s) ? domain_->generation() : 0;
    if (l.domain != 0)
        for (std::string& word : domain_->client_environment()) r.environment.push_back(std::move(word));
    l.tool = !st.prefix.empty();
    r.interactive = l.tool && isatty(STDIN_FILENO) != 0;
    shm::unique_fd output;
    if (!r.interactive) {
        l.log = log_pipe::make(output);
        r.output = output.get();
    }
    spawned p = spawn(r);
    crash_here(crash_point::stage_spawned);
    l.pid = p.pid;
    l.group = r.interactive ? 0 : p.pid;
    l.pidfd = std::move(p.pidfd);
}

void seat_keeper::start(seat& s) {
    if (s.now && s.now->how.was_ready) s.machine.on(seat_event::ready, now_ns());  // a standby sits already
    if (ending_ || paused_ || !memory_there_ || s.now || !may_start(s)) return;
    const bool first = s.pids.empty() || !s.heir;
    if (!s.heir) s.heir = ring::appoint(*c_, s.index);
    if (!s.heir) return;                       // every entry belongs to an unfenced process: the next tick tries again
    if (first) ring::revoke(*c_, s.index, 0);  // a fresh block's IDLE words bear epoch 0
    const stage_setup& st = setup_->stages[s.stage];
    s.start_wanted = false;
    auto l = std::make_unique<life>();
    l->who = s.heir;
    l->spawned_ns = now_ns();
    try {
        spawn_life(s, *l);
    } catch (const out_of_resources& e) {  // ours, not the stage's: it is started again, and nothing is counted
        if (!s.start_short) say(fmt::format("{} can't be started yet: {}", s.label, e.what()));
        s.start_short = s.start_wanted = true;
        s.due_ns = now_ns() + short_delay_ns;
        return;
    } catch (const error& e) {
        say(fmt::format("{}: {}", s.label, e.what()));
        s.last_exit = "not started";
        death d;
        d.known = true;
        d.exit_code = 127;
        act(s, s.machine.on(classify(d, st.restart), now_ns()), nullptr);
        return;
    }
    s.heir = {};
    s.start_short = false;
    s.clock_base_ns = l->spawned_ns;
    if (!s.pids.empty()) {
        ++s.restarts;
        ++account_.restarts;
    }
    s.pids.push_back(l->pid);
    s.now = std::move(l);
    s.by_standby = false;
    note("started", s.now->spawned_ns, s, *s.now, fmt::format("starts as pid {}", s.now->pid));
    watch_life(s, *s.now);
}

void seat_keeper::watch_life(seat& s, life& l) {
    // Lives move from seat::now to seat::gone but stay where they are in memory, until tick() erases them (and forgets the fds).
    loop_->watch(l.pidfd.get(), EPOLLIN, [this, &s, &l](u32) { on_process_end(s, l); });
    if (l.log.fd() >= 0) watch_log(s, l);
}

void seat_keeper::watch_log(seat& s, life& l) {
    loop_->watch(l.log.fd(), EPOLLIN, [this, &s, &l](u32) {
        if (l.log.drain(*s.log, l.pid)) return;
        loop_->forget(l.log.fd());
        l.log.close(*s.log, l.pid);
    });
}

void seat_keeper::act(seat& s, seat_action a, const life* l) {
    switch (a) {
        case seat_action::start:
            s.start_wanted = true;
            s.due_ns = 0;
            start(s);
            break;
        case seat_action::delay:
            s.start_wanted = true;
            s.due_ns = now_ns() + s.machine.delay_ns();
            say(fmt::format("{} died before it delivered anything ({}): starting again in {:.1f} s", s.label, s.last_exit,
                            static_cast<f64>(s.machine.delay_ns()) / 1e9));
            break;
        case seat_action::give_up:
            give_up(s, l);
            break;
        case seat_action::suspend:
            c_->seat[s.index].held.store(1, std::memory_order_release);
            if (s.now) shm::signal_pidfd(s.now->pidfd.get(), SIGSTOP);
            if (s.now) note("held", now_ns(), s, *s.now, "is held: the pipeline waits for it");
            break;
        case seat_action::resume:
            if (s.now) shm::signal_pidfd(s.now->pidfd.get(), SIGCONT);
            if (s.now) note("goes on", now_ns(), s, *s.now, "goes on");
            s.clock_base_ns = now_ns();
            c_->seat[s.index].held.store(0, std::memory_order_release);
            break;
        case seat_action::end:
            c_->seat[s.index].held.store(0, std::memory_order_release);
            if (s.now) bury(s);
            break;
        case seat_action::none:
        case seat_action::refuse:
            break;
    }
}

// ---- letting stages in

std::string seat_keeper::adopt_process(seat& s, life& l, i32 pid) {
    if (pid == l.pid) return "";
    const shm::process_id id{pid, shm::start_time_of(pid)};
    shm::unique_fd fd(shm::open_pidfd(id));
    if (!fd) return fmt::format("process {} can't be watched: {}", pid, errno_text(errno));
    if (l.pidfd) {  // the tool in front of the stage: it ends behind the stage, and is reaped then
        loop_->forget(l.pidfd.get());
        l.tool_pidfd = std::move(l.pidfd);
        loop_->watch(l.tool_pidfd.get(), EPOLLIN, [this, &s, &l](u32) {
            loop_->forget(l.tool_pidfd.get());
            (void)reap(l.tool_pidfd.get());
            l.tool_pidfd.reset();
        });
    }
    l.pidfd = std::move(fd);
    l.pid = pid;
    s.pids.push_back(pid);
    loop_->watch(l.pidfd.get(), EPOLLIN, [this, &s, &l](u32) { on_process_end(s, l); });
    return "";
}

seat* seat_keeper::free_seat_for(const std::string& stage, std::string& why) {
    why = fmt::format("the pipeline {} has no stage {}", setup_->name, stage);
    for (auto& s : seats_) {
        if (setup_->stages[s->stage].name != stage) continue;
        why = fmt::format("stage {} has a process already: `carousel down {}` first, then start it by hand", stage, stage);
        const bool vacant = s->machine.state() == seat_state::down || s->machine.state() == seat_state::failed;
        if (vacant && !s->now) return s.get();
    }
    return nullptr;
}

std::string seat_keeper::let_in(int connection, const shm::peer& peer, const json& hello) {
    seat* s = nullptr;
    const u32 index = hello.value("seat", shm::none);
    if (ending_ || paused_) return "the run is ending";
    if (!memory_there_) return "the run is being taken over by a second supervisor: try again";
    if (index != shm::none) {
        const ring::incarnation_id who{index, hello.value("entry", shm::none), hello.value("epoch", 0U)};
        if (index < seats_.size()) s = seats_[index].get();
        const auto waits_for = [&](const std::unique_ptr<life>& l) {
            return l && l->who.entry == who.entry && l->who.epoch == who.epoch && l->connection < 0;
        };
        if (s != nullptr && waits_for(s->spare)) return let_in_as(*s, *s->spare, connection, peer.pid);
        if (s == nullptr || !waits_for(s->now)) return "the seat has a successor already";
    } else {
        std::string why;
        s = free_seat_for(hello.value("stage", ""), why);
        if (s == nullptr) return why;
        if (!s->heir) s->heir = ring::appoint(*c_, s->index);
        if (!s->heir) return "too many processes of this run have not ended yet: try again";
        ring::revoke(*c_, s->index, 0);
        auto l = std::make_unique<life>();
        l->who = s->heir;
        l->by_hand = l->tool = true;  // somebody looks at it: no deadline
        l->spawned_ns = now_ns();
        if (why = adopt_process(*s, *l, peer.pid); !why.empty()) return why;  // before the seat is taken
        s->heir = {};
        s->now = std::move(l);
        s->machine.on(seat_event::spawned, now_ns());
    }
    return let_in_as(*s, *s->now, connection, peer.pid);
}

std::string seat_keeper::let_in_as(seat& s, life& l, int connection, i32 pid) {
    if (std::string why = adopt_process(s, l, pid); !why.empty()) return why;
    l.connection = connection;
    std::vector<int> fds;
    const std::string text = answer(s, l, fds);
    // A failed send closes the connection on the other side's way out; the death is then seen like any other.
    if (!shm::send_message(connection, text, fds))
        say(fmt::format("{}: the answer to its hello can't be sent: {}", s.label, errno_text(errno)));
    return "";
}

std::string seat_keeper::answer(const seat& s, const life& l, std::vector<int>& fds) const {
    const stage_setup& st = setup_->stages[s.stage];
    const shm::stage_block& b = made_->stage[s.stage];
    json a{{"run_id", made_->run_id},
           {"run_directory", setup_->directory},
           {"stage", st.name},
           {"seat", l.who.seat},
           {"entry", l.who.entry},
           {"epoch", l.who.epoch},
           {"standby", &l == s.spare.get()},
           {"width", setup_->width},
           {"height", setup_->height},
           {"cpu_threads", cpu_threads_},
           {"keeper_grace_s", setup_->keeper_grace_s},
           {"kept", memory_->describe_all(fds)},
           {"settings", st.settings},
           {"inputs", json::array()},
           {"format", st.format},
           {"links", json::array()},
           {"assets", json::array()}};
    a["device"] = {{"kind", st.device.kind == device::device_kind::cuda ? "cuda" : "cpu"},
                   {"uuid", st.device.uuid},
                   {"ordinal", st.device.ordinal}};
    for (const u32 i : st.inputs)
        a["inputs"].push_back({{"stage", setup_->stages[i].name}, {"format", setup_->stages[i].format}});
    const auto block = [&](bool asset, u32 index) -> json {
        for (const json& j : a["kept"])
            if (j["asset"] == asset && j["index"] == index) return j;
        throw shm_error(fmt::format("there is no memory for {} {}", asset ? "asset" : "link", index));
    };
    const auto add_link = [&](u32 link) {
        json j = block(false, link);
        j["link"] = link;
        a["links"].push_back(std::move(j));
    };
    for (u32 i = 0; i < b.inputs; ++i) add_link(b.input_link[i]);
    if (b.output_link != shm::none) add_link(b.output_link);
    for (u32 k = 0; k < setup_->assets.size(); ++k) {
        const asset_setup& asset = setup_->assets[k];
        if (std::find(asset.users.begin(), asset.users.end(), s.stage) == asset.users.end()) continue;
        json j = block(true, k);
        j["index"] = k;
        j["name"] = asset.name;
        a["assets"].push_back(std::move(j));
    }
    return json{{"attach", a}}.dump();
}

void seat_keeper::is_ready(int connection) {
    for (auto& s : seats_) {
        if (s->spare && s->spare->connection == connection) {
            s->spare->standing_by = s->spare->how.was_ready = true;
            s->spare_delay_ns = 0;
        }
        if (!s->now || s->now->connection != connection) continue;
        s->now->how.was_ready = true;
        s->clock_base_ns = now_ns();
        s->machine.on(seat_event::ready, now_ns());
        note("ready", now_ns(), *s, *s->now, fmt::format("is ready (pid {})", s->now->pid));
    }
}

void seat_keeper::connection_closed(int connection) {
    for (auto& s : seats_) {
        for (auto& l : s->gone)
            if (l->connection == connection) l->connection = -1;
        if (s->spare && s->spare->connection == connection) {
            s->spare->connection = -1;
            s->spare->standing_by = false;
            end_spare(*s);
        }
        if (!s->now || s->now->connection != connection) continue;
        s->now->connection = -1;
        s->now->seen_dead_ns = now_ns();
        s->now->leaving = !is_exiting(s->now->pid);
        bury(*s);
    }
}

}  // namespace carousel::supervisor
